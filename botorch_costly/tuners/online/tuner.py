"""Tuning inside one training run: ask for a configuration, tell its reward if it is queried."""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from botorch_costly.acquisition import UCB, AcquisitionFactory, at_round
from botorch_costly.acquisition.factories import MakeAcquisition
from botorch_costly.ask_tell.clocks import Clocks
from botorch_costly.ask_tell.domain import Domain
from botorch_costly.ask_tell.optimizer import GainOptimizer
from botorch_costly.ask_tell.search import Search
from botorch_costly.device import largest_reward
from botorch_costly.errors import check_count, warn_caller
from botorch_costly.models import StreamingGP
from botorch_costly.plain import as_number, config_text
from botorch_costly.query import AlwaysQuery, ConfidenceQuery, QueryRule, UnqueriedPlay
from botorch_costly.randomness import generator_of
from botorch_costly.records import Decision, Plain
from botorch_costly.rewards.scale import RewardScale
from botorch_costly.schedule import Schedule
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.online.decider import Decider
from botorch_costly.tuners.online.diagnosis import Diagnosis, diagnosis_of
from botorch_costly.tuners.online.intervals import Intervals
from botorch_costly.tuners.online.learner import Learner
from botorch_costly.tuners.online.opening import limits_of, opening_of
from botorch_costly.tuners.online.options import Design, Hold, Limits, Options, Prior, Refit
from botorch_costly.tuners.online.proposer import Proposer, Run
from botorch_costly.tuners.online.rivals import rivals_of
from botorch_costly.tuners.online.strategy import OnlineStrategy


