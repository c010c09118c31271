"""Earlier tasks in one batch give the results of single tasks, whatever their sizes."""

import math

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.models import TaskEnsemble, task_ensemble, task_fitting
from tests.oracles import tasks as oracle

SIZES = (12, 1, 7)


def inputs_and_values(tkwargs, sizes=SIZES, seed=0):
    draws = torch.Generator().manual_seed(seed)
    inputs = [torch.rand(n, 2, generator=draws, dtype=torch.float64) for n in sizes]
    values = [10 * k + (5 * x[:, 0]).sin() + x[:, 1] for k, x in enumerate(inputs)]
    return [x.to(**tkwargs) for x in inputs], [y.to(**tkwargs) for y in values]


@pytest.fixture
def asked(tkwargs):
    return torch.rand(5, 2, generator=torch.Generator().manual_seed(9), dtype=torch.float64).to(
        **tkwargs
    )


def test_moments_are_those_of_each_task_alone(asked, tkwargs):
    inputs, values = inputs_and_values(tkwargs)
    tasks = TaskEnsemble(inputs, values).fit()
    mean, std = tasks.moments(asked)
    torch.testing.assert_close(tasks.means(asked), mean)
    tolerance = 1e-7 if tkwargs["dtype"] == torch.float64 else 2e-3
    for k, (x, y) in enumerate(zip(inputs, values, strict=True)):
        z = (y - tasks.offset[k]) / tasks.scale[k]
        hyper = tasks.lengthscale[k], float(tasks.variance[k]), float(tasks.noise[k])
        theirs = oracle.gp_moments(
            x.double().cpu(),
            z.double().cpu(),
            hyper[0].double().cpu(),
            *hyper[1:],
            asked.double().cpu(),
        )
        torch.testing.assert_close(mean[k].double().cpu(), theirs[0], atol=tolerance, rtol=0)
        torch.testing.assert_close(std[k].double().cpu(), theirs[1], atol=tolerance, rtol=0)
    assert mean.dtype == tkwargs["dtype"]


@pytest.mark.parametrize("waves", [10, 16, 20])
def test_detail_is_not_taken_for_noise(waves, tkwargs):
    X = torch.linspace(0, 1, 20, dtype=torch.float64).unsqueeze(-1).to(**tkwargs)
    tasks = TaskEnsemble([X], [(waves * X.squeeze(-1)).sin()]).fit()
    assert float(tasks.noise) < 0.05
    assert float(tasks.lengthscale) < 1


def test_a_fit_makes_no_task_less_probable(tkwargs):
    inputs, values = inputs_and_values(tkwargs)
    tasks = TaskEnsemble(inputs, values)

    def densities():
        rows = task_ensemble.Padded(tasks.inputs.double(), tasks.targets.double(), tasks.seen)
        value, _ = task_fitting.posterior_of(tasks.kernel, rows)(tasks.theta.double().unsqueeze(-2))
        return value.squeeze(-1)

    before = densities()
    tasks.fit()
    assert (densities() >= before - 1e-5).all()
    assert densities()[0] > before[0] + 0.1


def test_a_fit_of_many_tasks_is_that_of_each(tkwargs):
    if tkwargs["dtype"] == torch.float32:
        pytest.skip("where a search ends depends on rounding")
    inputs, values = inputs_and_values(tkwargs)
    together = TaskEnsemble(inputs, values).fit()
    for k in range(len(SIZES)):
        alone = TaskEnsemble(inputs[k : k + 1], values[k : k + 1]).fit()
        torch.testing.assert_close(together.theta[k], alone.theta[0], atol=2e-2, rtol=0)


