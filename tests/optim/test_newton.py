"""The last steps to a maximum, and climbs that end with them."""

import pytest
import torch

from botorch_costly.numerics.expansion import Quadratic
from botorch_costly.optim.climb import climb
from botorch_costly.optim.newton import climb_by_newton, newton_step
from botorch_costly.optim.smooth import InBox, by_autograd
from tests.counting import least_successes

BOX = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)


def quadratic_of(function):
    """Return values, gradients and Hessians of a function, one point at a time."""

    def second_order(X):
        flat = X.reshape(-1, X.shape[-1])
        value = torch.stack([function(x) for x in flat])
        gradient = torch.stack([torch.func.grad(function)(x) for x in flat])
        hessian = torch.stack([torch.func.hessian(function)(x) for x in flat])
        shape = X.shape[:-1]
        return Quadratic(
            value.reshape(shape), gradient.reshape(X.shape), hessian.reshape(*X.shape, X.shape[-1])
        )

    return second_order


def bump(x):
    return -((x[0] - 0.3) ** 2) - 2 * (x[1] - 0.6) ** 2 + 0.5 * (x[0] - 0.3) * (x[1] - 0.6)


def outside(x):
    return -((x[0] - 1.4) ** 2) - 2 * (x[1] - 0.6) ** 2 + 0.5 * (x[0] - 1.4) * (x[1] - 0.6)


def waves(x):
    return torch.sin(9 * x[0]) + torch.cos(7 * x[1]) + 0.3 * x.sum()


