"""DyHPO's choice rule: the configuration with the best next step trains one step further.

The expected improvement of a configuration after one more step is taken over the best reward that any
training has shown at that step, or the best of all where there is none. New configurations compete with
those that go on.

The paper's model is a Gaussian process on features that a network computes from configuration, budget
and curve. This one has no network: BoTorch's default Gaussian process sees the configuration, the share
and the last two rewards of the curve before that step, in shares of the range of all rewards and 0 where
there are none. Its hyperparameters are fitted anew when the rows have grown by a fifth, and it is
conditioned on each step. The first three steps begin three configurations at random.

References:
    M. Wistuba, A. Kadra, J. Grabocka. Supervising the multi-fidelity dimension of hyperparameter
    optimization. NeurIPS 2022: the multi-fidelity expected improvement, and the algorithm around it.
"""

import math
from typing import Any

import torch
from botorch.models import SingleTaskGP
from botorch.settings import validate_input_scaling
from torch import Generator, Tensor

from benchmarks.curves.play import SHARES, Ask, Steps
from benchmarks.curves.stepwise import AT_FIRST, GROWTH, MOST_STEPS, Stepwise, grid_shares
from benchmarks.harness.gaussian import fitted
from botorch_costly.numerics.improvement import log_expected_improvement
from botorch_costly.problems import CurveProblem

_LEAST = 1e-9


def dyhpo(problem: CurveProblem, seed: int, budget: float) -> Steps:
    """Train, a step further, the configuration whose next step promises most."""
    run, model = Stepwise(problem, Generator().manual_seed(seed)), _NextSteps(problem.inputs)
    while choice := run.choice():
        config = choice[0]
        if len(run.curves) >= AT_FIRST and run.best > -math.inf:
            table, steps = run.table(), [run.done.get(c, 0) for c in choice]
            mean, sd = model.moments(table, choice, steps)
            gain = log_expected_improvement(mean, sd, thresholds(table)[steps])
            config = choice[int(gain.argmax())]
        segment = yield Ask(config, run.next_stop(config))
        run.told(config, segment)


def thresholds(table: Tensor) -> Tensor:
    """Return the best reward at each step, or of all where there is none, shape ``grid``.

    Args:
        table: Curves ``n x grid``, NaN where nothing was seen.
    """
    seen = table.nan_to_num(-math.inf).amax(0)
    return torch.where(seen > -math.inf, seen, seen.max())


def step_inputs(X: Tensor, table: Tensor) -> Tensor:
    """Return what the model sees of each configuration at each step, ``n x grid x (d + 3)``.

    Args:
        X: Configurations ``n x d``.
        table: Their curves ``n x grid``, NaN where nothing was seen.
    """
    seen = table[~table.isnan()]
    low, high = seen.min(), seen.max()
    levels = ((table - low) / (high - low).clamp_min(_LEAST)).nan_to_num(0.0)
    last, before = (
        torch.nn.functional.pad(levels[:, :-lag], (lag, 0)).unsqueeze(-1) for lag in (1, 2)
    )
    share = grid_shares().expand(len(X), -1).unsqueeze(-1)
    return torch.cat([X.unsqueeze(1).expand(-1, SHARES, -1), share, last, before], -1)


class _NextSteps:
    """A Gaussian process of rewards, given the curve before them."""

    def __init__(self, X: Tensor) -> None:
        self._X = X
        self._hyperparameters: dict[str, Any] | None = None
        self._at_fit = 0

    def moments(self, table: Tensor, choice: list[int], steps: list[int]) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of the rewards of configurations at steps from 0."""
        rows, observed = step_inputs(self._X, table), ~table.isnan()
        seen = table[observed]
        centre, unit = seen.mean(), seen.std().clamp_min(_LEAST)
        targets = ((seen - centre) / unit).unsqueeze(-1)
        with validate_input_scaling(False):  # rewards may all be equal at first
            model = SingleTaskGP(rows[observed], targets, outcome_transform=None)
        model = self._conditioned(model)
        with torch.no_grad():
            posterior = model.posterior(rows[choice, steps].unsqueeze(-2))
        mean, variance = posterior.mean.flatten(), posterior.variance.flatten()
        return centre + unit * mean, (unit * variance.sqrt()).clamp_min(_LEAST)

    def _conditioned(self, model: SingleTaskGP) -> SingleTaskGP:
        """Return the model with the last hyperparameters, or new ones when it has grown enough."""
        rows = len(model.train_targets)
        if self._hyperparameters is not None:
            model.load_state_dict(self._hyperparameters)
        if rows >= GROWTH * self._at_fit:
            fitted(model, steps=MOST_STEPS)
            self._hyperparameters, self._at_fit = model.state_dict(), rows
        return model.eval()
