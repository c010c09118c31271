r"""Fit of the hyperparameters of the time-varying GP, batched over trials and restarts.

The objective is the log evidence plus the log priors, as in ``fit_gpytorch_mll`` on a ``TimeVaryingGP``
with a plain ``GaussianLikelihood``: log-normal priors on lengthscales, Gamma(2, 0.15) on the variance,
none on the noise, and a log-normal prior on a learnt rate. GPyTorch searches through softplus and logit;
this module searches over logarithms in a box that has the bounds of GPyTorch's lengthscales and noise.
Neither adds the Jacobian of its parameters to the prior, so both have the same maximizer, but only a
search in a box can end *on* a bound.

A fit first computes the gradient ``g`` and the average information ``H`` at the current values
(``numerics.evidence``). The predicted gain of a Newton step in the variables not held at a bound is
``1/2 g'H^{-1} g``; if it is too small, the fit is *skipped*. Otherwise ``H`` is the initial Hessian of
the search, so that after a few more rewards a few evaluations are enough.
"""

import math
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from gpytorch.likelihoods import GaussianLikelihood
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check, check_count, check_nonnegative
from botorch_costly.models.hyperparameter_search import Optimum, most_probable, posterior
from botorch_costly.models.time_varying import default_forgetting_prior, default_space_kernel
from botorch_costly.numerics.evidence import Rows, average_information, log_evidence, prepare
from botorch_costly.numerics.hyperprior import Gamma, Hyperprior, LogNormal, draw, log_prior
from botorch_costly.optim.quasi_newton import inverse_of_free
from botorch_costly.randomness import check_generator

_LOWEST_RATE = 1e-9  # smallest distance of a learnt rate from 0 and from 1
_SAFETY = 4.0  # factor by which the average information may overestimate the curvature
_LONGEST = 2.0  # approximate limit of a variable's first step, in log units
_RIDGE = 1e-6  # added to the curvature, in nats per squared log unit
_ON_A_BOUND = 1e-6  # log units, above the error of log and exp in single precision
_SLOPE = 5e-3  # gradient tolerance of a search, nats per log unit
_NOISE_OF_A_START = (1e-3, 1.0)  # range of the noise of restarts, as it has no prior


class Hyperparameters(NamedTuple):
    """Start and result of a fit."""

    lengthscale: Tensor  # shape: (*batch, d)
    outputscale: Tensor  # shape: (*batch,)
    noise: Tensor  # shape: (*batch,)
    forgetting: Tensor  # shape: (*batch,)


@dataclass(frozen=True)
class FitReport:
    """Report of a fit for each trial; all tensors have the shape ``(*batch,)``.

    Args:
        before: Log evidence plus log priors at the current values, clamped into their bounds; ``-inf``
            where the covariance is not positive definite.
        after: Log evidence plus log priors at the returned values.
        predicted: Predicted gain of a Newton step from the current values, in nats.
        skipped: Whether no search was made because the predicted gain was too small.
        converged: Whether the best search met its gradient tolerance; false where skipped.
        iterations: Number of evaluations of the best search after the first.
        seconds: Wall-clock time for all trials together.
    """

    before: Tensor
    after: Tensor
    predicted: Tensor
    skipped: Tensor
    converged: Tensor
    iterations: Tensor
    seconds: float


class Bounds(NamedTuple):
    """Lower bounds of the values that a fit returns."""

    lengthscale: float
    noise: float


@lru_cache(maxsize=32)
def priors_and_bounds(dim: int) -> tuple[Hyperprior, Bounds]:
    """Return the priors and bounds of the BoTorch model of ``dim`` configuration columns."""
    space, rate = default_space_kernel(dim, torch.Size()), default_forgetting_prior()
    base, noise = space.base_kernel, GaussianLikelihood().noise_covar
    lengthscale, outputscale = base.lengthscale_prior, space.outputscale_prior
    prior = Hyperprior(
        LogNormal(lengthscale.loc.item(), lengthscale.scale.item()),
        Gamma(outputscale.concentration.item(), outputscale.rate.item()),
        LogNormal(rate.loc.item(), rate.scale.item()),
    )
    least = base.raw_lengthscale_constraint.lower_bound, noise.raw_noise_constraint.lower_bound
    return prior, Bounds(*(bound.item() for bound in least))


