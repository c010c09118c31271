"""A target that resembles a weighted sum of tasks: against one joint Gaussian over all its parts."""

import math

import pytest
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.optim import optimize_acqf

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.models import TaskEnsemble, TransferGP, learn_similarity
from botorch_costly.models.similarity import _held_out
from tests.models.alike_tasks import alike_tasks, believed_similarity, points, truth
from tests.oracles import tasks as oracle
from tests.oracles.dense_gp import matern


@pytest.fixture
def tasks(tkwargs):
    return alike_tasks(tkwargs)


@pytest.fixture
def similarity(tkwargs):
    return believed_similarity(tkwargs)


def test_the_posterior_is_that_of_one_joint_gaussian(tasks, similarity, tkwargs):
    X = points(7, 11, tkwargs)
    rows = [0, 3, 5]
    values = truth(X)[rows]
    model = TransferGP(tasks, similarity, X[rows], values.unsqueeze(-1))
    mean, std = model.moments(X)
    task_moments = tasks.moments(X)
    like = [tensor.double().cpu() for tensor in (task_moments.mean, task_moments.std, X, values)]
    alike = matern(like[2], like[2], similarity.lengthscale.double().cpu())
    theirs = oracle.transfer_moments(
        *like[:2], similarity, alike, like[3], rows, model.units, float(model.scale)
    )
    tolerance = 1e-8 if tkwargs["dtype"] == torch.float64 else 2e-3
    torch.testing.assert_close(mean.double().cpu(), theirs[0], atol=tolerance, rtol=0)
    torch.testing.assert_close(std.double().cpu(), theirs[1], atol=tolerance, rtol=tolerance)


def test_moments_are_the_diagonal_of_the_posterior(tasks, similarity, tkwargs):
    X = points(4, 12, tkwargs)
    model = TransferGP(tasks, similarity, X[:2], truth(X)[:2].unsqueeze(-1))
    posterior, (mean, std) = model.posterior(X), model.moments(X)
    tolerance = 1e-6 if tkwargs["dtype"] == torch.float64 else 1e-2
    torch.testing.assert_close(posterior.mean.squeeze(-1), mean)
    close = {"atol": tolerance, "rtol": tolerance}
    torch.testing.assert_close(posterior.variance.squeeze(-1).sqrt(), std, **close)
    batched = model.posterior(X.unsqueeze(-2)).mean.flatten()
    torch.testing.assert_close(batched, mean)


def test_without_observations_it_is_what_the_tasks_say(tasks, similarity, tkwargs):
    X = points(30, 13, tkwargs)
    nothing = X[:0], X.new_zeros(0, 1)
    model = TransferGP(tasks, similarity, *nothing)
    mean, std = model.moments(X)
    assert torch.corrcoef(torch.stack([mean, truth(X)]))[0, 1] > 0.95
    assert (std > 0).all()
    assert model.log_evidence == 0.0
    torch.testing.assert_close(
        model.weights, model.weights.new_full((3,), float(similarity.level) / 3)
    )


def test_observations_come_one_by_one_or_at_once(tasks, similarity, tkwargs):
    X = points(6, 14, tkwargs)
    Y = truth(X).unsqueeze(-1)
    model = TransferGP(tasks, similarity, X[:2], Y[:2])
    later = model.condition_on_observations(X[2:], Y[2:])
    once = TransferGP(tasks, similarity, X, Y)
    torch.testing.assert_close(later.moments(X)[0], once.moments(X)[0])
    assert later.log_evidence == pytest.approx(once.log_evidence, rel=1e-4)


def test_tasks_that_all_say_the_opposite_are_turned_round(tkwargs):
    inputs = [points(25, seed, tkwargs) for seed in range(4)]
    tasks = TaskEnsemble(inputs, [truth(x, -1.0) for x in inputs]).fit()
    X, Y = points(8, 21, tkwargs), truth(points(8, 21, tkwargs)).unsqueeze(-1)
    model = TransferGP(tasks, learn_similarity(tasks), X, Y)
    asked = points(40, 22, tkwargs)
    assert torch.corrcoef(torch.stack([model.moments(asked)[0], truth(asked)]))[0, 1] > 0.9
    assert model.weights.sum() < 0


