"""A Cholesky factor the way textbooks write it, entry by entry, always from scratch."""

import torch


def factorize(matrix, right_hand_sides):
    """Return L, L^{-1} and L^{-1} Y of one matrix (n, n) with Y (n, r)."""
    n = len(matrix)
    chol = torch.zeros_like(matrix)
    for i in range(n):
        for j in range(i):
            chol[i, j] = (matrix[i, j] - chol[i, :j] @ chol[j, :j]) / chol[j, j]
        chol[i, i] = (matrix[i, i] - chol[i, :i] @ chol[i, :i]).sqrt()
    inverse = _forward_substitution(chol, torch.eye(n, dtype=matrix.dtype, device=matrix.device))
    return chol, inverse, _forward_substitution(chol, right_hand_sides)


def _forward_substitution(chol, right_hand_sides):
    solution = torch.zeros_like(right_hand_sides)
    for i in range(len(chol)):
        solution[i] = (right_hand_sides[i] - chol[i, :i] @ solution[:i]) / chol[i, i]
    return solution
