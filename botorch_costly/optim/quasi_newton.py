r"""Quasi-Newton directions of L-BFGS in a box, with an active set of variables at their bounds.

The two-loop recursion for pairs ``s_i, y_i`` of steps and changes of the gradient is written as two
triangular solves with ``R_ij = s_i'y_j``, ``i <= j`` (Byrd, Nocedal & Schnabel 1994), which takes a few
kernels for any history:

    first loop     R a = S g             q = H_0 (g - Y'a)
    second loop    R'c = D a - Y q       H g = q + S'c            D = diag(R)

The pairs correct an initial inverse Hessian ``H_0``. It is ``γ I``; or ``sqrt(τ) C``, where ``C`` is the
inverse of the caller's estimate of the Hessian, in the free variables, and ``τ = s'y / y'C y`` of the
newest pair corrects an estimate of the wrong size. The root weighs estimate and pair equally.

Notation: see ``optim.lbfgs``.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, check

NEAR = 1e-3  # within this distance (in widths) of the bound it is pushed against, a variable goes there
CURVATURE = 1e-8  # pairs with a smaller relative curvature are not stored
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
    newton = _two_loops(pairs * mask[..., None, None, :], gradient, scale, guess)

    # The model is positive definite, so its direction leads downhill but for rounding.
    downhill = dot(gradient, newton) > _DOWNHILL * scale * dot(gradient, gradient)
    newton = torch.where(downhill, newton, scale * gradient)
    return torch.where(free, -growth * newton, bound - point), norm


def inverse_of_free(
    hessian: Tensor,  # shape: (*batch, k, d, d)
    mask: Tensor,  # 1 where a variable is free, shape: (*batch, k, d)
) -> Tensor:  # shape: (*batch, k, d, d)
    """Invert the rows and columns of the free variables; the other ones become the identity's."""
    rows = mask[..., None]
    chol = torch.linalg.cholesky_ex(hessian * rows * rows.mT + torch.diag_embed(1 - mask)).L
    return torch.cholesky_inverse(chol)


def _two_loops(
    pairs: Tensor,  # shape: (*batch, k, 2, m, d)
    gradient: Tensor,  # shape: (*batch, k, d)
    scale: Tensor,  # shape: (*batch, k, 1)
    guess: Tensor | None = None,  # C, shape: (*batch, k, d, d)
) -> Tensor:  # shape: (*batch, k, d)
    """Apply the inverse Hessian of the pairs to the gradient (Byrd et al. 1994)."""
    s, y = pairs.unbind(-3)
    products = s @ y.mT
    curvature = products.diagonal(dim1=-2, dim2=-1)  # s_i'y_i
    # A pair can lose its curvature with the variables that left the model. It is then skipped, by a row
    # and column of the identity in the triangular systems.
    valid = (curvature > CURVATURE * scale * (y * y).sum(-1)).to(s)
    rows = valid[..., None]
    r = torch.addcmul(torch.diag_embed(1 - valid), products, rows * rows.mT)
    g = gradient[..., None]
    a = torch.linalg.solve_triangular(r, (s @ g) * rows, upper=True)  # first loop
    q = g - y.mT @ a
    if guess is None:
        q = scale[..., None] * q
    else:
        newest = y[..., -1, :, None]
        predicted = (newest.mT @ guess @ newest)[..., 0]
        tau = torch.where(valid[..., -1:] > 0, curvature[..., -1:] / predicted, 1.0)
        q = tau.sqrt()[..., None] * (guess @ q)
    right = (curvature[..., None] * a - y @ q) * rows
    c = torch.linalg.solve_triangular(r.mT, right, upper=False)  # second loop
    return (q + s.mT @ c).squeeze(-1)
