r"""MCMC sampling by Hamiltonian dynamics, in batches, with the covariance of an ensemble as its mass.

Half of the walkers move at a time. With :math:`R R'` the covariance of the other half, a walker :math:`x`
gets a momentum :math:`r \sim N(0, I)` and takes leapfrog steps of size :math:`\epsilon`,

.. math::

    r \mathrel{+}= \tfrac{\epsilon}{2} R' \nabla \log p(x), \qquad
    x \mathrel{+}= \epsilon R r, \qquad
    r \mathrel{+}= \tfrac{\epsilon}{2} R' \nabla \log p(x),

and goes to the last position :math:`y` with probability
:math:`\min(1, p(y) e^{-|r_y|^2 / 2} / (p(x) e^{-|r_x|^2 / 2}))`. In the units of the other half all
scales are about 1, so that the step needs no tuning. The size of the steps is random, since a fixed one
may return to where it began.

References:
    R. M. Neal. MCMC using Hamiltonian dynamics. Handbook of Markov Chain Monte Carlo, 2011, sections 3
    and 4: the leapfrog method, masses, steps of random size.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from botorch_costly.errors import check

_STEP = 0.35  # mean size of a leapfrog step, in standard deviations
_JITTER = 0.3  # the size differs from its mean by at most this share
_SHRUNK = 0.1  # share of the variances alone in the covariance of the other half
_LEAST_VARIANCE = 1e-8  # of a coordinate that all walkers share

ValueAndGradient = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Maps points ``(walkers / 2, d)`` to log densities and their gradients; NaN is a density of 0."""


def hamiltonian_walk(
    log_density: ValueAndGradient,
    start: Tensor,  # shape: (walkers, d)
    steps: int,
    generator: torch.Generator,
    *,
    leaps: int = 6,
) -> Tensor:  # shape: (walkers, d)
    """Move all walkers ``steps`` times, by ``leaps`` leapfrog steps each, and return them.

    Raises:
        InvalidArgumentError: If the number of walkers is odd, or less than 4.
    """
    even = len(start) >= 4 and len(start) % 2 == 0
    check(even, "start", "an even number of walkers, at least 4", len(start))
    halves = list(start.clone().chunk(2))
    for _ in range(steps):
        for moving, other in ((0, 1), (1, 0)):
            root = _root(halves[other])
            halves[moving] = _moved(log_density, halves[moving], root, leaps, generator)
    return torch.cat(halves)


def _moved(
    log_density: ValueAndGradient, x: Tensor, root: Tensor, leaps: int, generator: torch.Generator
) -> Tensor:
    momentum = _drawn(torch.randn, x.shape, generator).to(x)
    size = _STEP * (1 + _JITTER * (2 * _drawn(torch.rand, (), generator).to(x) - 1))
    coin = _drawn(torch.rand, (len(x),), generator).to(x).log()
    at, r = x, momentum
    before, slope = _usable(log_density, at)
    value = before
    for _ in range(leaps):
        r = r + 0.5 * size * slope @ root
        at = at + size * r @ root.mT
        value, slope = _usable(log_density, at)
        r = r + 0.5 * size * slope @ root
    gained = value - before - 0.5 * (r.square() - momentum.square()).sum(-1)
    return torch.where((coin < gained).unsqueeze(-1), at, x)  # false for NaN


def _usable(log_density: ValueAndGradient, x: Tensor) -> tuple[Tensor, Tensor]:
    value, slope = log_density(x)
    return value.nan_to_num(-torch.inf), slope.nan_to_num(0.0, 0.0, 0.0)


def _root(walkers: Tensor) -> Tensor:
    """Return the Cholesky factor of the covariance of walkers, shrunk to its diagonal."""
    centered = walkers - walkers.mean(0)
    cov = centered.mT @ centered / (len(walkers) - 1)
    variances = cov.diagonal().clamp_min(_LEAST_VARIANCE)
    return torch.linalg.cholesky((1 - _SHRUNK) * cov + _SHRUNK * variances.diag())


def _drawn(
    draw: Callable[..., Tensor], shape: tuple[int, ...], generator: torch.Generator
) -> Tensor:
    """Draw float64 numbers on the generator's device, so that a draw does not depend on the dtype."""
    return draw(shape, generator=generator, dtype=torch.float64, device=generator.device)