class OnlineTuner(GainOptimizer[Decision]):
    r"""CE-GP-UCB: tune hyperparameters while one network trains, and query only when it is worth it.

    In each round ``ask`` proposes a configuration, the maximizer of an acquisition function on a
    time-varying GP, and whether to pay for a query, such as a validation pass. ``tell`` hands in the
    reward if it was measured. A decision need not be told.

    References:
        J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
        optimization. 2021, Algorithm 1.

    Args:
        space: Search space. A space of choices alone is a bandit over its combinations.
        horizon: Rounds of the run; ``None`` if unknown.
        seconds: Seconds that the run may take, from the first ``ask`` on; no limit if omitted.
        query: Rule that decides whether the end of an interval is queried; by default each is.
        start: Configuration of the first intervals, such as your default; their ends are queried,
            regardless of the design.
        prior: Kernel, lengthscale, noise and forgetting before the first query.
        refit: Schedule on which these are refitted; never by default.
        acquisition: Acquisition function: ``UCB(beta)``, ``LogEI()``, ``PI()``, or any callable
            ``(belief, round) -> AcquisitionFunction``. Rules with a price ignore it.
        unqueried_play: Configuration of a round without a query: ``"acquisition"``, the maximizer of the
            acquisition function, as published, or ``"mean"``, the maximizer of the posterior mean, since
            such a round cannot explore. It does not change when the rule queries.
        rewards: Map from rewards to values of the model. By default their ranks, of which the lowest two
            fifths count as equal. Under a rule that reads rewards, such as one with a price, their values
            on an estimated scale.
        design: Rounds and kind of the design in the first intervals, and rounds of the start.
        hold: Length of the intervals for which a configuration is held.
        search: Restarts of the search for local optima, and smallest distance between these.
        limits: Largest number of queries, number of rounds kept in a run without end, and first factor
            of the trust region around the start.
        maximize: Whether larger rewards are better.
        seed: Seed of all random draws; the global generators are never touched.
        overhead: Largest share of the clock that queries and the tuner may take, in (0, 1], as in
            ``Validation``; no limit if omitted. Seconds are measured between the calls of ``ask`` and
            ``tell``. No rule queries what the share does not afford; ``PricedQuery()`` spends it where
            queries earn most.
        clock: Function that returns seconds.
        dtype: Type of all computation, ``torch.float64`` or ``torch.float32``.
        device: Device of all computation.

    Raises:
        InvalidArgumentError: If an argument is outside its range, or the device does not exist.
        InvalidBudgetError: If ``max_queries``, the design or the start exceed the limits of the run.
        InvalidConfigError: If ``start`` does not belong to the space.
        InvalidSpaceError: If the space holds a single configuration.

    Example:
        >>> from botorch_costly import Real
        >>> space = SearchSpace({"lr": Real(1e-4, 1e-1, log=True), "dropout": Real(0.0, 0.6)})
        >>> tuner = OnlineTuner(space, horizon=10, design=Design(rounds=3), seed=0)
        >>> for _ in range(10):
        ...     decision = tuner.ask()
        ...     if decision.query:
        ...         _ = tuner.tell(decision, -((decision.config["dropout"] - 0.2) ** 2))
        >>> len(tuner.decisions)
        10
    """

    predicts: bool = True

    _strategy: OnlineStrategy
    _changeable = ()

    def __init__(
        self,
        space: SearchSpace,
        horizon: int | None = None,
        *,
        query: QueryRule | None = None,
        start: Mapping[str, Plain] | None = None,
        prior: Prior | None = None,
        refit: Refit | None = None,
        acquisition: AcquisitionFactory | MakeAcquisition | None = None,
        unqueried_play: UnqueriedPlay = "acquisition",
        rewards: RewardScale | None = None,
        design: Design | None = None,
        hold: Hold | None = None,
        search: Search | None = None,
        limits: Limits | None = None,
        maximize: bool = True,
        seconds: float | None = None,
        overhead: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        self._build(
            Options(
                space=space,
                horizon=horizon,
                query=AlwaysQuery() if query is None else query,
                start=start,
                prior=Prior() if prior is None else prior,
                refit=Refit() if refit is None else refit,
                acquisition=UCB() if acquisition is None else acquisition,
                unqueried_play=unqueried_play,
                rewards=rewards,
                design=Design() if design is None else design,
                hold=Hold() if hold is None else hold,
                search=Search() if search is None else search,
                limits=Limits() if limits is None else limits,
                maximize=maximize,
                seed=seed,
                dtype=dtype,
                device=device,
                seconds=seconds,
                overhead=overhead,
                clock=clock,
            )
        )

    def _build(self, options: Options) -> None:
        """Build the parts of the tuner from its options."""
        space, horizon, query = options.space, options.horizon, options.query
        self.query = query
        self._tkwargs: dict[str, Any] = {"dtype": options.dtype, "device": options.device}
        self._intervals = Intervals(options.hold.share, horizon, options.hold.shortest)
        note = query.unspendable(self._intervals.within, horizon)
        if note is not None:
            warn_caller(note)
        limits = options.limits
        rationed = options.overhead is not None
        run = Run(space, self._intervals, horizon, limits.max_queries, rationed, options.steps)
        number = None if horizon is None else self._intervals.within(horizon)
        room = limits_of(horizon, number, limits.max_queries, query.budget)
        opening = opening_of(space, room, options.design, options.start, options.seed)
        prior = options.prior.of(space)
        tkwargs, units = self._tkwargs, options.units
        learner = Learner(prior, options.refit, options.scale, tkwargs, limits.max_rows, units)
        self._rivals = rivals_of(space, options.search, self._tkwargs)
        rule = query.for_run(self._intervals.within, horizon)
        generator = generator_of(options.seed)  # on the CPU, to avoid waiting for the device
        decider = Decider(self._rivals, rule, options.acquisition, options.unqueried_play)
        proposer = Proposer(run, opening, decider, rule, generator)
        self._largest = largest_reward(options.dtype)
        super().__init__(
            Domain(options.space, **self._tkwargs),
            OnlineStrategy(run, learner, proposer, options.dtype),
            horizon=horizon,
            maximize=options.maximize,
            options=options.lasting,
            kept=limits.keep_rounds,
            clocks=Clocks(options.seconds, options.overhead, options.clock),
        )

    @classmethod
    def as_published(
        cls, space: SearchSpace, horizon: int | None = None, **options: Any
    ) -> "OnlineTuner":
        """Return a tuner with the options of the paper: a decision in each round, on unranked rewards.

        Two things are ours, since the paper knows the unit of its rewards: rewards are scaled by what was
        told, and the first configurations are drawn at random and queried. Its own way is
        ``rewards=RewardScale(0.0, 1.0, clip=math.inf), design=Design(rounds=0)``, for rewards of about 1.

        As in the paper, the last round has no query for its own sake, so a guard may not see it.

        Args:
            space: Search space.
            horizon: Rounds of the run; ``None`` if unknown.
            options: Options of ``OnlineTuner`` that replace those of the paper; a group of options is
                replaced as a whole.
        """
        paper: dict[str, Any] = {
            "query": ConfidenceQuery(),
            "hold": Hold(share=0.0),
            "rewards": RewardScale(),
            "design": Design(kind="random", start_rounds=1),
            "prior": Prior(forgetting=0.01),
            "acquisition": UCB(beta=1.0),
            "search": Search(num_restarts=50, bandwidth=0.2),
            "limits": Limits(rate_factor=math.inf),
        }
        tuner = cls(space, horizon, **{**paper, **options})
        tuner.queries_last = False
        return tuner

    @property
    def max_queries(self) -> int | None:
        """Largest number of queries in the run."""
        return self._strategy.run.max_queries

    @property
    def belief(self) -> StreamingGP:
        """Posterior of the reward in its units: a BoTorch model over [x, interval].

        With ``maximize=False`` it models the negative rewards. Clipped rewards have their clipped values.
        With ``RewardScale(ranks=True)`` the units are nominal, and the lowest ranks are equal. Later
        rewards create another model; this one does not change.
        """
        return self._strategy.learner.model

    @property
    def trust_region(self) -> dict[str, tuple[float, float]]:
        """Least and largest value of each parameter of the trust region in the next interval.

        Empty for a run without a region; all other parameters have their whole range.
        """
        return self._strategy.proposer.limits()

    @property
    def trust_regions(self) -> tuple[tuple[int, dict[str, tuple[float, float]]], ...]:
        """First round of each trust region so far, with its limits; the latest 1000 are kept."""
        return self._strategy.proposer.trace

    def interval_of(self, round: int) -> int:
        """Return the number of the interval of a round, the unit of time of ``belief``."""
        return self._intervals.at(check_count("round", round)).number

    def predict(
        self, configs: Sequence[Mapping[str, Plain]], round: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the present posterior of the reward of configurations in a round.

        Args:
            configs: Configurations of the space.
            round: Past or future round of the run, from 0; the next one if omitted. All rewards count,
                also those told after the round.

        Returns:
            Means and standard deviations of the reward, without the noise of a query, each of
            shape ``(n,)``, in the units of ``belief``.

        Raises:
            InvalidArgumentError: If the round is not an integer of at least 0.
            InvalidConfigError: If a configuration does not belong to the space.
        """
        now = len(self._ledger) if round is None else round
        when = torch.tensor(float(self.interval_of(now)), **self._tkwargs)
        rows = [self._encode(config) for config in configs]
        points = torch.stack(rows) if rows else torch.zeros(0, self.space.dim, **self._tkwargs)
        mean, variance = self.belief.mean_and_variance(at_round(points, when))
        return self._sign * mean.detach(), variance.detach().sqrt()

    def best(self) -> dict[str, Plain] | None:
        """Return the incumbent: the observed configuration of highest mean now; None without data."""
        now = self._intervals.at(len(self._ledger)).number
        best = self._strategy.learner.incumbent(now)
        if best is None:
            return None
        # Prefer the configuration that was played: decoding may change the last digits.
        played = self._ledger.config_of(self._intervals.first_of(int(best[-1])))
        if played is None or not torch.equal(self._encode(played), best[:-1]):
            return self.space.decode(best[:-1])
        return dict(played)

    def summary(self) -> str:
        """Return a few lines on the rounds, the queries, the belief and the incumbent."""
        rounds, queries, model = len(self._ledger), self.queries, self.belief
        best = "none yet" if (known := self.best()) is None else config_text(known)
        of_horizon = "" if self.horizon is None else f" of {self.horizon}"
        share = f" ({queries / rounds:.0%} of the rounds)" if rounds else ""
        return "\n".join(
            [
                f"{rounds}{of_horizon} rounds, {queries} queries{share}, "
                f"{self.failed_queries} of them failed",
                f"query rule: {self.query}",
                f"belief: {model.num_rows} rewards, center {self._sign * model.center:.4g}, "
                f"scale {model.scale:.4g}, forgetting {model.forgetting:.4g}, noise {model.noise:.3g}",
                *self._on_the_clock(),
                *self._on_the_region(),
                f"best configuration seen, as believed now: {best}",
            ]
        )

    def _on_the_region(self) -> list[str]:
        """Return a line on the trust region, and whether the run sits at its edge."""
        limits = self.trust_region
        if not limits:
            return []
        within = ", ".join(
            f"{name} {low:.3g} to {high:.3g}" for name, (low, high) in limits.items()
        )
        lines = [f"trust region, widened by success: {within}"]
        last = self._ledger.config_of(len(self._ledger) - 1) or {}
        values = {name: as_number(name, last[name]) for name in limits if name in last}
        edge = [
            name
            for name, value in values.items()
            if limits[name][0] < limits[name][1]
            and any(math.isclose(value, end) for end in limits[name])
        ]
        if edge:
            wider = "Limits(rate_factor=) makes larger steps"
            lines.append(f"at the edge of its trust region: {', '.join(edge)}; {wider}")
        return lines

    def diagnose(self) -> Diagnosis:
        """Return a diagnosis of whether tuning has paid and can help; its ``str`` puts it into words.

        It is informative after some dozens of queries, late in a run and after it as well.
        """
        search = self._rivals.search
        return diagnosis_of(
            self._ledger, self._strategy.learner, search, self._intervals, self._encode, self._sign
        )

    def schedule(self) -> Schedule:
        """Return the kept part of the sequence of configurations, for a replay without a tuner."""
        return Schedule.from_decisions(self.decisions, self.space)

    def export_schedule(self, path: str | os.PathLike[str]) -> None:
        """Write ``schedule()`` as JSON; ``Schedule.from_json`` reads it."""
        self.schedule().to_json(path)

    def _encode(self, config: Mapping[str, Plain]) -> Tensor:
        return self.space.encode(config).to(**self._tkwargs)
