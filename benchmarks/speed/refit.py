"""Milliseconds of a refit, on one CPU thread, against ``fit_gpytorch_mll`` in the same process.

Both begin with the same hyperparameters, maximize the same objective and are stopped after 100
iterations; they are timed by turns, problem by problem, so that a busy machine is busy for both. A
*warm* start is what a tuner has: values fitted before the last ten rewards came. A *cold* one is the
prior's. What is timed of BoTorch's way is the fit alone, not the making of the model.

The problems are draws of the time-varying GP, one query a round, with hyperparameters drawn for each.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from statistics import median

import torch
from botorch import fit_gpytorch_mll
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from benchmarks.harness.clock import timed
from benchmarks.harness.record import Row
from botorch_costly.models import TimeVaryingGP
from botorch_costly.models.fitting import Hyperparameters, fit, priors_and_bounds
from botorch_costly.models.time_varying import default_space_kernel
from botorch_costly.numerics.drift import retention
from botorch_costly.numerics.stationary import Stationary, covariance

SIZES, DIMS = (50, 200, 500), (1, 8)
FAMILY = "matern52"
NEW_ROWS = 10  # since the values of a warm start were fitted
TARGET_SPEEDUP = 4.0  # at 200 rewards in 8 dimensions


def measure(
    sizes: Sequence[int] = SIZES,
    dims: Sequence[int] = DIMS,
    problems: int = 7,
    seed: int = 0,
    *,
    learn_forgetting: bool = False,
) -> list[Row]:
    """Time both ways on ``problems`` problems of each size, from a warm and from a cold start."""
    return [
        _row(n, dim, start, problems, seed, learn_forgetting)
        for n in sizes
        for dim in dims
        for start in ("warm", "cold")
    ]


def problem(n: int, dim: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw the inputs ``n x (dim + 1)`` and rewards ``(n,)`` of a truth with drawn hyperparameters."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.rand(n, dim + 1, generator=generator, dtype=torch.float64)
    inputs[:, -1] = torch.arange(n)
    unit = torch.rand(dim + 2, generator=generator, dtype=torch.float64)
    one = torch.ones((), dtype=torch.float64)
    kernel = Stationary(FAMILY, 0.1 * 20 ** unit[:dim] * math.sqrt(dim), one)  # 0.1 to 2, root d
    noise, rate = 0.01 * 50 ** unit[dim], 0.001 * 50 ** unit[-1]  # 0.01 to 0.5, 0.001 to 0.05
    lag = (inputs[:, -1:] - inputs[:, -1]).abs()
    noisy = covariance(kernel, inputs[:, :-1], inputs[:, :-1]) * retention(rate, lag)
    noisy.diagonal().add_(noise)
    normal = torch.randn(n, generator=generator, dtype=torch.float64)
    return inputs, torch.linalg.cholesky(noisy) @ normal


def botorch_fit(
    inputs: Tensor, targets: Tensor, current: Hyperparameters, *, learn_forgetting: bool
) -> Callable[[], Hyperparameters]:
    """Return BoTorch's fit of the same objective, ready to begin."""
    space = default_space_kernel(inputs.shape[-1] - 1, torch.Size())
    model = TimeVaryingGP(
        inputs,
        targets.unsqueeze(-1),
        forgetting=None if learn_forgetting else current.forgetting.item(),
        space_kernel=space,
        likelihood=GaussianLikelihood(),
        outcome_transform=None,
    ).to(inputs)
    base, likelihood = space.base_kernel, model.likelihood
    base.lengthscale, space.outputscale = current.lengthscale, current.outputscale
    likelihood.noise, model.time_kernel.forgetting = current.noise, current.forgetting
    objective = ExactMarginalLogLikelihood(likelihood, model)

    def run() -> Hyperparameters:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that 100 iterations were not enough
            options = {"options": {"maxiter": 100}}
            fit_gpytorch_mll(objective, optimizer_kwargs=options, max_attempts=1)
        rest = space.outputscale, likelihood.noise, model.time_kernel.forgetting
        found = (base.lengthscale.reshape(-1), *(value.reshape(()) for value in rest))
        return Hyperparameters(*(value.detach() for value in found))

    return run


def _row(n: int, dim: int, start: str, problems: int, seed: int, learn: bool) -> Row:
    _turn(20, dim, start, seed, learn)  # to warm up
    turns = [_turn(n, dim, start, seed + i, learn) for i in range(problems)]
    botorch_ms, ours_ms, evaluations, ahead = (list(part) for part in zip(*turns, strict=True))
    return {
        "case": "refit",
        "start": start,
        "observations": n,
        "dim": dim,
        "learn_forgetting": learn,
        "botorch_ms": median(botorch_ms),
        "ours_ms": median(ours_ms),
        "speedup": median(a / b for a, b in zip(botorch_ms, ours_ms, strict=True)),
        "evaluations": median(evaluations),
        "nats_ahead": min(ahead),
        "problems": problems,
    }


def _turn(n: int, dim: int, start: str, seed: int, learn: bool) -> tuple[float, float, int, float]:
    """Return the milliseconds of both ways, our evaluations and how far ours got ahead, in nats."""
    inputs, targets = problem(n, dim, seed)
    lengthscale = torch.full((dim,), 0.35 * math.sqrt(dim), dtype=torch.float64)
    current = Hyperparameters(lengthscale, *torch.tensor([1.0, 0.1, 0.01], dtype=torch.float64))
    if start == "warm":
        earlier = inputs[:-NEW_ROWS], targets[:-NEW_ROWS]
        current, _ = fit(FAMILY, *earlier, current, learn_forgetting=learn)
        least = priors_and_bounds(dim)[1]  # where a softplus has no slope
        current = current._replace(
            lengthscale=current.lengthscale.clamp_min(2 * least.lengthscale),
            noise=current.noise.clamp_min(2 * least.noise),
        )
    theirs = botorch_fit(inputs, targets, current, learn_forgetting=learn)
    their_ms, found = timed(theirs)
    our_ms, (_, report) = timed(
        lambda: fit(FAMILY, inputs, targets, current, learn_forgetting=learn)
    )
    _, reached = fit(FAMILY, inputs, targets, found, learn_forgetting=learn, max_iter=0)
    ahead = report.after.item() - reached.before.item()
    return their_ms, our_ms, 1 + int(report.iterations), ahead


def describe(row: Row) -> str:
    """Return a row in words."""
    return (
        f"refit of {row['observations']:>3} rewards in {row['dim']} dimensions, {row['start']}:"
        f" BoTorch {row['botorch_ms']:.1f} ms, ours {row['ours_ms']:.1f} ms,"
        f" {row['speedup']:.1f} times faster, {row['evaluations']:g} evaluations,"
        f" at least {row['nats_ahead']:+.0e} nats ahead"
    )
