r"""A Cholesky factor that grows by one row and forgets any row, in O(n^2) each.

The factor ``L`` of ``A = L L^T`` is stored with its inverse ``X = L^{-1}`` and the whitened
right-hand sides ``W = L^{-1} Y``, so that conditioning and prediction are matrix products:

    mean = (X k)^T W,        variance = k** - |X k|^2.

Append (bordering). With ``l = X a`` and ``d^2 = a** - |l|^2``,

    [A  a ]   [L  0] [L^T l]            [ X         0 ]
    [a' a**] = [l' d] [0   d],   X_new = [-l'X/d    1/d],   w_new = (y - l'W) / d.

Remove row i. Write the factor around it as ``[[A 0 0], [b d 0], [B c C]]``. Without row i the last
block becomes ``C' C'^T = C C^T + c c^T``. With ``v = C^{-1} c`` this is ``C (I + v v^T) C^T``, and
``I + v v^T`` has the Cholesky factor (s_k = 1 + v_1^2 + .. + v_k^2, s_0 = 1)

    M[k, k] = sqrt(s_k / s_{k-1}),     M[j, k] = v_j v_k / sqrt(s_k s_{k-1})   (j > k),
    M^{-1}[k, k] = sqrt(s_{k-1} / s_k), M^{-1}[j, k] = -v_j v_k / sqrt(s_j s_{j-1})   (k < j),

so that ``C' = C M`` is one reversed cumulative sum and ``M^{-1} R`` another: no loop over rows.
Only positive terms are added, so removing is as stable as factorizing anew. Because
``X[>i, <i] + v X[i, <i] = -C^{-1} B A^{-1}``, the inverse and ``W`` follow from that formula.

Convention: everything is ``(*batch, ...)``; rows are in the order they were appended.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, NumericalError, check


class Factor(NamedTuple):
    """A lower Cholesky factor, its inverse and the whitened right-hand sides."""

    chol: Tensor  # L, shape: (*batch, n, n)
    inverse: Tensor  # X = L^{-1}, shape: (*batch, n, n)
    whitened: Tensor  # W = L^{-1} Y, shape: (*batch, n, r)


class Jitter(NamedTuple):
    """What was added to a pivot so that the factor is positive definite; zero where nothing was."""

    amount: Tensor  # shape: (*batch,)


def empty_factor(
    right_hand_sides: int = 1,
    batch_shape: torch.Size = torch.Size(),
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> Factor:
    """Return the factor of a 0 x 0 matrix with ``right_hand_sides`` columns to whiten."""
    square = torch.zeros(*batch_shape, 0, 0, dtype=dtype, device=device)
    whitened = torch.zeros(*batch_shape, 0, right_hand_sides, dtype=dtype, device=device)
    return Factor(square, square, whitened)


def factorize(matrix: Tensor, right_hand_sides: Tensor) -> Factor:
    """Factorize ``matrix`` from scratch, in O(n^3).

    Args:
        matrix: Symmetric positive definite, shape ``(*batch, n, n)``.
        right_hand_sides: Shape ``(*batch, n, r)``.

    Raises:
        NumericalError: If ``matrix`` is not positive definite.
    """
    chol, info = torch.linalg.cholesky_ex(matrix)
    check(
        not bool(info.any()),
        "matrix",
        "a positive definite matrix",
        f"a non-positive pivot in row {int(info.max())}",
        NumericalError,
    )
    identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    inverse = torch.linalg.solve_triangular(chol, identity.expand_as(chol), upper=False)
    return Factor(chol, inverse, inverse @ right_hand_sides)


def sure_root(cov: Tensor) -> Tensor:
    """Return the Cholesky factors of covariances ``*batch x n x n``, of singular ones as well.

    Where rounding has left one that is not positive definite, as much as was rounded is added to its
    diagonal.

    Raises:
        NumericalError: If a number is not finite.
    """
    root, info = torch.linalg.cholesky_ex(cov)
    if not bool(info.any()):
        return root
    diagonal, added = cov.diagonal(dim1=-2, dim2=-1), torch.finfo(cov.dtype).eps
    while bool(info.any()) and added < 1:
        raised = cov + torch.diag_embed(added * diagonal)
        again, still = torch.linalg.cholesky_ex(raised)
        root = torch.where((info > 0)[..., None, None], again, root)
        info = torch.where(info > 0, still, info)
        added *= 100
    expected = "a positive definite matrix of finite numbers"
    check(not bool(info.any()), "cov", expected, diagonal.flatten().tolist(), NumericalError)
    return root


def append(
    factor: Factor,
    cross: Tensor,  # shape: (*batch, n)
    prior: Tensor,  # shape: (*batch,)
    noise: Tensor,  # shape: (*batch,)
    right_hand_side: Tensor,  # shape: (*batch, r)
    minimum_pivot: float | None = None,
) -> tuple[Factor, Jitter]:
    """Append one row of ``A = K + noise I`` in O(n^2).

    The noise is an argument apart from the prior variance because it bounds the pivot from below: the
    squared pivot is the posterior variance of the new value plus its noise, and rounding may push
    only the variance under zero. So a million identical rows cannot break the factor. What is added
    beyond that clipping, where even the noise is below ``minimum_pivot``, is returned by name.

    Args:
        factor: The factor of the ``n`` rows so far.
        cross: Prior covariance between the new value and each earlier one.
        prior: Prior variance of the new value.
        noise: Noise variance of the new observation.
        right_hand_side: The new row of ``Y``.
        minimum_pivot: The least squared pivot, as a fraction of ``prior``; by default 1e-10, or
            1,000 machine epsilons where those are more.

    Returns:
        The factor with ``n + 1`` rows, and the jitter that was needed.

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
    grown = Factor(
        _border(factor.chol, row, pivot),
        _border(factor.inverse, -inverse_row / pivot, 1 / pivot),
        torch.cat([factor.whitened, ((right_hand_side - projected) / pivot).unsqueeze(-2)], -2),
    )
    return grown, Jitter(squared_pivot - wanted)


