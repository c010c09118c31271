"""Batched L-BFGS against scipy's L-BFGS-B, against itself one by one, and against bad functions."""

import pytest
import torch
from scipy.optimize import minimize
from torch.utils._python_dispatch import TorchDispatchMode

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.optim.lbfgs import minimize_batch
from botorch_costly.optim.smooth import by_autograd
from tests.cases import quick
from tests.counting import least_successes
from tests.optim.functions import PROBLEMS, box, quadratic, rosenbrock, starts


def scipy_values(function, begin, bounds):
    value_and_gradient = by_autograd(function)

    def fun(x):
        value, gradient = value_and_gradient(torch.from_numpy(x))
        return value.item(), gradient.numpy()

    options = {"maxiter": 1000, "maxfun": 5000, "ftol": 1e-15, "gtol": 1e-7}
    ends = [
        minimize(fun, x, jac=True, method="L-BFGS-B", bounds=bounds.T.numpy(), options=options)
        for x in begin.numpy()
    ]
    return torch.tensor([end.fun for end in ends], dtype=torch.float64)


@pytest.mark.parametrize(
    "name", quick(PROBLEMS, "rosenbrock with active bounds", "quadratic, ill-conditioned")
)
def test_as_good_as_scipy_from_nearly_every_start(name):
    function, bounds = PROBLEMS[name]
    begin = starts(bounds, 20)
    expected = scipy_values(function, begin, bounds)
    end = minimize_batch(by_autograd(function), begin, bounds, max_iter=400)
    assert end.converged.all()
    assert (end.gradient_norm <= 1e-6).all()
    assert ((bounds[0] <= end.point) & (end.point <= bounds[1])).all()
    torch.testing.assert_close(end.value, function(end.point))
    as_good = end.value <= expected + 1e-6 * (1 + expected.abs())
    assert as_good.sum() >= least_successes(20, 0.99)
    assert end.value.min() <= expected.min() + 1e-8


def test_the_bounds_hold_and_bind():
    function, bounds = PROBLEMS["quadratic with active bounds"]
    end = minimize_batch(by_autograd(function), starts(bounds, 20), bounds)
    assert (end.point.abs() == 1).any(-1).all()
    torch.testing.assert_close(end.point, end.point[:1].expand(20, 8), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("name", "mean", "most"),
    [
        ("rosenbrock", 42, 65),
        ("rosenbrock with active bounds", 34, 60),
        ("quadratic with active bounds", 18, 30),
        ("hartmann6", 28, 50),
    ],
)
def test_few_evaluations_and_no_stragglers(name, mean, most):
    function, bounds = PROBLEMS[name]
    end = minimize_batch(by_autograd(function), starts(bounds, 50), bounds)
    assert end.iterations.double().mean() < mean
    assert end.iterations.max() < most


def test_a_batch_is_a_loop():
    function, bounds = PROBLEMS["hartmann6"]
    begin = starts(bounds, 24).reshape(2, 3, 4, 6)
    together = minimize_batch(by_autograd(function), begin, bounds)
    for place in torch.cartesian_prod(*map(torch.arange, (2, 3, 4))).tolist():
        i, j, k = place
        alone = minimize_batch(by_autograd(function), begin[i, j, k][None], bounds)
        torch.testing.assert_close(together.point[i, j, k], alone.point[0], atol=1e-5, rtol=0)
        assert together.iterations[i, j, k] == alone.iterations[0]
        assert together.converged[i, j, k] == alone.converged[0]


