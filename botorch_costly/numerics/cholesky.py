r"""A Cholesky factor to which a row is appended, or from which any row is removed, in O(n^2).

The factor ``L`` of ``A = L L^T`` is stored with its inverse ``X = L^{-1}`` and the whitened
right-hand sides ``W = L^{-1} Y``, so that conditioning and prediction are matrix products:

    mean = (X k)^T W,        variance = k** - |X k|^2.

Append (bordering). With ``l = X a`` and ``d^2 = a** - |l|^2``,

    [A  a ]   [L  0] [L^T l]            [ X         0 ]
    [a' a**] = [l' d] [0   d],   X_new = [-l'X/d    1/d],   w_new = (y - l'W) / d.

Remove row i. Partition the factor as ``[[A 0 0], [b d 0], [B c C]]`` with row i in the middle. Without
it the last block becomes ``C' C'^T = C C^T + c c^T = C (I + v v^T) C^T`` with ``v = C^{-1} c``, and
``I + v v^T`` has the Cholesky factor (s_k = 1 + v_1^2 + .. + v_k^2, s_0 = 1)

    M[k, k] = sqrt(s_k / s_{k-1}),     M[j, k] = v_j v_k / sqrt(s_k s_{k-1})   (j > k),
    M^{-1}[k, k] = sqrt(s_{k-1} / s_k), M^{-1}[j, k] = -v_j v_k / sqrt(s_j s_{j-1})   (k < j),

so that ``C' = C M`` and ``M^{-1} R`` are one cumulative sum each, without a loop over rows. Only positive
terms are added, so removal is as stable as a new factorization. The inverse and ``W`` follow from
``X[>i, <i] + v X[i, <i] = -C^{-1} B A^{-1}``.

Convention: all tensors are ``(*batch, ...)``; rows are in the order in which they were appended.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from botorch_costly.errors import InvalidShapeError, NumericalError, check


class Factor(NamedTuple):
    """A lower Cholesky factor, its inverse and the whitened right-hand sides."""

    chol: Tensor  # L, shape: (*batch, n, n)
    inverse: Tensor  # X = L^{-1}, shape: (*batch, n, n)
    whitened: Tensor  # W = L^{-1} Y, shape: (*batch, n, r)


class Jitter(NamedTuple):
    """Amount added to a squared pivot to keep the factor positive definite, 0 if none was needed."""

    amount: Tensor  # shape: (*batch,)


def empty_factor(
    right_hand_sides: int = 1,
    batch_shape: torch.Size = torch.Size(),
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> Factor:
    """Return the factor of a 0 x 0 matrix with ``right_hand_sides`` columns in ``Y``."""
    square = torch.zeros(*batch_shape, 0, 0, dtype=dtype, device=device)
    whitened = torch.zeros(*batch_shape, 0, right_hand_sides, dtype=dtype, device=device)
    return Factor(square, square, whitened)


def factorize(matrix: Tensor, right_hand_sides: Tensor) -> Factor:
    """Factorize a matrix in O(n^3).

    Args:
        matrix: Symmetric positive definite, shape ``(*batch, n, n)``.
        right_hand_sides: Shape ``(*batch, n, r)``.

    Raises:
        NumericalError: If ``matrix`` is not positive definite.
    """
    chol, info = torch.linalg.cholesky_ex(matrix)
    received = f"a non-positive pivot in row {int(info.max())}"
    check(not bool(info.any()), "matrix", "a positive definite matrix", received, NumericalError)
    inverse = inverse_root(chol)
    return Factor(chol, inverse, inverse @ right_hand_sides)


def inverse_root(root: Tensor) -> Tensor:
    """Return the inverses of lower triangular matrices, ``*batch x n x n``."""
    eye = torch.eye(root.shape[-1], dtype=root.dtype, device=root.device)
    return torch.linalg.solve_triangular(root, eye.expand_as(root), upper=False)


def sure_root(cov: Tensor) -> Tensor:
    """Return the Cholesky factors of covariances ``*batch x n x n``, which may be singular.

    Where a factorization fails, the diagonal is enlarged by a relative amount that starts at the machine
    epsilon and grows a hundredfold until it succeeds.

    Raises:
        NumericalError: If a number is not finite.
    """
    root, info = torch.linalg.cholesky_ex(cov)
    if not bool(info.any()):
        return root
    diagonal, jitter = cov.diagonal(dim1=-2, dim2=-1), torch.finfo(cov.dtype).eps
    while bool(info.any()) and jitter < 1:
        raised = cov + torch.diag_embed(jitter * diagonal)
        raised_root, raised_info = torch.linalg.cholesky_ex(raised)
        root = torch.where((info > 0)[..., None, None], raised_root, root)
        info = torch.where(info > 0, raised_info, info)
        jitter *= 100
    expected = "a positive definite matrix of finite numbers"
    check(not bool(info.any()), "cov", expected, diagonal.flatten().tolist(), NumericalError)
    return root


def squared_norm_and_log_det(root: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``r'A^{-1}r`` and ``log |A| / 2``, the terms of a Gaussian log density, each ``(*batch,)``.

    The residual ``r``, ``(*batch, n)``, broadcasts with the Cholesky factors of ``A``.
    """
    white = torch.linalg.solve_triangular(root, residual.unsqueeze(-1), upper=False)
    return white.square().sum((-2, -1)), root.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def append(
    factor: Factor,
    cross: Tensor,
    prior: Tensor,
    noise: Tensor,
    right_hand_side: Tensor,
    minimum_pivot: float | None = None,
) -> tuple[Factor, Jitter]:
    """Append one row of ``A = K + noise I`` in O(n^2).

    The noise is separate from the prior variance because it bounds the pivot from below: the squared
    pivot is the posterior variance of the new value, clipped at 0 because of rounding, plus the noise.
    So a million identical rows cannot break the factor. If the noise is below ``minimum_pivot`` as
    well, the missing amount is added and returned as ``Jitter``.

    Args:
        factor: The factor of the ``n`` rows so far.
        cross: Prior covariance between the new value and each earlier one, ``(*batch, n)``.
        prior: Prior variance of the new value, ``(*batch,)``.
        noise: Noise variance of the new observation, ``(*batch,)``.
        right_hand_side: The new row of ``Y``, ``(*batch, r)``.
        minimum_pivot: Least squared pivot as a fraction of ``prior``; ``least_pivot`` by default.

    Returns:
        The factor with ``n + 1`` rows, and the jitter.

    Raises:
        InvalidShapeError: If ``cross`` does not have one entry for each row, or ``right_hand_side``
            one for each column of ``Y``.
    """
    n, columns = factor.whitened.shape[-2:]
    check(cross.shape[-1] == n, "cross", f"{n} entries", tuple(cross.shape), InvalidShapeError)
    width = tuple(right_hand_side.shape)
    fits = width[-1:] == (columns,)
    check(fits, "right_hand_side", f"{columns} entries", width, InvalidShapeError)
    row = _solve(factor.chol, factor.inverse, cross)  # l
    if minimum_pivot is None:
        minimum_pivot = least_pivot(factor.chol.dtype)
    wanted = (prior - row.square().sum(-1)).clamp_min(0) + noise
    squared_pivot = torch.maximum(wanted, minimum_pivot * prior)
    pivot = squared_pivot.sqrt().unsqueeze(-1)
    projected = (row.unsqueeze(-2) @ factor.whitened).squeeze(-2)
    inverse_row = (row.unsqueeze(-2) @ factor.inverse).squeeze(-2)
    inverse_pivot = pivot.reciprocal()
    whitened = (right_hand_side - projected) * inverse_pivot
    grown = Factor(
        _border(factor.chol, row, pivot),
        _border(factor.inverse, inverse_row * -inverse_pivot, inverse_pivot),
        torch.cat([factor.whitened, whitened.unsqueeze(-2)], -2),
    )
    return grown, Jitter(squared_pivot - wanted)