def test_memory_is_bounded_and_changes_nothing(asked, tkwargs, monkeypatch):
    inputs, values = inputs_and_values(tkwargs)
    whole = TaskEnsemble(inputs, values)
    moments, joint = whole.moments(asked), whole.joint(asked)
    torch.testing.assert_close(whole.covariances(asked, asked[1:3]), joint[1][..., 1:3])
    for name in ("_CHUNK_ON_CPU", "_CHUNK"):
        monkeypatch.setattr(task_ensemble, name, 1)
    parts = TaskEnsemble(inputs, values)
    torch.testing.assert_close(tuple(parts.moments(asked)), tuple(moments))
    torch.testing.assert_close(parts.joint(asked), joint)
    torch.testing.assert_close(parts.covariances(asked, asked[:2]), joint[1][..., :2])


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_joint_posteriors_have_the_moments_and_the_covariances_of_each_task(batch, tkwargs):
    tasks = TaskEnsemble(*inputs_and_values(tkwargs)).fit()
    draws = torch.Generator().manual_seed(3)
    X = torch.rand(*batch, 4, 2, generator=draws, dtype=torch.float64).to(**tkwargs)
    means, covs = tasks.joint(X)
    shape = (3, *batch, 4)
    assert (means.shape, covs.shape) == (shape, (*shape, 4))
    mean, std = tasks.moments(X.reshape(-1, 2))
    tolerance = 1e-9 if tkwargs["dtype"] == torch.float64 else 1e-4
    variances = covs.diagonal(dim1=-2, dim2=-1)
    torch.testing.assert_close(means, mean.reshape(shape), atol=tolerance, rtol=0)
    torch.testing.assert_close(variances, std.square().reshape(shape), atol=tolerance, rtol=0)
    for k in range(3):
        x = tasks.inputs[k, tasks.seen[k]].double().cpu()
        hyper = tasks.lengthscale[k].double().cpu(), float(tasks.variance[k]), float(tasks.noise[k])
        parts = zip(X.reshape(-1, 4, 2).double().cpu(), covs[k].reshape(-1, 4, 4), strict=True)
        for points, cov in parts:
            theirs = oracle.gp_covariance(x, *hyper, points)
            torch.testing.assert_close(
                cov.double().cpu(), theirs, atol=max(tolerance, 1e-7), rtol=0
            )


def test_a_subset_is_what_those_tasks_were(asked, tkwargs):
    tasks = TaskEnsemble(*inputs_and_values(tkwargs)).fit()
    some = tasks.subset([2, 0])
    assert some.count == 2
    torch.testing.assert_close(some.moments(asked).mean, tasks.moments(asked).mean[[2, 0]])
    assert torch.equal(some.offset, tasks.offset[[2, 0]])


def test_moments_have_the_gradient_of_finite_differences(tkwargs):
    if tkwargs["dtype"] == torch.float32:
        pytest.skip("differences of single precision say little")
    tasks = TaskEnsemble(*inputs_and_values(tkwargs)).fit()
    X = torch.full((1, 2), 0.37, **tkwargs).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: tuple(tasks.moments(x)), X, atol=1e-5)