def points(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def test_one_step_reaches_the_top_of_a_quadratic():
    model = quadratic_of(bump)(points([0.9, 0.1]))
    to, exists, _ = newton_step(model, points([0.9, 0.1]), BOX)
    assert exists.all()
    torch.testing.assert_close(points([0.9, 0.1]) + to, points([0.3, 0.6]))
    torch.testing.assert_close(model.at(to), torch.zeros(1, dtype=torch.float64))


def test_a_bound_that_binds_is_kept_and_the_others_solved_in_it():
    end = climb_by_newton(quadratic_of(outside), points([0.5, 0.5]), BOX)
    assert end.reached.all()
    torch.testing.assert_close(end.points, points([1.0, 0.55]))  # 4 (y - .6) = .5 (1 - 1.4)
    torch.testing.assert_close(end.values, outside(end.points[0]).reshape(1))


def saddle(x):
    return x[0] ** 2 - x[1] ** 2


def test_where_there_is_no_maximum_the_step_is_nothing():
    start = points([0.4, 0.5], [0.4, 0.0])
    to, exists, _ = newton_step(quadratic_of(saddle)(start), start, BOX)
    assert not exists.any()
    assert not to.any()


def test_where_there_is_no_maximum_a_shifted_step_leads_up():
    start = points([0.4, 0.5])
    shifts = torch.tensor([0.0, 0.1, 0.8], dtype=torch.float64)[:, None, None]
    model = quadratic_of(saddle)(start)
    to, exists, _ = newton_step(model, start, BOX, shifts)
    assert not exists.any()
    size = 0.8 * 8**0.5  # the Hessian is diag(2, -2), and a tenth of its norm is too little
    torch.testing.assert_close(to, model.gradient / points([size - 2, size + 2]))


def test_a_saddle_is_left_for_a_maximum_at_the_bounds():
    start = points([0.4, 0.5], [0.01, 0.9])
    end = climb_by_newton(quadratic_of(saddle), start, BOX)
    assert end.reached.all()
    torch.testing.assert_close(end.points, points([1.0, 0.0], [1.0, 0.0]))


def test_what_is_said_to_be_reached_is_a_maximum():
    start = torch.rand(15, 2, generator=torch.Generator().manual_seed(0)).double()
    end = climb_by_newton(quadratic_of(waves), start, BOX, max_iter=30)
    assert end.reached.sum() > 7
    top = end.points[end.reached]
    for x, value in zip(top, end.values[end.reached], strict=True):
        assert abs(waves(x) - value) < 1e-9
        slope = torch.func.grad(waves)(x)
        pushed = (x + slope).clamp(0, 1) - x
        assert pushed.abs().max() < 1e-6
    assert (end.values >= torch.stack([waves(x) for x in start]) - 1e-12).all()  # never down


def test_steps_that_do_not_lead_up_are_shortened():
    def ridge(x):  # Newton's first step from the flank is far too long
        return -torch.log1p(200 * (x[0] - 0.5) ** 2) - (x[1] - 0.5) ** 2

    end = climb_by_newton(quadratic_of(ridge), points([0.55, 0.4]), BOX, max_iter=40)
    assert end.reached.all()
    torch.testing.assert_close(end.points, points([0.5, 0.5]), rtol=0, atol=1e-7)


def test_numbers_that_are_not_finite_are_not_climbed_to():
    def holed(x):
        return torch.where(x[0] > 0.5, torch.nan, 1.0) * (x[0] - 0.1 * x[1] ** 2)

    end = climb_by_newton(quadratic_of(holed), points([0.4, 0.5]), BOX)
    assert end.points.isfinite().all()
    assert end.values.isfinite().all()


class Hills:
    """A smooth function that may have a Hessian."""

    def __init__(self, has_hessian, shifts=(0.0,)):
        self.has_hessian = has_hessian
        self.shifts = torch.tensor(shifts, dtype=torch.float64)
        self.asked = 0

    def heights(self, X):  # ... x 2 -> ...
        shift = self.shifts if len(self.shifts) > 1 else self.shifts[0]
        shift = shift.reshape(-1, *(1 for _ in X.shape[1:-1])) if shift.dim() else shift
        return torch.sin(9 * X[..., 0] + shift) + torch.cos(7 * X[..., 1]) + 0.3 * X.sum(-1)

    def __call__(self, X):
        return self.heights(X.squeeze(-2))

    def with_gradient(self, like, *, sign=1.0):
        return by_autograd(lambda X: sign * self.heights(X))

    @property
    def second_order(self):
        return self.quadratic if self.has_hessian else None

    def quadratic(self, X):
        self.asked += 1
        with torch.inference_mode(False), torch.enable_grad():  # a closed form has no need of it
            X = X.clone().requires_grad_()
            value = self.heights(X)
            (gradient,) = torch.autograd.grad(value.sum(), X, create_graph=True)
            rows = [
                torch.autograd.grad(g.sum(), X, retain_graph=True)[0] for g in gradient.unbind(-1)
            ]
        return Quadratic(value.detach(), gradient.detach(), torch.stack(rows, -2))


def in_cube(function, low=0.0, width=1.0):
    frame = (torch.full((2,), number, dtype=torch.float64) for number in (low, width))
    return InBox(function, *frame)


def starts(*shape):
    return torch.rand(*shape, 2, generator=torch.Generator().manual_seed(1)).double()


@pytest.mark.parametrize("width", [1.0, 0.8])
def test_with_a_hessian_the_same_maxima_are_found_to_the_last_digit(width):
    rough = climb(in_cube(Hills(False), 0.1, width), starts(40), 0.2, 100)
    function = Hills(True)
    exact = climb(in_cube(function, 0.1, width), starts(40), 0.2, 100)
    assert function.asked > 0
    same = (rough.points - exact.points).abs().amax(-1) < 1e-4
    assert same.sum() >= least_successes(40, 0.95)  # a start on a ridge may go either way
    for maximum in rough.points.unique(dim=0):
        assert torch.cdist(maximum[None], exact.points).min() < 1e-3
    for point, value in zip(exact.points, exact.values, strict=True):
        x = 0.1 + width * point
        assert abs(waves(x) - value) < 1e-10
        slope = width * torch.func.grad(waves)(x)
        assert ((point + slope).clamp(0, 1) - point).abs().max() < 1e-6


def test_a_batch_of_functions_is_each_of_them():
    shifts, begin = (0.0, 0.7, 1.9), starts(3, 25)
    together = climb(in_cube(Hills(True, shifts)), begin, 0.2, 100)
    for k, shift in enumerate(shifts):
        alone = climb(in_cube(Hills(True, (shift,))), begin[k], 0.2, 100)
        torch.testing.assert_close(together.values[k], alone.values, rtol=0, atol=1e-9)


def test_a_start_that_comes_near_another_ends_where_it_ends():
    begin = torch.cat([starts(20), starts(20) + 1e-3])  # pairs of neighbours
    end = climb(in_cube(Hills(False)), begin, 0.2, 100)
    assert torch.equal(end.points[:20], end.points[20:])


def test_in_a_batch_starts_that_newton_does_not_take_end_too():
    class Ripples(Hills):
        def heights(self, X):
            return 0.4 * torch.cos(40 * X).sum(-1) + super().heights(X)

    shifts, begin = (0.0, 1.0), starts(2, 60)
    together = climb(in_cube(Ripples(True, shifts)), begin, 0.05, 100)
    for k, shift in enumerate(shifts):
        function = Ripples(False, (shift,))
        alone = climb(in_cube(function), begin[k], 0.05, 100)
        assert len(alone.points.unique(dim=0)) > 8
        maxima = together.points[k].unique(dim=0)
        near = torch.cdist(alone.points, maxima).amin(-1) < 1e-3
        assert near.sum() >= least_successes(60, 0.95)
        torch.testing.assert_close(function.heights(together.points[k]), together.values[k])


def test_a_start_on_numbers_that_are_not_finite_ends_where_it_was():
    class Holed(Hills):
        def heights(self, X):
            return super().heights(X) + torch.where(X[..., 0] > 0.5, torch.nan, 0.0)

    begin = starts(40)
    end = climb(in_cube(Holed(True)), begin, 0.2, 100)
    outside = begin[:, 0] <= 0.5
    assert end.values[outside].isfinite().all()
    assert (end.points[outside, 0] <= 0.5 + 1e-6).all()
    assert end.points.isfinite().all()


def test_a_climb_ends_at_a_saddle_and_on_level_ground():
    def level(x):
        return 0 * x.sum()

    start = points([0.3, 0.4])
    for function in (level, lambda x: (x[0] - 0.3) ** 2 - (x[1] - 0.4) ** 2):
        end = climb_by_newton(quadratic_of(function), start, BOX)
        assert end.reached.all()
        torch.testing.assert_close(end.points, start)
