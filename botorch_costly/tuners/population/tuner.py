"""``PopulationTuner``: it tunes the members of a population while they train side by side."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch

from botorch_costly.ask_tell.clocks import Clocks
from botorch_costly.ask_tell.domain import Domain
from botorch_costly.ask_tell.frame import Frame
from botorch_costly.ask_tell.protocol import Tells
from botorch_costly.device import largest_reward
from botorch_costly.errors import InvalidShapeError, check, check_count, check_nonnegative
from botorch_costly.parameters import Plain
from botorch_costly.plain import as_number
from botorch_costly.population_records import PopulationDecision, PopulationObservation
from botorch_costly.query import AlwaysQuery, QueryRule
from botorch_costly.query.rule import Progress
from botorch_costly.randomness import check_seed
from botorch_costly.records import FrozenConfig
from botorch_costly.rewards.direction import watch_metrics
from botorch_costly.rewards.gain import GainReward
from botorch_costly.rewards.metric_gain import Kind
from botorch_costly.rewards.running_best import RunningBest
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.population.selection import ranked
from botorch_costly.tuners.population.strategy import PopulationStrategy

_logger = logging.getLogger(__name__)
_EQUAL = 5  # first rounds without a difference between members, after which that is said
_LARGEST = largest_reward(torch.float64)


class PopulationTuner(Frame[PopulationDecision, PopulationObservation]):
    """Tunes several members of one run that train side by side, by one model of all their gains.

    The compute of a population grows with its members. In every round the member with the best metric
    leads. It trains with the incumbent, which is the start until a better configuration is known. The
    worst quarter, and members that diverged, go on from the weights of the best and explore
    configurations that are chosen as a batch. The others keep their weights and configurations, as does
    a member that is not queried.

    Args:
        space: Search space of the configurations.
        horizon: Rounds of the run; ``None`` if unknown. Weights are copied between rounds. All members
            are queried after the last round, for one of them is handed over.
        seconds: Seconds that the run may take, from the first ``ask`` on; no limit if omitted.
        members: Number of members, at least 2. They begin with equal weights.
        start: Configuration that is used without a tuner; the middle of the space if omitted.
        query: Rule that decides which members are queried: each is a candidate, and the configurations
            of the others are its rivals.
        metric: ``"loss"`` for positive metrics to be minimized, ``"accuracy"`` for shares to be
            maximized.
        overhead: Largest share of the clock that queries and the tuner may take, in (0, 1], as in
            ``Validation``; no limit if omitted. All queries of a round are affordable, or none is made:
            then all members go on. Those after the last round are put aside.
        clock: Function that returns seconds.
        seed: Seed of all random draws.

    Raises:
        InvalidArgumentError: If an argument is outside its range, or the rule has a budget or weighs the
            value of a query against its price, as ``PricedQuery`` does.
        InvalidConfigError: If ``start`` does not belong to the space.
        InvalidSpaceError: If the space holds a single configuration, or a schedule.

    References:
        J. Parker-Holder, V. Nguyen, S. Roberts. Provably efficient online hyperparameter optimization
        with population-based bandits. NeurIPS 2020.

    Example:
        >>> from botorch_costly import Real
        >>> space = SearchSpace({"lr": Real(1e-4, 1e-1, log=True)})
        >>> tuner = PopulationTuner(space, horizon=3, members=2, start={"lr": 1e-2})
        >>> losses = [1.0, 1.0]
        >>> for _ in range(3):
        ...     decision = tuner.ask()
        ...     losses = [losses[origin] for origin in decision.origins]
        ...     losses = [x * (1 - c["lr"]) for x, c in zip(losses, decision.configs)]
        ...     _ = tuner.tell(decision, losses)
        >>> tuner.best_member() in (0, 1)
        True
    """

    tells: ClassVar[Tells] = "metric"
    queries_last: bool = True
    records: ClassVar = (PopulationDecision, PopulationObservation)

    _strategy: PopulationStrategy
    _changeable = ("horizon", "query", "overhead", "seconds")
    _is_direction_known = False
    _missing: ClassVar = {**Frame._missing, "metrics": None, "variances": None}

    def __init__(
        self,
        space: SearchSpace,
        horizon: int | None = None,
        *,
        members: int = 4,
        start: Mapping[str, Plain] | None = None,
        query: QueryRule | None = None,
        metric: Kind = "loss",
        seconds: float | None = None,
        overhead: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
        seed: int = 0,
    ) -> None:
        seed = check_seed(seed)
        domain = Domain(space)
        self.members = check_count("members", members, minimum=2)
        centre = torch.full((space.dim,), 0.5, dtype=torch.float64)
        config = space.decode(space.round(centre)) if start is None else start
        self.start = FrozenConfig(space.canonical(config))
        self.query = AlwaysQuery() if query is None else query
        check(isinstance(self.query, QueryRule), "query", "a QueryRule", query)
        self._gain, self._metric = GainReward(metric), metric
        self._best = RunningBest(metric)
        strategy = PopulationStrategy(
            space, self.start, self.members, horizon, self.query, self._gain, seed
        )
        options: dict[str, Any] = {"members": members, "start": self.start}
        options |= {"query": self.query, "metric": metric, "seed": seed}
        clocks = Clocks(seconds, overhead, clock)
        super().__init__(
            domain,
            strategy,
            horizon=horizon,
            maximize=metric != "loss",
            options=options | {"overhead": clocks.overhead},
            clocks=clocks,
        )
        progress = Progress(1, horizon=self.horizon, affordable=0.0)
        priced = self.query.outlook(progress) is not None
        compares = not priced and self.query.budget is None
        expected = (
            "a rule that compares configurations, such as ConfidenceQuery() (to limit the queries of a "
            "population, overhead= is their share of the clock)"
        )
        check(compares, "query", expected, self.query)

    def tell(
        self,
        decision: PopulationDecision,
        metrics: Sequence[float | None],
        *,
        seconds: float | None = None,
        variances: Sequence[float | None] | None = None,
    ) -> PopulationObservation:
        """Record the members' metrics at the end of a round, in any order and however late.

        Args:
            decision: A decision of ``ask``, or a copy of it.
            metrics: A metric for each member; None without a measurement. NaN or an infinity means that
                the member diverged: it goes on from the weights of another one.
            seconds: Seconds of all queries of the round, if known.
            variances: Variance of each metric beyond that of the whole validation set, in its units
                squared: for losses on ``n`` of ``N`` examples ``losses.var() * (1 / n - 1 / N)``. None
                counts as 0. The belief of the gains takes them. Which members lead and go on is decided
                by the metrics as they are: let all members of a round read the same examples.

        Returns:
            The record of the round, with ``failed`` set if all queries failed.

        Raises:
            UnknownDecisionError: If this tuner never made the decision.
            AlreadyToldError: If it was told before.
            InvalidShapeError: If there is not one metric, or one variance, for each member.
            InvalidArgumentError: If a metric is no number, or impossible for its kind, a variance is no
                finite number of at least 0, or the seconds are negative. In all cases the tuner is
                unchanged.
        """
        self._ledger.check_open(decision)
        spreads = self._variances_of(variances)
        outcome = self._tell(
            replace(self._observation(decision, metrics, seconds), variances=spreads)
        )
        self._warn_of_equal(outcome)
        self._best.watch(math.nan if outcome.reward is None else outcome.reward)
        if not self._is_direction_known:
            told = [o.reward for o in self._ledger.outcomes if o.reward is not None]
            self._is_direction_known = watch_metrics(self._metric, told)
        return outcome

    def _warn_of_equal(self, latest: PopulationObservation) -> None:
        """Warn if in each of the first rounds all members had one and the same metric."""
        told = [o for o in self._ledger.outcomes if len(_finite(o)) > 1]
        if len(told) == _EQUAL and latest in told and all(len(set(_finite(o))) == 1 for o in told):
            _logger.warning(
                "In each of the first %d rounds all members had equal metrics, so that none is better: "
                "train each member with its own configuration, and tell the metric of each.",
                _EQUAL,
            )

    def best_member(self) -> int | None:
        """Return the best member of the latest round with a metric; None before the first metric."""
        for outcome in reversed(self._ledger.outcomes):
            order = ranked(self._strategy.scores(outcome))
            if order:
                return order[0]
        return None

    def best(self) -> dict[str, Plain]:
        """Return the incumbent, which the leader plays; the start until another one is better."""
        return self.space.decode(self._strategy.incumbent(len(self._ledger)))

    def _variances_of(self, variances: Sequence[float | None] | None) -> tuple[float, ...]:
        """Return checked variances, one for each member; none if they are omitted."""
        if variances is None:
            return ()
        listed = isinstance(variances, Sequence) and not isinstance(variances, str)
        complete, expected = listed and len(variances) == self.members, f"{self.members} variances"
        check(complete, "variances", expected, variances, InvalidShapeError)
        numbers = [0.0 if v is None else as_number("variances", v) for v in variances]
        for number in numbers:
            spread = check_nonnegative("variances", number)
            expected = f"variances whose root is at most {_LARGEST:.1e}"
            check(math.sqrt(spread) <= _LARGEST, "variances", expected, variances)
        return tuple(numbers)

    def _observation(
        self,
        decision: PopulationDecision,
        metrics: Sequence[float | None],
        seconds: float | None,
    ) -> PopulationObservation:
        """Return the checked record of a round."""
        complete = isinstance(metrics, Sequence) and not isinstance(metrics, str)
        complete = complete and len(metrics) == self.members
        expected = f"a list of {self.members} metrics, None for each member without a query"
        check(complete, "metrics", expected, metrics, InvalidShapeError)
        numbers = [None if value is None else self._gain.check_metric(value) for value in metrics]
        values = [math.nan if x is not None and math.isinf(x) else x for x in numbers]
        finite = {i: x for i, x in enumerate(values) if x is not None and math.isfinite(x)}
        sign = -1 if self._gain.kind == "loss" else 1
        best = max(finite, key=lambda i: sign * finite[i], default=None)
        config = decision.config if best is None else decision.configs[best]
        reward = None if best is None else finite[best]
        failed = best is None and any(value is not None for value in values)
        return PopulationObservation(
            decision.round,
            config,
            reward,
            failed=failed,
            seconds=seconds,
            metric=math.nan if failed else reward,
            metrics=tuple(values),
        )

    def _queries_of(self, outcome: PopulationObservation) -> int:
        """Return the number of members with a metric."""
        return sum(metric is not None for metric in outcome.metrics)

    def _on_the_clock(self, per_round: int | None = None) -> list[str]:
        return super()._on_the_clock(self.members)


def _finite(outcome: PopulationObservation) -> list[float]:
    """Return the metrics of the members that were measured and have not diverged."""
    return [m for m in outcome.metrics if m is not None and math.isfinite(m)]
