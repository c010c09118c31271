"""Rivals with models: whole trainings by a Gaussian process, and curves by ones of BoTorch.

Whole trainings are chosen by the logarithm of the expected improvement, per cost or not, of one number
of each curve: its end, the mean of its last tenth (BO), or the score that is learnt (BO-L). Freeze-thaw
explains the rewards themselves, over configurations and shares, by a kernel of curves that decay.

References:
    - V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020:
      BO, BO-L and freeze-thaw, as rivals there.
    - K. Swersky, J. Snoek, R. P. Adams. Freeze-thaw Bayesian optimization. 2014.
    - H. Rakotoarison et al. In-context freeze-thaw Bayesian optimization for hyperparameter optimization.
      ICML 2024: the acquisition function with a random horizon and a random threshold.
    - J. A. Lin, S. Ament, M. Balandat, E. Bakshy. Scaling Gaussian processes for learning curve
      prediction via latent Kronecker structure. 2024.
"""

import math
from collections.abc import Callable
from typing import Protocol

import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.models import SingleTaskGP
from botorch.models.latent_kronecker_gp import LatentKroneckerGP
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.kernels import ProductKernel, ScaleKernel
from torch import Generator, Tensor

from benchmarks.curves.play import LEAST_COST, SHARES, Ask, Policy, Steps, on_grid
from benchmarks.curves.stepwise import AT_FIRST, GROWTH, MOST_STEPS, Stepwise, grid_shares
from benchmarks.harness.gaussian import fitted
from botorch_costly.kernels import FreezeThawKernel
from botorch_costly.models import CurveGP, LogLinearCost, fit_curves
from botorch_costly.problems import CurveProblem

_CANDIDATES = 128  # new configurations among which curve models choose
_DRAWS = 64
Worth = Callable[[CurveProblem, dict[int, Tensor], Generator], Tensor]


def whole_trainings(worth: Worth, *, per_cost: bool) -> Policy:
    """Return the policy of whole trainings by expected improvement, per cost or not.

    ``worth`` returns one number for each curve so far, larger is better.
    """

    def policy(problem: CurveProblem, seed: int, budget: float) -> Steps:
        generator = Generator().manual_seed(seed)
        order = torch.randperm(len(problem), generator=generator).tolist()
        curves: dict[int, Tensor] = {}
        costs: dict[int, float] = {}
        while len(curves) < len(problem):
            config = order[len(curves)]
            if len(curves) >= AT_FIRST:
                values = worth(problem, curves, generator)
                config = _improving(problem, list(curves), values, costs if per_cost else None)
            told = yield Ask(config, int(problem.lengths[config]))
            curves[config], costs[config] = told.curve, max(told.cost, LEAST_COST)

    return policy


def _improving(
    problem: CurveProblem, begun: list[int], values: Tensor, costs: dict[int, float] | None
) -> int:
    """Return the configuration that has not been trained and promises most."""
    X, y = problem.inputs[begun], values.unsqueeze(-1)
    model = fitted(SingleTaskGP(X, y))
    left = [config for config in range(len(problem)) if config not in set(begun)]
    points = problem.inputs[left]
    with torch.no_grad():
        promise = LogExpectedImprovement(model, y.max())(points.unsqueeze(-2))
        if costs is not None:
            paid = torch.tensor([[costs[config]] for config in begun], dtype=torch.float64)
            promise = promise - LogLinearCost(X, paid)(points).squeeze(-1).log()
    return left[int(promise.argmax())]


def ends(problem: CurveProblem, curves: dict[int, Tensor], generator: Generator) -> Tensor:
    """Return the last reward of each curve; the lowest of all for what shows none."""
    lowest = min(float(curve.min()) for curve in curves.values() if len(curve))
    last = [float(curve[-1]) if len(curve) else lowest for curve in curves.values()]
    return torch.tensor(last, dtype=torch.float64)