@torch.no_grad()
def fit(
    family: str,
    inputs: Tensor,
    targets: Tensor,
    current: Hyperparameters,
    *,
    variances: Tensor | None = None,
    learn_forgetting: bool = False,
    restarts: int = 0,
    generator: torch.Generator | None = None,
    tolerance: float = 1e-3,
    max_iter: int = 100,
    seconds: float = math.inf,
) -> tuple[Hyperparameters, FitReport]:
    r"""Return the most probable hyperparameters (MAP), searched from the current values.

    Args:
        family: One of ``numerics.radial.SCALED``.
        inputs: Configurations and rounds, ``batch_shape x n x (d + 1)``, configurations in the unit cube.
        targets: Rewards in prior units, ``batch_shape x n``. All tensors are cast to float64, and the
            results are float64.
        current: Start of the search; lengthscales of shape ``batch_shape x 1`` serve all columns.
        variances: Known variance of each target beyond the learnt noise, in squared prior units,
            ``batch_shape x n``; 0 if omitted.
        learn_forgetting: Whether the rate is learnt; otherwise it is returned unchanged.
        restarts: Number of further searches for each trial, from values drawn from the priors.
        generator: Random generator of the restarts; needed for restarts only.
        tolerance: Predicted gain, in nats, below which a trial is skipped and its values are returned
            bit for bit; 0 skips none. A trial with restarts is never skipped.
        max_iter: Largest number of evaluations of a search after the first.
        seconds: Time limit, checked after every evaluation; the best values so far are returned.

    Returns:
        Hyperparameters within their bounds, never worse than the clamped current ones, and the report.

    Raises:
        InvalidShapeError: If shapes do not fit each other.
        InvalidArgumentError: If a number is outside its range.

    Example:
        >>> X = torch.rand(20, 2, generator=torch.Generator().manual_seed(0)).double()
        >>> current = Hyperparameters(torch.tensor([0.5]), *torch.tensor([1.0, 0.1, 0.01]))
        >>> fitted, report = fit("matern52", X, torch.sin(9 * X[:, 0]), current)
        >>> bool(report.after > report.before), bool(report.converged)
        (True, True)
    """
    began = time.perf_counter()
    check_nonnegative("tolerance", tolerance)
    check(seconds > 0, "seconds", "a number > 0", seconds)
    check_count("restarts", restarts)
    check_count("max_iter", max_iter)
    _check_rows(inputs, targets)
    shape = targets.shape[:-1]
    _check_variances(variances, targets)
    old = _checked(current, shape, inputs.shape[-1] - 1, targets.device)
    task, start = _task_of(family, inputs, targets, old, learn_forgetting, variances)
    first = _evaluate(task, _starts(task, start, restarts, generator))

    theta, density, gain = first.theta[:, 0].clone(), first.value[:, 0].clone(), first.gain[:, 0]
    inside = ((theta - start).abs() <= _ON_A_BOUND).all(-1) & density.isfinite()
    skipped = inside & (gain <= tolerance / _SAFETY) & (tolerance > 0) & (restarts == 0)
    converged, iterations = torch.zeros_like(skipped), torch.zeros_like(skipped, dtype=torch.long)
    if not bool(skipped.all()):
        active = ~skipped
        end = _search(task.take(active), first.take(active), max_iter, began + seconds)
        theta[active], density[active] = end.theta, end.log_density
        iterations[active], converged[active] = end.iterations, end.converged

    fitted = _hyperparameters(theta, old, skipped.reshape(shape))
    flat = {"before": first.value[:, 0], "after": density, "predicted": gain, "skipped": skipped}
    flat |= {"converged": converged, "iterations": iterations}
    tensors = {name: values.reshape(shape) for name, values in flat.items()}
    return fitted, FitReport(**tensors, seconds=time.perf_counter() - began)


