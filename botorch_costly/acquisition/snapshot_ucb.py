"""Upper confidence bounds of many beliefs at once."""

from dataclasses import dataclass

from torch import Tensor

from botorch_costly.numerics.expansion import Quadratic, bound_of, expand
from botorch_costly.numerics.snapshot import Moments, Snapshot, bound_at, moments, upper_bound
from botorch_costly.numerics.stationary import FAMILIES
from botorch_costly.optim.lbfgs import ValueAndGradient


@dataclass(frozen=True)
class SnapshotUCB:
    """``mean + width std`` of beliefs seen from one round, in units of their priors.

    Each belief of a batch has its own bound over the same configurations. All share a kernel. It is what
    ``optim.climb.climb`` climbs, for thousands of beliefs as for one.

    Args:
        belief: As ``numerics.snapshot.snapshot`` returns it, of any batch shape.
        keep: What is retained of it by now, in [0, 1].
        width: Standard deviations to add, shape ``()``.
        floor: Least variance, positive.
    """

    belief: Snapshot
    keep: float
    width: Tensor
    floor: float

    @property
    def is_smooth(self) -> bool:
        """Whether there is a Hessian: arms have no slopes, and Matérn-1/2 has kinks."""
        return self.belief.family in FAMILIES and self.belief.family != "matern12"

    def __call__(self, X: Tensor) -> Tensor:
        """Return the bounds at configurations ``batch_shape x n x 1 x d``, ``batch_shape x n``."""
        return self.at(moments(self.belief, X.squeeze(-2)))

    def at(self, known: Moments) -> Tensor:
        """Return the bounds where the moments are known, of their shape."""
        return bound_at(self.belief.prior, known, self.keep, self.width, self.floor)

    def with_gradient(self, like: Tensor, sign: float = 1) -> ValueAndGradient:
        """Return the bounds, from ``batch_shape x n x d``, as a function with a gradient.

        Args:
            like: In the precision of this.
            sign: Multiplies the bounds; -1 makes them losses.
        """
        belief, width = self.belief.to(like.dtype), self.width.to(like)
        return upper_bound(belief, self.keep, width, self.floor, sign)

    def second_order(self, X: Tensor) -> Quadratic:
        """Return values, gradients and Hessians at ``batch_shape x n x d``, if ``is_smooth``."""
        around, prior = expand(self.belief, X), self.belief.prior
        return bound_of(around, prior, self.keep, self.width, self.floor)