def test_each_batch_entry_may_have_its_own_function():
    centers = torch.rand(3, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    scale = torch.logspace(0, 4, 3, dtype=torch.float64)[:, None, None]
    bounds = box(2, 0.0, 1.0)
    begin = starts(bounds, 30).reshape(3, 10, 2)
    bowls = by_autograd(lambda x: (scale * (x - centers)).square().sum(-1))
    end = minimize_batch(bowls, begin, bounds, check_every=1)
    torch.testing.assert_close(end.point, centers.expand(3, 10, 2), atol=1e-6, rtol=0)


def test_finished_problems_cost_nothing():
    bounds = box(2, -2.0, 2.0)
    sizes = []

    def counted(x):
        sizes.append(x.shape[-2])
        return rosenbrock(x)

    begin = torch.cat([torch.ones(30, 2, dtype=torch.float64), starts(bounds, 4)])
    end = minimize_batch(by_autograd(counted), begin, bounds)
    assert sizes[0] == 34
    assert max(sizes[1:]) == 4
    assert (end.iterations[:30] == 0).all()
    assert len(sizes) <= end.iterations.max() + 5


class Waits(TorchDispatchMode):
    """Counts operations whose result the processor has to wait for."""

    WAITING = ("_local_scalar_dense", "item", "is_nonzero", "nonzero")

    def __init__(self):
        super().__init__()
        self.number = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        masked = func.overloadpacket is torch.ops.aten.index and any(
            index is not None and index.dtype == torch.bool for index in args[1]
        )
        self.number += masked or func.overloadpacket.__name__ in self.WAITING
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("check_every", [1, 4, 7])
@pytest.mark.parametrize("max_iter", [30, 400])
def test_the_device_is_waited_for_at_queries_only(tkwargs, check_every, max_iter):
    bounds = box(2, -2.0, 2.0).to(**tkwargs)
    begin = starts(box(2, -2.0, 2.0), 40).to(**tkwargs)
    evaluations = []

    def slopes(x):  # in closed form, so that the function itself waits for nothing
        evaluations.append(len(x))
        a, b = x.unbind(-1)
        rest = b - a**2
        gradient = torch.stack([-400 * a * rest - 2 * (1 - a), 200 * rest], -1)
        return 100 * rest**2 + (1 - a) ** 2, gradient

    options = {"check_every": check_every, "max_iter": max_iter}
    with Waits() as before:
        minimize_batch(slopes, begin, bounds, **{**options, "max_iter": 0})
    evaluations.clear()
    with Waits() as waits:
        minimize_batch(slopes, begin, bounds, **options)
    iterations = len(evaluations) - 1
    ended_at_a_query = iterations < max_iter
    queries = -(-iterations // check_every) + ended_at_a_query
    assert queries >= 3
    assert waits.number - before.number == queries


def test_no_bounds_are_infinite_bounds():
    end = minimize_batch(
        by_autograd(rosenbrock), starts(box(2, -2.0, 2.0), 5), box(2, -torch.inf, torch.inf)
    )
    torch.testing.assert_close(end.point, torch.ones_like(end.point), atol=1e-5, rtol=0)


def test_a_variable_without_room_stays():
    bounds = torch.tensor([[0.5, -2.0], [0.5, 2.0]], dtype=torch.float64)
    end = minimize_batch(by_autograd(rosenbrock), torch.zeros(1, 2).double(), bounds)
    torch.testing.assert_close(end.point, torch.tensor([[0.5, 0.25]]).double())


def test_value_tolerance_stops_earlier():
    function, bounds = PROBLEMS["hartmann6"]
    begin = starts(bounds, 20)
    fine = minimize_batch(by_autograd(function), begin, bounds)
    rough = minimize_batch(by_autograd(function), begin, bounds, value_tolerance=1e-4)
    assert rough.iterations.sum() < fine.iterations.sum()
    assert rough.converged.all()
    assert (rough.value - fine.value).abs().median() < 1e-3


def test_single_precision_stays_single():
    bounds = box(2, -2.0, 2.0).float()
    end = minimize_batch(
        by_autograd(rosenbrock), starts(bounds, 8), bounds, gradient_tolerance=1e-3
    )
    assert end.point.dtype == end.value.dtype == torch.float32
    assert (end.value < 1e-3).all()


def test_a_constant_is_at_its_minimum():
    end = minimize_batch(
        by_autograd(lambda x: torch.ones(x.shape[:-1])), torch.zeros(3, 2), box(2, 0.0, 1.0)
    )
    assert end.converged.all()


def quadratic_hessian(n):
    generator = torch.Generator().manual_seed(3)
    root = torch.randn(8, 8, generator=generator, dtype=torch.float64)
    return (root @ root.mT + 0.1 * torch.eye(8)).expand(n, 8, 8)


def test_the_true_hessian_makes_the_first_step_newtons():
    bounds = box(8, -torch.inf, torch.inf)
    begin = starts(box(8, -1.0, 1.0), 5)
    end = minimize_batch(by_autograd(quadratic), begin, bounds, hessian=quadratic_hessian(5))
    assert end.converged.all()
    assert (end.iterations == 1).all()


def test_a_guess_at_the_hessian_holds_in_the_free_variables_of_a_box():
    """Finished problems leave the batch with theirs; where a variable may not go it has no say."""
    function, bounds = PROBLEMS["quadratic with active bounds"]
    begin = starts(bounds, 20)
    far = minimize_batch(by_autograd(function), begin, bounds)
    end = minimize_batch(by_autograd(function), begin, bounds, hessian=quadratic_hessian(20))
    assert end.converged.all()
    torch.testing.assert_close(end.point, far.point, atol=1e-5, rtol=0)
    assert end.iterations.double().mean() < 0.6 * far.iterations.double().mean()
    for k in range(20):
        problem = begin[k : k + 1], bounds
        alone = minimize_batch(by_autograd(function), *problem, hessian=quadratic_hessian(1))
        assert end.iterations[k] == alone.iterations[0]


@pytest.mark.parametrize("factor", [1e-3, 30.0])
def test_a_wrong_guess_costs_evaluations_and_nothing_else(factor):
    function, bounds = PROBLEMS["hartmann6"]
    begin = starts(bounds, 12).reshape(3, 4, 6)
    guess = factor * torch.eye(6, dtype=torch.float64).expand(3, 4, 6, 6)
    end = minimize_batch(by_autograd(function), begin, bounds, hessian=guess)
    assert end.converged.all()
    torch.testing.assert_close(end.value, function(end.point))


def test_it_stops_when_told_so_and_keeps_what_it_reached():
    function, bounds = PROBLEMS["hartmann6"]
    begin = starts(bounds, 10)
    asked = []

    def third():
        asked.append(None)
        return len(asked) == 3

    end = minimize_batch(by_autograd(function), begin, bounds, check_every=2, should_stop=third)
    same = minimize_batch(by_autograd(function), begin, bounds, max_iter=6)
    assert end.iterations.max() == 6
    for field, expected in zip(end, same, strict=True):
        assert torch.equal(field, expected)
    assert not end.converged.all()
    never = minimize_batch(by_autograd(function), begin, bounds, should_stop=lambda: False)
    assert torch.equal(never.point, minimize_batch(by_autograd(function), begin, bounds).point)


@pytest.mark.parametrize(
    ("start", "bounds", "options", "error"),
    [
        (torch.zeros(2), torch.zeros(2, 2), {}, InvalidShapeError),
        (torch.zeros(1, 2, dtype=torch.long), torch.zeros(2, 2), {}, InvalidShapeError),
        (torch.zeros(1, 2), torch.zeros(3, 2), {}, InvalidShapeError),
        (torch.zeros(1, 2), torch.tensor([[1.0, 1], [0, 2]]), {}, InvalidArgumentError),
        (torch.zeros(1, 2), torch.zeros(2, 2), {"history": 0}, InvalidArgumentError),
        (torch.zeros(1, 2), torch.zeros(2, 2), {"max_iter": -1}, InvalidArgumentError),
        (torch.zeros(1, 2), torch.zeros(2, 2), {"gradient_tolerance": -1}, InvalidArgumentError),
        (torch.zeros(1, 2), torch.zeros(2, 2), {"hessian": torch.eye(2)}, InvalidShapeError),
        (
            torch.zeros(1, 2),
            torch.zeros(2, 2),
            {"hessian": -torch.eye(2).expand(1, 2, 2)},
            InvalidArgumentError,
        ),
    ],
)
def test_bad_input_is_named(start, bounds, options, error):
    with pytest.raises(error, match=r"Expected .*; Received"):
        minimize_batch(by_autograd(rosenbrock), start, bounds, **options)


def test_a_function_of_the_wrong_shape_is_named():
    with pytest.raises(InvalidShapeError, match="value_and_gradient"):
        minimize_batch(by_autograd(lambda x: x), torch.zeros(3, 2), box(2, 0.0, 1.0))


def test_slopes_of_another_precision_are_taken_to_that_of_the_points():
    bowl = by_autograd(lambda x: (x.double() - 0.5).square().sum(-1))
    end = minimize_batch(bowl, torch.zeros(3, 2), torch.tensor([[-1.0, -1.0], [1.0, 1.0]]))
    assert end.point.dtype == end.value.dtype == torch.float32
    torch.testing.assert_close(end.point, torch.full((3, 2), 0.5))
