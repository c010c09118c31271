"""Analytic gradients of a target's moments, against autograd of the moments."""

import pytest
import torch

from botorch_costly.models import TransferGP, task_ensemble
from botorch_costly.models.task_paths import TaskPaths
from tests.models.alike_tasks import alike_tasks, believed_similarity, points, truth


def close_to(tkwargs):
    tolerance = 1e-8 if tkwargs["dtype"] == torch.float64 else 2e-2
    return {"atol": tolerance, "rtol": tolerance}


def by_autograd(moments, X, factors):
    asked = X.clone().requires_grad_()
    mean, spread = moments(asked)
    total = (factors[0] * mean + factors[1] * spread).sum()
    return mean.detach(), spread.detach(), torch.autograd.grad(total, asked)[0]


def factors_of(shape, tkwargs):
    draws = torch.Generator().manual_seed(7)
    return torch.randn(2, *shape, generator=draws, dtype=torch.float64).to(**tkwargs)


@pytest.mark.parametrize("count", [0, 1, 9])
def test_a_target_has_the_slopes_of_autograd(count, tkwargs):
    tasks, similarity = alike_tasks(tkwargs), believed_similarity(tkwargs)
    X, asked = points(count, 11, tkwargs), points(5, 12, tkwargs)
    model = TransferGP(tasks, similarity, X, truth(X).unsqueeze(-1))
    factors = factors_of((5,), tkwargs)
    mean, std, slope = by_autograd(model.moments, asked, factors)
    ours = model.moments_and_vjp(5)(asked)
    torch.testing.assert_close((ours.mean, ours.spread), (mean, std), **close_to(tkwargs))
    torch.testing.assert_close(ours.vjp(*factors), slope, **close_to(tkwargs))


@pytest.mark.parametrize("at_once", [1, 2**20])
def test_tasks_have_the_slopes_of_autograd_in_any_runs(at_once, tkwargs, monkeypatch):
    tasks, asked = alike_tasks(tkwargs), points(4, 12, tkwargs)
    factors = factors_of((tasks.count, 4), tkwargs)
    mean, std, slope = by_autograd(tasks.moments, asked, factors)
    for name in ("_CHUNK_ON_CPU", "_CHUNK"):
        monkeypatch.setattr(task_ensemble, name, at_once)
    ours = tasks.moments_and_vjp(4)(asked)
    torch.testing.assert_close((ours.mean, ours.spread), (mean, std), **close_to(tkwargs))
    torch.testing.assert_close(ours.vjp(*factors), slope, **close_to(tkwargs))


def test_paths_have_the_slopes_of_autograd(tkwargs):
    tasks, asked = alike_tasks(tkwargs), points(4, 12, tkwargs).requires_grad_()
    paths = TaskPaths(tasks, 3, torch.Generator().manual_seed(1))
    value = paths(asked, task=1, path=2)
    (slope,) = torch.autograd.grad(value.sum(), asked)
    ours = paths.with_gradient(asked.detach(), task=1, path=2)
    torch.testing.assert_close(ours, (value.detach(), slope), **close_to(tkwargs))