class _Task(NamedTuple):
    """Data, priors and bounds of ``T`` trials; ``p`` parameters as in ``numerics.evidence``."""

    family: str
    rows: Rows  # shapes: (T, 1, ...), where the 1 broadcasts over restarts
    prior: Hyperprior
    box: Tensor  # shape: (2, p)

    def take(self, trials: Tensor) -> "_Task":
        x, y, lag, *optional = self.rows
        given = (None if tensor is None else tensor[trials] for tensor in optional)
        return self._replace(rows=Rows(x[trials], y[trials], lag[trials], *given))


class _Evaluated(NamedTuple):
    """The log posterior density at the starts of the searches."""

    theta: Tensor  # shape: (T, r, p)
    value: Tensor  # shape: (T, r)
    gradient: Tensor  # shape: (T, r, p)
    curvature: Tensor  # of minus the density, positive definite, shape: (T, r, p, p)
    gain: Tensor  # predicted gain of a Newton step, shape: (T, r)

    def take(self, trials: Tensor) -> "_Evaluated":
        return _Evaluated(*(tensor[trials] for tensor in self))


def _task_of(
    family: str,
    inputs: Tensor,  # shape: (*batch, n, d + 1)
    targets: Tensor,  # shape: (*batch, n)
    current: Hyperparameters,
    learn: bool,
    variances: Tensor | None,  # shape: (*batch, n)
) -> tuple[_Task, Tensor]:
    """Return the task with its trials in one dimension, and the current parameters, ``(T, p)``."""
    dim, trials = inputs.shape[-1] - 1, targets.shape[:-1].numel()
    outputscale, noise, rate = (values.reshape(trials, 1) for values in current[1:])
    rows = prepare(
        inputs.double().reshape(trials, 1, *inputs.shape[-2:]),
        targets.double().reshape(trials, 1, targets.shape[-1]),
        None if learn else rate,
        None if variances is None else variances.to(rate).reshape(trials, 1, targets.shape[-1]),
    )
    prior, least = priors_and_bounds(dim)
    units = [current.lengthscale.reshape(trials, dim).log(), outputscale.log(), noise.log()]
    floor = [math.log(least.lengthscale)] * dim + [-math.inf, math.log(least.noise)]
    ceiling = [math.inf] * (dim + 2)
    if learn:
        units.append((-torch.log1p(-rate)).log())
        floor.append(math.log(-math.log1p(-_LOWEST_RATE)))
        ceiling.append(math.log(-math.log(_LOWEST_RATE)))
    theta = torch.cat(units, -1)
    return _Task(family, rows, prior, theta.new_tensor([floor, ceiling])), theta


def _check_rows(inputs: Tensor, targets: Tensor) -> None:
    rows, expected = tuple(inputs.shape), "batch_shape x n x (d + 1), n >= 1 and d >= 1"
    fits = len(rows) >= 2 and rows[-2] >= 1 and rows[-1] >= 2
    check(fits, "inputs", expected, rows, InvalidShapeError)
    received = tuple(targets.shape)
    check(received == rows[:-1], "targets", f"shape {rows[:-1]}", received, InvalidShapeError)


def _check_variances(variances: Tensor | None, targets: Tensor) -> None:
    if variances is not None:
        expected, received = f"shape {tuple(targets.shape)}", tuple(variances.shape)
        fits = variances.shape == targets.shape
        check(fits, "variances", expected, received, InvalidShapeError)
        valid = bool((variances.isfinite() & (variances >= 0)).all())
        check(valid, "variances", "finite numbers >= 0", variances)


