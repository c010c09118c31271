"""The process of all tasks: against dense solves, its thinned rows, and when it learns."""

import numpy as np
import pytest
import torch

from benchmarks.harness import gaussian
from benchmarks.meta import multi_task
from benchmarks.meta.multi_task import MultiTask
from benchmarks.meta.rivals import Setting
from botorch_costly.models import TaskEnsemble
from botorch_costly.tuners.transfer.belief import TargetData
from tests.oracles import transfer as oracle

DOUBLE = {"dtype": torch.float64}


def setting_of(counts, seed=0):
    draws = torch.Generator().manual_seed(seed)
    inputs = [torch.rand(n, 2, generator=draws, **DOUBLE) for n in counts]
    values = [(k + 1) * ((4 + k) * X).sin().sum(-1) + 3 * k for k, X in enumerate(inputs)]
    points = torch.rand(12, 2, generator=draws, **DOUBLE)
    return Setting(TaskEnsemble(inputs, values), points, torch.arange(12), draws)


def told_of(setting, count):
    points = setting.points[:count]
    return TargetData(points, 10 * (5 * points).sin().sum(-1) - 40)


@pytest.fixture
def few_steps(monkeypatch):
    monkeypatch.setattr(multi_task, "STEPS", (15, 5))


def standardized(rows, tasks):
    """Values task by task with mean 0 and standard deviation 1, and the units of each."""
    units = {}
    for task in set(tasks):
        own = [y for y, t in zip(rows, tasks, strict=True) if t == task]
        units[task] = np.mean(own), np.std(own, ddof=1) if len(own) > 1 else 1.0
    return [(y - units[t][0]) / units[t][1] for y, t in zip(rows, tasks, strict=True)], units


@pytest.mark.parametrize("count", [1, 4])
def test_the_posterior_is_that_of_dense_solves(count, few_steps):
    setting = setting_of((9, 7))
    told = told_of(setting, count)
    policy = MultiTask(setting)
    model = policy.model(told)
    with torch.no_grad():
        found = [part.numpy() for part in policy.moments(model)]
        between = model.covar_module.kernels[1].covar_matrix.numpy()
        means = [float(mean.constant) for mean in model.mean_module.base_means]
        cov = oracle.squared_exponential(model.covar_module.kernels[0].lengthscale[0].tolist())
        noises = model.likelihood.noise.flatten().tolist()
    rows, values = policy.rows
    x = [*rows[:, :2].tolist(), *told.points.tolist()]
    tasks = [*rows[:, 2].long().tolist(), *[2] * count]
    y, units = standardized([*values.tolist(), *told.values.tolist()], tasks)
    parts = between, means, noises, x, tasks, y, setting.points.tolist(), 2
    mean, variance = oracle.multi_task_posterior(cov, *parts)
    offset, scale = units[2]
    np.testing.assert_allclose(found[0], offset + scale * mean, rtol=1e-3, atol=1e-3 * scale)
    np.testing.assert_allclose(found[1] ** 2, scale**2 * variance, rtol=1e-2, atol=1e-3 * scale**2)


def test_correlations_are_positive_and_means_and_scales_are_learnt(few_steps):
    setting = setting_of((9, 7))
    begin = MultiTask(setting)._unfitted(told_of(setting, 4))
    model = MultiTask(setting).model(told_of(setting, 4))
    between = model.covar_module.kernels[1].covar_matrix
    assert between.min() > 0
    assert float(between[0, 0].detach()) == pytest.approx(1.0)
    assert abs(float(between[2, 2].detach()) - 1) > 1e-3  # BoTorch would fix that of the first task
    constants = [float(mean.constant.detach()) for mean in model.mean_module.base_means]
    assert len(set(constants)) == 3
    assert all(float(mean.constant.detach()) == 0 for mean in begin.mean_module.base_means)


def test_of_many_rows_as_many_of_each_task_are_kept_evenly_spread(monkeypatch):
    monkeypatch.setattr(multi_task, "MOST_ROWS", 16)
    setting = setting_of((22, 3, 8))
    inputs, _ = MultiTask(setting).rows
    expected = [(0, k) for k in (0, 5, 10, 16, 21)] + [(1, k) for k in range(3)]
    expected += [(2, k) for k in (0, 2, 4, 5, 7)]
    whole = setting.tasks.inputs
    torch.testing.assert_close(inputs[:, :2], torch.stack([whole[t, k] for t, k in expected]))
    assert inputs[:, 2].tolist() == [float(t) for t, _ in expected]


def test_it_learns_anew_when_there_is_half_as_much_again_and_leaves_the_randomness(monkeypatch):
    learnt = []
    monkeypatch.setattr(gaussian, "fit_gpytorch_mll", lambda *a, **options: learnt.append(options))
    setting = setting_of((5, 4))
    policy, state = MultiTask(setting), torch.get_rng_state()
    at = []
    for count in range(12):
        before = len(learnt)
        values = policy(told_of(setting, count))
        assert bool(values.isfinite().all())
        at += [count] * (len(learnt) - before)
    assert at == [1, 2, 3, 5, 8]
    steps = [options["optimizer_kwargs"]["options"]["maxiter"] for options in learnt]
    assert steps == [150, 40, 40, 40, 40]
    assert torch.equal(state, torch.get_rng_state())


def test_a_task_like_the_target_shows_where_it_is_best(few_steps):
    setting = setting_of((30,))
    truth = (4 * setting.points).sin().sum(-1)
    rows = truth.argsort()[[1, 4, 7]]
    values = MultiTask(setting)(TargetData(setting.points[rows], truth[rows]))
    assert values.argmax() == truth.argmax()
