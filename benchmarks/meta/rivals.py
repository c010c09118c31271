"""Rivals: what chooses from a finite list without earlier tasks, and by other models of these.

Where a paper leaves the acquisition function open, it is the bound of plain GP-UCB with its factor, or
the expected improvement of plain LogEI, so that the beliefs differ and nothing else.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from torch import Generator, Tensor

from benchmarks.harness.gaussian import fitted
from botorch_costly.baselines import TAF, EmpiricalPriorGP, RankWeightedGP, ScaMLGP
from botorch_costly.models import TaskEnsemble
from botorch_costly.models.joint_gaussian import JointGaussian
from botorch_costly.models.task_paths import TaskPaths
from botorch_costly.numerics.improvement import log_expected_improvement
from botorch_costly.numerics.portfolio import greedy_portfolio
from botorch_costly.tuners.transfer.belief import TargetData, target_gp


class Setting(NamedTuple):
    """What a policy is given."""

    tasks: TaskEnsemble  # earlier ones, fitted
    points: Tensor  # to choose from, shape: (m, d)
    order: Tensor  # a random order of these, the same for all methods, shape: (m,)
    generator: Generator


class Policy(Protocol):
    """Chooses what is evaluated next."""

    def __call__(self, told: TargetData) -> Tensor:
        """Return how good each of the points would be, ``(m,)``; those told do not count."""


Method = Callable[[Setting], Policy]


def in_random_order(setting: Setting) -> Tensor:
    """Return numbers that fall along the random order, ``(m,)``."""
    values = torch.zeros(len(setting.points), dtype=setting.points.dtype)
    values[setting.order] = torch.linspace(1, 0, len(values), dtype=values.dtype)
    return values


def best_before(setting: Setting) -> Tensor:
    """Return the average of the standardized posterior means of the earlier tasks, ``(m,)``."""
    return setting.tasks.means(setting.points).mean(0)


FIRST = 3  # random evaluations before there is a belief, of methods that know no tasks
_LONGEST = 20  # configurations of a portfolio
_BETA = 2.0  # factor of the standard deviation


def random(setting: Setting) -> Policy:
    """Choose in random order."""
    return lambda told: in_random_order(setting)


def gp_ucb(setting: Setting) -> Policy:
    """Choose by the upper bound of the target's own Gaussian process."""

    def policy(told: TargetData) -> Tensor:
        if len(told.values) < FIRST:
            return in_random_order(setting)
        mean, std = target_gp(told, setting.tasks.kernel).moments(setting.points)
        return mean + _BETA * std

    return policy


def gp_ts(setting: Setting) -> Policy:
    """Choose by a function drawn of the target's own Gaussian process."""

    def policy(told: TargetData) -> Tensor:
        if len(told.values) < FIRST:
            return in_random_order(setting)
        model = target_gp(told, setting.tasks.kernel).model
        return TaskPaths(model, 1, setting.generator)(setting.points, task=0, path=0)

    return policy


def log_ei(setting: Setting) -> Policy:
    """Choose by the expected improvement under the target's own Gaussian process."""

    def policy(told: TargetData) -> Tensor:
        if len(told.values) < FIRST:
            return in_random_order(setting)
        return _improvement(setting, told)

    return policy


def _improvement(setting: Setting, told: TargetData) -> Tensor:
    return log_improvement(*target_gp(told, setting.tasks.kernel).moments(setting.points), told)


def log_improvement(mean: Tensor, std: Tensor, told: TargetData) -> Tensor:
    """Return the logarithm of the expected improvement over the best that was told, ``(m,)``."""
    return log_expected_improvement(mean, std, told.values.max())


def portfolio(setting: Setting) -> Policy:
    """Choose by the greedy portfolio, and at random after it."""
    chosen = greedy_portfolio(setting.tasks.means(setting.points), _LONGEST)

    def policy(told: TargetData) -> Tensor:
        values = in_random_order(setting)
        values[chosen.flip(0)] = torch.arange(2.0, 2.0 + len(chosen), dtype=values.dtype)
        return values

    return policy


def portfolio_then_log_ei(setting: Setting) -> Policy:
    """Begin with the greedy portfolio, and go on by expected improvement."""
    begin = portfolio(setting)

    def policy(told: TargetData) -> Tensor:
        return begin(told) if len(told.values) < FIRST else _improvement(setting, told)

    return policy


@runtime_checkable
class Weighed(Policy, Protocol):
    """Chooses by weights of the earlier tasks."""

    @property
    def weights(self) -> Tensor:
        """Weights of the earlier tasks in the latest choice, shape ``(tasks,)``."""


