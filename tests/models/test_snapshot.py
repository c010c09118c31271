"""A posterior frozen at one round, and batched upper bounds, equal to single ones."""

import pytest
import torch

from botorch_costly.acquisition import TimeVaryingUCB
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.models import StreamingGP
from botorch_costly.models.snapshot import HasSnapshots, Snapshot
from botorch_costly.numerics.cholesky import factorize
from botorch_costly.numerics.closed_form import closed_form
from botorch_costly.numerics.stationary import Stationary, covariance
from botorch_costly.optim import climb as climbing
from botorch_costly.optim.climb import climb
from botorch_costly.optim.smooth import AgingFunction, SmoothFunction
from botorch_costly.optim.suppression import suppress
from tests.acquisition.beliefs import NOW, streaming
from tests.registry.models import MODELS

BETA, BANDWIDTH = 2.0, 0.2


@pytest.fixture
def points():
    generator = torch.Generator().manual_seed(3)
    return torch.rand(20, 1, 2, generator=generator, dtype=torch.float64)


def of(belief):
    """The bound of a streaming belief in round NOW."""
    return belief.snapshot(NOW).upper_bound(torch.tensor(BETA, dtype=torch.float64).sqrt())


def beliefs(number, n=40, dim=3, family="matern52"):
    """Beliefs about as many functions, in a batch."""
    generator = torch.Generator().manual_seed(5)
    X = torch.rand(number, n, dim, generator=generator, dtype=torch.float64)
    noise = 0.3 * torch.randn(number, n, 1, generator=generator, dtype=torch.float64)
    y = torch.sin(5 * X).sum(-1, keepdim=True) - 1 + noise
    kernel = Stationary(family, 0.3 * X.new_ones(dim), X.new_ones(()))
    factor = factorize(covariance(kernel, X, X) + 0.1 * torch.eye(n).double(), y)
    return closed_form(kernel, X, torch.ones_like(X[..., 0]), factor.inverse, factor.whitened)


def optima(form, starts):
    begin = starts.expand(*form.rows.shape[:-2], *starts.shape)
    bound = Snapshot(form).upper_bound(starts.new_tensor(BETA).sqrt())
    ends = climb(bound, begin, BANDWIDTH, 100)
    return suppress(ends.points, ends.values, BANDWIDTH)


def test_values_slopes_and_bends_are_those_of_the_streaming_belief(points):
    belief = streaming().in_prior_units()
    expected, bound, X = TimeVaryingUCB(belief, BETA, NOW), of(belief), points.squeeze(-2)
    torch.testing.assert_close(bound(points), expected(points))
    for sign in (1, -1):
        ways = (way.with_gradient(points, sign=sign)(X) for way in (bound, expected))
        torch.testing.assert_close(*ways)
    torch.testing.assert_close(tuple(bound.second_order(X)), tuple(expected.second_order(X)))


def test_the_gradient_keeps_the_precision_asked_for(points):
    X = points.squeeze(-2).float()
    value, gradient = of(streaming().in_prior_units()).with_gradient(X)(X)
    assert value.dtype == gradient.dtype == torch.float32


@pytest.mark.parametrize(
    ("family", "gradient", "hessian"),
    [("matern52", True, True), ("matern12", True, False), ("arms", False, False)],
)
def test_a_hessian_is_declared_where_there_is_one(family, gradient, hessian):
    seen = Snapshot(beliefs(1)._replace(family=family))
    assert (seen.has_gradient, seen.has_hessian) == (gradient, hessian)
    bound = seen.upper_bound(torch.ones(()).double())
    assert (bound.second_order is not None) == hessian


@pytest.mark.parametrize(("family", "within"), [("matern52", 1e-6), ("matern12", 1e-6)])
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


