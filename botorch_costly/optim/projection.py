"""Quasi-Newton directions in a box, with an active set of variables at their bounds.

Notation: see ``optim.lbfgs``.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, check
from botorch_costly.optim.two_loops import inverse_of_free, two_loops

NEAR = 1e-3  # within this distance (in widths) of the bound it is pushed against, a variable goes there
_DOWNHILL = 1e-6  # least slope of a direction, relative to steepest descent


class Box(NamedTuple):
    """A box in the dtype and on the device of a search."""

    lower: Tensor  # shape: (d,)
    upper: Tensor  # shape: (d,)
    near: Tensor  # shape: (d,): distance that counts as near to a bound


def box_of(start: Tensor, bounds: Tensor) -> Box:
    """Check starts and bounds, and return the box; bounds on a device are waited for.

    Raises:
        InvalidShapeError: If starts or bounds have other shapes.
        InvalidArgumentError: If a lower bound is above its upper bound.
    """
    fits = start.dim() >= 2 and start.numel() > 0 and start.is_floating_point()
    expected = "a floating-point batch_shape x n x d tensor"
    check(fits, "start", expected, tuple(start.shape), InvalidShapeError)
    shape = (2, start.shape[-1])
    check(bounds.shape == shape, "bounds", f"shape {shape}", tuple(bounds.shape), InvalidShapeError)
    ordered = bool((bounds[0] <= bounds[1]).all())
    check(ordered, "bounds", "lower <= upper", bounds, InvalidArgumentError)
    lower, upper = moved(bounds, start)
    width = upper - lower
    return Box(lower, upper, NEAR * torch.where(width.isfinite(), width, 1.0))


def dot(a: Tensor, b: Tensor) -> Tensor:
    """Return the inner products of rows, with a last dimension of size 1."""
    return (a * b).sum(-1, keepdim=True)


def quasi_newton_direction(
    point: Tensor,  # shape: (*batch, k, d)
    gradient: Tensor,  # shape: (*batch, k, d)
    scale: Tensor,  # shape: (*batch, k, 1)
    growth: Tensor,  # shape: (*batch, k, 1)
    pairs: Tensor,  # shape: (*batch, k, 2, m, d)
    box: Box,
    hessian: Tensor | None = None,  # shape: (*batch, k, d, d)
) -> tuple[Tensor, Tensor]:  # shapes: (*batch, k, d), (*batch, k, 1)
    """Return the quasi-Newton direction and the norm of the projected gradient.

    Variables that the gradient pushes against a near bound go to that bound and leave the model. The
    distance that counts as near shrinks with the norm of the projected gradient, as in Bertsekas'
    method, so that no variable is kept at a wrong bound.
    """
    projected = point - (point - gradient).clamp(box.lower, box.upper)
    norm = torch.linalg.vector_norm(projected, torch.inf, -1, keepdim=True)

    bound = torch.where(gradient > 0, box.lower, box.upper)
    free = (point - bound).abs() > torch.minimum(norm, box.near)
    mask = free.to(point)
    gradient = gradient * mask
    guess = None if hessian is None else inverse_of_free(hessian, mask)
    newton = two_loops(pairs * mask[..., None, None, :], gradient, scale, guess)

    # The model is positive definite, so its direction leads downhill but for rounding.
    downhill = dot(gradient, newton) > _DOWNHILL * scale * dot(gradient, gradient)
    newton = torch.where(downhill, newton, scale * gradient)
    return torch.where(free, -growth * newton, bound - point), norm
