"""A penalty where evaluations failed, which do not enter the model of the target."""

from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_costly.optim.smooth import ValueAndGradient
from botorch_costly.tuners.transfer.weighting import Acquisition

_REACH = 0.1  # length scale of what is near, times the square root of the dimension


@dataclass(frozen=True)
class Fears:
    r"""Penalty near failures: a size, such as a standard deviation, times the odds of a failure nearby.

    .. math:: \frac{\sum_f s_f k(x, f)}{1 + \sum_v k(x, v)}

    with a Gaussian ``k`` of height 1, failures ``f`` and other evaluations ``v``. So one failure may be
    an accident, and a region in which all evaluations fail is left.

    A failed configuration cannot be evaluated. If it entered the model as a low value, the tasks would
    seem to mislead, and their share would fall without reason.

    Args:
        points: Points of failed evaluations, ``f x dim``.
        sizes: Size ``s_f`` at each, shape ``(f,)``.
        valid: Points of the other evaluations, ``v x dim``.
    """

    points: Tensor
    sizes: Tensor
    valid: Tensor

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the penalty at points ``m x dim``, shape ``(m,)``, and its gradient, ``m x dim``."""
        (failed, by_failed), (valid, by_valid) = _near(X, self.points), _near(X, self.valid)
        odds = failed @ self.sizes / (1 + valid.sum(-1))
        by_size = (self.sizes.unsqueeze(-1) * by_failed).sum(-2)
        by_count = odds.unsqueeze(-1) * by_valid.sum(-2)
        return odds, (by_size - by_count) / (1 + valid.sum(-1, keepdim=True))

    def feared(self, acquisition: Acquisition, pool: Tensor) -> Acquisition:
        """Return an acquisition function with a fixed pool, ``m x dim``, minus the penalty."""

        def climber(columns: int) -> ValueAndGradient:
            unpenalized = acquisition.climber(columns)

            def with_gradient(X: Tensor) -> tuple[Tensor, Tensor]:
                value, slope = unpenalized(X)
                penalty, penalty_slope = self(X)
                return value - penalty, slope - penalty_slope

            return with_gradient

        return acquisition._replace(
            at=lambda X: acquisition.at(X) - self(X)[0],
            climber=climber,
            at_pool=lambda: acquisition.at_pool() - self(pool)[0],
        )


def _near(X: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """Return how near points are to others, ``m x n``, and the gradients, ``m x n x dim``."""
    reach = _REACH * X.shape[-1] ** 0.5
    offsets = (X.unsqueeze(-2) - others) / reach
    near = (-0.5 * offsets.square().sum(-1)).exp()
    return near, -near.unsqueeze(-1) * offsets / reach


def fears_of(acquisition: Acquisition, failed: Tensor, valid: Tensor) -> Fears:
    """Return the penalty near failures, ``f x dim``, whose size at each is a standard deviation.

    Args:
        acquisition: Acquisition function whose belief decides the sizes.
        failed: Points of failed evaluations, ``f x dim``.
        valid: Points of the other evaluations, ``v x dim``.
    """
    with torch.no_grad():
        sizes = acquisition.believed(failed, 1.0) - acquisition.believed(failed, 0.0)
    return Fears(failed, sizes, valid)
