"""Protocols of functions with values, gradients and perhaps Hessians, for searches to climb.

A search takes a plain callable, too, and turns it into a :class:`SmoothFunction` by
:func:`from_callable`. The steps of the search take a ``SmoothFunction`` only.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.numerics.expansion import Quadratic

Acquisition = Callable[[Tensor], Tensor]  # batch_shape x n x 1 x d -> batch_shape x n
ValueAndGradient = Callable[[Tensor], tuple[Tensor, Tensor]]  # batch_shape x n x d -> both
SecondOrder = Callable[[Tensor], Quadratic]  # batch_shape x n x d -> values, gradients, Hessians


@runtime_checkable
class SmoothFunction(Protocol):
    """A function of configurations with gradients and, for some, Hessians."""

    def __call__(self, X: Tensor, /) -> Tensor:
        """Return the values at configurations ``batch_shape x n x 1 x d``, ``batch_shape x n``.

        The dimension of size 1 is BoTorch's ``q``.
        """

    def with_gradient(self, like: Tensor, *, sign: float = 1.0) -> ValueAndGradient:
        """Return the function with its gradient, with all constants computed beforehand.

        The result maps configurations ``batch_shape x n x d`` to values ``batch_shape x n`` and
        gradients ``batch_shape x n x d``, both detached.

        Args:
            like: Tensor of configurations, whose dtype and device the result uses.
            sign: Factor of values and gradients; -1 turns the function into a loss.
        """

    @property
    def second_order(self) -> SecondOrder | None:
        """The function with gradient and Hessian in closed form, or None if it has no Hessian."""


@runtime_checkable
class AgingFunction(SmoothFunction, Protocol):
    """A smooth function of a belief that changes only by age until its next observation."""

    @property
    def retained(self) -> float | None:
        """The fraction of the newest observation retained in the function's round, in [0, 1].

        None if the function changes in another way, too, as before the first observation.
        """

    def at_fixed_points(self, X: Tensor) -> Tensor:
        """Return the values at a tensor that is the same in every round, and is never modified."""


@runtime_checkable
class DivisibleFunction(SmoothFunction, Protocol):
    """A batch of smooth functions that can be divided into smaller batches."""

    @property
    def entry_bytes(self) -> int:
        """Memory that an evaluation of one entry of the batch reads."""

    def entries(self, rows: slice) -> SmoothFunction:
        """Return some entries of the batch."""


class _ByAutograd(NamedTuple):
    """A plain callable as a smooth function, with gradients by autograd."""

    function: Acquisition

    def __call__(self, X: Tensor, /) -> Tensor:
        return self.function(X)

    def with_gradient(self, like: Tensor, *, sign: float = 1.0) -> ValueAndGradient:
        return by_autograd(lambda X: sign * self.function(X.unsqueeze(-2)))

    @property
    def second_order(self) -> SecondOrder | None:
        return None


def from_callable(function: Acquisition | SmoothFunction) -> SmoothFunction:
    """Return a ``SmoothFunction`` unchanged, and a plain callable with gradients by autograd.

    Args:
        function: Maps ``batch_shape x n x 1 x d`` to ``batch_shape x n``, as in BoTorch.

    Example:
        >>> bowl = from_callable(lambda X: -X.square().sum((-1, -2)))
        >>> value, gradient = bowl.with_gradient(torch.ones(1, 2), sign=-1)(torch.ones(1, 2))
        >>> gradient
        tensor([[2., 2.]])
    """
    return function if isinstance(function, SmoothFunction) else _ByAutograd(function)


def by_autograd(function: Callable[[Tensor], Tensor]) -> ValueAndGradient:
    """Return a batched differentiable function together with its gradient, by autograd of the sum.

    Args:
        function: Maps ``batch_shape x n x d`` to ``batch_shape x n``, point by point.

    Returns:
        A callable that returns the values and gradients, detached. The gradient is 0 if the values do
        not depend on the points.

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
            # Each value depends only on its own point, so the gradient of the sum holds all gradients.
            (gradient,) = torch.autograd.grad(value.sum(), points, materialize_grads=True)
        return value.detach(), gradient

    return value_and_gradient


def evaluated(
    value_and_gradient: ValueAndGradient,
    points: Tensor,  # shape: (*batch, k, d)
) -> tuple[Tensor, Tensor]:  # shapes: (*batch, k), (*batch, k, d)
    """Return values and gradients at points, in their dtype.

    Raises:
        InvalidShapeError: If values or gradients have other shapes.
    """
    value, gradient = value_and_gradient(points)
    fits = value.shape == points.shape[:-1] and gradient.shape == points.shape
    received = (tuple(value.shape), tuple(gradient.shape))
    expected = f"values and gradients of shapes {(tuple(points.shape[:-1]), tuple(points.shape))}"
    check(fits, "value_and_gradient", expected, received, InvalidShapeError)
    return value.to(points), gradient.to(points)


class InBox(NamedTuple):
    """A smooth function over a box, as a function over the unit cube.

    A box on the CPU is read without waiting for a device.
    """

    function: SmoothFunction
    lower: Tensor  # shape: (d,)
    width: Tensor  # shape: (d,)

    def __call__(self, X: Tensor, /) -> Tensor:
        """Return the values at points of the cube, ``batch_shape x n x 1 x d``."""
        return self.function(moved(self.lower, X) + moved(self.width, X) * X)

    def with_gradient(self, like: Tensor, *, sign: float = 1.0) -> ValueAndGradient:
        """Return the function over the cube with its gradient."""
        lower, width = moved(self.lower, like), moved(self.width, like)
        function = self.function.with_gradient(like, sign=sign)

        def value_and_gradient(unit: Tensor) -> tuple[Tensor, Tensor]:
            value, gradient = function(lower + width * unit)
            return value, width * gradient

        return value_and_gradient

    @property
    def second_order(self) -> SecondOrder | None:
        """The function over the cube with gradient and Hessian, or None."""
        function = self.function.second_order
        if function is None:
            return None

        def second_order(unit: Tensor) -> Quadratic:
            lower, width = moved(self.lower, unit), moved(self.width, unit)
            value, gradient, hessian = function(lower + width * unit)
            return Quadratic(value, width * gradient, width * width[:, None] * hessian)

        return second_order
