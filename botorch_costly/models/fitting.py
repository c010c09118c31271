r"""Hyperparameters of the time-varying GP from its rewards: all trials and restarts at once.

What is maximized is the log evidence plus the log priors, the objective of ``fit_gpytorch_mll`` on a
``TimeVaryingGP`` whose likelihood is a plain ``GaussianLikelihood``: log-normal priors on lengthscales,
Gamma(2, 0.15) on the variance, none on the noise, and a log-normal one on a rate that is learnt. Neither
way adds the Jacobian of its units to the prior, so that it has the maximizer of GPyTorch's units,
which searches through softplus and logit, and in ours, which are logarithms in a box: lengthscales and
noise above the bounds of the modules. Only ours may end *on* a bound, where a softplus never arrives.

A fit first computes the gradient ``g`` and the average information ``H`` at the current values
(``numerics.evidence``). ``1/2 g'H^{-1} g`` in the variables that are not held at a bound is what a
Newton step would gain; where that is too little the fit is *skipped*. Otherwise ``H`` is where the search
begins, so that after a few more rewards a handful of evaluations is enough.
"""

import math
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from gpytorch.likelihoods import GaussianLikelihood
from torch import Tensor

from botorch_costly.errors import (
    InvalidShapeError,
    check,
    check_count,
    check_nonnegative,
)
from botorch_costly.models.time_varying import default_forgetting_prior, default_space_kernel
from botorch_costly.numerics.evidence import (
    Rows,
    average_information,
    log_evidence,
    prepare,
)
from botorch_costly.numerics.hyperprior import Gamma, Hyperprior, LogNormal, draw, log_prior
from botorch_costly.optim.lbfgs import Minimum, minimize_batch
from botorch_costly.optim.quasi_newton import inverse_of_free
from botorch_costly.randomness import check_generator

_LOWEST_RATE = 1e-9  # of a rate that is learnt, and its distance from 1
_SAFETY = 4.0  # by which the average information may overrate the curvature
_LONGEST = 2.0  # about as far as a variable goes in the first step, in log units
_RIDGE = 1e-6  # of the curvature, in nats per squared log unit
_ON_A_BOUND = 1e-6  # log units, more than a logarithm there and back in single precision costs
_SLOPE = 5e-3  # nats per log unit at which a search ends
_NOISE_OF_A_START = (1e-3, 1.0)  # between which restarts draw the noise, for it has no prior


class Hyperparameters(NamedTuple):
    """What a fit begins with and returns."""

    lengthscale: Tensor  # shape: (*batch, d)
    outputscale: Tensor  # shape: (*batch,)
    noise: Tensor  # shape: (*batch,)
    forgetting: Tensor  # shape: (*batch,)


@dataclass(frozen=True)
class FitReport:
    """What a fit did, trial by trial.

    Args:
        before: Log evidence and log priors at the current values, clamped into their bounds; ``-inf``
            where the covariance is not positive definite. Shape ``(*batch,)``.
        after: Log evidence and log priors at the values returned.
        predicted: What a Newton step from the current values promised, in nats.
        skipped: Whether a search promised too little.
        converged: Whether the search that won ended by itself; false where it was skipped.
        iterations: Evaluations of that search after the first first.
        seconds: Of the wall, for all trials together.
    """

    before: Tensor
    after: Tensor
    predicted: Tensor
    skipped: Tensor
    converged: Tensor
    iterations: Tensor
    seconds: float


