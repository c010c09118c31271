"""Failed evaluations: their neighbours are feared, and nothing is learnt from them elsewhere."""

from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_costly.optim.smooth import ValueAndGradient
from botorch_costly.tuners.transfer.sharing import Acquisition

_REACH = 0.15  # of a failure, by the square root of the dimension


@dataclass(frozen=True)
class Fears:
    """What is taken off around failures: a standard deviation each, which ends after some way.

    A failure says that its configuration cannot be evaluated. As a low value, believed or told, it would
    say of the tasks that they mislead, and the search would leave all that they are right about.

    Args:
        points: Where evaluations failed, ``f x dim``.
        sizes: What is taken off there, shape ``(f,)``.
    """

    points: Tensor
    sizes: Tensor

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return what is taken off at points ``m x dim``, and its slopes by them."""
        away = (X.unsqueeze(-2) - self.points) / (_REACH * X.shape[-1] ** 0.5)
        each = self.sizes * (-0.5 * away.square().sum(-1)).exp()
        slope = -(each.unsqueeze(-1) * away).sum(-2) / (_REACH * X.shape[-1] ** 0.5)
        return each.sum(-1), slope

    def feared(self, acquisition: Acquisition) -> Acquisition:
        """Return an acquisition less what is taken off."""

        def climber(columns: int) -> ValueAndGradient:
            hoped = acquisition.climber(columns)

            def with_gradient(X: Tensor) -> tuple[Tensor, Tensor]:
                value, slope = hoped(X)
                less, less_slope = self(X)
                return value - less, slope - less_slope

            return with_gradient

        return acquisition._replace(
            at=lambda X: acquisition.at(X) - self(X)[0],
            climber=climber,
            at_pool=lambda X: acquisition.at_pool(X) - self(X)[0],
        )


def fears_of(acquisition: Acquisition, points: Tensor) -> Fears:
    """Return what is feared of failures: a standard deviation at each."""
    with torch.no_grad():
        sizes = acquisition.believed(points, 1.0) - acquisition.believed(points, 0.0)
    return Fears(points, sizes)