def last_tenths(problem: CurveProblem, curves: dict[int, Tensor], generator: Generator) -> Tensor:
    """Return the mean of the last tenth of each curve."""
    last = {c: v[-max(1, len(v) // 10) :] for c, v in curves.items()}
    means = {c: v.mean(0, keepdim=True) if len(v) else v for c, v in last.items()}
    return ends(problem, means, generator)


def learnt_scores(problem: CurveProblem, curves: dict[int, Tensor], generator: Generator) -> Tensor:
    """Return the score of each whole curve, by a compression that is learnt: BO-L."""
    seen = torch.stack([on_grid(problem, config, curve) for config, curve in curves.items()])
    lowest = seen[~seen.isnan()].min()
    model = CurveGP(problem.inputs[list(curves)], seen.nan_to_num(float(lowest)) - lowest)
    fit_curves(model, restarts=2, generator=generator)
    return model.targets().detach()


class CurveBelief(Protocol):
    """What is believed of the rewards of trainings."""

    def __call__(self, points: Tensor, at: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of configurations ``n x d`` at shares ``n``, each ``n``."""


MakeBelief = Callable[[Tensor, Tensor], CurveBelief]
"""From configurations ``c x d`` and curves ``c x grid``, NaN where nothing is known."""


def freeze_thaw(X: Tensor, curves: Tensor) -> CurveBelief:
    """Return the belief of a GP: an end for each configuration, and a way there that decays."""
    known = ~curves.isnan()
    grid = grid_shares().expand(len(X), -1).unsqueeze(-1)
    rows = torch.cat([X.unsqueeze(1).expand(-1, SHARES, -1), grid], -1)
    columns = tuple(range(X.shape[-1]))
    end, way = (
        get_covar_module_with_dim_scaled_prior(len(columns), active_dims=columns) for _ in "12"
    )
    decay = ProductKernel(way, FreezeThawKernel(active_dims=(len(columns),)))
    kernel = ScaleKernel(end) + ScaleKernel(decay)
    model = SingleTaskGP(rows[known], curves[known].unsqueeze(-1), covar_module=kernel)
    fitted(model, steps=MOST_STEPS)

    def moments(points: Tensor, at: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
        rows = torch.cat([points, at.unsqueeze(-1)], -1).unsqueeze(-2)
        posterior = model.posterior(rows)
        return posterior.mean.flatten(), posterior.variance.flatten().sqrt()

    return moments


def kronecker(X: Tensor, curves: Tensor) -> CurveBelief:
    """Return the belief of a latent Kronecker GP.

    Its own kernel over configurations has no bounds: lengthscales of 1e-9 were fitted, and nothing could
    be sampled. So it has the one of BoTorch's default models.
    """
    shares = grid_shares().unsqueeze(-1)
    space = get_covar_module_with_dim_scaled_prior(ard_num_dims=X.shape[-1])
    model = LatentKroneckerGP(X, shares, curves, covar_module_X=space)
    with model.use_iterative_methods():
        fitted(model, steps=MOST_STEPS)

    def moments(points: Tensor, at: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
        seed = int(torch.randint(2**31, (1,), generator=generator))
        with model.use_iterative_methods(), torch.random.fork_rng():
            torch.manual_seed(seed)
            found = model.posterior(points, shares).rsample(torch.Size([_DRAWS]))
        column = (at * SHARES).round().long() - 1
        draws = found.gather(-1, column.expand(_DRAWS, -1).unsqueeze(-1)).squeeze(-1)
        return draws.mean(0), draws.std(0)

    return moments


def random_horizon(make: MakeBelief) -> Policy:
    """Return the policy that trains, a step further, what most probably beats a random threshold.

    A horizon is drawn uniformly, a threshold above the best by a log-uniform share of what is possible:
    the acquisition function of ifBO. It is told the best reward of all.
    """

    def policy(problem: CurveProblem, seed: int, budget: float) -> Steps:
        generator = Generator().manual_seed(seed)
        run = Stepwise(problem, generator)
        belief, at_fit = None, 0
        while choice := run.choice(_CANDIDATES):
            config = choice[0]
            if len(run.curves) >= AT_FIRST and run.best > -math.inf:
                if belief is None or run.steps >= GROWTH * at_fit:
                    belief, at_fit = make(*run.seen()), run.steps
                config = _most_probable(problem, run, belief, choice, generator)
            told = yield Ask(config, run.next_stop(config))
            run.told(config, told)

    return policy


def _most_probable(
    problem: CurveProblem,
    run: Stepwise,
    belief: CurveBelief,
    choice: list[int],
    generator: Generator,
) -> int:
    """Return what most probably beats the threshold at the horizon."""
    horizon = int(torch.randint(1, SHARES + 1, (1,), generator=generator))
    power = -4 + 3 * float(torch.rand(1, generator=generator))
    threshold = run.best + 10**power * (problem.best - run.best)
    at = [min(run.done.get(config, 0) + horizon, SHARES) / SHARES for config in choice]
    with torch.no_grad():
        mean, sd = belief(problem.inputs[choice], torch.tensor(at, dtype=torch.float64), generator)
    return choice[int(((mean - threshold) / sd).argmax())]


MODELS: dict[str, Policy] = {
    "whole, ends": whole_trainings(ends, per_cost=False),
    "whole, ends per cost": whole_trainings(ends, per_cost=True),
    "whole, last tenth": whole_trainings(last_tenths, per_cost=False),
    "whole, scores": whole_trainings(learnt_scores, per_cost=True),
    "freeze-thaw": random_horizon(freeze_thaw),
    "kronecker": random_horizon(kronecker),
}