class Bounds(NamedTuple):
    """The least values a fit may return."""

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
    learn_forgetting: bool = False,
    restarts: int = 0,
    generator: torch.Generator | None = None,
    tolerance: float = 1e-3,
    max_iter: int = 100,
    seconds: float = math.inf,
) -> tuple[Hyperparameters, FitReport]:
    r"""Return the most probable hyperparameters, searched for from the current ones.

    Args:
        family: One of ``numerics.radial.SCALED``.
        inputs: Configurations and rounds, ``batch_shape x n x (d + 1)``, configurations in the unit cube.
        targets: Rewards in units of the prior, ``batch_shape x n``. These and all other tensors are
            taken to double precision, which is that of what is returned.
        current: Where the search begins; lengthscales of shape ``batch_shape x 1`` serve all columns.
        learn_forgetting: Whether the rate is learnt too; it is returned as it came otherwise.
        restarts: Further searches for each trial, from values drawn from the priors.
        generator: Draws them; needed for restarts only.
        tolerance: A trial is skipped when less than this is to be gained, in nats; 0 skips none. It
            has its values back to the last digit. A trial with restarts is never skipped.
        max_iter: Most evaluations of a search after the first.
        seconds: Time after which the best so far is returned, asked after every evaluation.

    Returns:
        The hyperparameters, never worse than those at hand, clamped into their bounds, and the report.

    Raises:
        InvalidShapeError: If shapes do not fit each other.
        InvalidArgumentError: If a number is outside its range.

    Example:
        >>> X = torch.rand(20, 2, generator=torch.Generator().manual_seed(0)).double()
        >>> lengthscale, rest = torch.tensor([0.5]), torch.tensor([1.0, 0.1, 0.01])
        >>> current = Hyperparameters(lengthscale, *rest)
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
    old = _checked(current, shape, inputs.shape[-1] - 1, targets.device)
    task, start = _pose(family, inputs, targets, old, learn_forgetting)
    first = _evaluate(task, _starts(task, start, restarts, generator))

    theta, loss, gain = first.theta[:, 0].clone(), first.loss[:, 0].clone(), first.gain[:, 0]
    inside = ((theta - start).abs() <= _ON_A_BOUND).all(-1) & loss.isfinite()
    skipped = inside & (gain <= tolerance / _SAFETY) & (tolerance > 0) & (restarts == 0)
    converged, iterations = torch.zeros_like(skipped), torch.zeros_like(skipped, dtype=torch.long)
    if not bool(skipped.all()):
        going = ~skipped
        end = _search(task.take(going), first.take(going), max_iter, began + seconds)
        theta[going], loss[going] = end.point, end.value
        iterations[going], converged[going] = end.iterations, end.converged

    fitted = _hyperparameters(task, theta, old, skipped.reshape(shape))
    parts = {"before": -first.loss[:, 0], "after": -loss, "predicted": gain, "skipped": skipped}
    parts |= {"converged": converged, "iterations": iterations}
    parts = {name: part.reshape(shape) for name, part in parts.items()}
    return fitted, FitReport(**parts, seconds=time.perf_counter() - began)


class _Task(NamedTuple):
    """What is fitted to what, of ``T`` trials; ``p`` unknowns as in ``numerics.evidence``."""

    family: str
    rows: Rows  # shapes: (T, 1, ...), the 1 in the place of the restarts
    prior: Hyperprior
    box: Tensor  # shape: (2, p)

    def take(self, going: Tensor) -> "_Task":
        x, y, lag, retentions = self.rows
        retentions = None if retentions is None else retentions[going]
        return self._replace(rows=Rows(x[going], y[going], lag[going], retentions))


class _Evaluated(NamedTuple):
    """The objective where searches begin."""

    theta: Tensor  # shape: (T, r, p)
    loss: Tensor  # shape: (T, r)
    slope: Tensor  # shape: (T, r, p)
    hessian: Tensor  # shape: (T, r, p, p)
    gain: Tensor  # of a Newton step, shape: (T, r)

    def take(self, going: Tensor) -> "_Evaluated":
        return _Evaluated(*(part[going] for part in self))


def _pose(
    family: str,
    inputs: Tensor,  # shape: (*batch, n, d + 1)
    targets: Tensor,  # shape: (*batch, n)
    current: Hyperparameters,
    learn: bool,
) -> tuple[_Task, Tensor]:
    """Return the task with its trials in one dimension, and where they are, shape ``(T, p)``."""
    dim, trials = inputs.shape[-1] - 1, targets.shape[:-1].numel()
    outputscale, noise, rate = (part.reshape(trials, 1) for part in current[1:])
    rows = prepare(
        inputs.double().reshape(trials, 1, *inputs.shape[-2:]),
        targets.double().reshape(trials, 1, targets.shape[-1]),
        None if learn else rate,
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


def _checked(
    current: Hyperparameters, shape: torch.Size, dim: int, device: torch.device
) -> Hyperparameters:
    """Return the current values in double precision, expanded to all trials."""
    parts = []
    for name, value in zip(current._fields, current, strict=True):
        value = value.detach().to(device, torch.float64)
        rate = name == "forgetting"
        good = (value >= 0) & (value <= 1) if rate else (value > 0) & value.isfinite()
        expected = "rates in [0, 1]" if rate else "finite numbers > 0"
        check(bool(good.all()), f"current.{name}", expected, value)
        full = (*shape, dim) if name == "lengthscale" else tuple(shape)
        fits = value.shape in (full, (*shape, 1)) if name == "lengthscale" else value.shape == full
        received = tuple(value.shape)
        check(fits, f"current.{name}", f"shape {full}", received, InvalidShapeError)
        parts.append(value.expand(full))
    return Hyperparameters(*parts)


def _starts(
    task: _Task, current: Tensor, restarts: int, generator: torch.Generator | None
) -> Tensor:  # shape: (T, 1 + restarts, p)
    """Return where searches begin: at the current values, and where the priors say."""
    starts = current.unsqueeze(1)
    if restarts > 0:
        generator = check_generator(generator)
        shape, dim = torch.Size([len(current), restarts]), task.rows.x.shape[-1]
        drawn = draw(task.prior, shape, dim, _NOISE_OF_A_START, generator)
        starts = torch.cat([starts, drawn[..., : current.shape[-1]].to(starts)], 1)
    lower, upper = task.box
    starts = torch.where(starts < lower + _ON_A_BOUND, lower, starts)
    return torch.where(starts > upper - _ON_A_BOUND, upper, starts)


def _loss(task: _Task, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Return minus log evidence and log priors, and the slopes."""
    value, gradient = log_evidence(task.family, task.rows, theta)
    prior = log_prior(task.prior, theta, task.rows.x.shape[-1])
    return -(value + prior.value), -(gradient + prior.gradient)


