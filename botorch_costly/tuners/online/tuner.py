"""Tuning inside one training run: ask for a configuration, tell its reward if it was worth the query."""

import logging
import math
import os
from collections.abc import Mapping
from typing import Any, get_args

import torch
from torch import Tensor

from botorch_costly.acquisition import BetaSchedule, ConstantBeta, at_round
from botorch_costly.ask_tell.design import DesignName, design_of, limits_of
from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.state import check_header, header
from botorch_costly.device import check_device, check_dtype, largest_reward
from botorch_costly.errors import (
    HorizonExceededError,
    InvalidBudgetError,
    InvalidSpaceError,
    StateMismatchError,
    check,
    check_count,
    check_nonnegative,
    check_positive,
    worth_repeating,
)
from botorch_costly.models import StreamingGP
from botorch_costly.query import AlwaysQuery, ConfidenceQuery, QueryRule, UnqueriedPlay
from botorch_costly.records import Decision, Observation, Plain
from botorch_costly.rewards.scale import RewardScale, as_number
from botorch_costly.schedule import Schedule
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.online.diagnosis import Diagnosis, diagnosis_of
from botorch_costly.tuners.online.intervals import Intervals
from botorch_costly.tuners.online.learner import Learner, Prior, Refits
from botorch_costly.tuners.online.proposer import Proposer, Run
from botorch_costly.tuners.online.search import LARGEST_LATTICE, search_of
from botorch_costly.tuners.online.strategy import AcquisitionName, Strategy
from botorch_costly.tuners.online.summary import summarize

# Chosen on half of the problems of the online suite, see benchmarks/README.md.
DEFAULT_HOLD, SHORTEST_HOLD = 0.05, 2
RANKS = RewardScale(ranks=True, winsorize_lower=0.4)

_logger = logging.getLogger(__name__)


