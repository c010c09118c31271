"""Fit of the hyperparameters of earlier tasks: priors, bounds, and a search batched over tasks.

Notation: ``theta = [log l_1 .. log l_d, log s, log noise]``, as in ``numerics.padded``.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from botorch_costly.models.hyperparameter_search import NormalPrior, most_probable, posterior
from botorch_costly.numerics import padded
from botorch_costly.numerics.expansion import Quadratic
from botorch_costly.numerics.padded import Padded
from botorch_costly.optim.newton import climb_by_newton
from botorch_costly.optim.smooth import ValueAndGradient

_VARIANCE = 0.0, 1.0  # mean and standard deviation of the logarithm
_NOISE = -4.0, 1.5
_BOX_OF_LENGTHSCALES = 1e-2, 1e3
_BOX_OF_VARIANCE = 1e-3, 1e3
_BOX_OF_NOISE = 1e-6, 1e1
_A_ROUND = 15  # steps after which converged searches leave the batch
_SLOPE = 1e-2  # gradient tolerance of a search, nats per log unit
_NEWTON, _NEAR = 5, 2e-3  # largest number of Newton steps; step tolerance, in widths of the box
_ROUGHER, _CLEARER = -2.5, -3.0  # log factors of lengthscales and noise of a second start


def typical(dim: int) -> Tensor:
    """Return the default start of a search, ``(dim + 2,)``."""
    lengthscale = math.sqrt(2) + 0.5 * math.log(dim)
    return torch.tensor([lengthscale - 1.0] * dim + [_VARIANCE[0], _NOISE[0]], dtype=torch.float64)


def fitted(kernel: str, rows: Padded, starts: Sequence[Tensor], max_iter: int) -> Tensor:
    """Return the hyperparameters of highest density among the ends of the searches from all starts.

    The density at an end is never below that at its start.

    Args:
        kernel: Kernel family of all tasks.
        rows: The observations.
        starts: Starts of the searches, each ``tasks x (d + 2)``.
        max_iter: Largest number of evaluations of a search after the first.
    """
    count = len(starts[0])
    exact = Padded(rows.x.double(), rows.y.double(), rows.seen)
    repeated = Padded(*(torch.cat([tensor] * len(starts)) for tensor in exact))
    end = torch.cat(list(starts)).double()
    density = end.new_zeros(len(end))
    box = box_of(rows.x.shape[-1]).to(end)
    active = torch.arange(len(end), device=end.device)
    # After each round of steps, converged searches leave the batch.
    for first in range(0, max_iter, _A_ROUND):
        # No Hessian is passed: far from an optimum its long first steps would end where all is noise.
        result = most_probable(
            posterior_of(kernel, repeated.some(active)),
            end[active].unsqueeze(-2),
            box,
            max_iter=min(_A_ROUND, max_iter - first),
            gradient_tolerance=_SLOPE,
            check_every=1,
        )
        end[active], density[active] = result.theta, result.log_density
        active = active[~result.converged]
        if not len(active):
            break
    best = density.reshape(len(starts), count).argmax(0)
    return end.reshape(len(starts), count, -1)[best, torch.arange(count)].to(starts[0])


def refitted(kernel: str, rows: Padded, theta: Tensor) -> Tensor:
    """Return the hyperparameters after a few Newton steps from values that are probably near an optimum.

    The curvature is the average information. If the steps do not converge, ``fitted`` follows.
    """
    exact = Padded(rows.x.double(), rows.y.double(), rows.seen)
    start, box = theta.double().unsqueeze(-2), box_of(rows.x.shape[-1]).to(theta).double()
    prior = prior_of(rows.x.shape[-1], start)

    def second_order(points: Tensor) -> Quadratic:
        flat = points.squeeze(-2)
        value, gradient, information = padded.average_information(kernel, exact, flat)
        log_prior, slope = prior(flat)
        curvature = information.nan_to_num(0.0, 0.0, 0.0) + torch.diag(prior.std**-2)
        model = value + log_prior, gradient + slope, -curvature
        return Quadratic(*(tensor.unsqueeze(1) for tensor in model))

    end = climb_by_newton(second_order, start, box, _NEWTON, _NEAR)
    theta = end.points.squeeze(-2).to(theta)
    return theta if bool(end.reached.all()) else fitted(kernel, rows, [theta], _A_ROUND)


def rougher(theta: Tensor) -> Tensor:
    """Return a second start: explaining values by detail instead of noise may be another optimum."""
    step = theta.new_full((theta.shape[-1],), _ROUGHER)
    step[-2:] = theta.new_tensor([0.0, _CLEARER])
    low, high = box_of(theta.shape[-1] - 2).to(theta)
    return (theta + step).clamp(low, high)


def posterior_of(kernel: str, rows: Padded) -> ValueAndGradient:
    """Return the log posterior density of ``tasks x 1 x (d + 2)`` hyperparameters."""

    def log_evidence(theta: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = padded.log_evidence(kernel, rows, theta.squeeze(-2))
        return value.unsqueeze(-1), gradient.unsqueeze(-2)

    return posterior(log_evidence, prior_of(rows.x.shape[-1], rows.x))


def box_of(dim: int) -> Tensor:
    """Return the lower and upper bounds of a search, ``2 x (dim + 2)``."""
    pairs = [_BOX_OF_LENGTHSCALES] * dim + [_BOX_OF_VARIANCE, _BOX_OF_NOISE]
    return torch.tensor(pairs, dtype=torch.float64).log().mT


def prior_of(dim: int, like: Tensor) -> NormalPrior:
    """Return the prior of ``theta`` with the dtype and device of ``like``."""
    lengthscale = math.sqrt(2) + 0.5 * math.log(dim), math.sqrt(3)
    return NormalPrior(*like.new_tensor([lengthscale] * dim + [_VARIANCE, _NOISE]).unbind(-1))