def least_pivot(dtype: torch.dtype) -> float:
    """Return the least squared pivot of ``append``, as a fraction of the prior variance.

    A noise of at least as much leaves no pivot smaller, so that nothing is ever added.
    """
    return max(1e-10, 1000 * torch.finfo(dtype).eps)


def remove(factor: Factor, index: int) -> Factor:
    """Forget row ``index``, in O(n^2), as if it had never been appended.

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
        """Replace the rows below by ``M^{-1} (rows + v row_i)`` and leave out row i."""
        freed = rows[..., below:, :] + v.unsqueeze(-1) * rows[..., index : index + 1, :]
        return torch.cat([rows[..., :index, :], _solve_update(v, scale, freed)], -2)

    trailing = _multiply_update(v, scale, chol[..., below:, below:])
    new_chol = chol[..., others, :][..., others].clone()
    new_chol[..., index:, index:] = trailing
    return Factor(new_chol, without_row(inverse)[..., others], without_row(whitened))


def all_but(index: int, number: int, device: torch.device) -> Tensor:
    """Return ``0, 1, ..`` up to ``number`` without ``index``: a mask would be waited for on a GPU."""
    numbers = torch.arange(number - 1, device=device)
    return numbers + (numbers >= index)


def _solve(chol: Tensor, inverse: Tensor, rhs: Tensor) -> Tensor:
    """Return ``chol^{-1} rhs``, as accurately as substitution does.

    The explicit inverse alone would leave a residual that grows with the condition number and from
    row to row. One step of iterative refinement takes that away for two more products.
    """
    rhs = rhs.unsqueeze(-1)
    solution = inverse @ rhs
    return (solution + inverse @ (rhs - chol @ solution)).squeeze(-1)


def _border(square: Tensor, row: Tensor, corner: Tensor) -> Tensor:
    """Return ``[[square, 0], [row, corner]]``."""
    n = square.shape[-1]
    grown = square.new_zeros(*row.shape[:-1], n + 1, n + 1)
    grown[..., :n, :n] = square
    grown[..., n, :n] = row
    grown[..., n, n:] = corner
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
