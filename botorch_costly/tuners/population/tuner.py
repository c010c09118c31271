"""Tune the members of a population while they train: whose weights, which settings, which queries."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from botorch_costly.ask_tell.design import sobol
from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.protocol import Tells
from botorch_costly.ask_tell.recorded import Recorded
from botorch_costly.ask_tell.state import (
    check_header,
    header,
    taking_over,
    unchanged_on_error,
)
from botorch_costly.errors import (
    InvalidShapeError,
    check,
    check_count,
)
from botorch_costly.parameters import Plain
from botorch_costly.population_records import PopulationDecision, PopulationObservation
from botorch_costly.query import AlwaysQuery, QueryRule
from botorch_costly.query.rule import Comparison, Progress
from botorch_costly.randomness import check_seed, generator_of
from botorch_costly.records import FrozenConfig
from botorch_costly.rewards.direction import Direction
from botorch_costly.rewards.gain import GainReward, Kind
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.population.belief import PopulationBelief
from botorch_costly.tuners.population.lineage import Lineage
from botorch_costly.tuners.population.selection import ranked, replacements

_TINY = 5e-324  # the smallest number above 0


class PopulationTuner(Recorded[PopulationDecision, PopulationObservation]):
    """Tunes several members of one run that train side by side, by one belief from all their gains.

    It is for those who have the devices already: a population pays for each member. In every round the
    member with the best metric leads. It trains with the configuration believed best, which is the
    start as long as none is believed better. The worst quarter, and members that diverged, go on from the
    weights of the best, and try configurations that are chosen beside each other. The others keep what
    they have. A member that is not queried keeps its weights and its configuration for another round.

    Args:
        space: What may be tuned.
        horizon: Rounds of the run; ``None`` if unknown. A round is what is trained between two chances to
            copy weights. All members are queried after the last one, for one of them is handed over.
        members: How many, at least 2. They begin with equal weights.
        start: The configuration that is used without a tuner; the middle of the space if omitted.
        query: Which members are queried: each is a candidate against the configurations of the others.
        metric: ``"loss"`` for positive metrics to be minimized, ``"accuracy"`` for shares to be
            maximized.
        seed: The one source of randomness.

    Raises:
        InvalidArgumentError: If an argument is outside its range, or the rule weighs what a query earns,
            as ``PricedQuery`` does, or has a budget.
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
    records: ClassVar = (PopulationDecision, PopulationObservation)

    _changeable = ("horizon", "query")

    _missing: ClassVar = {**Recorded._missing, "metrics": None}

    def __init__(
        self,
        space: SearchSpace,
        horizon: int | None = None,
        *,
        members: int = 4,
        start: Mapping[str, Plain] | None = None,
        query: QueryRule | None = None,
        metric: Kind = "loss",
        seed: int = 0,
    ) -> None:
        seed = check_seed(seed)
        self._belief = PopulationBelief(space, seed=seed)
        self.space = space
        self.horizon = None if horizon is None else check_count("horizon", horizon, minimum=1)
        self.members = check_count("members", members, minimum=2)
        centre = torch.full((space.dim,), 0.5, dtype=torch.float64)
        given = space.decode(space.round(centre)) if start is None else start
        self.start = FrozenConfig(space.canonical(given))
        self.query = AlwaysQuery() if query is None else query
        check(isinstance(self.query, QueryRule), "query", "a QueryRule", query)
        weighs = self.query.outlook(Progress(1, horizon=self.horizon)) is not None
        capped = weighs or self.query.budget is not None
        expected = "a rule that compares configurations, such as ConfidenceQuery"
        check(not capped, "query", expected, self.query)
        self._gain, self._direction = GainReward(metric), Direction(metric)
        self._design = sobol(space, self.members - 1, seed)
        self._generator = generator_of(seed)
        self._ledger = Ledger(*self.records, told="metric")
        options = {"horizon": self.horizon, "members": members, "start": self.start}
        more = {"query": self.query, "metric": metric, "seed": seed}
        self._header = header(type(self), space, {**options, **more})

    def ask(self) -> PopulationDecision:
        """Return what every member does in the next round.

        Raises:
            HorizonExceededError: If all rounds of the horizon have been asked for.
        """
        now = self._ledger.next_within(self.horizon)
        with unchanged_on_error(self):
            decision = self._first() if now == 0 else self._next(now)
            self._ledger.suggest(decision)
        return decision

    def tell(
        self, decision: PopulationDecision, metrics: Sequence[float | None]
    ) -> PopulationObservation:
        """Hand in what the members' validations said, in any order of rounds and however late.

        Args:
            decision: What ``ask`` returned, or a copy of it.
            metrics: One for each member, at the end of the round; None where there is none. NaN or an
                infinity is a member that diverged: it goes on from the weights of another one.

        Returns:
            The record of the round, with ``failed`` set if all queries failed.

        Raises:
            UnknownDecisionError: If this tuner never made the decision.
            AlreadyToldError: If it was told before.
            InvalidShapeError: If there is not one metric for each member.
            InvalidArgumentError: If a metric is no number, or impossible for its kind. In all cases the
                tuner is unchanged.
        """
        self._ledger.check_open(decision)
        told = self._observation(decision, metrics)
        with unchanged_on_error(self):
            self._ledger.tell(told)
            self._learn(decision)
        if told.reward is not None:
            self._direction.watch(told.reward)
        return told

    def best_member(self) -> int | None:
        """Return the member to hand over: the best of those told last; None before any has a metric."""
        for told in reversed(self._ledger.outcomes):
            order = ranked(self._levels(told))
            if order:
                return order[0]
        return None

    def best_seen(self) -> dict[str, Plain]:
        """Return the configuration believed best, the start while none is better."""
        return self.space.decode(self._incumbent(len(self._ledger)))

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values from which the run continues identically."""
        return {
            "header": dict(self._header),
            "ledger": self._ledger.state_dict(),
            "belief": self._belief.state_dict(),
            "generator": self._generator.get_state(),
        }

    def load_state_dict(
        self, state: Mapping[str, Any], *, changed: tuple[str, ...] | list[str] = ()
    ) -> None:
        """Continue from ``state_dict``.

        Args:
            state: Of a tuner with equal options.
            changed: Names of options that may differ: ``["horizon"]`` for a run that is
                extended, and those of the query rule.

        Raises:
            StateMismatchError: If the state belongs to other options, or is damaged; the tuner is
                unchanged.
        """
        check_header(state, self._header, changed, among=self.changeable)
        with taking_over(type(self).__name__, self._ledger, self._belief):
            self._ledger.load_state_dict(state["ledger"])
            self._belief.load_state_dict(state["belief"])
            self._generator.set_state(state["generator"].cpu())

    # -- inside -----------------------------------------------------------------------------------

    def _first(self) -> PopulationDecision:
        """Begin with the start and, for the other members, a design."""
        points = [self._encode(self.start), *self._design]
        said = "the start, and a design for the other members"
        return self._decision(0, points, range(self.members), [True] * self.members, said, 0)

    def _next(self, now: int) -> PopulationDecision:
        """Let the worst go on from the best, and choose what they and the leader try."""
        last = self._ledger.suggestion(now - 1)
        outcomes = {one.round: one for one in self._ledger.outcomes}
        told = outcomes.get(now - 1)
        points = [self._encode(config) for config in last.configs]
        origins = list(range(self.members))
        levels = {} if told is None else self._levels(told)
        order = ranked(levels)
        if not order:
            said = "no member has a metric" if not levels else "every member has failed"
            points = [self._encode(self.start)] * self.members if levels else points
            return self._decision(now, points, origins, [True] * self.members, said, 0)
        leader, moved = order[0], replacements(levels)
        points[leader] = self._incumbent(now)
        for member, origin in moved.items():
            origins[member] = origin
            kept = [x for i, x in enumerate(points) if i not in moved]
            tried = [points[i] for i in moved if i < member]
            points[member] = self._belief.choose(now, torch.stack([*kept, *tried]))
        queries = self._queries(now, points)
        said = f"member {leader} leads; {len(moved)} of {self.members} go on from others"
        return self._decision(now, points, origins, queries, said, leader)

    def _decision(
        self,
        now: int,
        points: Sequence[Tensor],
        origins: Sequence[int],
        queries: Sequence[bool],
        said: str,
        leader: int,
    ) -> PopulationDecision:
        configs = tuple(FrozenConfig(self.space.decode(x)) for x in points)
        return PopulationDecision(
            now,
            configs[leader],
            query=any(queries),
            reason=said,
            configs=configs,
            origins=tuple(origins),
            queries=tuple(queries),
        )

    def _queries(self, now: int, points: Sequence[Tensor]) -> list[bool]:
        """Ask the rule about each member, as a candidate against the others' configurations.

        Those closer than the bandwidth are no rivals: which of two alike is better tells nothing.
        """
        if self.horizon is not None and now == self.horizon - 1:
            return [True] * self.members
        together = torch.stack(list(points))
        mean, variance = self._belief.mean_and_variance(together, now)
        others = torch.tensor(
            [[j for j in range(self.members) if j != i] for i in range(self.members)]
        )
        comparison = Comparison(
            mean=mean,
            variance=variance,
            rival_mean=mean[others],
            rival_variance=variance[others],
            rival_covariance=None,
            exists=self._belief.are_apart(together).gather(1, others),
            beta=torch.ones_like(mean),
        )
        progress = Progress(now + 1, self.queries, self.horizon)
        return [bool(one) for one in self.query(comparison, progress, self._generator).query]

    def _observation(
        self, decision: PopulationDecision, metrics: Sequence[float | None]
    ) -> PopulationObservation:
        """Return the record of what was told, checked."""
        listed = isinstance(metrics, Sequence) and not isinstance(metrics, str)
        expected = f"a list of {self.members} metrics, one for each member"
        check(
            listed and len(metrics) == self.members, "metrics", expected, metrics, InvalidShapeError
        )
        numbers = [None if one is None else self._gain.check_metric(one) for one in metrics]
        whole = [math.nan if one is not None and math.isinf(one) else one for one in numbers]
        finite = {i: one for i, one in enumerate(whole) if one is not None and math.isfinite(one)}
        sign = -1 if self._gain.kind == "loss" else 1
        best = max(finite, key=lambda i: sign * finite[i], default=None)
        config = decision.config if best is None else decision.configs[best]
        reward = None if best is None else finite[best]
        failed = best is None and any(one is not None for one in whole)
        return PopulationObservation(
            decision.round, config, reward, failed=failed, metrics=tuple(whole)
        )

    def _learn(self, decision: PopulationDecision) -> None:
        """Learn what the members told in a round gained in it."""
        lineage = Lineage(self._ledger, self._level)
        gains = {member: lineage.gain(decision.round, member) for member in range(self.members)}
        known = {member: gain for member, gain in gains.items() if gain is not None}
        finite = [gain for gain in known.values() if not math.isnan(gain)]
        if not finite:
            return
        # Whatever a round gave to all does not count, so gains are clipped from the middle of the round.
        middle = statistics.median(finite)
        points = torch.stack([self._encode(decision.configs[member]) for member in known])
        rewards = [
            -self._gain.clip if math.isnan(gain) else self._gain.clipped(gain - middle)
            for gain in known.values()
        ]
        self._belief.learn(decision.round, points, rewards)

    def _incumbent(self, now: int) -> Tensor:
        return self._belief.incumbent(now, self._encode(self.start))

    def _encode(self, config: Mapping[str, Plain]) -> Tensor:
        return self.space.encode(config).double()

    def _levels(self, told: PopulationObservation) -> dict[int, float]:
        """Return the level of each member that was told, NaN where it failed; larger is better."""
        return {i: self._level(one) for i, one in enumerate(told.metrics) if one is not None}

    def _level(self, metric: float) -> float:
        """Return the level of a metric; a loss of 0 has that of half the smallest loss above 0 told."""
        if metric != 0 or self._gain.kind != "loss":
            return self._gain.level(metric)
        told = [one for record in self.observations for one in record.metrics if one]
        return self._gain.level(max(min((m for m in told if m > 0), default=1.0) / 2, _TINY))
