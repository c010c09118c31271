"""A penalty around failed evaluations, which do not enter the model of the target."""

from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_costly.optim.smooth import ValueAndGradient
from botorch_costly.tuners.transfer.weighting import Acquisition

_REACH = 0.15  # length scale of the penalty, times the square root of the dimension


@dataclass(frozen=True)
class Fears:
    """Penalty around failures: the sum of a Gaussian bump at each.

    A failed configuration cannot be evaluated. If it entered the model as a low value, the tasks would
    seem to mislead, and their share would fall without reason.

    Args:
        points: Points of failed evaluations, ``f x dim``.
        sizes: Heights of the bumps, shape ``(f,)``.
    """

    points: Tensor
    sizes: Tensor

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the penalty at points ``m x dim``, shape ``(m,)``, and its gradient, ``m x dim``."""
        offsets = (X.unsqueeze(-2) - self.points) / (_REACH * X.shape[-1] ** 0.5)
        each = self.sizes * (-0.5 * offsets.square().sum(-1)).exp()
        slope = -(each.unsqueeze(-1) * offsets).sum(-2) / (_REACH * X.shape[-1] ** 0.5)
        return each.sum(-1), slope

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


def fears_of(acquisition: Acquisition, points: Tensor) -> Fears:
    """Return the penalty around failures; its height at each is a standard deviation."""
    with torch.no_grad():
        sizes = acquisition.believed(points, 1.0) - acquisition.believed(points, 0.0)
    return Fears(points, sizes)