class RankWeighted:
    """Choose by expected improvement under the rank-weighted ensemble: RGPE.

    References:
        M. Feurer, B. Letham, E. Bakshy. Scalable meta-learning for Bayesian optimization using
        ranking-weighted Gaussian process ensembles. AutoML workshop at ICML 2018.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting, self.weights = setting, _even(setting)

    def __call__(self, told: TargetData) -> Tensor:
        if not len(told.values):
            return best_before(self._setting)
        model = RankWeightedGP(self._setting.tasks, _fitted(told))
        self.weights = model.weights[:-1]
        points = self._setting.points.unsqueeze(-2)
        improvement: Tensor = LogExpectedImprovement(model, told.values.max())(points)
        return improvement


class TransferImprovement:
    """Choose by the improvements that the target and the tasks predict: TAF.

    References:
        M. Wistuba, N. Schilling, L. Schmidt-Thieme. Scalable Gaussian process-based transfer surrogates
        for hyperparameter optimization. Machine Learning 107, 2018.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting, self.weights = setting, _even(setting)

    def __call__(self, told: TargetData) -> Tensor:
        if not len(told.values):
            return best_before(self._setting)
        seen = told.points, told.values.unsqueeze(-1)
        acquisition = TAF(_fitted(told), self._setting.tasks, *seen)
        self.weights = acquisition.task_weights
        improvement: Tensor = acquisition(self._setting.points.unsqueeze(-2))
        return improvement


def _even(setting: Setting) -> Tensor:
    """Return equal weights of the tasks, which decide the first choice."""
    count = setting.tasks.count
    return setting.points.new_full((count,), 1 / count)


def _fitted(told: TargetData) -> SingleTaskGP:
    values = told.values.unsqueeze(-1)
    model = SingleTaskGP(told.points, values, outcome_transform=Standardize(1))
    with torch.enable_grad():  # values that are all alike say nothing of hyperparameters
        return fitted(model) if float(values.max()) > float(values.min()) else model.eval()


def scaml_gp(setting: Setting) -> Policy:
    """Choose by the upper bound of a process whose prior is a weighted sum of the tasks' posteriors.

    The weights are learnt anew at each evaluation.

    References:
        P. Tighineanu et al. Scalable meta-learning with Gaussian processes. AISTATS 2024.
    """

    def policy(told: TargetData) -> Tensor:
        model = ScaMLGP(setting.tasks, told.points, told.values.unsqueeze(-1)).fit()
        return _bound(model, setting.points)

    return policy


def pem_bo(setting: Setting) -> Policy:
    """Choose by the upper bound of a process with the tasks' empirical mean and covariance.

    The estimate needs the value of each task at each configuration of the list, in the units of the
    values. A task that has not observed just this list has the means of its own Gaussian process there.
    It also needs more tasks than observations: of ``N`` tasks, the latest ``N - 2`` observations count.
    The paper's own factor of the standard deviation rests on a confidence level; that of plain GP-UCB is
    used.

    References:
        Z. Wang, B. Kim, L. P. Kaelbling. Regret bounds for meta Bayesian optimization with an unknown
        Gaussian process prior. NeurIPS 2018, section 4.1.
    """
    values, points = on_list(setting.tasks, setting.points), setting.points
    numbers = torch.arange(len(points)).to(points).unsqueeze(-1)

    def policy(told: TargetData) -> Tensor:
        latest = slice(max(0, len(told.values) - (len(values) - 2)), None)
        asked = (told.points[latest].unsqueeze(1) == points).all(-1).long().argmax(-1)
        model = EmpiricalPriorGP(values, numbers[asked], told.values[latest].unsqueeze(-1))
        return _bound(model, numbers)

    return policy


def on_list(tasks: TaskEnsemble, points: Tensor) -> Tensor:
    """Return the value of each task at each point, in its units, ``tasks x m``; if need be believed."""
    believed = tasks.means(points)
    for number, (x, y, seen) in enumerate(zip(*tasks.rows, strict=True)):
        if torch.equal(x[seen], points):
            believed[number] = y[seen]
    return tasks.offset.unsqueeze(-1) + tasks.scale.unsqueeze(-1) * believed


def _bound(model: JointGaussian, points: Tensor) -> Tensor:
    """Return upper bounds of points, each alone, ``(m,)``."""
    posterior = model.posterior(points.unsqueeze(-2))
    return (posterior.mean + _BETA * posterior.variance.sqrt()).flatten()