def least_pivot(dtype: torch.dtype) -> float:
    """Return ``append``'s default least squared pivot, as a fraction of the prior variance.

    With a noise of at least that fraction no jitter is ever added.
    """
    return max(1e-10, 1000 * torch.finfo(dtype).eps)


def remove(factor: Factor, index: int) -> Factor:
    """Remove row ``index`` in O(n^2).

    Raises:
        InvalidShapeError: If there is no such row.
    """
    chol, inverse, whitened = factor
    n, below = chol.shape[-1], index + 1
    check(0 <= index < n, "index", f"a row in 0..{n - 1}", index, InvalidShapeError)
    others = all_but(index, n, chol.device)
    column = chol[..., below:, index]  # c
    v = _solve(chol[..., below:, below:], inverse[..., below:, below:], column)
    scale = torch.cat([torch.ones_like(chol[..., :1, 0]), 1 + v.square().cumsum(-1)], -1)  # s

    def without_row(rows: Tensor) -> Tensor:
        """Remove row i and replace the rows below it by ``M^{-1} (rows + v row_i)``."""
        later = rows[..., below:, :] + v.unsqueeze(-1) * rows[..., index : index + 1, :]
        return torch.cat([rows[..., :index, :], _solve_update(v, scale, later)], -2)

    trailing = _multiply_update(v, scale, chol[..., below:, below:])
    new_chol = chol[..., others, :][..., others].clone()
    new_chol[..., index:, index:] = trailing
    return Factor(new_chol, without_row(inverse)[..., others], without_row(whitened))


