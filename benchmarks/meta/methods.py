"""Policies that choose from a finite list, with earlier tasks or without."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, Protocol

import torch
from botorch.acquisition.analytic import LogExpectedImprovement, _log_ei_helper
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from torch import Generator, Tensor

from benchmarks.harness.gaussian import fitted
from botorch_costly import ByEvidence, ByGaps
from botorch_costly.acquisition import TAF
from botorch_costly.models import RankWeightedGP, TaskEnsemble
from botorch_costly.models.task_paths import TaskPaths
from botorch_costly.numerics.portfolio import greedy_portfolio
from botorch_costly.tuners.transfer.belief import Told, alone
from botorch_costly.tuners.transfer.choice import sharing_of

_FIRST = 3  # random evaluations before there is a belief, of methods that know no tasks
_LONGEST = 20  # configurations of a portfolio
_BETA = 2.0  # factor of the standard deviation


class Setting(NamedTuple):
    """What a policy is given."""

    tasks: TaskEnsemble  # earlier ones, fitted
    points: Tensor  # to choose from, shape: (m, d)
    order: Tensor  # a random order of these, the same for all methods, shape: (m,)
    generator: Generator


class Policy(Protocol):
    """Chooses what is evaluated next."""

    def __call__(self, told: Told) -> Tensor:
        """Return how good each of the points would be, ``(m,)``; those told do not count."""


Method = Callable[[Setting], Policy]


def random(setting: Setting) -> Policy:
    """Choose in random order."""
    return lambda told: _first(setting, told)


def _first(setting: Setting, told: Told) -> Tensor:
    values = torch.zeros(len(setting.points), dtype=setting.points.dtype)
    values[setting.order] = torch.linspace(1, 0, len(values), dtype=values.dtype)
    return values


def gp_ucb(setting: Setting) -> Policy:
    """Choose by the upper bound of the target's own Gaussian process."""

    def policy(told: Told) -> Tensor:
        if len(told.values) < _FIRST:
            return _first(setting, told)
        mean, std = alone(told, setting.tasks.kernel).moments(setting.points)
        return mean + _BETA * std

    return policy


def gp_ts(setting: Setting) -> Policy:
    """Choose by a function drawn of the target's own Gaussian process."""

    def policy(told: Told) -> Tensor:
        if len(told.values) < _FIRST:
            return _first(setting, told)
        model = alone(told, setting.tasks.kernel).model
        return TaskPaths(model, 1, setting.generator)(setting.points, task=0, path=0)

    return policy


def log_ei(setting: Setting) -> Policy:
    """Choose by the expected improvement under the target's own Gaussian process."""

    def policy(told: Told) -> Tensor:
        if len(told.values) < _FIRST:
            return _first(setting, told)
        return _improvement(setting, told)

    return policy


def _improvement(setting: Setting, told: Told) -> Tensor:
    mean, std = alone(told, setting.tasks.kernel).moments(setting.points)
    return _log_ei_helper((mean - told.values.max()) / std) + std.log()


def portfolio(setting: Setting) -> Policy:
    """Choose by the greedy portfolio, and at random after it."""
    chosen = greedy_portfolio(setting.tasks.means(setting.points), _LONGEST)

    def policy(told: Told) -> Tensor:
        values = _first(setting, told)
        values[chosen.flip(0)] = torch.arange(2.0, 2.0 + len(chosen), dtype=values.dtype)
        return values

    return policy


def portfolio_then_log_ei(setting: Setting) -> Policy:
    """Begin with the greedy portfolio, and go on by expected improvement."""
    begin = portfolio(setting)

    def policy(told: Told) -> Tensor:
        return begin(told) if len(told.values) < _FIRST else _improvement(setting, told)

    return policy


def rgpe(setting: Setting) -> Policy:
    """Choose by expected improvement under the rank-weighted ensemble."""

    def policy(told: Told) -> Tensor:
        if not len(told.values):
            return setting.tasks.means(setting.points).mean(0)
        model = RankWeightedGP(setting.tasks, _fitted(told))
        return LogExpectedImprovement(model, told.values.max())(setting.points.unsqueeze(-2))

    return policy


def taf(setting: Setting) -> Policy:
    """Choose by the improvements that the target and the tasks predict."""

    def policy(told: Told) -> Tensor:
        if not len(told.values):
            return setting.tasks.means(setting.points).mean(0)
        seen = told.points, told.values.unsqueeze(-1)
        return TAF(_fitted(told), setting.tasks, *seen)(setting.points.unsqueeze(-2))

    return policy


def _fitted(told: Told) -> SingleTaskGP:
    values = told.values.unsqueeze(-1)
    model = SingleTaskGP(told.points, values, outcome_transform=Standardize(1))
    with torch.enable_grad():  # values that are all alike say nothing of hyperparameters
        return fitted(model) if float(values.max()) > float(values.min()) else model.eval()


class Robust:
    """The policy of ``TransferOptimizer``.

    Attributes:
        sharing: What decides on the share of the tasks.
    """

    def __init__(self, setting: Setting, options: ByEvidence | ByGaps) -> None:
        self._setting = setting
        self.sharing = sharing_of(setting.tasks, options)

    def __call__(self, told: Told) -> Tensor:
        """Return the acquisition function of the points, ``(m,)``."""
        self.sharing.learn(told)
        setting = self._setting
        return self.sharing.acquisition(told, setting.generator).at_pool(setting.points)


def robust(options: ByEvidence | ByGaps) -> Method:
    """Return the policy of ``TransferOptimizer`` with some options."""
    return partial(Robust, options=options)


METHODS: Mapping[str, Method] = {
    "random": random,
    "GP-UCB": gp_ucb,
    "LogEI": log_ei,
    "portfolio": portfolio,
    "portfolio, LogEI": portfolio_then_log_ei,
    "RGPE": rgpe,
    "TAF": taf,
    "TransferOptimizer": robust(ByEvidence()),
    "RM-GP-UCB": robust(ByGaps()),
    "RM-GP-UCB, own units": robust(ByGaps(own_units=True)),
    "RM-GP-TS": robust(ByGaps(thompson=True)),
}
