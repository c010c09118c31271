r"""Joint fit of the hyperparameters of a ``CurveGP`` and of its compression, batched over several starts.

The parameters are ``theta = [log l_1 .. log l_{d+1}, log s, log noise, m, log g]``: those of a GP with an
RBF kernel over ``[x, t]``, midpoint and growth. With ``y(m, g)`` the standardized scores,

    d log p / d(m, g) = -alpha' dy / d(m, g),    alpha = K^{-1} y,

where ``alpha`` comes from ``numerics.evidence`` and the derivatives of ``y`` from autograd. The objective
is that of ``fit_gpytorch_mll`` on the model.

References:
    V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020,
    section 3.2. Its derivatives by ``m`` and ``g`` are misprinted.
"""

import math
from functools import partial
from typing import NamedTuple

import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch import Tensor

from botorch_costly.errors import check, check_count
from botorch_costly.models.curve import LEAST_LENGTHSCALE, LEAST_NOISE, CurveGP, z_scores
from botorch_costly.models.fitting import priors_and_bounds
from botorch_costly.models.hyperparameter_search import most_probable
from botorch_costly.numerics.compression import prefix_scores, sigmoid_weights
from botorch_costly.numerics.evidence import Rows, log_evidence_and_slopes, prepare
from botorch_costly.numerics.hyperprior import draw, log_prior
from botorch_costly.randomness import check_generator
from botorch_costly.transforms import GROWTHS, MIDPOINTS

_SLOPE = 5e-3  # gradient tolerance of a search, nats per unit
_LARGEST = 5.0  # upper bound of the logarithms of lengthscales, variance and noise
_NOISE_OF_A_START = (1e-3, 1e-1)


class Report(NamedTuple):
    """Log posterior of the hyperparameters before and after a fit."""

    before: float  # log evidence plus log priors
    after: float
    converged: bool


class _Task(NamedTuple):
    rows: Rows  # shapes: (n, ..)
    curves: Tensor  # shape: (c, T)
    marks: Tensor  # shape: (n, 2)
    dim: int  # columns of the kernel
    box: Tensor  # shape: (2, p)


def fit_curves(
    model: CurveGP,
    *,
    restarts: int = 4,
    generator: torch.Generator | None = None,
    max_iter: int = 100,
) -> Report:
    """Fit a model in place, from its present values and from random ones, all searches in one batch.

    Args:
        model: A model with default types of kernel and likelihood, and a sigmoid or fixed compression.
        restarts: Number of further searches, from values drawn from the priors.
        generator: Random generator of the restarts; needed for restarts only.
        max_iter: Largest number of evaluations of a search after the first.

    Returns:
        The report; the log posterior never decreases.

    Raises:
        InvalidArgumentError: If the model has another kernel, or an argument is outside its range.
    """
    base = model.covar_module.base_kernel if isinstance(model.covar_module, ScaleKernel) else None
    check(isinstance(base, RBFKernel), "model", "a scaled RBF kernel", model.covar_module)
    task = _task_of(model)
    starts = _starts(model, task, check_count("restarts", restarts), generator)
    density = partial(_log_density, model, task)
    before, _ = density(starts[:1])
    end = most_probable(density, starts, task.box, max_iter=max_iter, gradient_tolerance=_SLOPE)
    improved = bool(end.log_density > before)
    if improved:
        _assign(model, end.theta)
    after = end.log_density if improved else before
    return Report(float(before), float(after), bool(end.converged))


def _task_of(model: CurveGP) -> _Task:
    inputs = model.train_inputs[0].double()
    dim = inputs.shape[-1]
    # numerics.evidence takes the last column as the round. Here it is constant: nothing is forgotten.
    rounds = torch.cat([inputs, torch.zeros_like(inputs[:, :1])], -1)
    rows = prepare(rounds, torch.zeros_like(inputs[:, 0]), inputs.new_zeros(()))
    low = [math.log(LEAST_LENGTHSCALE)] * dim + [-_LARGEST, math.log(LEAST_NOISE)]
    high = [_LARGEST] * dim + [_LARGEST, _LARGEST]
    if model.compression.weighting == "sigmoid":
        low += [MIDPOINTS[0], math.log(GROWTHS[0])]
        high += [MIDPOINTS[1], math.log(GROWTHS[1])]
    return _Task(rows, model.curves.double(), model.marks, dim, inputs.new_tensor([low, high]))


