"""Climbs by the signs of the gradient, against a loop over starts and variables."""

import math

import pytest
import torch

from botorch_costly.errors import InvalidShapeError
from botorch_costly.optim.sign_steps import climb_by_signs, climbers_from
from botorch_costly.optim.smooth import by_autograd


def hills(X):
    return torch.sin(9 * X[..., 0]) + torch.cos(7 * X[..., 1]) + 0.3 * X.sum(-1)


def climbed_by_loop(start, steps, count):
    """Return the last point by the rule of the paper, one variable at a time."""
    slope_of = by_autograd(hills)
    point, length = start.clone(), [min(count ** (-1 / 2), 0.3)] * 2
    before = slope_of(point[None])[1][0]
    for _ in range(steps):
        for i in range(2):
            move = length[i] * math.copysign(1.0, before[i]) if before[i] else 0.0
            point[i] = min(max(point[i].item() + move, 0.0), 1.0)
        slope = slope_of(point[None])[1][0]
        for i in range(2):
            length[i] = min(length[i] * (0.5 if slope[i] * before[i] < 0 else 1.2), 0.3)
        before = slope
    return point


def climbed(value_and_gradient, start, steps, warm=0):
    climbers = climbers_from(value_and_gradient, start, warm)
    climbers, values = climb_by_signs(value_and_gradient, climbers, steps)
    return climbers.points, values


def points(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, 2, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("steps", [1, 9])
def test_all_starts_climb_as_each_does_by_a_loop(steps):
    start = points(2, 7)
    end, values = climbed(by_autograd(hills), start, steps)
    for k in range(2):
        for i in range(7):
            torch.testing.assert_close(end[k, i], climbed_by_loop(start[k, i], steps, 7))
    torch.testing.assert_close(values, hills(end))


def test_most_starts_come_near_a_maximum():
    """In 40 steps the length at a maximum is halved at least 15 times."""
    end, _ = climbed(by_autograd(hills), points(20), 40)
    slope = by_autograd(hills)(end)[1]
    assert ((end + slope).clamp(0, 1) - end).abs().amax() < 0.1


def test_the_size_of_the_slope_does_not_matter():
    start = points(9)
    small, large = (
        climbed(by_autograd(lambda X, c=c: c * hills(X)), start, 12)[0] for c in (2**-30, 2**30)
    )
    torch.testing.assert_close(small, large)


def test_warm_starts_stay_and_are_valued():
    start = points(9)
    end, values = climbed(by_autograd(hills), start, 12, warm=4)
    assert torch.equal(end[5:], start[5:])
    assert not (end[:5] == start[:5]).any(-1).all()
    torch.testing.assert_close(values, hills(end))
    alone, _ = climbed(by_autograd(hills), start[5:], 12, warm=4)
    assert torch.equal(alone, start[5:])


def test_a_start_that_meets_numbers_that_are_not_finite_is_returned_with_the_least_value():
    def holed(X):
        return torch.where(X[..., 0] > 0.5, torch.nan, -X.sum(-1))

    start = points(30)
    end, values = climbed(by_autograd(holed), start, 6)
    bad = start[:, 0] > 0.5
    assert bad.any()
    assert torch.equal(end[bad], start[bad])
    assert (values[bad] == -torch.inf).all()
    assert values[~bad].isfinite().all()


def test_a_climb_in_two_parts_is_one_climb():
    function, start = by_autograd(hills), points(9)
    half, _ = climb_by_signs(function, climbers_from(function, start, 2), 4)
    some = torch.tensor([8, 0, 3, 3])
    end, values = climb_by_signs(function, half.at(some), 5)
    whole, values_of_all = climbed(function, start, 9, warm=2)
    torch.testing.assert_close(end.points, whole[some])
    torch.testing.assert_close(values, values_of_all[some])


def test_level_ground_is_not_left():
    start = points(9)
    end, _ = climbed(by_autograd(lambda X: 0 * X.sum(-1)), start, 6)
    assert torch.equal(end, start)


def test_a_function_of_the_wrong_shape_is_named_before_the_first_step():
    with pytest.raises(InvalidShapeError, match="value_and_gradient"):
        climbed(by_autograd(lambda X: X.sum()), points(3), 5)


def test_slopes_of_another_precision_are_taken_to_that_of_the_points():
    exact = by_autograd(lambda X: hills(X.double()))
    end, values = climbed(lambda X: tuple(t.double() for t in exact(X)), points(6).float(), 5)
    assert end.dtype == values.dtype == torch.float32
