r"""Which of several jointly Gaussian values is the smallest, by expectation propagation for each.

For ``f ~ N(mean, cov)`` over ``Z`` points, ``p_j = P(f_j < f_i for all others i)`` is the probability
that all differences ``u_i = f_i - f_j`` are positive. The sites of that problem also say what is to be
expected of ``f`` *given* that ``j`` is the smallest:

    pull_j  = D_j' (nu - tau m_j) = d log p_j / d mean,
    loss_j  = D_j' (T - T C_j T) D_j,    pull_j pull_j' - loss_j = 2 d log p_j / d cov

with ``D_j`` the matrix of the differences, ``m_j`` and ``C_j`` the moments of ``u`` by its sites.

A variable that is jointly Gaussian with ``f``, of covariances ``c`` with it, has a mean that is larger by
``c' pull_j`` and a variance that is smaller by ``c' loss_j c`` given that ``j`` is the smallest.

All is computed in float64. Standard deviations of differences below ``1e-6`` of the largest count as that
large, so that duplicates share their probability and nothing is infinite.

References:
    P. Hennig, C. J. Schuler. Entropy search for information-efficient global optimization. JMLR 13, 2012.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, NumericalError, check
from botorch_costly.numerics.orthant import (
    Orthants,
    Sites,
    derivatives,
    fitted_sites,
    log_probability,
    loss_of,
    posterior_of,
    pull_of,
)

_LEAST_SD = 1e-6  # of a difference, by the largest
_DROPPED = 1e-10  # eigenvalues of the covariance, by the largest: they become width
_CERTAIN = 40.0  # standard deviations: the difference of a point from itself counts as positive
_LEAST_WIDTH = 1e-9  # of a step, by the variance of its difference
_AT_ONCE = {"cpu": 1 << 18}  # numbers of a batch of covariances that stay in the cache
_AT_ONCE_ELSEWHERE = 1 << 26


class Minimum(NamedTuple):
    """Which point is the smallest, and what is to be expected of all given that it is."""

    log_prob: Tensor  # shape: (*batch, Z)
    pull: Tensor  # row j is pull_j, shape: (*batch, Z, Z)
    loss: Tensor  # shape: (*batch, Z, Z, Z)


class _Problem(NamedTuple):
    """The orthants of all points of ``k`` problems, ``b = k Z``, and the units of the differences."""

    orthants: Orthants
    sd: Tensor  # shape: (b, Z)


def log_prob_min(
    mean: Tensor,  # shape: (*batch, Z)
    cov: Tensor,  # shape: (*batch, Z, Z)
    *,
    corrected: bool = True,
) -> Tensor:  # shape: (*batch, Z)
    r"""Return ``log P(f_j is the smallest)`` of ``f ~ N(mean, cov)``, once differentiable.

    Expectation propagation, corrected by third cumulants and normalized. The total variation from the
    truth is .002 to .006 on average over problems of 5 to 50 points, three times less than without
    correction.

    References:
        P. Hennig, C. J. Schuler. Entropy search for information-efficient global optimization. JMLR 13,
        2012.

    Args:
        mean: Means, ``batch_shape x Z``.
        cov: Covariances, ``batch_shape x Z x Z``; may be singular.
        corrected: Whether the correction is added.

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
    raw = _LogEvidence.apply(means.double(), covs.double(), corrected)
    return raw.log_softmax(-1).reshape(*batch, points).to(mean)


@torch.no_grad()
def minimum(mean: Tensor, cov: Tensor, *, corrected: bool = True) -> Minimum:
    """Return the probabilities of ``log_prob_min`` and what is to be expected given each of them.

    Raises:
        InvalidShapeError: If the shapes do not fit.
        NumericalError: If a number is not finite.
    """
    check_problem(mean, cov)
    batch, points = mean.shape[:-1], mean.shape[-1]
    means, covs = mean.reshape(-1, points).double(), cov.reshape(-1, points, points).double()
    parts = [_solved(m, c, corrected=corrected) for m, c in _chunks(means, covs)]
    raw, pull, loss = (torch.cat(part) for part in zip(*parts, strict=True))
    return Minimum(
        raw.log_softmax(-1).reshape(mean.shape).to(mean),
        pull.reshape(*batch, points, points).to(mean),
        loss.reshape(*batch, points, points, points).to(mean),
    )


