"""The search for the most probable hyperparameters (MAP), from several starts within bounds."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.optim.lbfgs import minimize_batch
from botorch_costly.optim.smooth import ValueAndGradient


@dataclass(frozen=True)
class NormalPrior:
    """Independent normal priors, usually of logarithms."""

    mean: Tensor  # shape: (p,)
    std: Tensor  # positive, infinite for a flat prior, shape: (p,)

    def __call__(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Return log densities of ``*batch x p`` parameters, up to a constant, and their gradients."""
        z = (theta - self.mean) / self.std
        return -0.5 * z.square().sum(-1), -z / self.std


class Optimum(NamedTuple):
    """The best end of the searches of each problem."""

    theta: Tensor  # shape: (*batch, p)
    log_density: Tensor  # shape: (*batch,)
    converged: Tensor  # bool, shape: (*batch,)
    iterations: Tensor  # evaluations after the first, shape: (*batch,)


def posterior(log_evidence: ValueAndGradient, log_prior: ValueAndGradient) -> ValueAndGradient:
    """Return the log posterior density up to a constant, and its gradient, as a function."""

    def log_density(theta: Tensor) -> tuple[Tensor, Tensor]:
        (value, gradient), (prior, slope) = log_evidence(theta), log_prior(theta)
        return value + prior, gradient + slope

    return log_density


def most_probable(
    log_density: ValueAndGradient, starts: Tensor, bounds: Tensor, **options: Any
) -> Optimum:
    """Return the end of highest density; the density at an end is never below that at its start.

    Args:
        log_density: Maps ``*batch x k x p`` parameters to log densities and their gradients.
        starts: Starts of the searches of each problem, ``*batch x k x p``.
        bounds: Lower and upper bounds, ``2 x p``.
        **options: Options of ``minimize_batch``.
    """

    def loss(theta: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = log_density(theta)
        return -value, -gradient

    end = minimize_batch(loss, starts, bounds, **options)
    best = end.value.nan_to_num(torch.inf).argmin(-1, keepdim=True)
    theta = end.point.take_along_dim(best.unsqueeze(-1), -2).squeeze(-2)
    numbers = -end.value, end.converged, end.iterations
    return Optimum(theta, *(number.take_along_dim(best, -1).squeeze(-1) for number in numbers))
