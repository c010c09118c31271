"""Hyperparameters of earlier tasks: their priors, their box, and the search of all tasks at once.

Notation: ``theta = [log l_1 .. log l_d, log s, log noise]``, as in ``numerics.padded``.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from botorch_costly.numerics import padded
from botorch_costly.numerics.expansion import Quadratic
from botorch_costly.numerics.padded import Padded
from botorch_costly.optim.lbfgs import minimize_batch
from botorch_costly.optim.newton import climb_by_newton
from botorch_costly.optim.smooth import ValueAndGradient

_VARIANCE = 0.0, 1.0  # mean and standard deviation of the logarithm
_NOISE = -4.0, 1.5
_BOX_OF_LENGTHSCALES = 1e-2, 1e3
_BOX_OF_VARIANCE = 1e-3, 1e3
_BOX_OF_NOISE = 1e-6, 1e1
_A_ROUND = 15  # steps after which searches that have ended are taken out
_SLOPE = 1e-2  # nats per log unit at which a search ends
_NEWTON, _NEAR = 5, 2e-3  # most steps of a search from near its end; the last one, in widths
_ROUGHER, _CLEARER = -2.5, -3.0  # a second start: shorter lengthscales and less noise, logarithms


def typical(dim: int) -> Tensor:
    """Return where a search begins, ``(dim + 2,)``."""
    lengthscale = math.sqrt(2) + 0.5 * math.log(dim)
    return torch.tensor([lengthscale - 1.0] * dim + [_VARIANCE[0], _NOISE[0]], dtype=torch.float64)


def fitted(kernel: str, rows: Padded, starts: Sequence[Tensor], max_iter: int) -> Tensor:
    """Return the hyperparameters of highest density that a search from one of the starts ends at.

    None is less probable than where its search began.

    Args:
        kernel: Of all tasks.
        rows: The observations.
        starts: Each ``tasks x (d + 2)``.
        max_iter: Most evaluations of a search after the first.
    """
    count = len(starts[0])
    exact = Padded(rows.x.double(), rows.y.double(), rows.seen)
    each = Padded(*(torch.cat([part] * len(starts)) for part in exact))
    end = torch.cat(list(starts)).double()
    loss = end.new_zeros(len(end))
    box = box_of(rows.x.shape[-1]).to(end)
    left = torch.arange(len(end), device=end.device)
    # A few rounds: the searches that have ended leave the batch.
    for steps in _rounds(max_iter):
        # By short first steps: the curvature far from an end leads past it, to what is all noise.
        found = minimize_batch(
            loss_of(kernel, each.some(left)),
            end[left].unsqueeze(-2),
            box,
            max_iter=steps,
            gradient_tolerance=_SLOPE,
            check_every=1,
        )
        end[left], loss[left] = found.point.squeeze(-2), found.value.squeeze(-1)
        left = left[~found.converged.squeeze(-1)]
        if not len(left):
            break
    best = loss.reshape(len(starts), count).argmin(0)
    return end.reshape(len(starts), count, -1)[best, torch.arange(count)].to(starts[0])


def refitted(kernel: str, rows: Padded, theta: Tensor) -> Tensor:
    """Return what ``fitted`` does, from hyperparameters that are likely near, in a few Newton steps.

    The curvature is the average information. Where it leads nowhere, ``fitted`` goes on from there.
    """
    exact = Padded(rows.x.double(), rows.y.double(), rows.seen)

    def second_order(at: Tensor) -> Quadratic:
        value, gradient, curvature = _density(kernel, exact, at.squeeze(-2))
        parts = value.unsqueeze(-1), gradient.unsqueeze(-2), -curvature.unsqueeze(-3)
        return Quadratic(*parts)

    start, box = theta.double().unsqueeze(-2), box_of(rows.x.shape[-1]).to(theta).double()
    end = climb_by_newton(second_order, start, box, _NEWTON, _NEAR)
    found = end.points.squeeze(-2).to(theta)
    if bool(end.reached.all()):
        return found
    return fitted(kernel, rows, [found], _A_ROUND)


def _density(kernel: str, rows: Padded, theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return log densities, their gradients, and guesses at their curvature, which are positive."""
    value, gradient, told = padded.average_information(kernel, rows, theta)
    known, slope = log_prior(theta)
    curvature = told.nan_to_num(0.0, 0.0, 0.0) + torch.diag(_known(theta)[:, 1] ** -2)
    return value + known, gradient + slope, curvature


def rougher(theta: Tensor) -> Tensor:
    """Return a second start: the same values may be noise or detail, each a maximum of its own."""
    step = theta.new_full((theta.shape[-1],), _ROUGHER)
    step[-2:] = theta.new_tensor([0.0, _CLEARER])
    low, high = box_of(theta.shape[-1] - 2).to(theta)
    return (theta + step).clamp(low, high)


def _rounds(max_iter: int) -> list[int]:
    return [min(_A_ROUND, max_iter - first) for first in range(0, max_iter, _A_ROUND)]


def loss_of(kernel: str, rows: Padded) -> ValueAndGradient:
    """Return the negative log densities of ``tasks x 1 x (d + 2)`` hyperparameters."""

    def loss(theta: Tensor) -> tuple[Tensor, Tensor]:
        flat = theta.squeeze(-2)
        value, gradient = padded.log_evidence(kernel, rows, flat)
        known, slope = log_prior(flat)
        return -(value + known).unsqueeze(-1), -(gradient + slope).unsqueeze(-2)

    return loss


def box_of(dim: int) -> Tensor:
    """Return the bounds between which is searched, ``2 x (dim + 2)``."""
    pairs = [_BOX_OF_LENGTHSCALES] * dim + [_BOX_OF_VARIANCE, _BOX_OF_NOISE]
    return torch.tensor(pairs, dtype=torch.float64).log().mT


def log_prior(theta: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log density of the logarithms, up to a constant, and its gradient."""
    known = _known(theta)
    away = (theta - known[:, 0]) / known[:, 1]
    return -0.5 * away.square().sum(-1), -away / known[:, 1]


def _known(theta: Tensor) -> Tensor:
    """Return means and standard deviations of the logarithms, ``(d + 2) x 2``."""
    dim = theta.shape[-1] - 2
    lengthscale = math.sqrt(2) + 0.5 * math.log(dim), math.sqrt(3)
    return theta.new_tensor([lengthscale] * dim + [_VARIANCE, _NOISE])
