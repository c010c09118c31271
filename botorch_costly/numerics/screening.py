"""Two-level screening designs: which of many numbers matter, from few runs.

Each number is at its low level in one half of the runs and at its high level in the other, and any
two are so independently of each other: a main effect is a difference of two means over all runs. Of
uniformly random points hardly one has all of four numbers low.

References:
    R. L. Plackett, J. P. Burman. The design of optimum multifactorial experiments. Biometrika 33,
    1946. The orthogonal arrays here are Sylvester's, of 2^k runs.
"""

import torch
from torch import Generator, Tensor


def two_level(runs: int, factors: int, generator: Generator) -> Tensor:
    """Return a two-level design, of zeros and ones, shape ``(runs, factors)``.

    Its rows are drawn from those of the smallest orthogonal array with as many runs and more runs than
    factors; of a whole array all columns are balanced and orthogonal.

    Args:
        runs: How many.
        factors: How many numbers.
        generator: Of rows, columns and which level is which.
    """
    size = 1
    while size < max(runs, factors + 1):
        size *= 2
    columns = 1 + torch.randperm(size - 1, generator=generator)[:factors]
    rows = torch.randperm(size, generator=generator)[:runs]
    flips = torch.randint(2, (factors,), generator=generator)
    return (_parity(rows.unsqueeze(-1) & columns) ^ flips).to(torch.float64)


def _parity(numbers: Tensor) -> Tensor:
    """Return 1 where the number of ones in binary is odd, else 0."""
    parity = torch.zeros_like(numbers)
    while bool(numbers.any()):
        parity ^= numbers & 1
        numbers = numbers >> 1
    return parity
