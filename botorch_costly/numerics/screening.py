"""Two-level screening designs, for main effects of many factors from few runs.

Each factor is at its low level in about one half of the runs and at its high level in the other half, and
the levels of any two factors are nearly independent. So a main effect is a difference of two means over
all runs. Of uniformly random points few would have all of four factors low.

References:
    R. L. Plackett, J. P. Burman. The design of optimum multifactorial experiments. Biometrika 33,
    1946. The orthogonal arrays here are Sylvester's, of 2^k runs.
"""

import torch
from torch import Generator, Tensor

_DRAWS = 100  # random selections of rows to choose from


def two_level(runs: int, factors: int, generator: Generator) -> Tensor:
    """Return a two-level design of zeros and ones, shape ``(runs, factors)``.

    The rows are from the smallest orthogonal array with at least ``runs`` and more than ``factors`` rows.
    If it has more rows than runs, the best balanced of 100 random selections of rows is used.

    Args:
        runs: Number of runs.
        factors: Number of factors.
        generator: Random generator for rows, columns, and the labels of the levels.
    """
    size = 1
    while size < max(runs, factors + 1):
        size *= 2
    columns = 1 + torch.randperm(size - 1, generator=generator)[:factors]
    drawn = [torch.randperm(size, generator=generator)[:runs]]
    flips = torch.randint(2, (factors,), generator=generator)
    if runs < size:
        drawn += [torch.randperm(size, generator=generator)[:runs] for _ in range(_DRAWS)]
    designs = [_parity(rows.unsqueeze(-1) & columns) ^ flips for rows in drawn]
    return min(designs, key=_unevenness).to(torch.float64)


def _unevenness(design: Tensor) -> tuple[int, int]:
    """Return the largest imbalance of a column and the largest inner product of two columns."""
    signs = 2 * design - 1
    if not design.numel():
        return 0, 0
    common = (signs.T @ signs).fill_diagonal_(0)
    return int(signs.sum(0).abs().max()), int(common.abs().max())


def _parity(numbers: Tensor) -> Tensor:
    """Return 1 where the binary representation has an odd number of ones, else 0."""
    parity = torch.zeros_like(numbers)
    while bool(numbers.any()):
        parity ^= numbers & 1
        numbers = numbers >> 1
    return parity