@pytest.mark.parametrize("constant", [0.0, 1e8, -3.0])
def test_constant_values_say_that_all_is_average(constant, asked, tkwargs):
    x = torch.rand(6, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    tasks = TaskEnsemble([x.to(**tkwargs)], [torch.full((6,), constant, **tkwargs)]).fit()
    mean, std = tasks.moments(asked)
    torch.testing.assert_close(mean, torch.zeros_like(mean))
    assert std.isfinite().all()
    assert float(tasks.scale) == 1.0
    assert float(tasks.offset) == pytest.approx(constant)


def test_values_that_come_twice_are_no_failure(asked, tkwargs):
    inputs, values = inputs_and_values(tkwargs, (6,))
    twice = TaskEnsemble([inputs[0].repeat(4, 1)], [values[0].repeat(4)]).fit()
    assert twice.moments(asked).mean.isfinite().all()


BAD = {
    "none": lambda x, y: ([], []),
    "lengths": lambda x, y: ([x], [y[:-1]]),
    "empty": lambda x, y: ([x[:0]], [y[:0]]),
    "tasks": lambda x, y: ([x, x], [y]),
    "columns": lambda x, y: ([x, x[:, :1]], [y, y]),
    "dtypes": lambda x, y: ([x, x.half()], [y, y.half()]),
}


@pytest.mark.parametrize("case", BAD)
def test_what_does_not_fit_is_refused(case, tkwargs):
    inputs, values = inputs_and_values(tkwargs, (5,))
    with pytest.raises(InvalidShapeError, match="Expected"):
        TaskEnsemble(*BAD[case](inputs[0], values[0]))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("where", ["inputs", "values"])
def test_numbers_that_are_not_finite_are_refused(bad, where, tkwargs):
    (x,), (y,) = inputs_and_values(tkwargs, (5,))
    (x if where == "inputs" else y)[2] = bad
    with pytest.raises(InvalidArgumentError, match="task 0"):
        TaskEnsemble([x], [y])


# One large study beside small ones must not make all as large: in time, in memory, or in what is learnt.
MIXED = (7, 150, 12, 1, 9, 70, 8)


@pytest.fixture
def mixed(tkwargs):
    inputs, values = inputs_and_values(tkwargs, MIXED)
    return inputs, values, TaskEnsemble(inputs, values).fit()


def test_tasks_of_unlike_sizes_are_as_each_alone(mixed, asked):
    inputs, values, tasks = mixed
    alone = [
        TaskEnsemble([x], [y], theta=tasks.theta[k : k + 1])
        for k, (x, y) in enumerate(zip(inputs, values, strict=True))
    ]
    assert tasks.entries < 0.5 * tasks.count * max(MIXED) ** 2
    tolerance = {"atol": 1e-8 if asked.dtype == torch.float64 else 2e-3, "rtol": 0}
    for ours, theirs in (
        (tasks.moments(asked), [one.moments(asked) for one in alone]),
        (tasks.joint(asked), [one.joint(asked) for one in alone]),
        ([tasks.means(asked)], [[one.means(asked)] for one in alone]),
        (
            [tasks.covariances(asked, asked[:2])],
            [[one.covariances(asked, asked[:2])] for one in alone],
        ),
    ):
        for tensor, parts in zip(ours, zip(*theirs, strict=True), strict=True):
            torch.testing.assert_close(tensor, torch.cat(parts), **tolerance)
    said = tasks.moments_and_vjp(len(asked))(asked)
    torch.testing.assert_close(said.mean, tasks.moments(asked).mean, **tolerance)
    weight = torch.ones_like(said.mean)
    slopes = sum(
        one.moments_and_vjp(len(asked))(asked).vjp(weight[:1], weight[:1]) for one in alone
    )
    scale = float(slopes.abs().max())
    torch.testing.assert_close(
        said.vjp(weight, weight) / scale, slopes / scale, atol=tolerance["atol"] * 100, rtol=0
    )


def test_what_is_learnt_of_small_tasks_does_not_depend_on_a_large_one():
    inputs, values = inputs_and_values({"dtype": torch.float64}, (30, 700, 20))
    both = TaskEnsemble(inputs, values).fit()
    for k in (0, 2):
        alone = TaskEnsemble(inputs[k : k + 1], values[k : k + 1]).fit()
        torch.testing.assert_close(both.theta[k], alone.theta[0], atol=0.05, rtol=0)


@pytest.mark.parametrize("chosen", [[1, 0], [3], [6, 5, 1, 0], [2, 2]])
def test_some_of_tasks_of_unlike_sizes_are_as_in_all(mixed, asked, chosen):
    tasks = mixed[2]
    some = tasks.subset(chosen)
    for ours, theirs in zip(some.moments(asked), tasks.moments(asked), strict=True):
        torch.testing.assert_close(ours, theirs[chosen])
    assert some.fit().moments(asked).mean.isfinite().all()
