"""What a member gained in a round: over the weights that it went on from."""

import math
from collections.abc import Callable

from botorch_costly.ask_tell.evaluations import Evaluations
from botorch_costly.population_records import PopulationDecision, PopulationObservation


class Lineage:
    """Follows the weights of a member back to when they were last measured.

    Args:
        seen: Rounds of the run so far.
        level: From metrics to levels, of which gains are differences.
    """

    def __init__(
        self,
        seen: Evaluations[PopulationDecision, PopulationObservation],
        level: Callable[[float], float],
    ) -> None:
        self._decisions = {one.round: one for one in seen.suggestions}
        self._told = {one.round: one for one in seen.outcomes}
        self._level = level

    def gain(self, round: int, member: int) -> float | None:
        """Return the gain per round of a member up to the end of a round.

        It is over the last round in which its weights were measured, if it has played one
        configuration since. In the beginning all members have equal weights, whose level is as good as 0:
        only differences between members count.

        Returns:
            NaN of a member that failed, None if the gain is not known.
        """
        level = self._measured(round, member)
        if level is None or math.isnan(level):
            return level
        config = self._decisions[round].configs[member]
        for elapsed in range(1, round + 2):
            decision = self._decisions[round + 1 - elapsed]
            if decision.configs[member] != config:
                return None
            if decision.round == 0:
                return level / elapsed
            member = decision.origins[member]
            before = self._measured(decision.round - 1, member)
            if before is not None:
                return None if math.isnan(before) else (level - before) / elapsed
        return None

    def _measured(self, round: int, member: int) -> float | None:
        """Return the level of a member at the end of a round; None if it was not measured."""
        told = self._told.get(round)
        metric = None if told is None else told.metrics[member]
        return None if metric is None else self._level(metric)
