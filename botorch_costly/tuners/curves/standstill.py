r"""Curves that stand still, and how probably they move again.

An agent that has not begun to learn, or a classifier that always names one class, has the same value at
every measurement. A segment between two rungs *stands still* if its values, and the one before it, are
all equal. Of the ``seen`` segments that follow one that stood still, ``moved`` did not; so the next one
moves with the probability ``p = (moved + 1) / (seen + 2)`` (the rule of succession), and a curve that
stands still changes within the ``n`` rungs that are left with the probability ``1 - (1 - p)^n``.
"""

import math
from itertools import pairwise
from typing import NamedTuple

from botorch_costly.tuners.curves.lengths import Ladder
from botorch_costly.tuners.curves.trainings import Training, Trainings


class Movement(NamedTuple):
    """Probabilities that a training's value changes again."""

    soon: float = 1.0  # before the next rung
    ever: float = 1.0  # before its end


def movements(trainings: Trainings, ladder: Ladder) -> dict[int, Movement]:
    """Return the movement of each training that stands still, by its number."""
    still = {training.number: _still(training, ladder) for training in trainings}
    after = [moved for segments in still.values() for stood, moved in pairwise(segments) if stood]
    moves = (after.count(False) + 1) / (len(after) + 2)
    standing = [t for t in trainings if still[t.number] and still[t.number][-1]]
    left = {t.number: sum(rung > t.done for rung in ladder.rungs(t.length)) for t in standing}
    return {number: Movement(moves, 1 - (1 - moves) ** n) for number, n in left.items()}


def _still(training: Training, ladder: Ladder) -> list[bool]:
    """Return whether each segment so far stands still."""
    begun, found = 0, []
    before: list[float] = []
    for rung in _rungs(training, ladder):
        values = [v for v in training.curve[begun:rung] if not math.isnan(v)]
        if values:  # what was not measured says nothing
            found.append(len(before + values) > 1 and len(set(before + values)) == 1)
            before = values[-1:]
        begun = rung
    return found


def _rungs(training: Training, ladder: Ladder) -> list[int]:
    """Return the rungs so far and the current iteration."""
    rungs = {rung for rung in ladder.rungs(training.length) if rung < training.done}
    return sorted(rungs | {training.done}) if training.done else []
