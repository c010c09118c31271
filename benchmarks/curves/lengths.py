"""Configuration and length chosen together, without compression and without points of curves.

The paper's continuous multi-task or multi-fidelity Bayesian optimization (CM-T/F-BO), and the same with
the kernel of freeze-thaw over time (its Figure 14). The value of a configuration and a length is the mean
of the last tenth of the curve. The pair with the largest expected improvement per cost over the largest
posterior mean is trained, always from scratch, and for at least three eighths of a whole training.

References:
    - V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020.
    - K. Swersky, J. Snoek, R. P. Adams. Freeze-thaw Bayesian optimization. 2014.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from botorch.models import SingleTaskGP
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.kernels import Kernel, ProductKernel, ScaleKernel
from torch import Generator, Tensor

from benchmarks.curves.ours import SHORTEST
from benchmarks.curves.play import LEAST_COST, SHARES, Ask, Policy, Steps
from benchmarks.curves.stepwise import AT_FIRST, GROWTH, MOST_STEPS
from benchmarks.harness.gaussian import fitted, standardized
from botorch_costly.acquisition import LogEIPerCost, best_mean
from botorch_costly.kernels import FreezeThawKernel
from botorch_costly.models import LinearCost
from botorch_costly.problems import CurveProblem

_STEPS = tuple(step for step in range(1, SHARES + 1) if step >= SHORTEST * SHARES)


def configuration_and_length(over_time: Callable[..., Kernel]) -> Policy:
    """Return the policy, with a kernel over time that is told its column as ``active_dims``."""

    def policy(problem: CurveProblem, seed: int, budget: float) -> Steps:
        generator = Generator().manual_seed(seed)
        pairs = all_pairs(problem.inputs)
        open_, belief = torch.ones(len(pairs), dtype=torch.bool), _Belief(over_time)
        rows: list[int] = []
        values: list[float] = []
        costs: list[float] = []
        while open_.any():
            row = int(torch.multinomial(open_.double(), 1, generator=generator))
            if len(rows) >= AT_FIRST:
                promise = belief.promise(pairs, rows, values, costs)
                row = int(promise.masked_fill(~open_, -math.inf).argmax())
            config, step = row // len(_STEPS), _STEPS[row % len(_STEPS)]
            until = math.ceil(step * int(problem.lengths[config]) / SHARES)
            told = yield Ask(config, until, anew=True)
            open_[row] = False
            rows.append(row)
            values.append(value_of(told.curve, min(values, default=0.0)))
            costs.append(max(told.cost, LEAST_COST))

    return policy


def all_pairs(inputs: Tensor) -> Tensor:
    """Return each configuration ``n x d`` with each share of a training, the shares fastest."""
    shares = inputs.new_tensor(_STEPS).div(SHARES).repeat(len(inputs)).unsqueeze(-1)
    return torch.cat([inputs.repeat_interleave(len(_STEPS), 0), shares], -1)


def value_of(curve: Tensor, lowest: float) -> float:
    """Return the mean of the last tenth of a curve, and the lowest value of all if there is none."""
    return float(curve[-max(1, len(curve) // 10) :].mean()) if len(curve) else lowest


class _Belief:
    """A Gaussian process over configurations and shares, fitted anew when it has grown by a fifth."""

    def __init__(self, over_time: Callable[..., Kernel]) -> None:
        self._over_time = over_time
        self._hyperparameters: dict[str, Any] | None = None
        self._at_fit = 0

    def promise(
        self, pairs: Tensor, rows: list[int], values: list[float], costs: list[float]
    ) -> Tensor:
        """Return the logarithm of the expected improvement per cost of each pair."""
        X, y, paid = pairs[rows], pairs.new_tensor(values), pairs.new_tensor(costs)
        columns = X.shape[-1] - 1
        space = get_covar_module_with_dim_scaled_prior(columns, active_dims=tuple(range(columns)))
        product = ProductKernel(space, self._over_time(active_dims=(columns,)))
        targets = standardized(y).unsqueeze(-1)
        kernel = ScaleKernel(product)
        model = SingleTaskGP(X, targets, covar_module=kernel, outcome_transform=None)
        if self._hyperparameters is not None:
            model.load_state_dict(self._hyperparameters)
        if len(rows) >= GROWTH * self._at_fit:
            fitted(model, steps=MOST_STEPS)
            self._hyperparameters, self._at_fit = model.state_dict(), len(rows)
        model.eval()
        cost = LinearCost(X, paid.unsqueeze(-1))
        with torch.no_grad():
            return LogEIPerCost(model, cost, best_mean(model, X))(pairs.unsqueeze(-2))


def _squared_exponential(active_dims: tuple[int, ...]) -> Kernel:
    return get_covar_module_with_dim_scaled_prior(1, active_dims=active_dims)


LENGTHS: dict[str, Policy] = {
    "length": configuration_and_length(_squared_exponential),
    "length, freeze-thaw": configuration_and_length(FreezeThawKernel),
}
