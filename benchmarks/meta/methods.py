"""Policies that choose from a finite list, with earlier tasks or without."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import torch
from botorch.acquisition.analytic import _log_ei_helper
from torch import Generator, Tensor

from botorch_costly import ByEvidence, ByGaps
from botorch_costly.models import TaskEnsemble
from botorch_costly.tuners.transfer.belief import Told, alone
from botorch_costly.tuners.transfer.choice import sharing_of

_FIRST = 3  # random evaluations before there is a belief, of methods that know no tasks
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
        mean, std = alone(told, "matern52").moments(setting.points)
        return mean + _BETA * std

    return policy


def log_ei(setting: Setting) -> Policy:
    """Choose by the expected improvement under the target's own Gaussian process."""

    def policy(told: Told) -> Tensor:
        if len(told.values) < _FIRST:
            return _first(setting, told)
        return _improvement(setting, told)

    return policy


def _improvement(setting: Setting, told: Told) -> Tensor:
    mean, std = alone(told, "matern52").moments(setting.points)
    return _log_ei_helper((mean - told.values.max()) / std) + std.log()


def _portfolio(setting: Setting) -> Tensor:
    """Return configurations that are good for some task each, ``(k,)``.

    The next one lowers most the mean over tasks of the best regret so far.
    """
    mean = setting.tasks.means(setting.points)
    high, low = mean.amax(-1, keepdim=True), mean.amin(-1, keepdim=True)
    regrets = (high - mean) / (high - low).clamp_min(1e-12)
    best, chosen = torch.ones_like(regrets[:, :1]), []
    for _ in range(20):
        chosen.append(torch.minimum(best, regrets).mean(0).argmin())
        best = torch.minimum(best, regrets[:, chosen[-1]].unsqueeze(-1))
    return torch.stack(chosen)


def portfolio(setting: Setting) -> Policy:
    """Choose by the greedy portfolio, and at random after it."""
    chosen = _portfolio(setting)

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


def robust(options: ByEvidence | ByGaps) -> Method:
    """Return the policy of ``TransferOptimizer`` with some options."""

    def method(setting: Setting) -> Policy:
        sharing = sharing_of(setting.tasks, options)

        def policy(told: Told) -> Tensor:
            sharing.learn(told)
            return sharing.acquisition(told, setting.generator).at_pool(setting.points)

        return policy

    return method


METHODS: Mapping[str, Method] = {
    "random": random,
    "GP-UCB": gp_ucb,
    "LogEI": log_ei,
    "portfolio": portfolio,
    "portfolio, LogEI": portfolio_then_log_ei,
    "TransferOptimizer": robust(ByEvidence()),
    "RM-GP-UCB": robust(ByGaps()),
    "RM-GP-UCB, own units": robust(ByGaps(own_units=True)),
    "RM-GP-TS": robust(ByGaps(thompson=True)),
}