class OnlineTuner:
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
        forgetting: How much of the reward function is replaced each interval, in [0, 1].
        beta: Exploration, a number or a schedule; the paper uses 1 when training networks.
        acquisition: ``"ucb"``, ``"ei"`` or ``"pi"``.
        unqueried_play: What a round without a query plays: ``"acquisition"``, its maximizer, as
            published, or ``"mean"``, the maximizer of the posterior mean, since a round that nobody
            queries at has nothing to explore for. It changes what is played, not when the rule queries.
        kernel: Over the unit cube: ``"matern52"``, ``"matern32"``, ``"matern12"``, ``"rbf"``, or
            ``"arms"`` (the default for a space of choices alone).
        lengthscale: In the unit cube; ``0.5 sqrt(d)`` if omitted.
        noise: Noise variance of a reward, as a fraction of the variance of rewards.
        reward_scale: How rewards become values of the model. By default their ranks count, the lowest
            two fifths of them alike, or, under a rule that reads rewards, such as one with a price,
            their values in a scale estimated.
        initial_rounds: Configurations queried at first. If omitted, twice the dimension, but at most a
            tenth of the horizon, a third of its intervals, ``max_queries`` and a fifth of the rule's
            budget, and none for a space of choices.
        initial_design: ``"screening"``: numbers are low (0.1 of the unit cube) or high (0.9), each in
            about one half of the design, so that few queries tell which of many matter; or ``"random"``.
        start: The configuration of the first interval, such as your current default; its end is queried
            at, whatever ``initial_rounds``.
        start_rounds: How many intervals play ``start``, all queried at, before the random ones. A network
            that has not begun to learn cannot be told from a ruined one. If omitted, 5, but at most half
            of what the design takes unasked.
        hold: For which share of the rounds so far a configuration is held once it is chosen. Only the
            last round of such an interval is queried at. At 0 each round is decided on its own: for
            functions that are seen anew in every round, and know nothing of the rounds before.
        shortest_hold: The fewest rounds of an interval, unless ``hold`` is 0.
        maximize: Whether larger rewards are better.
        max_queries: The most queries this run may pay for, whatever the rule says.
        keep_rounds: How many of the latest rounds are kept with their decisions and queries, for runs
            without end; all by default. What is older can no longer be told.
        max_rows: The most rewards that the belief holds, the latest ones: what a decision may cost
            grows with their square. Those older than forgetting remembers (a weight of 1e-8) go anyway.
        refit_every: Refit lengthscales, variance and noise after so many queries; never by default.
        refit_seconds: Time cap of one refit; where it binds, a run depends on the machine's speed.
        learn_forgetting: Whether refits learn the forgetting rate too.
        num_restarts: Starts of the search for local optima.
        bandwidth: Optima closer than this, in the unit cube, are one.
        seed: The one source of randomness; the global generators are never touched.
        dtype: Of all computation.
        device: Of all computation.

    Raises:
        InvalidArgumentError: If a number is outside its range, or there is no such device here.
        InvalidBudgetError: If ``max_queries``, ``initial_rounds`` or ``start_rounds`` exceed what the run
            has.
        InvalidConfigError: If ``start`` does not belong to the space.
        InvalidSpaceError: If the space holds a single configuration.

    Example:
        >>> from botorch_costly import Real
        >>> space = SearchSpace({"lr": Real(1e-4, 1e-1, log=True), "dropout": Real(0.0, 0.6)})
        >>> tuner = OnlineTuner(space, horizon=10, initial_rounds=3, seed=0)
        >>> for _ in range(10):
        ...     decision = tuner.ask()
        ...     if decision.query:
        ...         _ = tuner.tell(decision, -((decision.config["dropout"] - 0.2) ** 2))
        >>> len(tuner.decisions)
        10
    """

    @torch.inference_mode(mode=False)
    def __init__(
        self,
        space: SearchSpace,
        horizon: int | None = None,
        query: QueryRule | None = None,
        forgetting: float = 0.01,
        beta: float | BetaSchedule = 1.0,
        acquisition: AcquisitionName = "ucb",
        unqueried_play: UnqueriedPlay = "acquisition",
        kernel: str | None = None,
        lengthscale: float | None = None,
        noise: float = 0.5,
        reward_scale: RewardScale | None = None,
        initial_rounds: int | None = None,
        initial_design: DesignName = "screening",
        start: Mapping[str, Plain] | None = None,
        start_rounds: int | None = None,
        hold: float = DEFAULT_HOLD,
        shortest_hold: int = SHORTEST_HOLD,
        maximize: bool = True,
        max_queries: int | None = None,
        keep_rounds: int | None = None,
        max_rows: int = 1000,
        refit_every: int | None = None,
        refit_seconds: float = 2.0,
        learn_forgetting: bool = False,
        num_restarts: int = 50,
        bandwidth: float = 0.2,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        tunable = isinstance(space, SearchSpace) and space.dim > 0
        check(tunable, "space", "a SearchSpace with something to tune", space, InvalidSpaceError)
        known = acquisition in ("ucb", "ei", "pi")
        check(known, "acquisition", "'ucb', 'ei' or 'pi'", acquisition)
        query = AlwaysQuery() if query is None else query
        check(isinstance(query, QueryRule), "query", "a QueryRule", query)
        if reward_scale is None:
            reward_scale = RewardScale() if query.reads_rewards else RANKS
        check(isinstance(reward_scale, RewardScale), "reward_scale", "a RewardScale", reward_scale)
        ranked = reward_scale.ranks and query.reads_rewards
        check(not ranked, "reward_scale", "values, not ranks, for a price in rewards", reward_scale)
        check(isinstance(maximize, bool), "maximize", "a bool", maximize)
        self.space, self.query, self.maximize = space, query, maximize
        self._sign = 1 if maximize else -1
        played = unqueried_play in ("acquisition", "mean")
        check(played, "unqueried_play", "'acquisition' or 'mean'", unqueried_play)
        schedule = beta if callable(beta) else ConstantBeta(beta)
        _check_budget(horizon, max_queries)
        query.check_run(horizon)
        self._intervals = Intervals(hold, horizon, shortest_hold)
        self._run = Run(space, self._intervals, horizon, max_queries)
        counted = query.counted(self._intervals.within, horizon)
        check_count("seed", seed)
        intervals = None if horizon is None else self._intervals.within(horizon)
        limits = limits_of(horizon, intervals, max_queries, query.budget)
        design = design_of(space, limits, initial_rounds, start, start_rounds)
        known = initial_design in get_args(DesignName)
        check(known, "initial_design", f"one of {list(get_args(DesignName))}", initial_design)
        design = design.screened(seed) if initial_design == "screening" else design
        self._tkwargs: dict[str, Any] = {
            "dtype": check_dtype(dtype),
            "device": check_device(device),
        }
        arms = space.is_arms and (space.size or 0) <= LARGEST_LATTICE
        prior = Prior(
            kernel=kernel or ("arms" if arms else "matern52"),
            lengthscale=0.5 * math.sqrt(space.dim) if lengthscale is None else lengthscale,
            noise=noise,
            forgetting=forgetting,
        )
        refits = Refits(refit_every, refit_seconds, learn_forgetting)
        check_count("max_rows", max_rows, minimum=1)
        self._learner = Learner(prior, refits, reward_scale, self._tkwargs, max_rows)
        check_count("num_restarts", num_restarts, minimum=1)
        check_positive("bandwidth", bandwidth)
        self._search = search_of(space, num_restarts, bandwidth, self._tkwargs)
        self._proposer = Proposer(
            self._run,
            design,
            Strategy(self._search, counted, acquisition, schedule, unqueried_play),
            self._search,
            query,
            torch.Generator(device=device).manual_seed(seed),
        )
        if keep_rounds is not None:
            check_count("keep_rounds", keep_rounds, minimum=1)
        self._ledger = Ledger(keep_rounds)

    @classmethod
    def as_published(
        cls, space: SearchSpace, horizon: int | None = None, **options: Any
    ) -> "OnlineTuner":
        """Return a tuner that is set as in the paper: each round anew, gains as they are.

        Args:
            space: What may be tuned.
            horizon: Rounds of the run; ``None`` if unknown.
            options: Of the tuner; they come before those of the paper.
        """
        paper: dict[str, Any] = {
            "query": ConfidenceQuery(),
            "hold": 0.0,
            "reward_scale": RewardScale(),
            "start_rounds": 1,
            "initial_design": "random",
            "forgetting": 0.01,
            "beta": 1.0,
            "num_restarts": 50,
            "bandwidth": 0.2,
        }
        return cls(space, horizon, **{**paper, **options})

    # -- the face ---------------------------------------------------------------------------------

    @torch.inference_mode(mode=False)  # validation often runs under one, and has no say here
    def ask(self) -> Decision:
        """Decide on the next round.

        Whatever is raised meanwhile, an interrupt included, leaves the tuner as it was.

        Raises:
            HorizonExceededError: If all rounds of the horizon have been asked for.
        """
        now = len(self._ledger)
        over = self.horizon is not None and now >= self.horizon
        check(not over, "ask", f"at most {self.horizon} rounds", now + 1, HorizonExceededError)
        decision = self._proposer.propose(now, self._learner, self.queries)
        self._ledger.decide(decision)
        return decision

    @torch.inference_mode(mode=False)
    def tell(
        self, decision: Decision, reward: float | None, seconds: float | None = None
    ) -> Observation:
        """Hand in the reward of a decision, in any order and however late.

        Args:
            decision: What ``ask`` returned, or a copy of it.
            reward: In its own units. NaN or an infinity is a query that failed: paid for, recorded,
                never learnt from. ``None`` is a query without a reward yet, such as the first one of
                ``GainReward``: paid for and recorded.
            seconds: What the query cost, if known.

        Returns:
            The record of the query, with ``failed`` set if the reward was not finite.

        Raises:
            UnknownDecisionError: If this tuner never made the decision.
            AlreadyToldError: If it was told before.
            InvalidArgumentError: If the reward is not a number, or too large for the dtype. In all
                cases the tuner is unchanged.
        """
        self._ledger.check_open(decision)
        value = None if reward is None else as_number("reward", reward)
        if seconds is not None:
            check_nonnegative("seconds", seconds)
        failed = value is not None and not math.isfinite(value)
        kept = None if failed else value
        if kept is not None:
            largest = largest_reward(self._tkwargs["dtype"])
            expected = f"a number of at most {largest:.1e} in size, NaN or an infinity"
            check(abs(kept) <= largest, "reward", expected, reward)
        observation = Observation(decision.round, decision.config, kept, failed, seconds)
        if kept is not None:
            x = self._encode(decision.config)
            interval = self._intervals.at(decision.round).number
            self._learner.observe(x, interval, self._sign * kept)
        self._ledger.see(observation)
        if failed:
            self._warn(decision, reward)
        return observation

    @property
    def horizon(self) -> int | None:
        """Rounds of the run, if known."""
        return self._run.horizon

    @property
    def max_queries(self) -> int | None:
        """The most queries that the run may pay for."""
        return self._run.max_queries

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions so far, by round: all of them, or the last ``keep_rounds``."""
        return self._ledger.decisions

    @property
    def observations(self) -> tuple[Observation, ...]:
        """The queries told so far, by round, as far as their decisions are kept."""
        return self._ledger.observations

    @property
    def queries(self) -> int:
        """Queries paid for: rounds that were to be queried at, and others that were told anyway."""
        return self._ledger.queries

    @property
    def failed_queries(self) -> int:
        """Queries whose reward was not finite."""
        return self._ledger.failed_queries

    @property
    def history(self) -> list[dict[str, Any]]:
        """One plain dictionary per round, ready for a data frame."""
        return self._ledger.history()

    @property
    def belief(self) -> StreamingGP:
        """What is believed about the rewards, in their units: a BoTorch model over [x, interval].

        With ``maximize=False`` it is about the negative rewards. Clipped rewards are believed to be
        what they were clipped to, and with ``RewardScale(ranks=True)`` the units are only nominal,
        and its lowest look alike.
        """
        return self._learner.model

    def best(self) -> dict[str, Plain] | None:
        """Return the configuration seen whose reward is believed best today; ``None`` unseen."""
        inputs = self._learner.model.inputs
        if not len(inputs):
            return None
        now = self._intervals.at(len(self._ledger)).number
        rows = at_round(inputs[:, :-1], inputs.new_tensor(float(now)))
        mean, _ = self._learner.model.mean_and_variance(rows)
        # As it was played: what is decoded from its encoding may differ in the last digits.
        interval = int(inputs[mean.argmax(), -1])
        played = self._ledger.config_of(self._intervals.first_of(interval))
        return self.space.decode(inputs[mean.argmax(), :-1]) if played is None else dict(played)

    def summary(self) -> str:
        """Return a few lines on what was played, queried at, and believed."""
        model, best = self._learner.model, self.best()
        return summarize(self._ledger, self.horizon, self.query, model, self._sign, best)

    def diagnose(self) -> Diagnosis:
        """Say whether tuning can help this run, in numbers; its ``str`` says it in words.

        It is worth asking after some dozens of queries, and takes a second or a few.
        """
        return diagnosis_of(
            self._ledger, self._learner, self._search, self._intervals, self._encode, self._sign
        )

    def schedule(self) -> Schedule:
        """Return what was played, as far as it is kept, to be replayed without a tuner."""
        return Schedule.from_decisions(self._ledger.decisions, self.space)

    def export_schedule(self, path: str | os.PathLike[str]) -> None:
        """Write ``schedule()`` as JSON; ``Schedule.from_json`` reads it."""
        self.schedule().to_json(path)

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values from which the run continues identically.

        The options of the constructor are not part of it: build the tuner in the same way.
        """
        return {
            "header": self._header(),
            "ledger": self._ledger.state_dict(),
            "learner": self._learner.state_dict(),
            **self._proposer.state_dict(),
        }

    @torch.inference_mode(mode=False)
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            StateMismatchError: If the state belongs to another space, dtype, direction, version or
                kind of tuner, or is damaged; the tuner is unchanged.
        """
        check_header(state, self._header())
        before = self.state_dict()
        try:
            self._load(state)
        except (AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
            self._load(before)
            expected = f"a complete state_dict of {type(self).__name__}"
            raise StateMismatchError("state", expected, type(error).__name__) from error

    # -- inside -----------------------------------------------------------------------------------

    def _header(self) -> dict[str, Any]:
        traits = {
            "dtype": self._tkwargs["dtype"],
            "maximize": self.maximize,
            "hold": self._intervals.share,
            "shortest_hold": self._intervals.shortest,
        }
        named = {name: str(trait) for name, trait in traits.items()}
        return header(type(self).__name__, self.space, **named)

    def _load(self, state: Mapping[str, Any]) -> None:
        self._ledger.load_state_dict(state["ledger"])
        self._learner.load_state_dict(state["learner"])
        self._proposer.load_state_dict(state)

    def _warn(self, decision: Decision, reward: float | None) -> None:
        """Report some of the failed queries: in a dead network all of them fail."""
        count = self.failed_queries
        if worth_repeating(count):
            said = "The query in round %d failed: reward %s (failed queries so far: %d)."
            _logger.warning(said, decision.round, reward, count)

    def _encode(self, config: Mapping[str, Plain]) -> Tensor:
        return self.space.encode(config).to(**self._tkwargs)


def _check_budget(horizon: int | None, max_queries: int | None) -> None:
    if horizon is not None:
        check_count("horizon", horizon, minimum=1)
    if max_queries is not None:
        check_count("max_queries", max_queries)
        fits = horizon is None or max_queries <= horizon
        check(
            fits, "max_queries", f"at most the horizon, {horizon}", max_queries, InvalidBudgetError
        )
