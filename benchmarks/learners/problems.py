"""A data set of ``lcdb`` as a problem: its learners are arms, fractions of its rows the fidelity."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import torch

from benchmarks.learners.curves import Curves, learning_curves
from botorch_costly import Choice, Real, SearchSpace
from botorch_costly.problems import SubsetProblem

_LEAST_SECONDS = 1e-4  # the resolution of the clock


class LearnerProblem(SubsetProblem):
    """The learners of a data set that were measured on all of it, and what they came to on parts.

    A method is told accuracies in validation, one for each entry of the curves, NaN where none was
    measured; it is judged by the mean accuracy in test.
    """

    def __init__(self, curves: Curves, data_set: int, told: Any) -> None:
        rows = np.flatnonzero((curves.data_set == data_set) & ~np.isnan(told))
        whole = curves.size[rows].max()
        whole_rows = rows[curves.size[rows] == whole]
        arms = set(curves.learner[whole_rows].tolist())
        rows = np.array([row for row in rows.tolist() if curves.learner[row] in arms])
        names = [curves.learners[arm] for arm in sorted(arms)]
        fractions = curves.size[rows] / whole
        candidates = [
            ({"learner": curves.learners[arm]}, {"fraction": float(fraction)})
            for arm, fraction in zip(curves.learner[rows].tolist(), fractions, strict=True)
        ]
        seconds = np.maximum(curves.seconds[rows], _LEAST_SECONDS)
        super().__init__(
            SearchSpace({"learner": Choice(names)}),
            SearchSpace({"fraction": Real(float(fractions.min()), 1.0, log=True)}),
            candidates,
            told[rows].tolist(),
            seconds.tolist(),
        )
        self.data_set, self.whole, self.learners = data_set, int(whole), names
        self.seconds = float(seconds[self.targets].mean())  # of a training on all of the data
        self._test = torch.from_numpy(curves.test[rows])
        self.places: Mapping[str, dict[float, int]] = {name: {} for name in names}
        for number, (config, at) in enumerate(self.candidates):
            self.places[str(config["learner"])][at["fraction"]] = number

    @property
    def best(self) -> float:
        """The best mean accuracy in test of a learner on all of the data."""
        return float(self._test[self.targets].max())

    def regret(self, target: int) -> float:
        """Return by how much a candidate at the target is worse in test than the best one."""
        return self.best - float(self._test[target])


TOLD_EXACTLY = "mean of 25 splits"
TOLD: Mapping[str, Callable[[Curves], Any]] = {
    TOLD_EXACTLY: lambda curves: curves.validation,
    "one split": lambda curves: curves.first_split,
}
"""What an evaluation tells: nearly the truth, or what one training and validation set say."""


def data_sets(half: str) -> list[int]:
    """Return every second number of OpenML in their order: to choose, or to confirm."""
    known = np.unique(learning_curves().data_set).tolist()
    return known[{"choose": 0, "confirm": 1}[half] :: 2]


@cache
def problem_of(data_set: int, told: str) -> LearnerProblem:
    """Return the problem of a data set."""
    curves = learning_curves()
    return LearnerProblem(curves, data_set, TOLD[told](curves))