def _checked(
    current: Hyperparameters, shape: torch.Size, dim: int, device: torch.device
) -> Hyperparameters:
    """Return the current values in float64, expanded to all trials."""
    expanded = []
    for name, value in zip(current._fields, current, strict=True):
        value = value.detach().to(device, torch.float64)
        is_valid, expected = (value > 0) & value.isfinite(), "finite numbers > 0"
        if name == "forgetting":
            is_valid, expected = (value >= 0) & (value <= 1), "rates in [0, 1]"
        check(bool(is_valid.all()), f"current.{name}", expected, value)
        full = (*shape, dim) if name == "lengthscale" else tuple(shape)
        fits = value.shape in (full, (*shape, 1)) if name == "lengthscale" else value.shape == full
        received = tuple(value.shape)
        check(fits, f"current.{name}", f"shape {full}", received, InvalidShapeError)
        expanded.append(value.expand(full))
    return Hyperparameters(*expanded)


def _starts(
    task: _Task, current: Tensor, restarts: int, generator: torch.Generator | None
) -> Tensor:  # shape: (T, 1 + restarts, p)
    """Return the starts of the searches: the current values, and draws from the priors."""
    starts = current.unsqueeze(1)
    if restarts > 0:
        generator = check_generator(generator)
        shape, dim = torch.Size([len(current), restarts]), task.rows.x.shape[-1]
        drawn = draw(task.prior, shape, dim, _NOISE_OF_A_START, generator)
        starts = torch.cat([starts, drawn[..., : current.shape[-1]].to(starts)], 1)
    lower, upper = task.box
    starts = torch.where(starts < lower + _ON_A_BOUND, lower, starts)
    return torch.where(starts > upper - _ON_A_BOUND, upper, starts)


def _evaluate(task: _Task, theta: Tensor) -> _Evaluated:
    """Return the density with gradient, curvature and the predicted gain of a Newton step.

    Variables that the gradient pushes out of the box stay fixed. A term proportional to the gradient
    shortens steps where the curvature nearly vanishes, as for a vanishing noise.
    """
    value, gradient, information = average_information(task.family, task.rows, theta)
    prior = log_prior(task.prior, theta, task.rows.x.shape[-1])
    gradient = gradient + prior.gradient
    extra = prior.curvature + gradient.abs() / _LONGEST + _RIDGE
    curvature = information + torch.diag_embed(extra)
    lower, upper = task.box
    mask = (theta - torch.where(gradient < 0, lower, upper)).ne(0).to(gradient)
    newton = inverse_of_free(curvature, mask) @ (gradient * mask).unsqueeze(-1)
    gain = 0.5 * (gradient * newton.squeeze(-1)).sum(-1)
    return _Evaluated(theta, value + prior.value, gradient, curvature, gain)


def _search(task: _Task, first: _Evaluated, max_iter: int, deadline: float) -> Optimum:
    """Return the best end of each trial's searches."""
    evaluated = [(first.value, first.gradient)]  # by which the search begins
    density = posterior(
        lambda theta: log_evidence(task.family, task.rows, theta),
        lambda theta: log_prior(task.prior, theta, task.rows.x.shape[-1])[:2],
    )
    return most_probable(
        lambda theta: evaluated.pop() if evaluated else density(theta),
        first.theta,
        task.box,
        max_iter=max_iter,
        gradient_tolerance=_SLOPE,
        check_every=1,
        hessian=first.curvature,
        should_stop=lambda: time.perf_counter() > deadline,
    )


def _hyperparameters(
    theta: Tensor,  # shape: (T, p)
    old: Hyperparameters,
    unchanged: Tensor,  # shape: (*batch,)
) -> Hyperparameters:
    """Return ``theta`` as hyperparameters, or the old values bit for bit where unchanged."""
    dim, shape = old.lengthscale.shape[-1], unchanged.shape
    values = theta.exp()
    outputscale, noise, *rate = (value.reshape(shape) for value in values[:, dim:].unbind(-1))
    return Hyperparameters(
        torch.where(unchanged[..., None], old.lengthscale, values[:, :dim].reshape(*shape, dim)),
        torch.where(unchanged, old.outputscale, outputscale),
        torch.where(unchanged, old.noise, noise),
        torch.where(unchanged, old.forgetting, -torch.expm1(-rate[0])) if rate else old.forgetting,
    )
