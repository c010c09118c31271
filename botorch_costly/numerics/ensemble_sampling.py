r"""MCMC sampling from unnormalized log densities by differential evolution, in batches.

Half of the walkers move at a time, each by the difference of two walkers of the other half:

    ``y = x + mask * (g (x' - x'') + e)``,    accepted with ``min(1, p(y) / p(x))``.

The mask selects ``m`` coordinates, since in many dimensions a step of all of them is often rejected.
``g`` is about ``2.38 / sqrt(2 m)``, and 1 now and then, for jumps between modes. The noise ``e`` is small
compared to the spread of the other half. Because differences adapt to the scales of the density, there is
no step size to tune.

References:
    - C. J. F. ter Braak. A Markov chain Monte Carlo version of the genetic algorithm differential
      evolution. Statistics and Computing 16, 2006: moves by differences.
    - J. A. Vrugt et al. Accelerating Markov chain Monte Carlo simulation by differential evolution with
      self-adaptive randomized subspace sampling. IJNSNS 10, 2009: some coordinates at a time.
    - J. Goodman, J. Weare. Ensemble samplers with affine invariance. CAMCoS 5, 2010: halves in turn.
    - P. Del Moral, A. Doucet, A. Jasra. Sequential Monte Carlo samplers. JRSS B 68, 2006: densities in
      between.
    - A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Buerkner. Rank-normalization, folding, and
      localization: an improved R-hat. Bayesian Analysis 16, 2021: split chains, effective sample size.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.errors import check
from botorch_costly.numerics.reweighting import resample

_OPTIMAL = 2.38  # optimal scale of a step in one dimension, for a normal density
_SCALES = 0.5  # standard deviation of the logarithm of a step relative to the optimal one
_SHARES = (0.2, 0.5, 1.0)  # shares of the coordinates that move, equally probable
_LEAPS = 0.1  # share of the moves with g = 1
_NOISE = 1e-3  # relative to the spread of the other half
_ALIVE = 0.8  # effective share of the walkers that each density in between leaves
_CLOSE = 1e-2  # relative precision of the next density
_STAGES = 60  # densities in between, at most


class Chain(NamedTuple):
    """The recorded steps of a walk."""

    points: Tensor  # shape: (kept, *batch, walkers, d)
    log_density: Tensor  # shape: (kept, *batch, walkers)
    accepted: float  # share of the moves


LogDensity = Callable[[Tensor], Tensor]
"""Maps points ``(*batch, walkers / 2, d)`` to logs ``(*batch, walkers / 2)``; NaN is a density of 0."""


def walk(
    log_density: LogDensity,
    start: Tensor,  # shape: (*batch, walkers, d)
    steps: int,
    generator: torch.Generator,
    *,
    every: int = 1,
) -> Chain:
    """Move all walkers ``steps`` times, and record them after every ``every`` steps.

    Raises:
        InvalidArgumentError: If the number of walkers is odd, or less than 2.
    """
    walkers = start.shape[-2]
    check(walkers > 0 and walkers % 2 == 0, "start", "an even number of walkers", walkers)
    halves = list(start.clone().chunk(2, -2))
    logs = [_finite(log_density(half)) for half in halves]
    kept, kept_logs, accepted = [], [], 0.0
    for step in range(1, steps + 1):
        for moving, other in ((0, 1), (1, 0)):
            proposed = _proposals(halves[moving], halves[other], generator)
            log_new = _finite(log_density(proposed))
            coin = _uniform(logs[moving], generator).log()
            accepts = coin < log_new - logs[moving]
            accepted += float(accepts.double().mean()) / (2 * steps)
            halves[moving] = torch.where(accepts.unsqueeze(-1), proposed, halves[moving])
            logs[moving] = torch.where(accepts, log_new, logs[moving])
        if step % every == 0:
            kept.append(torch.cat(halves, -2))
            kept_logs.append(torch.cat(logs, -1))
    return Chain(torch.stack(kept), torch.stack(kept_logs), accepted)


def anneal(
    log_density: LogDensity,
    log_reference: LogDensity,
    start: Tensor,  # draws of the reference density, shape: (walkers, d)
    steps: int,
    generator: torch.Generator,
) -> Tensor:  # shape: (walkers, d)
    r"""Move draws of a reference density to another density, by densities in between.

    The densities are ``reference^(1 - b) density^b``. Each ``b`` is the largest that leaves the weights
    of the walkers an effective sample size of 0.8 of their number. Walkers are resampled by these
    weights, and move ``steps`` times at each ``b`` but the last, which is 1.
    """
    points, b = start, 0.0

    def growth(at: Tensor) -> Tensor:
        return _finite(log_density(at)) - log_reference(at)

    for stage in range(_STAGES):
        gained = torch.cat([growth(half) for half in points.chunk(2, -2)])
        following = 1.0 if stage + 1 == _STAGES else further(gained, b)
        coin = torch.rand((), generator=generator, dtype=points.dtype, device=generator.device)
        places = resample((following - b) * gained, coin.to(points.device))
        order = torch.randperm(len(points), generator=generator, device=generator.device)
        points, b = points[places][order.to(points.device)], following
        if b == 1.0:
            break

        def between(at: Tensor, b: float = b) -> Tensor:
            return log_reference(at) + b * growth(at)

        points = walk(between, points, steps, generator).points[-1]
    return points


def further(gained: Tensor, b: float) -> float:
    """Return the next ``b``, by bisection; walkers outside of the support do not count."""
    gained = gained[gained.isfinite()]

    def alive(at: float) -> bool:
        weights = ((at - b) * gained).softmax(-1)
        return float(weights.square().sum(-1)) * _ALIVE * len(gained) <= 1

    if not len(gained) or alive(1.0):
        return 1.0
    low, high = b, 1.0
    while high - low > _CLOSE * (high - b):
        middle = (low + high) / 2
        low, high = (middle, high) if alive(middle) else (low, middle)
    return high


def _proposals(walkers: Tensor, other: Tensor, generator: torch.Generator) -> Tensor:
    """Return proposed positions of the walkers of one half, given the other half."""
    leaps = _uniform(walkers[..., :1], generator) < _LEAPS
    moves = leaps | _mask(walkers, generator)
    optimal = _OPTIMAL / (2 * moves.sum(-1, keepdim=True, dtype=torch.float32)).sqrt()
    scale = torch.where(leaps, 1.0, optimal * (_SCALES * _normal(optimal, generator)).exp())
    noise = _NOISE * other.std(-2, correction=0, keepdim=True) * _normal(walkers, generator)
    return walkers + moves * (scale * _difference(other, generator) + noise)


def _mask(walkers: Tensor, generator: torch.Generator) -> Tensor:
    """Return which coordinates of each walker move, at least one."""
    shape, device = (*walkers.shape[:-1], 1), walkers.device
    share = torch.tensor(_SHARES).to(walkers)[_integers(len(_SHARES), shape, generator).to(device)]
    forced = _integers(walkers.shape[-1], shape, generator).to(device)
    return (_uniform(walkers, generator) < share).scatter(-1, forced, value=True)


def _difference(walkers: Tensor, generator: torch.Generator) -> Tensor:
    """Return as many differences of two different walkers as there are walkers."""
    count = walkers.shape[-2]
    first = _integers(count, walkers.shape[:-1], generator)
    second = (first + 1 + _integers(max(count - 1, 1), first.shape, generator)) % count
    first, second = (index.to(walkers.device).unsqueeze(-1) for index in (first, second))
    return walkers.take_along_dim(first, -2) - walkers.take_along_dim(second, -2)


def _integers(below: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randint(below, shape, generator=generator, device=generator.device)


def _uniform(like: Tensor, generator: torch.Generator) -> Tensor:
    drawn = torch.rand(like.shape, dtype=like.dtype, generator=generator, device=generator.device)
    return drawn.to(like.device)


def _normal(like: Tensor, generator: torch.Generator) -> Tensor:
    drawn = torch.randn(like.shape, dtype=like.dtype, generator=generator, device=generator.device)
    return drawn.to(like.device)


def _finite(logs: Tensor) -> Tensor:
    return torch.where(logs.isnan(), -torch.inf, logs)


class Diagnosis(NamedTuple):
    """Convergence diagnostics of each dimension."""

    r_hat: Tensor  # split R-hat, 1 at convergence, shape: (*batch, d)
    effective: Tensor  # effective sample size, shape: (*batch, d)


def diagnose(points: Tensor) -> Diagnosis:  # shape: (kept, *batch, walkers, d)
    """Return split R-hat and effective sample size; each walker's path is a chain."""
    half = len(points) // 2
    chains = torch.cat([points[:half], points[len(points) - half :]], -2)
    chains = chains.movedim(0, -1).transpose(-2, -3)  # *batch x d x chains x half
    means, within = chains.mean(-1), chains.var(-1).mean(-1)
    between = means.var(-1)
    pooled = within * (half - 1) / half + between
    tiny = torch.finfo(points.dtype).tiny
    r_hat = (pooled / within.clamp_min(tiny)).sqrt()
    centered = chains - means.unsqueeze(-1)
    spectrum = torch.fft.rfft(centered, n=2 * half)
    covariance = torch.fft.irfft(spectrum.abs().square(), n=2 * half)[..., :half].mean(-2) / half
    rho = 1 - (within.unsqueeze(-1) - covariance) / pooled.unsqueeze(-1).clamp_min(tiny)
    pairs = rho[..., : 2 * (half // 2)].unflatten(-1, (-1, 2)).sum(-1)
    positive = (pairs > 0).cumprod(-1)  # Geyer: up to the first negative sum of two neighbours
    time = (2 * (pairs * positive).cummin(-1).values.clamp_min(0) * positive).sum(-1) - 1
    total = chains.shape[-1] * chains.shape[-2]
    return Diagnosis(r_hat, total / time.clamp_min(1 / math.log10(total)))
