"""Beliefs about the ends of trainings, and the promise of an end by the cost until then."""

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from botorch_costly.models import LogLinearCost
from botorch_costly.tuners.curves.lengths import Ladder
from botorch_costly.tuners.curves.standstill import Movement, movements
from botorch_costly.tuners.curves.trainings import Training, Trainings

_LEAST_COST = 1e-300  # products of costs and lengths may be infinite, or 0
_LEAST_CHANCE = 1e-12


class Common(NamedTuple):
    """Costs and movements of trainings, which all beliefs share."""

    cost: LogLinearCost  # of a whole training
    movements: Mapping[int, Movement]  # of each training that stands still, by its number

    @classmethod
    def of(cls, trainings: Trainings, ladder: Ladder) -> "Common":
        """Return those of trainings of which at least one has an iteration."""
        return cls(_costs(trainings), movements(trainings, ladder))


class Outlook(ABC):
    """Posterior of final rewards, and a model of costs.

    Args:
        common: Costs and movements of the trainings.
    """

    def __init__(self, common: Common) -> None:
        self._cost, self._movements = common

    @abstractmethod
    def log_improvement(self, X: Tensor) -> Tensor:
        """Return the log expected improvements of the ends of configurations ``batch_shape x d``."""

    @abstractmethod
    def exceeds(self, training: Training, until: int) -> float:
        """Return the probability that the value after an iteration exceeds the best one, if it moves."""

    def chance(self, training: Training, until: int) -> float:
        """Return the probability that the value at the next rung exceeds the best latest value."""
        return self._movement(training).soon * self.exceeds(training, until)

    def _movement(self, training: Training) -> Movement:
        return self._movements.get(training.number, Movement())

    def promise(self, X: Tensor, left: Tensor | float = 1.0) -> Tensor:
        """Return the logarithm of the expected improvement at the end per unit of remaining cost.

        Args:
            X: Configurations, ``batch_shape x d``.
            left: Remaining share of the training, of the batch shape.
        """
        log_left = left.log() if isinstance(left, Tensor) else math.log(left)
        return self.log_improvement(X) - self._cost.logarithm(X) - log_left

    def promises(self, trainings: list[Training], *, resumes: bool) -> list[float]:
        """Return the promise of each of several trainings.

        Args:
            trainings: Trainings that may go on.
            resumes: Whether they can be resumed; otherwise they restart from scratch.
        """
        if not trainings:
            return []
        points = torch.stack([t.point for t in trainings])
        done = [t.done / t.length if resumes else 0.0 for t in trainings]
        promises = self.promise(points, 1 - points.new_tensor(done)).tolist()
        return [
            promise + math.log(max(self._movement(training).ever, _LEAST_CHANCE))
            for promise, training in zip(promises, trainings, strict=True)
        ]


class Belief(Protocol):
    """A model of trainings, which predicts their ends."""

    def outlook(self, trainings: Trainings, common: Common) -> Outlook:
        """Return the posterior of final rewards; refit first if there are many new rows.

        Args:
            trainings: Trainings of which at least one has a reward.
            common: Their costs and movements.
        """

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""


def marks_of(training: Training, ladder: Ladder) -> list[tuple[float, float]]:
    """Return shares and rewards of a training at its rungs so far, and the latest."""
    measured, length, done = training.known, training.length, training.done
    marks = [mark for mark in ladder.rungs(length) + measured[-1:] if mark <= done]
    latest = {bisect_right(measured, mark) for mark in marks}  # numbers of values up to a mark
    chosen = [measured[number - 1] for number in sorted(latest) if number]
    return [(k / length, training.curve[k - 1]) for k in chosen]


def _costs(trainings: Trainings) -> LogLinearCost:
    """Return a model of the cost of whole trainings, fitted to those with at least one iteration."""
    begun = [training for training in trainings if training.iterations]
    points = torch.stack([t.point for t in begun]).double()
    costs = points.new_tensor([[t.cost_of_whole] for t in begun])
    return LogLinearCost(points, costs.clamp(_LEAST_COST, 1 / _LEAST_COST))
