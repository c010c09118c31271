"""Weights of earlier tasks in the prior of a target, and its residual, by marginal likelihood.

Notation: ``w`` the weights, ``theta`` the residual as in ``models.task_fitting``; a search moves both at
once, as a vector ``[w, theta]``. All in double precision.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.models import task_fitting
from botorch_costly.numerics import padded
from botorch_costly.numerics.stationary import covariance
from botorch_costly.optim.lbfgs import minimize_batch
from botorch_costly.optim.smooth import by_autograd

_MOST_WEIGHT = 5.0
_ALONE = 2  # tasks that a search begins with, each alone
_SLOPE = 1e-3  # nats per unit of a weight, or log unit, at which a search ends


class Evidence(NamedTuple):
    """The standardized values of a target, and what the earlier tasks say of its inputs."""

    kernel: str
    x: Tensor  # shape: (n, d)
    y: Tensor  # shape: (n,)
    means: Tensor  # of the tasks, shape: (tasks, n)
    covs: Tensor  # shape: (tasks, n, n)
    rounding: float  # of the covariances, relative

    def moments(self, weights: Tensor, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and noisy covariances of the values under ``(k, tasks)`` and ``(k, d + 2)``."""
        residual = covariance(padded.kernels(self.kernel, theta), self.x, self.x)
        cov = torch.einsum("km,mij->kij", weights.square(), self.covs) + residual
        noise = theta[:, -1:].exp() + self.rounding * cov.diagonal(dim1=-2, dim2=-1)
        return weights @ self.means, cov + torch.diag_embed(noise)

    def log_evidence(self, weights: Tensor, theta: Tensor) -> Tensor:
        """Return log evidences up to a constant, shape ``(k,)``; ``-inf`` where singular."""
        mean, cov = self.moments(weights, theta)
        root, info = torch.linalg.cholesky_ex(cov)
        residual = (self.y - mean).unsqueeze(-1)
        white = torch.linalg.solve_triangular(root, residual, upper=False)
        log_det = root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        value = -0.5 * white.square().sum((-2, -1)) - log_det
        return torch.where(info > 0, -torch.inf, value)

    def log_density(self, weights: Tensor, theta: Tensor) -> Tensor:
        """Return log evidences plus log priors: Gamma(1, 1) of each weight, and those of ``theta``."""
        known, _ = task_fitting.log_prior(theta)
        return self.log_evidence(weights, theta) + known - weights.sum(-1)


def learn_scaled(
    evidence: Evidence, weights: Tensor, theta: Tensor, max_iter: int
) -> tuple[Tensor, Tensor]:
    """Return weights and residual of the highest density that is found; none is lower than at present.

    Searches begin at present, without any task, with all tasks evenly, and with each of those that
    explain most alone.

    Args:
        evidence: Of the target.
        weights: At present, shape ``(tasks,)``.
        theta: At present, shape ``(d + 2,)``.
        max_iter: Most evaluations of a search after the first.
    """
    count = len(weights)
    box = task_fitting.box_of(len(theta) - 2).to(theta)
    box = torch.cat([box.new_tensor([[0.0], [_MOST_WEIGHT]]).expand(2, count), box], -1)

    def loss(both: Tensor) -> Tensor:
        return -evidence.log_density(both[:, :count], both[:, count:])

    end = minimize_batch(
        by_autograd(loss),
        _starts(evidence, weights, theta),
        box,
        max_iter=max_iter,
        gradient_tolerance=_SLOPE,
    )
    best = end.point[end.value.nan_to_num(torch.inf).argmin()]
    return best[:count], best[count:]


def _starts(evidence: Evidence, weights: Tensor, theta: Tensor) -> Tensor:
    """Return where searches begin, ``(k, tasks + d + 2)``."""
    count = len(weights)
    alone = torch.eye(count).to(weights)
    explained = evidence.log_density(alone, theta.expand(count, -1))
    best = alone[explained.argsort(descending=True)[:_ALONE]]
    even = torch.full_like(weights, 1 / count)
    begin = torch.cat([torch.stack([weights, torch.zeros_like(weights), even]), best])
    return torch.cat([begin, theta.expand(len(begin), -1)], -1)
