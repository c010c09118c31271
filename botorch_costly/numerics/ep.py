r"""Probability that each of several jointly Gaussian values is the smallest, by expectation propagation.

For ``f ~ N(mean, cov)`` over ``Z`` points, ``p_j = P(f_j < f_i for all others i)`` is the probability
that all differences ``u_i = f_i - f_j`` are positive. The sites of that problem also give the moments of
``f`` *given* that ``j`` is the smallest:

    pull_j  = D_j' (nu - tau m_j) = d log p_j / d mean,
    loss_j  = D_j' (T - T C_j T) D_j,    pull_j pull_j' - loss_j = 2 d log p_j / d cov

with ``D_j`` the matrix of the differences, and ``m_j`` and ``C_j`` the posterior moments of ``u``.

Let a variable be jointly Gaussian with ``f``, with covariances ``c``. Given that ``j`` is the smallest,
its mean is larger by ``c' pull_j`` and its variance smaller by ``c' loss_j c``.

All is computed in float64. Standard deviations of differences are at least ``1e-6`` of the largest, so
that duplicates share their probability and nothing is infinite.

References:
    P. Hennig, C. J. Schuler. Entropy search for information-efficient global optimization. JMLR 13, 2012.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, NumericalError, check
from botorch_costly.numerics.orthant import Orthants, Sites
from botorch_costly.numerics.orthant_correction import Derivatives, Solution
from botorch_costly.numerics.orthant_sites import fitted_sites

_LEAST_SD = 1e-6  # of a difference, relative to the largest
_DROPPED = 1e-10  # eigenvalues of the covariance, relative to the largest, that become width
_CERTAIN = 40.0  # standard deviations: the difference of a point from itself counts as positive
_LEAST_WIDTH = 1e-9  # of a step, relative to the variance of the difference
_AT_ONCE = {"cpu": 1 << 18}  # numbers in a batch of covariances that fit into the cache
_AT_ONCE_ELSEWHERE = 1 << 26


class Minimum(NamedTuple):
    """Probability that each point is the smallest, and the moments of ``f`` given that it is."""

    log_prob: Tensor  # shape: (*batch, Z)
    pull: Tensor  # row j is pull_j, shape: (*batch, Z, Z)
    loss: Tensor  # shape: (*batch, Z, Z, Z)


class _Problem(NamedTuple):
    """The orthants of all points of ``k`` problems, ``b = k Z``."""

    orthants: Orthants
    scale: Tensor  # 1 / sd of the differences, 0 of a point from itself, shape: (b, Z)


def log_prob_min(mean: Tensor, cov: Tensor, *, corrected: bool = True) -> Tensor:
    r"""Return ``log P(f_j is the smallest)`` of ``f ~ N(mean, cov)``, once differentiable.

    Expectation propagation, corrected by third cumulants and normalized. The total variation distance
    to the exact probabilities is .002 to .006 on average over problems of 5 to 50 points, a third of that
    without correction.

    Args:
        mean: Means, ``batch_shape x Z``.
        cov: Covariances, ``batch_shape x Z x Z``; may be singular.
        corrected: Whether to add the correction by third cumulants.

    Returns:
        Logarithms of probabilities, ``batch_shape x Z``.

    Raises:
        InvalidShapeError: If the shapes do not fit.
        NumericalError: If a number is not finite.

    Example:
        >>> log_prob_min(torch.tensor([0.0, 1.0]), torch.eye(2)).exp()
        tensor([0.7602, 0.2398])
    """
    check_problem(mean, cov)
    batch = torch.broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
    points = mean.shape[-1]
    means = mean.expand(*batch, points).reshape(-1, points)
    covs = cov.expand(*batch, points, points).reshape(-1, points, points)
    if points == 1:
        return torch.zeros_like(means).reshape(*batch, 1)
    differentiable = torch.is_grad_enabled() and (mean.requires_grad or cov.requires_grad)
    raw = _LogEvidence.apply(means.double(), covs.double(), corrected, differentiable)
    return raw.log_softmax(-1).reshape(*batch, points).to(mean)


@torch.no_grad()
def minimum(mean: Tensor, cov: Tensor, *, corrected: bool = True) -> Minimum:
    """Return the probabilities of ``log_prob_min`` and the moments given each point's being smallest.

    Raises:
        InvalidShapeError: If the shapes do not fit.
        NumericalError: If a number is not finite.
    """
    check_problem(mean, cov)
    batch, points = mean.shape[:-1], mean.shape[-1]
    means, covs = mean.reshape(-1, points).double(), cov.reshape(-1, points, points).double()
    solutions = [_solved(m, c, corrected=corrected) for m, c in _chunks(means, covs)]
    raw, pull, loss = (torch.cat(chunks) for chunks in zip(*solutions, strict=True))
    return Minimum(
        raw.log_softmax(-1).reshape(mean.shape).to(mean),
        pull.reshape(*batch, points, points).to(mean),
        loss.reshape(*batch, points, points, points).to(mean),
    )


def check_problem(mean: Tensor, cov: Tensor) -> None:
    """Check the shapes of mean and covariance, and that all numbers are finite.

    Raises:
        InvalidShapeError: If the shapes do not fit.
        NumericalError: If a number is not finite.
    """
    points = mean.shape[-1] if mean.ndim else 0
    fits = points > 0 and cov.shape[-2:] == (points, points)
    shapes = (tuple(mean.shape), tuple(cov.shape))
    expected = "a mean of shape (*batch, Z) and a covariance of shape (*batch, Z, Z)"
    check(fits, "mean, cov", expected, shapes, InvalidShapeError)
    finite = bool(mean.isfinite().all() and cov.isfinite().all())
    check(finite, "mean, cov", "finite numbers", "NaN or infinity", NumericalError)


def _chunks(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Split a batch into chunks whose covariances of differences fit into the cache."""
    limit = _AT_ONCE.get(tensors[0].device.type, _AT_ONCE_ELSEWHERE)
    size = max(1, limit // tensors[0].shape[-1] ** 3)
    yield from zip(*(tensor.split(size) for tensor in tensors), strict=True)


def _posed(means: Tensor, covs: Tensor) -> _Problem:
    """Return the orthants of ``k`` problems, ``k x Z`` and ``k x Z x Z``."""
    itself = torch.eye(means.shape[-1], dtype=torch.bool, device=means.device)
    root = _root(covs)
    factor = root.unsqueeze(-3) - root.unsqueeze(-2)  # k x Z x Z x rank: row i minus row j
    difference = means.unsqueeze(-2) - means.unsqueeze(-1)
    variances = covs.diagonal(dim1=-2, dim2=-1)
    variance = variances.unsqueeze(-2) + variances.unsqueeze(-1) - covs - covs.mT
    sd = variance.clamp_min(least_variance(variance, difference)).sqrt()
    scaled = factor / sd.unsqueeze(-1)
    width = (1 - scaled.square().sum(-1)).clamp_min(_LEAST_WIDTH)
    mean = (difference / sd).masked_fill(itself, _CERTAIN)
    orthants = Orthants(scaled.flatten(0, 1), mean.flatten(0, 1), width.flatten(0, 1))
    return _Problem(orthants, sd.reciprocal().masked_fill(itself, 0.0).flatten(0, 1))


def _root(covs: Tensor) -> Tensor:  # shape: (k, Z, rank)
    """Return ``R`` with ``R R'`` the covariances without the component that all points share."""
    centered = covs - covs.mean(-1, keepdim=True)
    centered = centered - centered.mean(-2, keepdim=True)
    eigenvalues, vectors = torch.linalg.eigh(0.5 * (centered + centered.mT))
    kept = eigenvalues > _DROPPED * eigenvalues[:, -1:].clamp_min(0)
    rank = max(1, int(kept.sum(-1).max()))
    return vectors[..., -rank:] * eigenvalues[:, None, -rank:].clamp_min(0).sqrt()


def least_variance(variance: Tensor, difference: Tensor) -> Tensor:
    """Return the least variance of a difference; if all variances are 0, in units of the means."""
    largest = variance.amax((-2, -1), keepdim=True)
    spread = difference.square().amax((-2, -1), keepdim=True)
    spread = torch.where(spread > 0, spread, 1.0)
    return _LEAST_SD**2 * torch.where(largest > 0, largest, spread)


def _vectors_at_points(scale: Tensor, vector: Tensor) -> Tensor:  # shape: (k, Z, Z)
    """Return ``D_j' vector`` of a vector ``(b, Z)``."""
    points = vector.shape[-1]
    at = (vector * scale).unflatten(0, (-1, points))
    at.diagonal(dim1=-2, dim2=-1).sub_(at.sum(-1))
    return at


def _matrices_at_points(scale: Tensor, matrix: Tensor) -> Tensor:  # shape: (k, Z, Z, Z)
    """Return ``D_j' matrix D_j`` of symmetric matrices ``(b, Z, Z)``, which are overwritten."""
    points = matrix.shape[-1]
    at = matrix.mul_(scale.unsqueeze(-1)).mul_(scale.unsqueeze(-2)).unflatten(0, (-1, points))
    sums = at.sum(-1)  # 0 at the point itself
    at.diagonal(dim1=-3, dim2=-2).sub_(sums.mT)
    at.diagonal(dim1=-3, dim2=-1).sub_(sums.mT)
    at.diagonal(dim1=-3, dim2=-2).diagonal(dim1=-2, dim2=-1).add_(sums.sum(-1))
    return at


def _summed(scale: Tensor, by_orthant: Derivatives, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the derivatives of weighted sums over the points by means and covariances.

    Args:
        scale: That of the problem, ``b x Z``.
        by_orthant: Derivatives of each logarithm.
        weight: Weights, ``k x Z``.
    """
    pull, shift = (_vectors_at_points(scale, x) for x in (by_orthant.pull, by_orthant.shift))
    weighted = weight.unsqueeze(-1)
    outer = pull.mT @ (weighted * (0.5 * pull + shift))
    scale = scale * by_orthant.unit
    rest = by_orthant.rest * (scale * weight.reshape(-1, 1)).unsqueeze(-1)
    rest = rest.mul_(scale.unsqueeze(-2)).unflatten(0, weight.shape)
    sums = rest.sum(-1)  # 0 at the point itself
    by_cov = rest.sum(-3) - sums - sums.mT + torch.diag_embed(sums.sum(-1))
    return (weighted * (pull + shift)).sum(-2), by_cov + 0.5 * (outer + outer.mT)


def _solved(means: Tensor, covs: Tensor, *, corrected: bool) -> tuple[Tensor, Tensor, Tensor]:
    problem = _posed(means, covs)
    solution = Solution(problem.orthants, fitted_sites(problem.orthants), corrected=corrected)
    pull = _vectors_at_points(problem.scale, solution.pull)
    loss = _matrices_at_points(problem.scale, solution.loss)
    return solution.log_probability().reshape(means.shape), pull, loss


class _LogEvidence(torch.autograd.Function):
    """Logarithms of the unnormalized probabilities of ``k x Z`` means.

    The derivatives of a single chunk are kept, those of several ones are computed from the sites.
    """

    @staticmethod
    def forward(
        ctx: Any, means: Tensor, covs: Tensor, corrected: bool, differentiable: bool
    ) -> Tensor:
        shape = (-1, *covs.shape[1:])
        raws, taus, nus = [], [], []
        kept: tuple[Tensor, ...] = ()
        for chunk in _chunks(means, covs):
            problem = _posed(*chunk)
            sites = fitted_sites(problem.orthants)
            solution = Solution(problem.orthants, sites, corrected=corrected)
            raws.append(solution.log_probability().reshape(chunk[0].shape))
            taus.append(sites.tau.reshape(shape))
            nus.append(sites.nu.reshape(shape))
            if differentiable and len(chunk[0]) == len(means):
                kept = problem.scale, *solution.derivatives()
        ctx.save_for_backward(means, covs, torch.cat(taus), torch.cat(nus), *kept)
        ctx.corrected = corrected
        return torch.cat(raws)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, None, None]:
        if len(ctx.saved_tensors) > 4:
            scale, *kept = ctx.saved_tensors[4:]
            return *_summed(scale, Derivatives(*kept), upstream), None, None
        sums = []
        for means, covs, tau, nu, weight in _chunks(*ctx.saved_tensors[:4], upstream):
            problem, sites = _posed(means, covs), Sites(tau.flatten(0, 1), nu.flatten(0, 1))
            solution = Solution(problem.orthants, sites, corrected=ctx.corrected)
            sums.append(_summed(problem.scale, solution.derivatives(), weight))
        by_mean, by_cov = (torch.cat(chunks) for chunks in zip(*sums, strict=True))
        return by_mean, by_cov, None, None
