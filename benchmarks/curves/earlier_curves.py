r"""What the curves of earlier studies teach a search: a Gaussian process around their mean.

- ``m(x, t)`` is the mean of the earlier studies' predictions at configuration ``x`` and step ``t``, each
  by a Gaussian process of that study's curves in its own standard units;
- a reward is ``y = (m(x, t) + r(x, t) - shift) / scale`` with a Gaussian process ``r``. Its
  hyperparameters are fitted once, to the differences of each study from the mean of the others. Scale and
  shift of the search are those of the highest likelihood, so that studies may have other metrics;
- the logarithm of the cost is a mean of the studies' predictions as well.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from botorch.models import SingleTaskGP
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from botorch.settings import validate_input_scaling
from gpytorch.kernels import ProductKernel, RBFKernel, ScaleKernel
from gpytorch.means import ZeroMean
from torch import Tensor

from benchmarks.curves.play import LEAST_COST, SHARES, on_grid
from benchmarks.curves.stepwise import MOST_STEPS, grid_shares
from benchmarks.harness.gaussian import fitted
from botorch_costly.problems import CurveProblem

_FITTED = 12  # curves of each earlier study at some steps, on which the differences are learnt
_EVERY = 4
_APART = 0.1
_LEAST = 1e-9


class Study(NamedTuple):
    """An earlier study."""

    X: Tensor  # configurations, shape: (c, d)
    curves: Tensor  # rewards at each step, shape: (c, grid)
    costs: Tensor  # of a whole training each, shape: (c,)


def study_of(problem: CurveProblem, configs: Tensor) -> Study:
    """Return the study of some configurations of a problem, all trained to their ends.

    A training that broke has the lowest reward of all from there on.
    """
    curves = torch.stack([on_grid(problem, c, problem.rewards[c]) for c in configs.tolist()])
    lowest = float(curves.nan_to_num(math.inf).min())
    return Study(problem.inputs[configs], curves.nan_to_num(lowest), problem.costs[configs])


class Learnt:
    """What earlier studies teach: mean curves, mean costs, and how a study differs from the others."""

    def __init__(self, studies: Sequence[Study]) -> None:
        many = min(len(study.X) for study in studies)
        X, curves, costs = (
            torch.stack([rows[:many] for rows in column]) for column in zip(*studies, strict=True)
        )
        flat = curves.flatten(1)
        centre, unit = (moment.view(-1, 1, 1) for moment in (flat.mean(1), flat.std(1)))
        logs = costs.clamp_min(LEAST_COST).log().unsqueeze(-1)
        self._X = X
        self._values = torch.cat([(curves - centre) / unit.clamp_min(_LEAST), logs], -1)
        self._typical = self._values.mean(1, keepdim=True)
        # Kernel and noise of the ends, up to a factor that cancels, serve all steps and the costs.
        ends = self._values[..., SHARES - 1 : SHARES]
        self._each = fitted(SingleTaskGP(X, ends), steps=MOST_STEPS)
        self._kernel, self._noise = self._differences()

    def _predictions(self, X: Tensor) -> Tensor:
        """Return predicted curves and logarithms of costs by study, ``studies x n x grid + 1``."""
        with torch.no_grad():
            covariance = self._each.covar_module(self._X).to_dense()
            noise = self._each.likelihood.noise.unsqueeze(-1)
            noisy = covariance + noise * torch.eye(self._X.shape[1], dtype=X.dtype)
            weights = torch.linalg.solve(noisy, self._values - self._typical)
            covariance = self._each.covar_module(X.expand(len(self._X), -1, -1), self._X)
            return self._typical + covariance @ weights

    def predict(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean curves ``n x grid`` in standard units and logarithms of costs ``n``."""
        mean = self._predictions(X).mean(0)
        return mean[:, :SHARES], mean[:, SHARES]

    def _differences(self) -> tuple[Any, Tensor]:
        """Return kernel and noise of what each study differs from the mean of the others."""
        rows, targets = [], []
        for i, (X, values) in enumerate(zip(self._X, self._values, strict=True)):
            X, seen = X[:_FITTED], values[:_FITTED, _EVERY - 1 : SHARES : _EVERY]
            other = self._predictions(X)[..., _EVERY - 1 : SHARES : _EVERY]
            others = [j for j in range(len(self._X)) if j != i] or [i]
            points = _rows(X)[:, _EVERY - 1 :: _EVERY].flatten(0, 1)
            rows.append(torch.nn.functional.pad(points, (0, 1), value=float(i)))
            targets.append((seen - other[others].mean(0)).flatten())
        columns = self._X.shape[-1] + 1
        kernel = ScaleKernel(
            get_covar_module_with_dim_scaled_prior(columns, active_dims=range(columns))
        )
        apart = RBFKernel(active_dims=(columns,))  # rows of two studies are independent
        apart.lengthscale = _APART
        apart.requires_grad_(False)
        with validate_input_scaling(False):  # differences are smaller than what they differ from
            model = SingleTaskGP(
                torch.cat(rows),
                torch.cat(targets).unsqueeze(-1),
                covar_module=ProductKernel(kernel, apart),
                mean_module=ZeroMean(),
                outcome_transform=None,
            )
        fitted(model, steps=MOST_STEPS)
        return kernel, model.likelihood.noise.detach()

    def moments(
        self, X: Tensor, mean: Tensor, table: Tensor, choice: list[int], steps: list[int]
    ) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of the rewards of configurations at steps from 0.

        Args:
            X: Configurations ``n x d``.
            mean: Their mean curves ``n x grid``.
            table: Their curves ``n x grid``, NaN where nothing was seen.
            choice: Configurations.
            steps: A step for each of them.
        """
        rows, observed = _rows(X), ~table.isnan()
        seen, points = rows[observed], rows[choice, steps]
        with torch.no_grad():
            covariance = self._kernel(seen).to_dense()
            factor = torch.linalg.cholesky(
                covariance + self._noise * torch.eye(len(seen), dtype=X.dtype)
            )
            scale, shift = units(table[observed], mean[observed], factor)
            left = scale * table[observed] + shift - mean[observed]
            half = torch.linalg.solve_triangular(
                factor, self._kernel(seen, points).to_dense(), upper=False
            )
            white = torch.linalg.solve_triangular(factor, left.unsqueeze(-1), upper=False)
            variance = self._kernel(points, diag=True) - half.square().sum(0)
        believed = mean[choice, steps] + (half * white).sum(0)
        sd = (variance.clamp_min(0).sqrt() / scale).clamp_min(_LEAST)
        return (believed - shift) / scale, sd


def _rows(X: Tensor) -> Tensor:  # shape: (n, grid, d + 1)
    """Return configurations with the share after each step."""
    share = grid_shares().expand(len(X), -1).unsqueeze(-1)
    return torch.cat([X.unsqueeze(1).expand(-1, SHARES, -1), share], -1)


def units(values: Tensor, mean: Tensor, factor: Tensor) -> tuple[float, float]:
    """Return scale and shift of the highest restricted likelihood of ``scale values + shift - mean``.

    With the covariance ``K = L L^T`` and ``P = K^-1 - K^-1 1 1^T K^-1 / 1^T K^-1 1``, which takes the
    shift out, its logarithm is ``(n - 1) log scale - (scale y - m)^T P (scale y - m) / 2``, highest where
    ``y^T P y scale^2 - y^T P m scale - (n - 1) = 0``. Where all values are equal the scale is 1.

    Args:
        values: Rewards ``y``, shape ``n``.
        mean: Their means ``m`` in standard units, shape ``n``.
        factor: The lower Cholesky factor ``L``, ``n x n``.
    """
    columns = torch.stack([torch.ones_like(values), values, mean], -1)
    white = torch.linalg.solve_triangular(factor, columns, upper=False)
    ones, y, m = white.T
    free_y, free_m = (v - ones * (ones @ v) / (ones @ ones) for v in (y, m))
    square, product = float(free_y @ free_y), float(free_y @ free_m)
    scale = 1.0
    if square > _LEAST * float(y @ y):
        scale = (product + math.sqrt(product**2 + 4 * square * (len(values) - 1))) / (2 * square)
    return scale, float(ones @ (m - scale * y) / (ones @ ones))
