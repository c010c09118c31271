"""Bounds of many beliefs at once: those of one, and each as if it were alone."""

import pytest
import torch

from botorch_costly.acquisition import TimeVaryingUCB
from botorch_costly.acquisition.snapshot_ucb import SnapshotUCB
from botorch_costly.numerics.cholesky import factorize
from botorch_costly.numerics.snapshot import snapshot
from botorch_costly.numerics.stationary import Stationary, covariance
from botorch_costly.optim.climb import InCube, climb
from botorch_costly.optim.suppression import suppress
from tests.acquisition.beliefs import NOW, streaming

BETA, BANDWIDTH = 2.0, 0.2


def of(belief):
    """The bound of a streaming belief in round NOW."""
    width = torch.tensor(BETA, dtype=torch.float64).sqrt()
    return SnapshotUCB(*belief.snapshot(NOW), width, belief.least_variance)


def beliefs(number, n=40, dim=3, family="matern52"):
    """Beliefs about as many functions, in a batch."""
    generator = torch.Generator().manual_seed(5)
    X = torch.rand(number, n, dim, generator=generator, dtype=torch.float64)
    noise = 0.3 * torch.randn(number, n, 1, generator=generator, dtype=torch.float64)
    y = torch.sin(5 * X).sum(-1, keepdim=True) - 1 + noise
    kernel = Stationary(family, 0.3 * X.new_ones(dim), X.new_ones(()))
    factor = factorize(covariance(kernel, X, X) + 0.1 * torch.eye(n).double(), y)
    return snapshot(kernel, X, torch.ones_like(X[..., 0]), factor.inverse, factor.whitened)


def optima(belief, starts):
    zeros, width = torch.zeros_like(starts[0]), starts.new_tensor(BETA).sqrt()
    begin = starts.expand(*belief.rows.shape[:-2], *starts.shape)
    bound = SnapshotUCB(belief, 1.0, width, 1e-10)
    ends = climb(InCube(bound, zeros, zeros + 1), begin, BANDWIDTH, 100)
    return suppress(ends.points, ends.values, BANDWIDTH)


def test_values_slopes_and_bends_are_those_of_the_streaming_belief(points):
    belief = streaming().in_prior_units()
    expected, bound, X = TimeVaryingUCB(belief, BETA, NOW), of(belief), points.squeeze(-2)
    torch.testing.assert_close(bound(points), expected(points))
    for sign in (1, -1):
        ways = (way.with_gradient(points, sign)(X) for way in (bound, expected))
        torch.testing.assert_close(*ways)
    torch.testing.assert_close(tuple(bound.second_order(X)), tuple(expected.second_order(X)))


def test_the_gradient_keeps_the_precision_asked_for(points):
    X = points.squeeze(-2).float()
    value, gradient = of(streaming().in_prior_units()).with_gradient(X)(X)
    assert value.dtype == gradient.dtype == torch.float32


@pytest.mark.parametrize(
    ("family", "smooth"), [("matern52", True), ("matern12", False), ("arms", False)]
)
def test_it_is_smooth_where_there_is_a_hessian(family, smooth):
    belief = beliefs(1)._replace(family=family)
    assert SnapshotUCB(belief, 1.0, torch.ones(()).double(), 1e-10).is_smooth == smooth


@pytest.mark.parametrize(("family", "within"), [("matern52", 1e-8), ("matern12", 1e-6)])
def test_three_beliefs_have_the_optima_of_each(family, within):
    belief = beliefs(3, family=family)
    generator = torch.Generator().manual_seed(1)
    starts = torch.rand(50, 3, generator=generator, dtype=torch.float64)
    together = optima(belief, starts)
    for i in range(3):
        rows = {name: getattr(belief, name)[i : i + 1] for name in belief._fields[3:]}
        alone = optima(belief._replace(**rows), starts)
        number = alone.values.shape[-1]
        close = {"atol": within, "rtol": 0}
        torch.testing.assert_close(together.points[i, :number], alone.points[0], **close)
        torch.testing.assert_close(together.values[i, :number], alone.values[0], **close)
        assert (together.values[i, number:] == -torch.inf).all()
