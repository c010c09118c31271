r"""What pairs of steps and changes of the gradient say about the inverse Hessian.

The two-loop recursion for the pairs ``s_i, y_i`` is written as two triangular solves with
``R_ij = s_i'y_j``, ``i <= j`` (Byrd, Nocedal & Schnabel 1994), which costs a handful of kernels whatever
the history:

    first loop     R a = S g             q = H_0 (g - Y'a)
    second loop    R'c = D a - Y q       H g = q + S'c            D = diag(R)

The inverse Hessian that the pairs correct is ``H_0 = γ I``; or ``H_0 = sqrt(τ) C``, where ``C`` is the
inverse of a Hessian guessed by the caller, without the rows and columns of the variables that are not
free, and ``τ = s'y / y'C y`` of the newest pair, by which a guess of the wrong size is outgrown. Its
root trusts the guess as much as the pair.

Notation: that of ``optim.lbfgs``.
"""

import torch
from torch import Tensor

CURVATURE = 1e-8  # a pair with relatively less curvature than this is not stored


def inverse_of_free(
    hessian: Tensor,  # shape: (*batch, k, d, d)
    mask: Tensor,  # 1 where a variable is free, shape: (*batch, k, d)
) -> Tensor:  # shape: (*batch, k, d, d)
    """Invert the rows and columns of the free variables; the others become those of the identity."""
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
    # A pair can lose its curvature with the variables that left the model: it sits out, which
    # in the triangular systems is a row and column of the identity.
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
        long = (newest.mT @ guess @ newest)[..., 0]
        tau = torch.where(valid[..., -1:] > 0, curvature[..., -1:] / long, 1.0)
        q = tau.sqrt()[..., None] * (guess @ q)
    right = (curvature[..., None] * a - y @ q) * rows
    c = torch.linalg.solve_triangular(r.mT, right, upper=False)  # second loop
    return (q + s.mT @ c).squeeze(-1)