def all_but(index: int, number: int, device: torch.device) -> Tensor:
    """Return ``0, 1, ..`` up to ``number`` without ``index``: a mask would be waited for on a GPU."""
    numbers = torch.arange(number - 1, device=device)
    return numbers + (numbers >= index)


def _solve(chol: Tensor, inverse: Tensor, rhs: Tensor) -> Tensor:
    """Return ``chol^{-1} rhs`` as accurately as forward substitution.

    The residual of the explicit inverse alone grows with the condition number and from row to row. One
    step of iterative refinement removes it for two more products.
    """
    rhs = rhs.unsqueeze(-1)
    solution = inverse @ rhs
    return (solution + inverse @ (rhs - chol @ solution)).squeeze(-1)


def _border(square: Tensor, row: Tensor, corner: Tensor) -> Tensor:
    """Return ``[[square, 0], [row, corner]]``."""
    grown = pad(square, (0, 1, 0, 1))
    grown[..., -1, :] = torch.cat([row, corner], -1)
    return grown


def _multiply_update(v: Tensor, scale: Tensor, matrix: Tensor) -> Tensor:
    """Return ``matrix @ M`` with the factor ``M`` of ``I + v v^T``."""
    before, after = scale[..., :-1], scale[..., 1:]
    weighted = matrix * v.unsqueeze(-2)
    later = weighted.flip(-1).cumsum(-1).flip(-1) - weighted  # sum over columns j > k
    return (
        matrix * (after / before).sqrt().unsqueeze(-2)
        + later * (v / (after * before).sqrt()).unsqueeze(-2)
    ).tril()


def _solve_update(v: Tensor, scale: Tensor, matrix: Tensor) -> Tensor:
    """Return ``M^{-1} @ matrix`` with the factor ``M`` of ``I + v v^T``."""
    before, after = scale[..., :-1], scale[..., 1:]
    weighted = matrix * v.unsqueeze(-1)
    earlier = weighted.cumsum(-2) - weighted  # sum over rows k < j
    return matrix * (before / after).sqrt().unsqueeze(-1) - earlier * (
        v / (after * before).sqrt()
    ).unsqueeze(-1)
