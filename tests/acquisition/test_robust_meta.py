"""RM-GP-UCB and RM-GP-TS: against their formulas, and plain GP-UCB where the share is 0."""

import itertools

import pytest
import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.models import SingleTaskGP

from botorch_costly.acquisition import RMGPTS, RMGPUCB, TaskUCB
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.models import TaskEnsemble, TaskPaths

MANY = 400
pytestmark = pytest.mark.filterwarnings("ignore:The model inputs are of type torch.float32")


def drawn(*shape, seed=0, **tkwargs):
    draws = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=draws, dtype=torch.float64).to(**tkwargs)


@pytest.fixture
def tasks(tkwargs):
    inputs = [drawn(n, 2, seed=n, **tkwargs) for n in (9, 14, 6)]
    return TaskEnsemble(inputs, [5 + k * x[:, 0] + x[:, 1] for k, x in enumerate(inputs)])


@pytest.fixture
def weights(tkwargs):
    return torch.tensor([0.5, 0.2, 0.3], **tkwargs)


@pytest.fixture
def model(tkwargs):
    X = drawn(7, 2, seed=20, **tkwargs)
    return SingleTaskGP(X, X.sum(-1, keepdim=True).sin())


@pytest.fixture
def asked(tkwargs):
    return drawn(3, 4, 1, 2, seed=30, **tkwargs)


def test_without_a_share_it_is_gp_ucb_exactly(model, tasks, weights, asked):
    ours = RMGPUCB(model, tasks, weights, 0.0, beta=2.5)
    assert torch.equal(ours(asked), UpperConfidenceBound(model, 2.5)(asked))


def test_values_are_those_of_equation_2(model, tasks, weights, asked):
    ours = RMGPUCB(model, tasks, weights, 0.3, beta=4.0, tau=1.5)(asked)
    posterior = model.posterior(asked)
    plain = (posterior.mean + 2 * posterior.variance.sqrt()).reshape(3, 4)
    mean, std = tasks.moments(asked.reshape(-1, 2))
    total = torch.zeros_like(mean[0])
    for k in range(3):
        bound = mean[k] + 1.5 * std[k]
        total += weights[k] * (tasks.offset[k] + tasks.scale[k] * bound)
    torch.testing.assert_close(ours, 0.3 * total.reshape(3, 4) + 0.7 * plain)


def test_tasks_may_be_read_in_the_target_s_units(tasks, weights, asked):
    offset, scale = tasks.offset.new_tensor(2.0), tasks.scale.new_tensor(3.0)
    ours = TaskUCB(tasks, weights, 0.0, offset, scale)(asked)
    mean = tasks.means(asked.reshape(-1, 2))
    torch.testing.assert_close(ours, 2 + 3 * (weights @ mean).reshape(3, 4))


@pytest.mark.parametrize("bad", [[0.5, 0.5], [0.9, 0.2, 0.3], [1.2, -0.2, 0.0]])
def test_weights_off_the_simplex_are_refused(bad, tasks, tkwargs):
    with pytest.raises((InvalidArgumentError, InvalidShapeError), match="weights"):
        TaskUCB(tasks, torch.tensor(bad, **tkwargs))


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_outside_its_range_is_refused(share, model, tasks, weights):
    with pytest.raises(InvalidArgumentError, match="share"):
        RMGPUCB(model, tasks, weights, share)


@pytest.fixture
def paths(tasks):
    return TaskPaths(tasks, 3, torch.Generator().manual_seed(1))


def own(X):
    return -X.sum(-1)


def test_functions_come_from_tasks_as_often_as_they_have_a_share(paths, weights):
    draws = torch.Generator().manual_seed(2)
    drawn_of = [RMGPTS(own, paths, weights, 0.4, draws).origin for _ in range(MANY)]
    origins = [None if origin is None else int(origin.argmax()) for origin in drawn_of]
    assert all(origin is None or origin.tolist().count(1.0) == 1 for origin in drawn_of)
    for origin, expected in ((None, 0.6), (0, 0.2), (1, 0.08), (2, 0.12)):
        error = 4 * (expected * (1 - expected) / MANY) ** 0.5
        assert origins.count(origin) / MANY == pytest.approx(expected, abs=error)