def _evaluate(task: _Task, theta: Tensor) -> _Evaluated:
    """Return the objective with its gradient and curvature, and what a Newton step would gain.

    Variables that the gradient pushes out of the box stay where they are. Where the curvature is next
    to none, as that of a vanishing noise is, adding to it shortens the steps.
    """
    value, gradient, information = average_information(task.family, task.rows, theta)
    prior = log_prior(task.prior, theta, task.rows.x.shape[-1])
    slope = -(gradient + prior.gradient)
    extra = prior.curvature + slope.abs() / _LONGEST + _RIDGE
    hessian = information + torch.diag_embed(extra)
    lower, upper = task.box
    mask = (theta - torch.where(slope > 0, lower, upper)).ne(0).to(slope)
    newton = inverse_of_free(hessian, mask) @ (slope * mask).unsqueeze(-1)
    gain = 0.5 * (slope * newton.squeeze(-1)).sum(-1)
    return _Evaluated(theta, -(value + prior.value), slope, hessian, gain)


def _search(task: _Task, first: _Evaluated, max_iter: int, deadline: float) -> Minimum:
    """Return the best end of each trial's searches, shapes as in ``Minimum`` less the restarts."""
    known = [(first.loss, first.slope)]  # what the search would begin by evaluating once more

    def value_and_gradient(theta: Tensor) -> tuple[Tensor, Tensor]:
        return known.pop() if known else _loss(task, theta)

    end = minimize_batch(
        value_and_gradient,
        first.theta,
        task.box,
        max_iter=max_iter,
        gradient_tolerance=_SLOPE,
        check_every=1,
        hessian=first.hessian,
        should_stop=lambda: time.perf_counter() > deadline,
    )
    best = end.value.argmin(-1, keepdim=True)
    each = torch.arange(len(best), device=best.device)
    return Minimum(*(part[each, best.squeeze(-1)] for part in end))


def _hyperparameters(
    task: _Task,
    theta: Tensor,  # shape: (T, p)
    old: Hyperparameters,
    unchanged: Tensor,  # shape: (*batch,)
) -> Hyperparameters:
    """Return ``theta`` as hyperparameters, or the old values to the last digit where unchanged."""
    dim, shape = old.lengthscale.shape[-1], unchanged.shape
    values = theta.exp()
    outputscale, noise, *rate = (part.reshape(shape) for part in values[:, dim:].unbind(-1))
    return Hyperparameters(
        torch.where(unchanged[..., None], old.lengthscale, values[:, :dim].reshape(*shape, dim)),
        torch.where(unchanged, old.outputscale, outputscale),
        torch.where(unchanged, old.noise, noise),
        torch.where(unchanged, old.forgetting, -torch.expm1(-rate[0])) if rate else old.forgetting,
    )