def test_values_in_other_units_change_the_units_alone(tasks, similarity, tkwargs):
    X = points(9, 15, tkwargs)
    Y, asked = truth(X).unsqueeze(-1), points(5, 16, tkwargs)
    factor = math.exp(tasks.scale.log().std() * 0.6)  # one step of the grid of scales
    ours = TransferGP(tasks, similarity, X, Y).moments(asked)[0]
    theirs = TransferGP(tasks, similarity, X, factor * Y + 0.2).moments(asked)[0]
    assert torch.corrcoef(torch.stack([ours, theirs]))[0, 1] > 0.99


def test_gradients_are_finite_differences(tasks, similarity, tkwargs):
    if tkwargs["dtype"] == torch.float32:
        pytest.skip("differences of single precision say little")
    X = points(3, 17, tkwargs)
    model = TransferGP(tasks, similarity, X, truth(X).unsqueeze(-1))
    asked = points(2, 18, tkwargs).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: tuple(model.moments(x)), asked, atol=1e-5)


def test_acquisition_functions_of_botorch_take_it(tasks, similarity, tkwargs):
    X = points(5, 19, tkwargs)
    model = TransferGP(tasks, similarity, X, truth(X).unsqueeze(-1))
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], **tkwargs)
    acquisition = LogExpectedImprovement(model, truth(X).max())
    best, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=4, raw_samples=32)
    assert truth(best) > truth(X).max()


def test_tasks_that_resemble_each_other_are_believed(tasks):
    learnt = learn_similarity(tasks)
    assert 0.7 < float(learnt.level) < 1.6
    assert float(learnt.own + learnt.noise) < 0.6


def test_each_task_in_turn_is_told_by_all_the_others(tasks):
    held = _held_out(tasks)
    for k in range(3):
        others = [j for j in range(3) if j != k]
        seen = tasks.seen[k]
        mean, std = tasks.moments(tasks.inputs[k, seen])
        close = {"atol": 1e-6, "rtol": 1e-4}
        torch.testing.assert_close(held.means[k, seen], mean[others].mT.double(), **close)
        expected = std[others].square().sum(0).double()
        torch.testing.assert_close(held.variance[k, seen], expected, **close)


def test_tasks_that_do_not_are_not(tkwargs):
    draws = torch.Generator().manual_seed(5)
    inputs = [points(20, seed, tkwargs) for seed in range(6)]
    values = [torch.randn(20, generator=draws, dtype=torch.float64).to(**tkwargs) for _ in inputs]
    learnt = learn_similarity(TaskEnsemble(inputs, values).fit())
    assert float(learnt.own + learnt.noise) > 0.3
    # What single tasks are weighted by explains little of what is seen.
    alike = learn_similarity(TaskEnsemble(inputs, [truth(x) for x in inputs]).fit())
    assert float(learnt.own + learnt.noise) > 5 * float(alike.own + alike.noise)


def test_a_single_task_has_a_typical_similarity(tkwargs):
    x = points(10, 1, tkwargs)
    tasks = TaskEnsemble([x], [truth(x)]).fit()
    learnt = learn_similarity(tasks)
    assert float(learnt.level) == pytest.approx(0.87, rel=1e-5)
    torch.testing.assert_close(learnt.lengthscale, tasks.lengthscale[0])


BAD = {
    "rows": lambda X, Y: (X, Y[:-1]),
    "columns": lambda X, Y: (X[:, :1], Y),
    "outputs": lambda X, Y: (X, Y.repeat(1, 2)),
}


@pytest.mark.parametrize("case", BAD)
def test_shapes_that_do_not_fit_are_refused(case, tasks, similarity, tkwargs):
    X = points(4, 1, tkwargs)
    with pytest.raises(InvalidShapeError, match="Expected"):
        TransferGP(tasks, similarity, *BAD[case](X, truth(X).unsqueeze(-1)))


def test_numbers_that_are_not_finite_are_refused(tasks, similarity, tkwargs):
    X = points(4, 1, tkwargs)
    with pytest.raises(InvalidArgumentError, match="finite"):
        TransferGP(tasks, similarity, X, torch.full((4, 1), math.nan, **tkwargs))
