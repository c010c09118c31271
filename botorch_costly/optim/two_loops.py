r"""The inverse Hessian of L-BFGS, from pairs of steps and changes of the gradient.

The two-loop recursion for the pairs ``s_i, y_i`` is written as two triangular solves with
``R_ij = s_i'y_j``, ``i <= j`` (Byrd, Nocedal & Schnabel 1994), which takes a few kernels for any history:

    first loop     R a = S g             q = H_0 (g - Y'a)
    second loop    R'c = D a - Y q       H g = q + S'c            D = diag(R)

The pairs correct an initial inverse Hessian ``H_0``. It is ``γ I``; or ``sqrt(τ) C``, where ``C`` is the
inverse of the caller's estimate of the Hessian, in the free variables, and ``τ = s'y / y'C y`` of the
newest pair corrects an estimate of the wrong size. The root weighs estimate and pair equally.

Notation: see ``optim.lbfgs``.
"""

import torch
from torch import Tensor

CURVATURE = 1e-8  # pairs with a smaller relative curvature are not stored


def inverse_of_free(
    hessian: Tensor,  # shape: (*batch, k, d, d)
    mask: Tensor,  # 1 where a variable is free, shape: (*batch, k, d)
) -> Tensor:  # shape: (*batch, k, d, d)
    """Invert the rows and columns of the free variables; the other ones become the identity's."""
    rows = mask[..., None]
    chol = torch.linalg.cholesky_ex(hessian * rows * rows.mT + torch.diag_embed(1 - mask)).L
    return torch.cholesky_inverse(chol)


def two_loops(
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