def test_summed_functions_are_the_weighted_sum_of_one_of_each_task(paths, weights, asked):
    draws = torch.Generator().manual_seed(5)
    summed = RMGPTS(own, paths, weights, 1.0, draws, summed=True)
    torch.testing.assert_close(summed.origin, weights.double().cpu())
    points = asked.squeeze(-2)
    choices = itertools.product(range(paths.count), repeat=3)
    sums = [
        sum(
            w * paths(points, task=i, path=k)
            for i, (w, k) in enumerate(zip(weights, ks, strict=True))
        )
        for ks in choices
    ]
    distance = torch.stack([(summed(asked) - value).abs().max() for value in sums])
    assert float(distance.min()) < 1e-4
    tiny = weights.clone()
    tiny[0] = 1e-6
    origin = RMGPTS(own, paths, tiny / tiny.sum(), 1.0, draws, summed=True).origin
    assert origin[0] == 0
    assert float(origin.sum()) == pytest.approx(1.0)


@pytest.mark.parametrize("summed", [False, True])
def test_weights_that_are_all_zero_are_refused(paths, weights, summed):
    with pytest.raises(InvalidArgumentError, match="weights"):
        RMGPTS(own, paths, 0 * weights, 1.0, torch.Generator(), summed=summed)


def test_summed_functions_are_drawn_as_often_as_the_share_says(paths, weights):
    draws = torch.Generator().manual_seed(6)
    of_target = [
        RMGPTS(own, paths, weights, 0.4, draws, summed=True).origin is None for _ in range(MANY)
    ]
    assert sum(of_target) / MANY == pytest.approx(0.6, abs=4 * (0.24 / MANY) ** 0.5)


def test_a_function_is_one_and_the_same_wherever_it_is_asked(paths, weights, asked):
    function = RMGPTS(own, paths, weights, 1.0, torch.Generator().manual_seed(3))
    assert torch.allclose(function(asked), torch.stack([function(row) for row in asked]), atol=1e-5)
    plain = RMGPTS(own, paths, weights, 0.0, torch.Generator().manual_seed(3))
    assert torch.equal(plain(asked), own(asked.squeeze(-2)))


def test_functions_of_a_task_scatter_as_its_posterior(tasks, tkwargs):
    many = TaskPaths(tasks, 2_000, torch.Generator().manual_seed(4), num_frequencies=1_000)
    asked = drawn(1, 2, seed=40, **tkwargs)
    mean, std = tasks.moments(asked)
    for task in range(3):
        values = torch.stack([many(asked, task=task, path=k) for k in range(many.count)])
        standard = (values - tasks.offset[task]) / tasks.scale[task]
        center, spread = float(mean[task]), float(std[task])
        assert float(standard.mean()) == pytest.approx(center, abs=0.15 * (1 + spread))
        assert float(standard.std()) == pytest.approx(spread, rel=0.2)


def test_botorch_constructs_the_bound(model, tasks, weights, asked):
    construct = get_acqf_input_constructor(RMGPUCB)
    kwargs = construct(model=model, tasks=tasks, weights=weights, share=0.3, beta=2.0)
    ours = RMGPUCB(model, tasks, weights, 0.3, beta=2.0)
    assert torch.equal(RMGPUCB(**kwargs)(asked), ours(asked))


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_botorch_constructs_a_draw_and_leaves_the_global_generator(
    share, model, tasks, weights, asked, tkwargs
):
    def built(seed):
        draws = torch.Generator(device=tkwargs["device"]).manual_seed(seed)
        kwargs = get_acqf_input_constructor(RMGPTS)(
            model=model, tasks=tasks, weights=weights, share=share, generator=draws
        )
        return RMGPTS(**kwargs)

    before = torch.get_rng_state()
    first, again, other = (built(seed)(asked) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def test_gradients_are_those_of_autograd(model, tasks, weights, asked, paths):
    def sampled(target, share, **options):
        return RMGPTS(target, paths, weights, share, torch.Generator().manual_seed(3), **options)

    functions = [
        TaskUCB(tasks, weights, 0.7),
        RMGPUCB(model, tasks, weights, 0.3),
        sampled(None, 1.0),
        sampled(None, 1.0, summed=True),
        sampled(own, 0.0),
        sampled(tasks.subset([1]), 0.0),
    ]
    X = asked[:, 0, 0]
    for function in functions:
        points = X.clone().requires_grad_()
        value = function(points.unsqueeze(-2))
        (gradient,) = torch.autograd.grad(value.sum(), points)
        ours = function.with_gradient(X, sign=-2.0)(X)
        torch.testing.assert_close(ours, (-2 * value.detach(), -2 * gradient))


def test_before_a_value_of_the_target_the_tasks_decide_alone(tasks, weights, paths, asked):
    assert torch.equal(RMGPUCB(None, tasks, weights, 1.0)(asked), TaskUCB(tasks, weights)(asked))
    with pytest.raises(InvalidArgumentError, match="share"):
        RMGPUCB(None, tasks, weights, 0.9)
    with pytest.raises(InvalidArgumentError, match="share"):
        RMGPTS(None, paths, weights, 0.9, torch.Generator())