def check_problem(mean: Tensor, cov: Tensor) -> None:
    """Refuse shapes that do not fit and numbers that are not finite.

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


def _chunks(means: Tensor, covs: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Split a batch so that the covariances of its differences stay near the processor."""
    most = _AT_ONCE.get(means.device.type, _AT_ONCE_ELSEWHERE)
    size = max(1, most // means.shape[-1] ** 3)
    yield from zip(means.split(size), covs.split(size), strict=True)


def _posed(means: Tensor, covs: Tensor) -> _Problem:
    """Return the orthants of ``k`` problems, ``k x Z`` and ``k x Z x Z``."""
    own = torch.eye(means.shape[-1], dtype=torch.bool, device=means.device)
    root = _root(covs)
    factor = root.unsqueeze(-3) - root.unsqueeze(-2)  # k x Z x Z x rank: row i less row j
    difference = means.unsqueeze(-2) - means.unsqueeze(-1)
    alone = covs.diagonal(dim1=-2, dim2=-1)
    variance = alone.unsqueeze(-2) + alone.unsqueeze(-1) - covs - covs.mT
    sd = variance.clamp_min(least_variance(variance, difference)).sqrt()
    scaled = factor / sd.unsqueeze(-1)
    width = (1 - scaled.square().sum(-1)).clamp_min(_LEAST_WIDTH)
    mean = (difference / sd).masked_fill(own, _CERTAIN)
    orthants = Orthants(scaled.flatten(0, 1), mean.flatten(0, 1), width.flatten(0, 1))
    return _Problem(orthants, sd.flatten(0, 1))


def _root(covs: Tensor) -> Tensor:  # shape: (k, Z, rank)
    """Return what times its transpose is the covariance, but for a part that all points share."""
    centered = covs - covs.mean(-1, keepdim=True)
    centered = centered - centered.mean(-2, keepdim=True)
    eigenvalues, vectors = torch.linalg.eigh(0.5 * (centered + centered.mT))
    kept = eigenvalues > _DROPPED * eigenvalues[:, -1:].clamp_min(0)
    rank = max(1, int(kept.sum(-1).max()))
    return vectors[..., -rank:] * eigenvalues[:, None, -rank:].clamp_min(0).sqrt()


def least_variance(variance: Tensor, difference: Tensor) -> Tensor:
    """Return the least variance of a difference; without any variance, by the means alone."""
    largest = variance.amax((-2, -1), keepdim=True)
    spread = difference.square().amax((-2, -1), keepdim=True)
    spread = torch.where(spread > 0, spread, 1.0)
    return _LEAST_SD**2 * torch.where(largest > 0, largest, spread)


def _of_points(
    problem: _Problem, vector: Tensor, matrix: Tensor, points: int
) -> tuple[Tensor, Tensor]:
    """Carry what is of differences, ``b x Z`` and ``b x Z x Z``, over to the points."""
    own = torch.eye(points, dtype=vector.dtype, device=vector.device)
    vector = (vector / problem.sd).unflatten(0, (-1, points)) * (1 - own)
    scale = problem.sd.unsqueeze(-1) * problem.sd.unsqueeze(-2)
    matrix = (matrix / scale).unflatten(0, (-1, points))
    matrix = matrix * (1 - own).unsqueeze(-1) * (1 - own).unsqueeze(-2)
    sums = matrix.sum(-1)
    row, column = own.unsqueeze(-1), own.unsqueeze(-2)
    crossed = row * sums.unsqueeze(-2)
    total = sums.sum(-1, keepdim=True).unsqueeze(-1) * row * column
    return vector - own * vector.sum(-1, keepdim=True), matrix - crossed - crossed.mT + total


def _solved(means: Tensor, covs: Tensor, *, corrected: bool) -> tuple[Tensor, Tensor, Tensor]:
    problem = _posed(means, covs)
    sites = fitted_sites(problem.orthants)
    belief = posterior_of(problem.orthants, sites)
    raw = log_probability(problem.orthants, sites, belief, corrected=corrected)
    pull, loss = pull_of(sites, belief), loss_of(sites, belief.covariance)
    return raw.reshape(means.shape), *_of_points(problem, pull, loss, means.shape[-1])


class _LogEvidence(torch.autograd.Function):
    """Logarithms of the probabilities before they are normalized, of ``k x Z`` means."""

    @staticmethod
    def forward(ctx: Any, means: Tensor, covs: Tensor, corrected: bool) -> Tensor:
        raws, taus, nus = [], [], []
        for some_means, some_covs in _chunks(means, covs):
            problem = _posed(some_means, some_covs)
            sites = fitted_sites(problem.orthants)
            belief = posterior_of(problem.orthants, sites)
            raws.append(log_probability(problem.orthants, sites, belief, corrected=corrected))
            taus.append(sites.tau)
            nus.append(sites.nu)
        ctx.save_for_backward(means, covs, torch.cat(taus), torch.cat(nus))
        ctx.corrected = corrected
        return torch.cat(raws).reshape(means.shape)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, None]:
        means, covs, tau, nu = ctx.saved_tensors
        points, start = means.shape[-1], 0
        by_mean, by_cov = [], []
        for some_means, some_covs in _chunks(means, covs):
            problem = _posed(some_means, some_covs)
            end = start + some_means.numel()
            sites = Sites(tau[start:end], nu[start:end])
            vector, matrix = derivatives(problem.orthants, sites, corrected=ctx.corrected)
            weight = upstream.flatten()[start:end]
            vector, matrix = vector * weight.unsqueeze(-1), matrix * weight[:, None, None]
            vector, matrix = _of_points(problem, vector, matrix, points)
            by_mean.append(vector.sum(-2))
            by_cov.append(matrix.sum(-3))
            start = end
        return torch.cat(by_mean), torch.cat(by_cov), None
