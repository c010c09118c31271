"""What a search may ask of the function it climbs: values, gradients and, where there are any, Hessians.

A function declares what it can do by the protocols here. A plain callable becomes a
:class:`SmoothFunction` at the door of a search, by :func:`from_callable`; everything behind that door
takes a ``SmoothFunction``.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.numerics.expansion import Quadratic

Acquisition = Callable[[Tensor], Tensor]  # batch_shape x n x 1 x d -> batch_shape x n
ValueAndGradient = Callable[[Tensor], tuple[Tensor, Tensor]]  # batch_shape x n x d -> both
SecondOrder = Callable[[Tensor], Quadratic]  # batch_shape x n x d -> all three


@runtime_checkable
class SmoothFunction(Protocol):
    """A function of configurations with gradients and perhaps Hessians."""

    def __call__(self, X: Tensor, /) -> Tensor:
        """Return the values at configurations ``batch_shape x n x 1 x d``, ``batch_shape x n``.

        The singleton is BoTorch's ``q``.
        """

    def with_gradient(self, like: Tensor, *, sign: float = 1.0) -> ValueAndGradient:
        """Return the function with its gradient, everything but its argument worked out.

        The result maps configurations ``batch_shape x n x d`` to values ``batch_shape x n`` and
        gradients ``batch_shape x n x d``, both detached.

        Args:
            like: Configurations in whose precision it computes.
            sign: Multiplies values and gradients; -1 makes a loss of them.
        """

    @property
    def second_order(self) -> SecondOrder | None:
        """The function with gradient and Hessian in closed form, or None if it has no Hessian."""


@runtime_checkable
class AgingFunction(SmoothFunction, Protocol):
    """A smooth function of a belief that changes by age alone until its next observation."""

    @property
    def retained(self) -> float | None:
        """What is retained of the newest observation in the function's round, in [0, 1].

        None where the function changes by more than age after all, as before any observation.
        """

    def at_fixed_points(self, X: Tensor) -> Tensor:
        """Return the values at a tensor that is asked about in every round and never changed."""


class _ByAutograd(NamedTuple):
    """A plain callable with gradients by autograd."""

    function: Acquisition

    def __call__(self, X: Tensor, /) -> Tensor:
        return self.function(X)

    def with_gradient(self, like: Tensor, *, sign: float = 1.0) -> ValueAndGradient:
        return by_autograd(lambda X: sign * self.function(X.unsqueeze(-2)))

    @property
    def second_order(self) -> SecondOrder | None:
        return None


def from_callable(function: Acquisition | SmoothFunction) -> SmoothFunction:
    """Return the function as a ``SmoothFunction``: itself if it is one, or else with autograd.

    Args:
        function: As BoTorch's acquisition functions, ``batch_shape x n x 1 x d`` to ``batch_shape x n``.

    Example:
        >>> bowl = from_callable(lambda X: -X.square().sum((-1, -2)))
        >>> value, gradient = bowl.with_gradient(torch.ones(1, 2), sign=-1)(torch.ones(1, 2))
        >>> gradient
        tensor([[2., 2.]])
    """
    return function if isinstance(function, SmoothFunction) else _ByAutograd(function)


def by_autograd(function: Callable[[Tensor], Tensor]) -> ValueAndGradient:
    """Give a batched differentiable function its gradient, by autograd of the sum.

    Args:
        function: Maps ``batch_shape x n x d`` to ``batch_shape x n``, point by point.

    Returns:
        A callable that returns the values and gradients, detached. The gradient of a point on
        which the value does not depend is 0.

    Example:
        >>> value, gradient = by_autograd(lambda x: x.square().sum(-1))(torch.ones(2, 3))
        >>> gradient
        tensor([[2., 2., 2.],
                [2., 2., 2.]])
    """

    def value_and_gradient(points: Tensor) -> tuple[Tensor, Tensor]:
        with torch.inference_mode(False), torch.enable_grad():
            points = points.detach().clone().requires_grad_(True)
            value = function(points)
            if not value.requires_grad:
                return value, torch.zeros_like(points)
            # Each value depends on its own point alone, so the sum's gradient holds all of them.
            (gradient,) = torch.autograd.grad(value.sum(), points, materialize_grads=True)
        return value.detach(), gradient

    return value_and_gradient


class InBox(NamedTuple):
    """A smooth function over a box, asked about points of the unit cube.

    A box on the CPU is looked at without waiting for a device.
    """

    function: SmoothFunction
    lower: Tensor  # shape: (d,)
    width: Tensor  # shape: (d,)

    @property
    def is_unit_cube(self) -> bool:
        """Whether the box is the unit cube."""
        return bool((self.lower == 0).all() & (self.width == 1).all())

    def __call__(self, X: Tensor, /) -> Tensor:
        """Return the values at points of the cube, ``batch_shape x n x 1 x d``."""
        return self.function(moved(self.lower, X) + moved(self.width, X) * X)

    def with_gradient(self, like: Tensor, *, sign: float = 1.0) -> ValueAndGradient:
        """Return the function of points of the cube with its gradient there."""
        lower, width = moved(self.lower, like), moved(self.width, like)
        function = self.function.with_gradient(like, sign=sign)
        if self.is_unit_cube:
            return function

        def value_and_gradient(unit: Tensor) -> tuple[Tensor, Tensor]:
            value, gradient = function(lower + width * unit)
            return value, width * gradient

        return value_and_gradient

    @property
    def second_order(self) -> SecondOrder | None:
        """The function of points of the cube with gradient and Hessian there, or None."""
        function, lower, width = self.function.second_order, self.lower, self.width
        if function is None or self.is_unit_cube:
            return function

        def second_order(unit: Tensor) -> Quadratic:
            low, wide = moved(lower, unit), moved(width, unit)
            value, gradient, hessian = function(low + wide * unit)
            return Quadratic(value, wide * gradient, wide * wide[:, None] * hessian)

        return second_order
