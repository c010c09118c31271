"""Smooth functions: plain callables with gradients by autograd, and boxes mapped to the unit cube."""

import pytest
import torch
from botorch.acquisition.analytic import UpperConfidenceBound

from botorch_costly.acquisition import TimeVaryingKG, TimeVaryingLogEI, TimeVaryingUCB
from botorch_costly.numerics.expansion import Quadratic
from botorch_costly.optim.smooth import (
    AgingFunction,
    InBox,
    SmoothFunction,
    by_autograd,
    from_callable,
)
from tests.acquisition.beliefs import NOW, dense, streaming


def points(n=6, seed=0):
    return torch.rand(n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def waves(X):  # ... x 2 -> ...
    return torch.sin(3 * X[..., 0]) * torch.exp(X[..., 1])


class Waves:
    """With everything in closed form."""

    def __call__(self, X, /):
        return waves(X.squeeze(-2))

    def with_gradient(self, like, *, sign=1.0):
        return by_autograd(lambda X: sign * waves(X))

    @property
    def second_order(self):
        def quadratic(X):
            value, gradient = self.with_gradient(X)(X)
            hessian = torch.vmap(torch.func.hessian(waves))(X)
            return Quadratic(value, gradient, hessian)

        return quadratic


def test_a_smooth_function_passes_the_door_as_it_is():
    for function in (Waves(), TimeVaryingUCB(streaming(), 1.0, NOW)):
        assert from_callable(function) is function


@pytest.mark.parametrize(
    "plain",
    [
        lambda X: waves(X.squeeze(-2)),
        TimeVaryingLogEI(streaming(), 50.0, NOW),
        TimeVaryingKG(streaming(), points(4, seed=1), NOW, 3.0),
        # Over [x, round]; here it only has to be a function that declares nothing.
        lambda X: UpperConfidenceBound(dense(), 1.0)(torch.cat([X, 11 + 0 * X[..., :1]], -1)),
    ],
)
def test_a_plain_callable_gets_gradients_and_no_hessian(plain):
    wrapped, X = from_callable(plain), points()
    assert isinstance(wrapped, SmoothFunction)
    assert not isinstance(wrapped, AgingFunction)
    assert wrapped.second_order is None
    value, gradient = wrapped.with_gradient(X, sign=-1.0)(X)
    torch.testing.assert_close(value, -wrapped(X.unsqueeze(-2)).detach())
    assert not value.requires_grad
    step = 1e-6
    for column in range(2):
        shift = step * torch.eye(2, dtype=X.dtype)[column]
        up, down = (plain((X + d).unsqueeze(-2)).detach() for d in (shift, -shift))
        torch.testing.assert_close(
            gradient[:, column], -(up - down) / (2 * step), rtol=1e-4, atol=1e-6
        )


@pytest.mark.parametrize(("low", "width"), [(0.0, 1.0), (-1.5, 2.5)])
def test_a_box_is_asked_about_in_units_of_the_cube(low, width):
    frame = (torch.full((2,), number, dtype=torch.float64) for number in (low, width))
    box, unit = InBox(Waves(), *frame), points()
    assert isinstance(box, SmoothFunction)

    def inside(U):
        return waves(low + width * U)

    expected = by_autograd(inside)(unit)
    torch.testing.assert_close(box(unit.unsqueeze(-2)), expected[0])
    torch.testing.assert_close(box.with_gradient(unit)(unit), expected)
    quadratic = box.second_order(unit)
    torch.testing.assert_close((quadratic.value, quadratic.gradient), expected)
    torch.testing.assert_close(quadratic.hessian, torch.vmap(torch.func.hessian(inside))(unit))


def test_a_box_has_no_hessian_where_the_function_has_none():
    frame = torch.zeros(2).double(), torch.full((2,), 3.0).double()
    assert InBox(from_callable(lambda X: waves(X.squeeze(-2))), *frame).second_order is None


def test_single_precision_stays_single():
    X = points().float()
    box = InBox(Waves(), torch.zeros(2).double(), torch.full((2,), 3.0).double())
    value, gradient = box.with_gradient(X)(X)
    assert value.dtype == gradient.dtype == torch.float32
