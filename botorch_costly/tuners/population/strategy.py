"""The strategy of ``PopulationTuner``: it chooses the origin and the configuration of each member."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from botorch_costly.ask_tell.design import sobol
from botorch_costly.ask_tell.evaluations import Evaluations
from botorch_costly.ask_tell.strategy import PlannedStrategy, Proposal
from botorch_costly.ask_tell.tariff import NOT_YET
from botorch_costly.parameters import Plain
from botorch_costly.population_records import PopulationDecision, PopulationObservation
from botorch_costly.query import QueryRule
from botorch_costly.query.rule import Comparison, Progress
from botorch_costly.randomness import generator_of
from botorch_costly.records import FrozenConfig
from botorch_costly.rewards.gain import GainReward
from botorch_costly.rewards.metric_gain import least_loss
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.population.belief import PopulationBelief
from botorch_costly.tuners.population.selection import ranked, replacements

Seen = Evaluations[PopulationDecision, PopulationObservation]


class PopulationStrategy(PlannedStrategy):
    """Lets the worst members go on from the weights of the best, with configurations of one model.

    Args:
        space: Search space of the configurations.
        start: Configuration that is used without a tuner.
        members: Number of members.
        horizon: Rounds of the run; ``None`` if unknown.
        query: Rule that decides which members are queried.
        gain: Levels and gains of metrics.
        seed: Seed of all random draws.
    """

    _because = "each round has a configuration for every member"

    def __init__(
        self,
        space: SearchSpace,
        start: FrozenConfig,
        members: int,
        horizon: int | None,
        query: QueryRule,
        gain: GainReward,
        seed: int,
    ) -> None:
        self._belief = PopulationBelief(space, seed=seed)
        self._space, self._start, self._members = space, start, members
        self._horizon, self._query, self._gain = horizon, query, gain
        self._design = sobol(space, members - 1, seed)
        self._generator = generator_of(seed)

    def suggest(self, seen: Seen) -> Proposal:
        """Return origins, configurations and queries of all members for the next round."""
        proposal = self._next(seen) if len(seen) else self._first()
        count, stock = sum(proposal.details["queries"]), seen.stock
        further = sum(sum(decision.queries) - 1 for decision in seen.pending)
        stock = stock._replace(now=stock.now - further)
        if not count or stock.affords(1, count, left=seen.left, aside=self._members):
            return proposal
        details = {**proposal.details, "queries": (False,) * self._members}
        reason = f"{proposal.reason}; {NOT_YET}"
        return replace(proposal, query=False, reason=reason, details=details)

    def _first(self) -> Proposal:
        """Return the first round: the start, and a design for the other members."""
        points = [self._encode(self._start), *self._design]
        reason = "the start, and a design for the other members"
        return self._proposal(points, range(self._members), [True] * self._members, reason, 0)

    def _next(self, seen: Seen) -> Proposal:
        """Return a round in which the worst go on from the best; choose for them and the leader."""
        now = len(seen)
        last = seen.suggestion(now - 1)
        outcomes = {outcome.round: outcome for outcome in seen.outcomes}
        latest = outcomes.get(now - 1)
        points = [self._encode(config) for config in last.configs]
        origins = list(range(self._members))
        scores = {} if latest is None else self.scores(latest)
        order = ranked(scores)
        if not order:
            reason = "no member has a metric" if not scores else "every member has failed"
            points = [self._encode(self._start)] * self._members if scores else points
            return self._proposal(points, origins, [True] * self._members, reason, 0)
        leader, moved = order[0], replacements(scores)
        points[leader] = self.incumbent(now)
        for member, origin in moved.items():
            origins[member] = origin
            kept = [x for i, x in enumerate(points) if i not in moved]
            tried = [points[i] for i in moved if i < member]
            points[member] = self._belief.choose(now, torch.stack([*kept, *tried]))
        queries = self._queries(seen, points)
        reason = f"member {leader} leads; {len(moved)} of {self._members} go on from others"
        return self._proposal(points, origins, queries, reason, leader)

    def _proposal(
        self,
        points: Sequence[Tensor],
        origins: Sequence[int],
        queries: Sequence[bool],
        reason: str,
        leader: int,
    ) -> Proposal:
        configs = tuple(FrozenConfig(self._space.decode(x)) for x in points)
        details = {"configs": configs, "origins": tuple(origins), "queries": tuple(queries)}
        return Proposal(configs[leader], reason, query=any(queries), details=details)

    def _queries(self, seen: Seen, points: Sequence[Tensor]) -> list[bool]:
        """Return whether each member is queried, as a candidate with the others as rivals.

        Configurations closer than the bandwidth are no rivals: a comparison of them is worth nothing.
        """
        now = len(seen)
        if self._horizon is not None and now == self._horizon - 1:
            return [True] * self._members
        together = torch.stack(list(points))
        mean, variance = self._belief.mean_and_variance(together, now)
        others = torch.tensor(
            [[j for j in range(self._members) if j != i] for i in range(self._members)]
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
        progress = Progress(now + 1, seen.queries, self._horizon)
        return [bool(query) for query in self._query(comparison, progress, self._generator).query]

    def learn(self, outcome: PopulationObservation, seen: Seen, *details: Any) -> None:
        """Learn the gains of the members with a metric in a round."""
        decision = seen.suggestion(outcome.round)
        least = least_loss(metric for played in seen.outcomes for metric in played.metrics)
        level, variance_of = self._gain.level, self._gain.level_variance
        lineage = Lineage(seen, lambda metric: level(metric, least), variance_of)
        readings = {i: lineage.reading(decision.round, i) for i in range(self._members)}
        measured = {i: reading for i, reading in readings.items() if reading is not None}
        finite = [gain for gain, _ in measured.values() if not math.isnan(gain)]
        if not finite:
            return
        # The level of a round does not count, so gains are clipped relative to their median.
        middle = statistics.median(finite)
        points = torch.stack([self._encode(decision.configs[member]) for member in measured])
        rewards, variances = [], []
        for gain, variance in measured.values():
            reward, spread = self._gain.reading(gain - middle, variance)
            rewards.append(-self._gain.clip if reward is None or math.isnan(gain) else reward)
            variances.append(spread)
        self._belief.learn(decision.round, points, rewards, variances)

    def incumbent(self, now: int) -> Tensor:
        """Return the encoded configuration that the leader plays; see ``PopulationBelief.incumbent``."""
        return self._belief.incumbent(now, self._encode(self._start))

    def _encode(self, config: Mapping[str, Plain]) -> Tensor:
        return self._space.encode(config).double()

    def scores(self, outcome: PopulationObservation) -> dict[int, float]:
        """Return each member's metric, negated for losses; NaN if it failed; none without a metric."""
        sign = -1.0 if self._gain.kind == "loss" else 1.0
        metrics = enumerate(outcome.metrics)
        return {i: sign * metric for i, metric in metrics if metric is not None}

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values that the next round depends on."""
        return {"belief": self._belief.state_dict(), "generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self._belief.load_state_dict(state["belief"])
        self._generator.set_state(state["generator"].cpu())


class Lineage:
    """Follows the weights of a member back to the round in which they were last measured.

    Args:
        seen: Rounds of the run so far.
        level: Function from metrics to levels; gains are differences of levels.
        variance_of: Function from metrics and their variances to the variances of levels.
    """

    def __init__(
        self,
        seen: Seen,
        level: Callable[[float], float],
        variance_of: Callable[[float, float], float],
    ) -> None:
        self._decisions = {decision.round: decision for decision in seen.suggestions}
        self._outcomes = {outcome.round: outcome for outcome in seen.outcomes}
        self._level, self._variance_of = level, variance_of

    def reading(self, round: int, member: int) -> tuple[float, float] | None:
        """Return the gain per round of a member up to the end of a round, and its variance.

        The gain is the change of the level since the weights were last measured, if the member has
        played one configuration since then. All members begin with equal weights, whose level is set to
        0: only differences between members count.

        Returns:
            A gain of NaN for a member that failed, None for an unknown gain.
        """
        measured = self._measured(round, member)
        if measured is None or math.isnan(measured[0]):
            return measured
        (level, variance), config = measured, self._decisions[round].configs[member]
        for elapsed in range(1, round + 2):
            decision = self._decisions[round + 1 - elapsed]
            if decision.configs[member] != config:
                return None
            if decision.round == 0:
                return level / elapsed, variance / elapsed**2
            member = decision.origins[member]
            before = self._measured(decision.round - 1, member)
            if before is not None:
                if math.isnan(before[0]):
                    return None
                return (level - before[0]) / elapsed, (variance + before[1]) / elapsed**2
        return None

    def _measured(self, round: int, member: int) -> tuple[float, float] | None:
        """Return the level of a member at the end of a round, and its variance.

        None if it is unknown, a level of NaN if the member failed.
        """
        outcome = self._outcomes.get(round)
        metric = None if outcome is None else outcome.metrics[member]
        if outcome is None or metric is None:
            return None
        level = self._level(metric)
        if math.isnan(level):
            return None if math.isfinite(metric) else (level, 0.0)  # a loss of 0 before any above 0
        return level, self._variance_of(metric, outcome.variance_of(member))