@pytest.mark.parametrize("entries", [1, 2, 3])
def test_a_batch_in_blocks_has_the_optima_of_the_whole(monkeypatch, entries):
    belief = beliefs(3)
    starts = torch.rand(20, 3, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    width = torch.tensor([[0.5], [1.0], [2.0]], dtype=torch.float64)
    bound = Snapshot(belief).upper_bound(width)
    whole = climb(bound, starts.expand(3, 20, 3), BANDWIDTH, 100)
    monkeypatch.setattr(climbing, "_CACHE_BYTES", entries * bound.entry_bytes)
    blocks = climb(bound, starts.expand(3, 20, 3), BANDWIDTH, 100)
    assert len(climbing._blocks(bound, starts.expand(3, 20, 3))) == -(-3 // entries)
    torch.testing.assert_close(blocks.points, whole.points, atol=1e-6, rtol=0)
    torch.testing.assert_close(blocks.values, whole.values, atol=1e-8, rtol=0)


def test_means_and_variances_of_a_batch_are_those_of_each():
    form = beliefs(3)
    X = torch.rand(5, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    mean, variance = Snapshot(form, retained=0.9).mean_and_variance(X.expand(3, 5, 3))
    assert mean.shape == variance.shape == (3, 5)
    for i in range(3):
        rows = {name: getattr(form, name)[i] for name in form._fields[3:]}
        alone = Snapshot(form._replace(**rows), retained=0.9).mean_and_variance(X)
        torch.testing.assert_close((mean[i], variance[i]), alone)


def test_explained_and_left_variance_add_up_to_the_prior(points):
    """``Moments`` hold the explained variance, ``mean_and_variance`` the posterior one after waiting."""
    belief, X = streaming().in_prior_units(), points.squeeze(-2)
    seen = belief.snapshot(NOW + 7)
    f_moments, (mean, variance) = seen.moments(X), seen.mean_and_variance(X)
    assert 0 < seen.retained < 1
    torch.testing.assert_close(mean, seen.retained * f_moments.mean)
    torch.testing.assert_close(
        variance + seen.retained**2 * f_moments.explained, seen.form.prior.expand_as(variance)
    )


@pytest.mark.parametrize("now", [-3.0, NOW, NOW + 30])
def test_a_snapshot_is_the_posterior_of_its_round(points, now):
    belief, X = streaming(), points.squeeze(-2)
    seen = belief.snapshot(now)
    rows = torch.cat([X, torch.full_like(X[:, :1], now)], -1)
    torch.testing.assert_close(seen.mean_and_variance(X), belief.mean_and_variance(rows))
    bound = seen.upper_bound(X.new_tensor(1.3))
    value, gradient = bound.with_gradient(X)(X)
    torch.testing.assert_close(bound.with_gradient(X, sign=-1.0)(X), (-value, -gradient))
    expansion = bound.second_order(X)
    torch.testing.assert_close((expansion.value, expansion.gradient), (value, gradient))
    mean, variance = belief.mean_and_variance(rows)
    torch.testing.assert_close(value, mean + 1.3 * variance.sqrt())


def test_the_gradient_of_a_bound_is_that_of_differences(points):
    bound = of(streaming())
    X = points[:4].squeeze(-2)

    class Bound(torch.autograd.Function):
        @staticmethod
        def forward(ctx, X):
            value, gradient = bound.with_gradient(X)(X)
            ctx.save_for_backward(gradient)
            return value

        @staticmethod
        def backward(ctx, grad):
            return grad.unsqueeze(-1) * ctx.saved_tensors[0]

    assert torch.autograd.gradcheck(Bound.apply, (X.requires_grad_(),))


def test_there_is_no_snapshot_before_the_first_observation():
    kernel = Stationary("rbf", torch.ones(1), torch.ones(()))
    with pytest.raises(InvalidArgumentError, match="snapshot"):
        StreamingGP(kernel, 0.1, 0.1).snapshot(3.0)


def test_other_columns_are_named():
    with pytest.raises(InvalidShapeError, match="X: Expected 2 columns"):
        streaming().snapshot(NOW).configurations(torch.zeros(4, 3))


def test_what_is_stored_does_not_outlive_an_observation(points):
    belief = streaming()
    before = belief.snapshot(NOW).moments_at_fixed_points(points)
    assert belief.snapshot(NOW + 1).moments_at_fixed_points(points) is before
    row = torch.tensor([0.5, 0.5, NOW], dtype=torch.float64)
    belief.observe(row, 2.0)
    after = belief.snapshot(NOW + 1).moments_at_fixed_points(points)
    expected = belief.snapshot(NOW + 1).moments(points.squeeze(-2))
    torch.testing.assert_close(after.mean, expected.mean)
    assert (after.mean - before.mean).abs().max() > 1e-3
    points += 0.01  # the same tensor with other numbers is another question
    again = belief.snapshot(NOW + 1).moments_at_fixed_points(points)
    assert (again.mean - after.mean).abs().max() > 1e-6


@pytest.mark.parametrize("name", MODELS)
def test_only_streaming_beliefs_declare_snapshots(name):
    model = MODELS[name].make({"dtype": torch.float64}, True)
    assert isinstance(model, HasSnapshots) == isinstance(model, StreamingGP)


def test_bounds_are_smooth_functions_that_age():
    belief = streaming()
    for bound in (of(belief), TimeVaryingUCB(belief, BETA, NOW)):
        assert isinstance(bound, SmoothFunction)
        assert isinstance(bound, AgingFunction)
        assert bound.retained == belief.snapshot(NOW).retained
    unseen = TimeVaryingUCB(MODELS["TimeVaryingGP"].make({"dtype": torch.float64}, True), 1.0, 3)
    assert unseen.retained is None
    assert unseen.second_order is None


@pytest.mark.parametrize("family", ["matern12", "matern52", "rbf", "arms"])
def test_joint_moments_are_those_of_the_belief(family):
    generator, one = torch.Generator().manual_seed(0), torch.ones((), dtype=torch.float64)
    belief = StreamingGP(Stationary(family, 0.4 * one.reshape(1), 1.3 * one), 0.05, 0.02)
    for now in range(9):
        x = torch.rand(2, generator=generator).double().round(decimals=1)
        belief.observe(torch.cat([x, one.new_tensor([now])]), float(x.sum()))
    belief.rescale(0.5, 2.0)
    X = torch.cat([belief.inputs[:2, :-1], torch.rand(4, 2, generator=generator).double()])
    for now in (3, 12):
        mean, cov, prior_cov = belief.snapshot(now).joint(X)
        rows = torch.cat([X, torch.full_like(X[:, :1], now)], -1)
        expected = belief.mean_and_covariance(rows)
        torch.testing.assert_close(mean, expected[0], rtol=0, atol=1e-7)
        torch.testing.assert_close(cov, expected[1], rtol=0, atol=1e-6)
        torch.testing.assert_close(
            prior_cov, 4 * covariance(belief.kernel, X, X), rtol=0, atol=1e-6
        )


def test_the_projection_of_a_fixed_tensor_is_kept_until_the_next_observation():
    one = torch.ones((), dtype=torch.float64)
    belief = StreamingGP(Stationary("matern52", 0.4 * one.reshape(1), one), 0.05, 0.02)
    belief.observe(one.new_tensor([0.3, 0.0]), 1.0)
    X = torch.rand(5, 1, generator=torch.Generator().manual_seed(0)).double()

    def projection():
        return belief.snapshot(3.0).to(torch.float32).project(X, is_fixed=True)

    first = projection()
    assert projection() is first
    assert first.projected.dtype == torch.float32
    X.mul_(0.5)  # which torch counts
    assert projection() is not first
    second = projection()
    belief.observe(one.new_tensor([0.7, 1.0]), 1.0)
    assert projection().projected.shape == (5, 2)
    assert second.projected.shape == (5, 1)
    with torch.inference_mode():
        inside = projection()
    assert not projection().projected.is_inference()
    torch.testing.assert_close(inside.projected.clone(), projection().projected)
