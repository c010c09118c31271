"""The first trial of a run: to switch off what is far too strong, such as dropout or an augmentation.

A person tries that first where a network does not learn. The trial needs no model. It goes on until the
two sides differ: a network that has not begun to learn looks alike under all configurations.
"""

import math

from torch import Tensor

from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.course import Course
from botorch_costly.tuners.twins.rates import Start
from botorch_costly.tuners.twins.steps import Steps
from botorch_costly.tuners.twins.trials import Outcome


class SwitchOff:
    """A comparison of the present configuration with one where all is off that can be.

    Args:
        course: Of the run.
        start: Where both begin.
        off: The other configuration, encoded, shape ``(d,)``.
        until: Round of compute that neither reaches.
    """

    def __init__(self, course: Course, start: Start, off: Tensor, until: int) -> None:
        self._course, self._start, self._off, self._until = course, start, off, until

    def run(self) -> Steps[Outcome]:
        """Play both until they differ; return the better one, ``told`` by how much they differed."""
        start, course = self._start, self._course
        ours = Outcome(start.point, start.end, start.level)
        theirs = yield from self._on(
            Outcome(self._off, start.state, 0.0), start.rounds, start.began
        )
        rounds, given_back = start.rounds, start.rounds
        for _ in range(CONSTANTS.off_extensions):
            differs = self._advantage(theirs, ours) >= CONSTANTS.off_difference
            if differs or not self._has_room(4 * rounds):
                break
            later, rounds = start.began + given_back, 2 * rounds
            theirs = yield from self._on(theirs, rounds, later)
            ours = yield from self._on(ours, rounds, later)
            given_back += rounds
        found = self._advantage(theirs, ours)
        course.give_back(given_back, start.slope)
        kept = ours
        if found > CONSTANTS.off_advantage:
            kept = theirs
            course.change(theirs.level - ours.level)
        kept.advantage, kept.trials, kept.told = max(found, 0.0), 1, abs(found)
        return kept

    def _on(self, side: Outcome, rounds: int, began: int) -> Steps[Outcome]:
        """Play one side from its state on."""
        reason = "the incumbent goes on" if side.point is self._start.point else "a trial without"
        level = yield from self._course.play(
            side.point, rounds, reason, state=side.state, began=began
        )
        return Outcome(side.point, self._course.mark(), level)

    def _advantage(self, theirs: Outcome, ours: Outcome) -> float:
        """Return by how much one side is better, in units; -inf where it broke."""
        if not math.isfinite(theirs.level):
            return -math.inf
        if not math.isfinite(ours.level):
            return math.inf
        return (theirs.level - ours.level) / self._start.unit

    def _has_room(self, rounds: int) -> bool:
        return self._course.has_room(rounds, self._until, queries=2)
