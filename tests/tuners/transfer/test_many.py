"""Searches of more than a hundred evaluations: their factor grows row by row, and the tasks are past."""

import copy

import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.models import TaskEnsemble
from botorch_costly.task_encoding import representative
from botorch_costly.tuners.transfer.belief import OwnMemory, TargetData
from tests.tuners.transfer.test_outliers import SPACE, STUDIES, value

RULES = [bc.ByEvidence(decay=0.8), bc.ByGaps(), bc.ByGaps(thompson=True, paths=4)]


def filled(count, robust, **options):
    optimizer = bc.TransferOptimizer(SPACE, STUDIES, robust=robust, **options)
    for point in SPACE.sample(count, torch.Generator().manual_seed(5)):
        asked = optimizer.enqueue(SPACE.decode(point))
        optimizer.tell(asked, value(asked.config))
    return optimizer


def step(optimizer):
    asked = optimizer.ask()
    optimizer.tell(asked, value(asked.config))
    return asked


@pytest.mark.parametrize("robust", RULES)
def test_a_long_run_goes_on_from_a_state_to_the_bit(robust):
    optimizer = filled(104, robust)
    step(optimizer)
    step(optimizer)
    again = bc.TransferOptimizer(SPACE, STUDIES, robust=robust)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for _ in range(3):
        assert step(optimizer) == step(again)
    pair = [torch.stack(one.predict([{"x": 0.3, "y": 0.4}])) for one in (optimizer, again)]
    assert torch.equal(*pair)


@pytest.mark.parametrize("robust", RULES)
def test_a_long_run_finds_the_optimum(robust):
    optimizer = filled(101, robust)
    for _ in range(4):
        step(optimizer)
    assert value(optimizer.best()) > -5e-4  # the best of 101 random points: -2e-3


def test_tasks_without_a_share_are_no_longer_read(monkeypatch):
    optimizer = filled(101, bc.ByEvidence(decay=0.8))
    step(optimizer)
    monkeypatch.setattr(optimizer._strategy.weighting._doubts, "trusted", None)
    assert "own" in step(optimizer).reason
    assert optimizer.share < 1e-4


def data_of(count, swapped=False):
    points = torch.rand(count, 2, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    if swapped:
        points[[2, 3]] = points[[3, 2]]
    return TargetData(points, -(points - 0.4).square().sum(-1))


@pytest.mark.parametrize("swapped", [False, True])
def test_the_model_of_many_values_is_that_of_a_factorization(swapped):
    memory = OwnMemory("matern52")
    memory.learn(data_of(101))
    data = data_of(104, swapped)
    model = memory.learn(data).model
    again = TaskEnsemble([data.points], [data.values], theta=model.theta)
    X = torch.rand(5, 2, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    for ours, theirs in zip(model.moments(X), again.moments(X), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


def test_hyperparameters_of_many_values_are_fitted_when_their_number_has_grown():
    memory = OwnMemory("matern52")
    thetas = [memory.learn(data_of(count)).model.theta for count in (104, 105, 109, 110)]
    assert torch.equal(thetas[0], thetas[1])
    assert torch.equal(thetas[0], thetas[2])
    assert not torch.equal(thetas[0], thetas[3])


def test_of_a_huge_study_some_values_are_read_the_best_among_them():
    X = torch.rand(4000, 2, generator=torch.Generator().manual_seed(8), dtype=torch.float64)
    values = -(X - 0.4).square().sum(-1)
    points, some = representative(X, values)
    assert len(points) == len(some) == 1500
    assert {float(values.max()), float(values.min())} <= set(some.tolist())
    torch.testing.assert_close(some, -(points - 0.4).square().sum(-1))
    for share in (0.1, 0.5, 0.9):
        assert float(some.quantile(share)) == pytest.approx(float(values.quantile(share)), abs=0.01)
    assert torch.equal(representative(X[:1500], values[:1500])[1], values[:1500])


def test_a_root_of_another_size_is_refused():
    data = data_of(3)
    with pytest.raises(errors.InvalidShapeError, match="root"):
        TaskEnsemble([data.points], [data.values], root=torch.eye(2, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_many_crowded_values_are_predicted_in_either_precision(dtype):
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(125, 2, generator=generator, dtype=torch.float64)
    X[60:120] = 0.4 + 0.01 * torch.randn(60, 2, generator=generator, dtype=torch.float64)
    X = X.to(dtype)
    y = (X - 0.4).square().sum(-1)
    memory = OwnMemory("matern52")
    memory.learn(TargetData(X[:100], y[:100]))
    means, _ = memory.learn(TargetData(X[:104], y[:104])).moments(X[:60])
    assert float((means - y[:60]).abs().max()) < 0.05
