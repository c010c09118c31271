"""Functions with holes, roundings, tails and curvature that misleads."""

import pytest
import torch

from botorch_costly.optim import lbfgs
from botorch_costly.optim.lbfgs import minimize_batch
from botorch_costly.optim.smooth import by_autograd
from tests.optim.functions import PROBLEMS, box, starts

NEAR = 0.74  # the hole at 0.8: a tenth of the way, as steps are halved until rounding stops them


def test_holes_in_the_function_are_stepped_around():
    def holed(x):  # NaN right of 0.8, infinite gradient at 0
        return torch.where(x.sum(-1) > 0.8, torch.nan, -x.clamp(min=0).sqrt().sum(-1))

    bounds = box(1, 0.0, 1.0)
    begin = torch.tensor([[0.1], [0.5], [0.0], [0.9]], dtype=torch.float64)
    end = minimize_batch(by_autograd(holed), begin, bounds)
    assert (end.point[:2] <= 0.8).all()
    assert (end.point[:2] > NEAR).all()
    assert not end.converged.any()
    torch.testing.assert_close(end.point[2:], begin[2:])  # nothing to start from
    assert end.value[3].isnan()


@pytest.mark.parametrize("hole", ["value", "gradient"])
def test_trials_that_are_not_finite_are_rejected(hole):
    def slide(x):
        value, gradient, bad = -x.sum(-1), -torch.ones_like(x), x.sum(-1) > 0.8
        if hole == "value":
            return value.masked_fill(bad, -torch.inf), gradient
        return value, gradient.masked_fill(bad[..., None], torch.nan)

    end = minimize_batch(slide, torch.full((1, 2), 0.1).double(), box(2, 0.0, 1.0))
    assert NEAR < end.point.sum() <= 0.8
    assert end.value.isfinite().all()
    assert end.gradient_norm.isfinite().all()


def test_the_rounding_of_a_large_value_does_not_stop_the_search():
    function, bounds = PROBLEMS["quadratic with active bounds"]
    end = minimize_batch(by_autograd(lambda x: function(x) + 1e6), starts(bounds, 20), bounds)
    assert end.converged.all()


def test_a_spoiled_model_gives_way_to_the_gradient():
    ones = torch.ones(1, 1, dtype=torch.float64)
    point, gradient = torch.full((1, 2), 0.5).double(), torch.tensor([[1.0, -3.0]]).double()
    frame = lbfgs.Box(*box(2, 0.0, 1.0), torch.full((2,), 1e-3).double())
    spoiled = torch.full((1, 2, 4, 2), 1e200, dtype=torch.float64)  # products overflow
    direction, _ = lbfgs.quasi_newton_direction(point, gradient, 0.1 * ones, ones, spoiled, frame)
    torch.testing.assert_close(direction, -0.1 * gradient)


def test_steps_grow_where_there_is_no_curvature():
    begin = torch.tensor([[1e4]], dtype=torch.float64)
    bounds = box(1, -torch.inf, torch.inf)
    end = minimize_batch(by_autograd(lambda x: (1 + x**2).sqrt().sum(-1)), begin, bounds)
    torch.testing.assert_close(end.value, torch.ones(1, dtype=torch.float64))


def test_far_tails_are_left():
    # The gradient is about 1e-5 and the curvature negative where this begins.
    def bump(x):
        return -(-0.5 * (x / 0.1).square().sum(-1)).exp()

    begin = torch.tensor([[0.55]], dtype=torch.float64)
    end = minimize_batch(by_autograd(bump), begin, box(1, -1.0, 1.0))
    torch.testing.assert_close(end.value, -torch.ones(1, dtype=torch.float64))
