"""Two-level screening designs: which of many numbers matter, from few runs.

Each number is at its low level in about one half of the runs and at its high level in the other half,
and the levels of any two numbers are nearly independent: a main effect is a difference of two means
over all runs. Of uniformly random points few have all of four numbers low.

References:
    R. L. Plackett, J. P. Burman. The design of optimum multifactorial experiments. Biometrika 33,
    1946. The orthogonal arrays here are Sylvester's, of 2^k runs.
"""

import torch
from torch import Generator, Tensor

_DRAWS = 100  # of rows, where not all of an array are taken


def two_level(runs: int, factors: int, generator: Generator) -> Tensor:
    """Return a two-level design, of zeros and ones, shape ``(runs, factors)``.

    Its rows are those of the smallest orthogonal array with at least as many runs and with more runs
    than factors. Where rows must be left out, the best balanced of some random selections is taken.

    Args:
        runs: Number of runs.
        factors: Number of numbers that are varied.
        generator: Source of the selection of rows and columns, and of which level is called low.
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
    """Return the largest imbalance of a column, and the largest inner product of two columns."""
    signs = 2 * design - 1
    if not design.numel():
        return 0, 0
    common = (signs.T @ signs).fill_diagonal_(0)
    return int(signs.sum(0).abs().max()), int(common.abs().max())


def _parity(numbers: Tensor) -> Tensor:
    """Return 1 where the number of ones in binary is odd, else 0."""
    parity = torch.zeros_like(numbers)
    while bool(numbers.any()):
        parity ^= numbers & 1
        numbers = numbers >> 1
    return parity
