"""The points of curves whose scores are data, and the curves resampled to one grid.

Points are numbered by training and iteration. On the grid of a model, which depends on the longest of
its trainings, an iteration has the point that shows it.
"""

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from botorch_costly.tuners.curves.trainings import Training


class ScorePoints:
    """The iterations of each training whose scores are data: ends of segments and points between.

    Args:
        stay: Whether all stay in the data once they are there; otherwise the latest end of each training
            takes the place of the one before.
    """

    def __init__(self, *, stay: bool) -> None:
        self._stay = stay
        self._iterations: dict[int, set[int]] = {}  # by the number of the training

    def newest(self, trainings: Sequence[Training], most: int) -> list[Training]:
        """Return the newest trainings whose points, their ends included, are at most so many."""
        sizes = [len(self._with_end(training)) for training in reversed(trainings)]
        kept = sum(rows <= most for rows in itertools.accumulate(sizes))
        return list(trainings[len(trainings) - kept :])

    def enter_ends(self, trainings: Sequence[Training]) -> list[int]:
        """Add the ends of trainings, forget all others, and return the places of those that are new."""
        before = self._iterations
        self._iterations = {training.number: self._with_end(training) for training in trainings}
        return [
            place
            for place, training in enumerate(trainings)
            if self._iterations[training.number] != before.get(training.number)
        ]

    def add(self, trainings: Sequence[Training], marks: Tensor, finest: int) -> None:
        """Add points of the grid: places of trainings and points, integers of shape ``n x 2``."""
        for place, point in marks.tolist():
            training = trainings[place]
            self._iterations[training.number].add(point * training.length // finest)

    def marks(self, trainings: Sequence[Training], curves: Tensor) -> Tensor:
        """Return the place of each training and its points of the grid, integers of shape ``n x 2``.

        Args:
            trainings: The trainings of the model.
            curves: Their resampled curves, ``c x finest``; NaN where missing.
        """
        finest, pairs = curves.shape[1], []
        shown = ~curves.isnan()
        first = shown.int().argmax(-1).tolist()
        last = (finest - shown.flip(-1).int().argmax(-1)).tolist()
        for place, training in enumerate(trainings):
            points = {
                min(
                    max(point_of(iteration, training.length, finest), first[place] + 1), last[place]
                )
                for iteration in self._iterations[training.number]
            }
            pairs += [[place, point] for point in sorted(points)]
        return torch.tensor(pairs, device=curves.device)

    def to_tensor(self) -> Tensor:
        """Return numbers of trainings and iterations, shape ``n x 2``."""
        pairs = [[number, i] for number in self._iterations for i in self._sorted(number)]
        return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2)

    def _with_end(self, training: Training) -> set[int]:
        before = self._iterations.get(training.number, set()) if self._stay else set()
        return {*before, end_of(training)}

    def _sorted(self, number: int) -> list[int]:
        return sorted(self._iterations[number])

    def load(self, pairs: Tensor | None) -> None:
        """Take the points of ``to_tensor`` in place of all others; none from None."""
        self._iterations = {}
        for number, iteration in [] if pairs is None else pairs.tolist():
            self._iterations.setdefault(number, set()).add(iteration)


def end_of(training: Training) -> int:
    """Return the last iteration with a score: that of the whole if the training diverged."""
    return training.length if training.broken else training.done


def point_of(iteration: int, length: int, finest: int) -> int:
    """Return the point of the grid, counted from 1, that shows an iteration; 0 before the first.

    Of a training longer than the grid it is the last up to the iteration, of a shorter one the first that
    has reached it.
    """
    reached, passed = (-(-i * finest // length) for i in (iteration, iteration + 1))
    return min(reached, passed - 1)


def resampled(training: Training, finest: int, lowest: float) -> Tensor:
    """Return rewards minus the lowest at equally spaced shares; NaN beyond the current iteration."""
    curve = torch.full((finest,), math.nan, dtype=torch.float64)
    rewards = torch.tensor([math.nan, *training.curve], dtype=torch.float64) - lowest
    measured = torch.tensor([0, *training.known])
    until = int(measured[-1]) if training.broken else training.done
    for k in range(1, finest + 1):
        iteration = k * training.length / finest
        if iteration < until + 1:  # the point that holds the current iteration is the last
            latest = int(measured[measured <= iteration + 1e-9].max())
            curve[k - 1] = rewards[latest]
    if training.known and bool(curve.isnan().all()):
        curve[0] = rewards[training.known[0]]
    return curve.nan_to_num(0.0) if training.broken else curve
