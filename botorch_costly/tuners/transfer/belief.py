"""What is believed of the target alone, and of its share in what earlier tasks say."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.numerics.stationary import Stationary, covariance
from botorch_costly.numerics.units import Units, most_probable


class Told(NamedTuple):
    """What was told, larger is better; failures have the lowest value."""

    points: Tensor  # encoded, shape: (n, dim)
    values: Tensor  # shape: (n,)

    def with_believed(self, points: Tensor, values: Tensor) -> "Told":
        """Return what was told, and what is believed of points under way."""
        return Told(torch.cat([self.points, points]), torch.cat([self.values, values]))


def lowest(tasks: TaskEnsemble) -> float:
    """Return what a failure counts before anything else is told: the lowest value of a typical task."""
    values = tasks.targets.masked_fill(~tasks.seen, torch.inf).amin(-1)
    return float((tasks.offset + tasks.scale * values).median())


class Alone(NamedTuple):
    """The Gaussian process of the target alone."""

    model: TaskEnsemble  # of one task

    @property
    def offset(self) -> Tensor:
        """What the values are taken from, shape ``()``."""
        return self.model.offset[0]

    @property
    def scale(self) -> Tensor:
        """What they are divided by, shape ``()``."""
        return self.model.scale[0]

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations of points ``m x dim``, in the units of the values."""
        mean, std = self.model.moments(X)
        return self.offset + self.scale * mean[0], self.scale * std[0]

    def log_evidence(self, told: Told, units: Units) -> float:
        """Return the log evidence of the values, whose units are as uncertain as of the tasks."""
        model = self.model
        one = Stationary(model.kernel, model.lengthscale, model.variance.new_ones(()))
        noise = float(model.noise / model.variance)
        cov = covariance(one, told.points, told.points)
        cov = cov + noise * torch.eye(len(cov)).to(cov)
        return float(most_probable(told.values, torch.zeros_like(told.values), cov, units)[0])


def alone(told: Told, kernel: str, least_scale: float = 0.0) -> Alone:
    """Return the fitted belief.

    Args:
        told: At least one value.
        kernel: Of the tasks.
        least_scale: Standard deviation of all the target's values, at least. Those told first may lie
            side by side, and nothing would be worth a try elsewhere if they were all that is possible.
    """
    model = TaskEnsemble([told.points], [told.values], kernel=kernel, least_scale=least_scale)
    return Alone(model.fit() if len(told.values) > 1 else model)


def believable(log_odds: float) -> float:
    """Return the probability that has some log odds."""
    return 1 / (1 + math.exp(-log_odds)) if log_odds > -700 else 0.0
