"""Fit of a ``ScaMLGP``: weights of earlier tasks and the residual of the target, by marginal likelihood.

Notation: ``w`` the weights, ``theta`` the parameters of the residual as in ``models.task_fitting``; a
search optimizes the vector ``[w, theta]``. All in float64.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.models import task_fitting
from botorch_costly.models.hyperparameter_search import most_probable
from botorch_costly.numerics import padded
from botorch_costly.numerics.cholesky import squared_norm_and_log_det
from botorch_costly.numerics.stationary import covariance
from botorch_costly.optim.smooth import by_autograd

_MOST_WEIGHT = 5.0
_ALONE = 2  # number of searches that start with a single task
_SLOPE = 1e-3  # gradient tolerance of a search, nats per unit of a weight or log unit


class Evidence(NamedTuple):
    """Standardized values of a target, and posteriors of the earlier tasks at its inputs."""

    kernel: str
    x: Tensor  # shape: (n, d)
    y: Tensor  # shape: (n,)
    means: Tensor  # of the tasks, shape: (tasks, n)
    covs: Tensor  # of the tasks, shape: (tasks, n, n)
    rounding: float  # relative error of the covariances

    def moments(self, weights: Tensor, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and noisy covariances of the values for ``(k, tasks)`` and ``(k, d + 2)``."""
        residual = covariance(padded.kernels(self.kernel, theta), self.x, self.x)
        cov = torch.einsum("km,mij->kij", weights.square(), self.covs) + residual
        noise = theta[:, -1:].exp() + self.rounding * cov.diagonal(dim1=-2, dim2=-1)
        return weights @ self.means, cov + torch.diag_embed(noise)

    def log_density(self, weights: Tensor, theta: Tensor) -> Tensor:
        """Return log evidences plus log priors up to a constant, ``(k,)``; ``-inf`` where singular.

        The priors are Gamma(1, 1) of each weight, and those of ``theta``.
        """
        mean, cov = self.moments(weights, theta)
        root, info = torch.linalg.cholesky_ex(cov)
        squares, log_det = squared_norm_and_log_det(root, self.y - mean)
        evidence = torch.where(info > 0, -torch.inf, -0.5 * squares - log_det)
        log_prior, _ = task_fitting.prior_of(self.x.shape[-1], theta)(theta)
        return evidence + log_prior - weights.sum(-1)


def learn_scaled(
    evidence: Evidence, weights: Tensor, theta: Tensor, max_iter: int
) -> tuple[Tensor, Tensor]:
    """Return the weights and the residual of the best search; their density is at least the present one.

    Searches start at the present values, without any task, with equal weights, and with each of the
    tasks that explain the values best on their own.

    Args:
        evidence: Data of the target.
        weights: Present weights, shape ``(tasks,)``.
        theta: Present residual, shape ``(d + 2,)``.
        max_iter: Largest number of evaluations of a search after the first.
    """
    count = len(weights)
    box = task_fitting.box_of(len(theta) - 2).to(theta)
    box = torch.cat([box.new_tensor([[0.0], [_MOST_WEIGHT]]).expand(2, count), box], -1)

    density = by_autograd(lambda both: evidence.log_density(both[:, :count], both[:, count:]))
    starts = _starts(evidence, weights, theta)
    best = most_probable(density, starts, box, max_iter=max_iter, gradient_tolerance=_SLOPE).theta
    return best[:count], best[count:]


def _starts(evidence: Evidence, weights: Tensor, theta: Tensor) -> Tensor:
    """Return the starts of the searches, ``(k, tasks + d + 2)``."""
    count = len(weights)
    alone = torch.eye(count).to(weights)
    explained = evidence.log_density(alone, theta.expand(count, -1))
    best = alone[explained.argsort(descending=True)[:_ALONE]]
    even = torch.full_like(weights, 1 / count)
    starts = torch.cat([torch.stack([weights, torch.zeros_like(weights), even]), best])
    return torch.cat([starts, theta.expand(len(starts), -1)], -1)
