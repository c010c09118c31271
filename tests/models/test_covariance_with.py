"""Covariances with a discretization against the joint posterior."""

import pytest
import torch

from botorch_costly.errors import InvalidShapeError
from botorch_costly.models import DriftingGrid, StreamingGP
from botorch_costly.numerics.stationary import Stationary
from tests.oracles import dense_gp

EXACT = {"rtol": 1e-10, "atol": 1e-10}
NOW = 25.0


def rows(*shape, now=NOW, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(*shape, 2, generator=generator, dtype=torch.float64)
    return torch.cat([x, torch.full((*shape, 1), now, dtype=torch.float64)], -1)


def belief(queries, unit=None, forgetting=0.05, dtype=torch.float64):
    kernel = Stationary(
        "matern52", torch.tensor([0.4], dtype=dtype), torch.tensor(1.3, dtype=dtype)
    )
    model = StreamingGP(kernel, forgetting, 0.1)
    for t, x in enumerate(rows(queries, seed=5)):
        x[-1] = 2 * t
        model.observe(x.to(dtype), 40 + float(x[0]))
    if unit is not None:
        model.rescale(40.0, unit)
    return model


@pytest.mark.parametrize("queries", [0, 1, 12])
@pytest.mark.parametrize("unit", [None, 7.0, 1e-3])
@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
def test_covariances_are_those_of_the_joint_posterior(queries, unit, shape):
    model, asked, others = belief(queries, unit), rows(*shape), rows(6, now=NOW + 3, seed=1)
    mean, variance, cov = model.covariance_with(asked, model.project(others))
    assert mean.shape == variance.shape == shape
    assert cov.shape == (*shape, 6)
    together = torch.cat([asked.unsqueeze(-2), others.expand(*shape, 6, 3)], -2)
    joint_mean, joint_cov = model.mean_and_covariance(together)
    scale = 1.0 if unit is None else unit**2
    torch.testing.assert_close(mean, joint_mean[..., 0], **EXACT)
    torch.testing.assert_close(variance / scale, joint_cov[..., 0, 0] / scale, **EXACT)
    torch.testing.assert_close(cov / scale, joint_cov[..., 0, 1:] / scale, **EXACT)


@pytest.mark.parametrize("queries", [0, 1, 12])
@pytest.mark.parametrize("unit", [None, 1e-3])
def test_what_is_prepared_once_is_the_same(queries, unit):
    model, asked, others = belief(queries, unit), rows(4), rows(6, seed=1)
    discretization, prepared = model.project(others), model.project(asked)
    for actual, other in zip(
        (*model.covariance_with(prepared, discretization), *model.mean_and_variance(prepared)),
        (*model.covariance_with(asked, discretization), *model.mean_and_variance(asked)),
        strict=True,
    ):
        torch.testing.assert_close(actual, other, rtol=1e-14, atol=0)


def test_covariances_are_those_of_the_paper():
    model, asked, others = belief(12), rows(4), rows(6, seed=1)
    everyone = torch.cat([asked, others])[:, :2]
    seen = model.inputs
    prior, cross, among = (
        dense_gp.matern(actual, other, 0.4, 1.3)
        for actual, other in [(seen[:, :2],) * 2, (everyone, seen[:, :2]), (everyone,) * 2]
    )
    times = seen[:, 2].tolist()
    expected, cov, _ = dense_gp.posterior(prior, times, model.rewards, 0.1, cross, among, NOW, 0.05)
    ours = model.covariance_with(asked, model.project(others))
    for actual, other in zip(ours, (expected[:4], cov.diagonal()[:4], cov[:4, 4:]), strict=True):
        torch.testing.assert_close(actual, other, rtol=1e-8, atol=1e-8)


def test_gradients_are_finite_differences():
    for queries in (0, 12):
        model = belief(queries)
        discretization = model.project(rows(5, seed=1))
        asked = rows(3).requires_grad_()
        assert torch.autograd.gradcheck(
            lambda x: model.covariance_with(x, discretization),  # noqa: B023
            (asked,),
        )


def test_rows_of_other_columns_are_named():
    model = belief(12)
    with pytest.raises(InvalidShapeError, match=r"3 columns \[configuration, round\]"):
        model.project(rows(5)[:, :2])
    with pytest.raises(InvalidShapeError, match=r"3 columns \[configuration, round\]"):
        model.covariance_with(rows(4)[:, 1:], model.project(rows(5)))


# -- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("forgetting", [0.0, 0.05, 1.0])
def test_the_weight_of_a_row_fades_with_its_age(forgetting):
    model = belief(5, forgetting=forgetting)
    ages = 11.0 - model.inputs[:, -1]
    expected = [(1 - forgetting) ** age for age in ages.tolist()]
    assert model.weights(11.0).tolist() == pytest.approx(expected, rel=1e-12)
    # A round that is still to come has full weight.
    assert (model.weights(-3.0) == 1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_there_are_no_weights_before_the_first_observation(dtype):
    assert belief(0, dtype=dtype).weights(3).shape == (0,)
    assert belief(3, dtype=dtype).weights(3).dtype == dtype


# -- the grid -------------------------------------------------------------------------------------


def grid(batch, rounds=60, n=9):
    generator = torch.Generator().manual_seed(2)
    x = torch.linspace(0, 1, n, dtype=torch.float64)[:, None]
    model = DriftingGrid(dense_gp.matern(x, x, 0.3, 1.4), 0.03, 0.05, torch.Size(batch))
    for _ in range(rounds):  # enough of them to compress the terms
        index = torch.randint(n, batch, generator=generator)
        query = torch.rand(batch, generator=generator) < 0.7
        model.observe(index, torch.randn(batch, generator=generator).double(), query)
        model.wait()
    return model


def posterior_on(model, index, step):
    """The covariances of a sublattice by the joint posterior of all points."""
    n, batch = model.num_points, model.batch_shape
    points = torch.arange(n, dtype=torch.float64).expand(*batch, n).unsqueeze(-1)
    joint = model.posterior(points).covariance_matrix[..., ::step]
    return joint.take_along_dim((step * index).unsqueeze(-1), -2)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize("rounds", [0, 60])
@pytest.mark.parametrize("step", [1, 2, 4])
def test_the_covariance_on_a_sublattice_is_that_of_the_posterior(batch, rounds, step):
    model = grid(batch, rounds)
    index = torch.randint(9 // step, (*batch, 4), generator=torch.Generator().manual_seed(3))
    cov = model.covariance_on_sublattice(index, step)
    assert cov.dtype == torch.float32
    expected = posterior_on(model, index, step)
    torch.testing.assert_close(cov.double(), expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize("rounds", [0, 60])
def test_covariances_among_points_are_those_of_the_posterior(batch, rounds):
    model = grid(batch, rounds)
    index = torch.randint(9, (*batch, 4), generator=torch.Generator().manual_seed(3))
    expected = model.posterior(index.double().unsqueeze(-1)).covariance_matrix
    torch.testing.assert_close(model.covariance_among(index), expected, rtol=0, atol=1e-10)


def test_terms_on_a_sublattice_follow_all_changes():
    """They are stored a second time, through queries, growth, compression, restarts, views and copies."""
    generator, model = torch.Generator().manual_seed(5), grid((2, 3), 0)
    index = torch.tensor([0, 3, 1]).expand(2, 3, 3)
    for t in range(80):
        at = torch.randint(9, (2, 3), generator=generator)
        query = torch.rand(2, 3, generator=generator) < 0.6
        model.take_in(at, torch.randn(2, 3, generator=generator).double(), query)
        model.wait()
        if t == 40:
            model.restart(torch.tensor([[True, False, False], [False, False, True]]))
        step = 4 if t in (20, 60) else 2
        places = index.clamp(max=8 // step)
        expected = posterior_on(model, places, step)
        close = {"rtol": 0, "atol": 2e-5}
        cov = model.covariance_on_sublattice(places, step).double()
        torch.testing.assert_close(cov, expected, **close)
        view = model.select(1)
        cov = view.covariance_on_sublattice(places[1], step).double()
        torch.testing.assert_close(cov, expected[1], **close)
    view.observe(torch.tensor([1, 2, 3]), torch.zeros(3).double())  # a copy of its own from here on
    cov = view.covariance_on_sublattice(places[1], step).double()
    torch.testing.assert_close(cov, posterior_on(view, places[1], step), **close)
    torch.testing.assert_close(
        model.covariance_on_sublattice(places, step).double(), expected, **close
    )
    other = grid((2, 3), 0)
    other.covariance_on_sublattice(places, step)
    other.set_extra_state(model.get_extra_state())
    cov = other.covariance_on_sublattice(places, step).double()
    torch.testing.assert_close(cov, expected, **close)
