"""Dropout at a rate of its own for each example, with masks from a generator."""

import torch
from torch import Generator, Tensor


def drop(
    hidden: Tensor,  # shape: (n, ...)
    rates: Tensor,  # shape: (n,), in [0, 1)
    generator: Generator,
) -> Tensor:  # shape: (n, ...)
    """Set units to 0 at the rate of their example, and scale up the others to keep the expectation.

    References:
        N. Srivastava, G. Hinton, A. Krizhevsky, I. Sutskever, R. Salakhutdinov. Dropout. JMLR 15, 2014.

    Example:
        >>> drop(torch.ones(2, 3), torch.zeros(2), torch.Generator()).tolist()
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    kept = 1 - rates.to(hidden.dtype).reshape(-1, *[1] * (hidden.dim() - 1))
    drawn = torch.rand(hidden.shape, generator=generator, dtype=torch.float32, device=hidden.device)
    return hidden * ((drawn < kept) / kept)