def _starts(
    model: CurveGP, task: _Task, restarts: int, generator: torch.Generator | None
) -> Tensor:  # shape: (1 + restarts, p)
    compression, kernel = model.compression, model.covar_module
    scales = kernel.outputscale.log().reshape(1), model.likelihood.noise.log().reshape(1)
    parameters = [kernel.base_kernel.lengthscale.flatten().log(), *scales]
    is_learnt = compression.weighting == "sigmoid"
    if is_learnt:
        parameters += [compression.midpoint.reshape(1), compression.growth.log().reshape(1)]
    starts = torch.cat([values.detach().double() for values in parameters]).unsqueeze(0)
    if restarts:
        generator = check_generator(generator)
        prior, _ = priors_and_bounds(task.dim)
        shape = torch.Size([restarts])
        drawn = draw(prior, shape, task.dim, _NOISE_OF_A_START, generator)[:, : task.dim + 2]
        if is_learnt:
            low, high = task.box[:, -2:].to(drawn)
            unit = drawn.new_empty(restarts, 2).uniform_(generator=generator)
            drawn = torch.cat([drawn, low + (high - low) * unit], -1)
        starts = torch.cat([starts, drawn.to(starts)])
    return starts.clamp(*task.box)


def _log_density(model: CurveGP, task: _Task, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sum of log evidence and log priors of each row of ``theta``, and the gradients."""
    hyper, shape = theta[:, : task.dim + 2], theta[:, task.dim + 2 :]
    with torch.enable_grad():
        shape = shape.detach().requires_grad_(True)
        y = _targets(model, task, shape).expand(len(theta), len(task.marks))
    rows = task.rows._replace(y=y.detach())
    value, gradient, slopes = log_evidence_and_slopes("rbf", rows, hyper)
    prior, _ = priors_and_bounds(task.dim)
    log_priors = log_prior(prior, hyper, task.dim)
    gradient = gradient + log_priors.gradient
    if shape.shape[-1]:
        (by_shape,) = torch.autograd.grad(y, shape, slopes)
        gradient = torch.cat([gradient, by_shape], -1)
    return value + log_priors.value, gradient


def _targets(model: CurveGP, task: _Task, shape: Tensor) -> Tensor:
    """Return the standardized scores for each midpoint and log growth, ``r x n``."""
    if shape.shape[-1]:
        weights = sigmoid_weights(task.curves.shape[1], shape[:, :1], shape[:, 1:].exp())
        scores = prefix_scores(task.curves, weights)  # r x c x T
    else:
        scores = model.compression(task.curves).detach()
    return z_scores(scores[..., task.marks[:, 0], task.marks[:, 1] - 1])


def _assign(model: CurveGP, theta: Tensor) -> None:
    dim = model.train_inputs[0].shape[-1]
    base = model.covar_module.base_kernel
    floor = LEAST_LENGTHSCALE * (1 + 1e-6)  # the raw value of the bound itself is infinite
    base.lengthscale = theta[:dim].exp().clamp_min(floor).to(base.lengthscale)
    model.covar_module.outputscale = theta[dim].exp().to(model.covar_module.outputscale)
    model.likelihood.noise = theta[dim + 1].exp().clamp_min(LEAST_NOISE * (1 + 1e-6))
    if model.compression.weighting == "sigmoid":
        model.compression.midpoint = theta[dim + 2]
        model.compression.growth = theta[dim + 3].exp().clamp(*GROWTHS)
    model.eval()
