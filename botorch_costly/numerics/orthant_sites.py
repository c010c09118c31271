r"""The sites of an orthant problem: Anderson acceleration, then Newton's method.

The first iteration is of ``log(1 + tau)`` and ``nu / sqrt(1 + tau)``: where several components squeeze a
value, ``tau`` grows over orders of magnitude, by a factor in each step. Newton's method takes over once
the residual is small. Its step is shortened where it makes the moments worse; where it fails, which needs
components that contradict each other, the first iteration goes on.

The sites of a cavity with variance 1 have ``tau <= 1 / width`` and ``0 <= nu <= 2 sqrt(1 + tau)``. These
bounds keep both iterations from running away.
"""

import torch
from torch import Tensor

from botorch_costly.numerics.anderson import fixed_points
from botorch_costly.numerics.orthant import Orthants, Sites, matching, posterior_of
from botorch_costly.numerics.orthant_response import response_of, standardized, times

_ROUGH = 0.25  # residual of the first iteration from which Newton's method goes on
_FINE = 1e-3  # residual where Newton's method fails
_NEAR = 0.04  # change of moments, in units of the posterior, of the last step
_STEPS = 12  # most steps of Newton's method
_SHORTER = 0.25  # factor of a step that makes the moments worse
_GREATEST = 3.0  # bound of nu / sqrt(1 + tau), which is in [0, 2] for sites that match


def fitted_sites(orthants: Orthants) -> Sites:
    """Return the sites that match the moments of all factors."""
    prior = orthants.factor.square().sum(-1)
    none = torch.zeros_like(orthants.mean)
    start = _logarithmic(matching(Sites(none, none), orthants.mean, prior, orthants.width))
    rough = _iterated(orthants, start, _ROUGH)
    sites, failed = _polished(orthants, _sites(rough))
    if len(failed):
        fine = _sites(_iterated(orthants.at(failed), rough[failed], _FINE))
        sites.tau[failed], sites.nu[failed] = fine.tau, fine.nu
    return sites


def _iterated(orthants: Orthants, start: Tensor, tolerance: float) -> Tensor:
    """Return the fixed points of matching sites, ``b x 2n``, in logarithmic coordinates."""
    log = (1 / orthants.width.amin()).log1p().expand(orthants.mean.shape[-1])
    greatest = torch.cat([log, torch.full_like(log, _GREATEST)])
    bounds = torch.stack([torch.zeros_like(greatest), greatest])

    def image(index: Tensor, x: Tensor) -> Tensor:
        active = orthants if len(index) == len(start) else orthants.at(index)
        sites = _sites(x)
        belief = posterior_of(active, sites)
        after = matching(sites, belief.mean, belief.variance, active.width)
        return _logarithmic(after).clamp(*bounds)

    return fixed_points(image, start.clamp(*bounds), bounds=bounds, tolerance=tolerance).point


def _logarithmic(sites: Sites) -> Tensor:  # shape: (b, 2n)
    return torch.cat([sites.tau.log1p(), sites.nu * (1 + sites.tau).rsqrt()], -1)


def _sites(x: Tensor) -> Sites:
    log, mean = x.chunk(2, -1)
    return Sites(log.expm1(), mean * (0.5 * log).exp())


def _polished(orthants: Orthants, sites: Sites) -> tuple[Sites, Tensor]:
    """Return the sites after Newton's steps, and the indices of the problems where they fail."""
    result = Sites(sites.tau.clone(), sites.nu.clone())
    index = torch.arange(len(sites.tau), device=sites.tau.device)
    least = sites.tau.new_full(sites.tau.shape[:1], torch.inf)
    best, step = sites, sites
    for _ in range(_STEPS):
        size, moved, onward = _newton(orthants, sites)
        better = size < least
        best = _where(better, sites, best)
        step = _where(better, onward, Sites(_SHORTER * step.tau, _SHORTER * step.nu))
        least = torch.minimum(size, least)
        sites = _bounded(best, step, orthants.width)
        left = moved > _NEAR
        after = _where(left, best, sites)
        result.tau[index], result.nu[index] = after.tau, after.nu
        remaining = int(left.sum())
        kept = left.byte().argsort(descending=True)[:remaining]
        index = index[kept]
        if not remaining:
            break
        orthants, least = orthants.at(kept), least[kept]
        sites, best, step = (Sites(x.tau[kept], x.nu[kept]) for x in (sites, best, step))
    return result, index


def _bounded(sites: Sites, step: Sites, width: Tensor) -> Sites:
    """Return the sites after a step, within the bounds of sites."""
    tau = (sites.tau + step.tau).clamp_min(0).minimum(1 / width)
    nu = (sites.nu + step.nu).clamp_min(0)
    return Sites(tau, nu.minimum(_GREATEST * (1 + tau).sqrt()))


def _where(chosen: Tensor, first: Sites, second: Sites) -> Sites:
    rows = chosen.unsqueeze(-1)
    return Sites(torch.where(rows, first.tau, second.tau), torch.where(rows, first.nu, second.nu))


def _newton(orthants: Orthants, sites: Sites) -> tuple[Tensor, Tensor, Sites]:
    """Return how far the moments are from each other, how far a step moves them, and the step."""
    belief = posterior_of(orthants, sites)
    posterior = standardized(orthants, sites, belief)
    tilted, unit = posterior.tilted, posterior.unit
    first = (tilted.mean - belief.mean) * unit
    second = (tilted.variance - posterior.variance) * unit.square() + first.square()
    k3, k4, determinant = tilted.k3, tilted.k4, tilted.determinant
    right = ((2 + k4) * first - k3 * second) / determinant
    response = response_of(posterior)
    s, twice, by_first = response.solve(right, (second - k3 * first) / determinant)
    moved = _largest(by_first, times(posterior.Q, twice))
    # Moments move by one standard deviation at most: far away, the linear response is wrong.
    scale = unit / moved.clamp_min(1).unsqueeze(-1)
    tau = (-twice * scale * unit).maximum(-sites.tau)
    return _largest(first, second), moved, Sites(tau, belief.mean * tau + s * scale)


def _largest(first: Tensor, second: Tensor) -> Tensor:  # shape: (b,)
    return torch.maximum(first.abs(), second.abs()).amax(-1).nan_to_num(torch.inf)
