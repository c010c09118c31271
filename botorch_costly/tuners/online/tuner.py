"""Tuning inside one training run: ask for a configuration, tell its reward if a query is worth it."""

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from botorch_costly.acquisition import UCB, AcquisitionFactory, at_round
from botorch_costly.acquisition.factories import MakeAcquisition
from botorch_costly.ask_tell.domain import Domain
from botorch_costly.ask_tell.optimizer import GainOptimizer
from botorch_costly.ask_tell.search import Search
from botorch_costly.device import largest_reward
from botorch_costly.errors import check_count
from botorch_costly.models import StreamingGP
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
from botorch_costly.tuners.online.summary import summarize


class OnlineTuner(GainOptimizer[Decision]):
    r"""CE-GP-UCB: tune hyperparameters while one network trains, and query only when it is worth it.

    Each round ``ask`` proposes a configuration, the maximizer of an acquisition function on a
    time-varying GP, and says whether validation is worth its price; ``tell`` hands in the reward if it
    was measured. A decision that is never told is the normal case.

    References:
        J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
        optimization. 2021, Algorithm 1.

    Args:
        space: What may be tuned. A space of choices alone is a bandit over its combinations.
        horizon: Rounds of the run; ``None`` if unknown.
        query: Whether to query at the end of an interval; at every one by default.
        start: The configuration of the first intervals, such as your default; their ends are queried,
            whatever the design.
        prior: What is believed before the first query: kernel, lengthscale, noise, forgetting.
        refit: When these are refitted; never by default.
        acquisition: Where a round goes: ``UCB(beta)``, ``LogEI()``, ``PI()``, or any callable
            ``(belief, round) -> AcquisitionFunction``. Rules with a price choose themselves.
        unqueried_play: What a round without a query plays: ``"acquisition"``, its maximizer, as
            published, or ``"mean"``, the maximizer of the posterior mean, since such a round has
            nothing to explore for. It changes what is played, not when the rule queries.
        rewards: How rewards become values of the model. By default their ranks count, the lowest two
            fifths of them alike, or, under a rule that reads rewards, such as one with a price, their
            values in a scale estimated.
        design: The first intervals: rounds and kind of the design, and rounds of the start.
        hold: For how long a configuration is held once it is chosen.
        search: Restarts of the search for local optima, and how far apart these are.
        limits: The most queries, and what is kept of a run without end.
        maximize: Whether larger rewards are better.
        seed: The one source of randomness; the global generators are never touched.
        dtype: Of all computation, ``torch.float64`` or ``torch.float32``.
        device: Of all computation.

    Raises:
        InvalidArgumentError: If an argument is outside its range, or there is no such device here.
        InvalidBudgetError: If ``max_queries``, the design or the start exceed what the run has.
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

    predicts: ClassVar[bool] = True

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
            )
        )

    def _build(self, options: Options) -> None:
        """Make the parts of the tuner, each from the options that concern it."""
        space, horizon, query = options.reachable, options.horizon, options.query
        self.query, self._reachable = query, space
        self._tkwargs: dict[str, Any] = {"dtype": options.dtype, "device": options.device}
        self._intervals = Intervals(options.hold.share, horizon, options.hold.shortest)
        for note in (query.unspendable(self._intervals.within, horizon), options.note_on_rates):
            if note is not None:
                warnings.warn(note, stacklevel=4)  # at the call of the class, beyond its decorator
        limits = options.limits
        run = Run(space, self._intervals, horizon, limits.max_queries)
        number = None if horizon is None else self._intervals.within(horizon)
        room = limits_of(horizon, number, limits.max_queries, query.budget)
        opening = opening_of(space, room, options.design, options.start, options.seed)
        prior = options.prior.of(space)
        learner = Learner(prior, options.refit, options.scale, self._tkwargs, limits.max_rows)
        self._rivals = rivals_of(space, options.search, self._tkwargs)
        rule = query.for_run(self._intervals.within, horizon)
        generator = generator_of(options.seed)  # on the CPU, whose numbers are not waited for
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
        )

    @classmethod
    def as_published(
        cls, space: SearchSpace, horizon: int | None = None, **options: Any
    ) -> "OnlineTuner":
        """Return a tuner that is set as in the paper: each round anew, gains as they are.

        Args:
            space: What may be tuned.
            horizon: Rounds of the run; ``None`` if unknown.
            options: Of the tuner; each takes the place of the paper's, a group of options as a whole.
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

    # -- the face ---------------------------------------------------------------------------------

    @property
    def max_queries(self) -> int | None:
        """The most queries that the run may pay for."""
        return self._strategy.run.max_queries

    @property
    def belief(self) -> StreamingGP:
        """What is believed about the rewards, in their units: a BoTorch model over [x, interval].

        With ``maximize=False`` it is about the negative rewards. Clipped rewards are believed to be what
        they were clipped to, and with ``RewardScale(ranks=True)`` the units are only nominal, and the
        lowest ranks look alike. Later rewards make another belief; this one stays as it is.
        """
        return self._strategy.learner.model

    @property
    def reachable(self) -> SearchSpace:
        """The part of the space that is searched: a learning rate stays near the start's."""
        return self._reachable

    def interval_of(self, round: int) -> int:
        """Return the number of the interval of a round, the time in which ``belief`` counts."""
        return self._intervals.at(check_count("round", round)).number

    def predict(
        self, configs: Sequence[Mapping[str, Plain]], round: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the present posterior of the reward of configurations in a round.

        Args:
            configs: Configurations of ``reachable``.
            round: Of the run, from 0, earlier or later; the next one if omitted. What was told later than
                a round counts for it, too.

        Returns:
            Means and standard deviations of the reward, without the noise of a query, each of
            shape ``(n,)``. The units have the meaning that they have in ``belief``.

        Raises:
            InvalidArgumentError: If the round is no integer of at least 0.
            InvalidConfigError: If a configuration is not one of ``reachable``.
        """
        now = len(self._ledger) if round is None else round
        when = torch.tensor(float(self.interval_of(now)), **self._tkwargs)
        x = [self._encode(config) for config in configs]
        points = torch.stack(x) if x else torch.zeros(0, self._reachable.dim, **self._tkwargs)
        mean, variance = self._strategy.learner.model.mean_and_variance(at_round(points, when))
        return self._sign * mean.detach(), variance.detach().sqrt()

    def best(self) -> dict[str, Plain] | None:
        """Return the incumbent: of the configurations seen the one believed best today; None unseen."""
        inputs = self._strategy.learner.model.inputs
        if not len(inputs):
            return None
        now = self._intervals.at(len(self._ledger)).number
        rows = at_round(inputs[:, :-1], inputs.new_tensor(float(now)))
        mean, _ = self._strategy.learner.model.mean_and_variance(rows)
        # As it was played: what is decoded from its encoding may differ in the last digits.
        interval = int(inputs[mean.argmax(), -1])
        played = self._ledger.config_of(self._intervals.first_of(interval))
        return (
            self._reachable.decode(inputs[mean.argmax(), :-1]) if played is None else dict(played)
        )

    def summary(self) -> str:
        """Return a few lines on what was played, queried, and believed."""
        model, best = self._strategy.learner.model, self.best()
        return summarize(self._ledger, self.horizon, self.query, model, self._sign, best)

    def diagnose(self) -> Diagnosis:
        """Say whether tuning can help this run, in numbers; its ``str`` says it in words.

        It is worth asking after some dozens of queries, and takes a second or a few.
        """
        search = self._rivals.search
        return diagnosis_of(
            self._ledger, self._strategy.learner, search, self._intervals, self._encode, self._sign
        )

    def schedule(self) -> Schedule:
        """Return what was played, as far as it is kept, to be replayed without a tuner."""
        return Schedule.from_decisions(self.decisions, self.space)

    def export_schedule(self, path: str | os.PathLike[str]) -> None:
        """Write ``schedule()`` as JSON; ``Schedule.from_json`` reads it."""
        self.schedule().to_json(path)

    # -- inside -----------------------------------------------------------------------------------

    def _encode(self, config: Mapping[str, Plain]) -> Tensor:
        return self._reachable.encode(config).to(**self._tkwargs)
