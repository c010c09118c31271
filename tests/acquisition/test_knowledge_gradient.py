"""The knowledge gradient of a drifting reward: two models, one oracle, and BoTorch around it."""

import math

import pytest
import torch
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.optim import optimize_acqf

from botorch_costly.acquisition import TimeVaryingKG, TimeVaryingUCB, at_round
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.models import StreamingGP
from botorch_costly.numerics.stationary import Stationary
from tests.acquisition.beliefs import BOUNDS, NOW, dense, streaming
from tests.oracles import knowledge_gradient as oracle

EXACT = {"rtol": 1e-8, "atol": 1e-10}


def discretization(n=6):
    return torch.rand(n, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)


def noise_of(model):
    """Of a query, in the units of the rewards, which the models standardize."""
    x = torch.tensor([[0.5, 0.5, NOW]], dtype=torch.float64)
    with_noise = model.posterior(x, observation_noise=True).variance
    return (with_noise - model.posterior(x).variance).item()


# -- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("effective_horizon", [0.0, 1.0, 25.0])
def test_it_is_the_oracle_of_the_joint_belief(model, points, effective_horizon):
    ours = TimeVaryingKG(model, discretization(), NOW, effective_horizon)(points)
    noise, expected = noise_of(model), []
    for x in points:
        rows = torch.cat([torch.cat([x, discretization()]), torch.full((7, 1), NOW).double()], -1)
        posterior = model.posterior(rows)
        mean, cov = posterior.mean[:, 0].tolist(), posterior.covariance_matrix.tolist()
        expected.append(
            mean[0] + effective_horizon * oracle.knowledge_gradient(mean, cov, 0, noise)
        )
    assert ours.tolist() == pytest.approx(expected, rel=1e-9)
    assert max(expected) - min(expected) > 0.1


def test_the_streaming_path_is_that_of_any_model(points):
    fast, plain = (TimeVaryingKG(m, discretization(), NOW, 25.0) for m in (streaming(), dense()))
    torch.testing.assert_close(fast(points), plain(points), **EXACT)
    torch.testing.assert_close(fast.noise, plain.noise, **EXACT)
    for value, expected in zip(
        fast.mean_and_gain(points[:, 0]), plain.mean_and_gain(points[:, 0]), strict=True
    ):
        torch.testing.assert_close(value, expected, **EXACT)


def test_roughly_it_is_a_little_less(model, points):
    exact = TimeVaryingKG(model, discretization(), NOW, 25.0)
    rough = TimeVaryingKG(model, discretization(), NOW, 25.0, rough=True)
    (mean, gain), (same, less) = (w.mean_and_gain(points[:, 0]) for w in (exact, rough))
    torch.testing.assert_close(same, mean, **EXACT)
    assert (less <= gain + 1e-12).all()
    assert (less >= 0.9 * gain - 1e-3).all()
    assert (less < gain).any()
    torch.testing.assert_close(rough(points), mean + 25.0 * less, **EXACT)


def test_prepared_rows_say_the_same(points):
    belief = streaming()
    where = TimeVaryingKG(belief, discretization(), NOW, 25.0)
    rows = at_round(points[:, 0], torch.tensor(NOW))
    for value, expected in zip(where.terms(belief.project(rows)), where.terms(rows), strict=True):
        torch.testing.assert_close(value, expected, **EXACT)


def test_what_is_prepared_moves_with_the_function(points):
    """Buffers follow ``to``; of a dtype or a device left behind a product would complain."""
    where = TimeVaryingKG(streaming(), discretization(), NOW, 25.0)
    expected = where(points)
    single = where.to(torch.float32)
    assert {b.dtype for b in single.buffers() if b.is_floating_point()} == {torch.float32}
    torch.testing.assert_close(single(points.float()), expected.float(), rtol=1e-3, atol=1e-3)


def test_the_noise_of_a_query_may_be_given(model, points):
    usual = TimeVaryingKG(model, discretization(), NOW, 1.0)
    assert usual.noise.item() == pytest.approx(noise_of(model), rel=1e-6)
    same = TimeVaryingKG(model, discretization(), NOW, 1.0, noise_of(model))
    torch.testing.assert_close(same(points), usual(points), **EXACT)
    _, clear = TimeVaryingKG(model, discretization(), NOW, 1.0, 0.0).mean_and_gain(points[:, 0])
    _, noisy = TimeVaryingKG(model, discretization(), NOW, 1.0, 1e9).mean_and_gain(points[:, 0])
    assert (clear > usual.mean_and_gain(points[:, 0])[1]).all()
    assert (noisy < 1e-3).all()


def test_more_discretization_know_of_more_to_gain(model, points):
    """Next to the best of all, a lower bound rises with every point of the discretization."""
    levels = []
    for n in (3, 10, 40):
        kg = TimeVaryingKG(model, discretization(40)[:n], NOW, 1.0)
        mean, gain = kg.mean_and_gain(points[:, 0])
        best = torch.maximum(kg.discretization_mean.max(), mean)
        levels.append(best + gain)  # the expected maximum after the query
    assert (levels[0] <= levels[1] + 1e-9).all()
    assert (levels[1] <= levels[2] + 1e-9).all()
    assert (levels[2] > levels[0]).any()


def test_without_a_effective_horizon_it_is_the_mean_and_in_far_rounds_all_is_alike(model, points):
    mean = TimeVaryingUCB(model, 0.0, NOW)(points)
    torch.testing.assert_close(TimeVaryingKG(model, discretization(), NOW, 0.0)(points), mean)
    far = TimeVaryingKG(model, discretization(), 5000.0, 1.0)
    torch.testing.assert_close(far.discretization_mean, far.discretization_mean[:1].expand(6))


def test_before_the_first_reward_it_is_the_priors():
    kernel = Stationary("matern32", torch.tensor([0.5]).double(), torch.tensor(2.0).double())
    belief = StreamingGP(kernel, 0.1, 0.3)
    kg = TimeVaryingKG(belief, discretization(), NOW, 1.0)
    x = torch.tensor([[0.9, 0.9]]).double()
    _, cov = belief.mean_and_covariance(
        torch.cat([torch.cat([x, discretization()]), torch.full((7, 1), NOW).double()], -1)
    )
    expected = oracle.knowledge_gradient([0.0] * 7, cov.tolist(), 0, 0.3)
    assert kg(x.unsqueeze(0)).item() == pytest.approx(expected, rel=1e-10)


def test_where_everything_is_known_there_is_nothing_to_gain():
    kernel = Stationary("rbf", torch.tensor([0.5]).double(), torch.tensor(1.0).double())
    belief = StreamingGP(kernel, 0.0, 1e-6)
    for _ in range(30):
        belief.observe(torch.tensor([0.5, 0.5, NOW]).double(), 1.0)
    kg = TimeVaryingKG(belief, torch.tensor([[0.5, 0.5], [0.4, 0.5]]).double(), NOW, 1.0)
    _, gain = kg.mean_and_gain(torch.tensor([0.5, 0.5]).double())
    assert 0 <= gain < 1e-3


# -- inside BoTorch -----------------------------------------------------------------------------


def test_optimize_acqf_finds_the_best_of_a_grid(model):
    acquisition = TimeVaryingKG(model, discretization(), NOW, 25.0)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        best, value = optimize_acqf(acquisition, BOUNDS, q=1, num_restarts=6, raw_samples=48)
    ticks = torch.linspace(0, 1, 30, dtype=torch.float64)
    with torch.no_grad():
        on_grid = acquisition(torch.cartesian_prod(ticks, ticks).unsqueeze(-2)).max()
        torch.testing.assert_close(acquisition(best)[0], value)
    assert best.shape == (1, 2)
    assert value >= on_grid - 1e-6


def test_the_input_constructor(model, points):
    constructor = get_acqf_input_constructor(TimeVaryingKG)
    ours = TimeVaryingKG(
        **constructor(model=model, discretization=discretization(), now=NOW, effective_horizon=3.0)
    )
    expected = TimeVaryingKG(model, discretization(), NOW, 3.0)
    torch.testing.assert_close(ours(points), expected(points), rtol=0, atol=0)
    given = constructor(
        model=model, discretization=discretization(), now=NOW, effective_horizon=3.0, noise=0.7
    )
    assert TimeVaryingKG(**given).noise == 0.7


# -- arguments ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["effective_horizon", "noise"])
@pytest.mark.parametrize(
    "bad", [-1e-9, math.nan, math.inf, torch.tensor([1.0, 2.0]), torch.zeros(0), "1"], ids=repr
)
def test_a_bad_number_is_named(model, name, bad):
    numbers = {"effective_horizon": 1.0, "noise": 0.1, name: bad}
    with pytest.raises(InvalidArgumentError, match=rf"{name}: Expected .*number.*; Received"):
        TimeVaryingKG(model, discretization(), NOW, **numbers)


@pytest.mark.parametrize("now", [math.nan, None, torch.tensor([1.0, 2.0])], ids=repr)
def test_a_bad_round_is_named(model, now):
    with pytest.raises(InvalidArgumentError, match=r"now: Expected .*; Received"):
        TimeVaryingKG(model, discretization(), now, 1.0)


@pytest.mark.parametrize("shape", [(0, 2), (2,), (3, 1, 2)])
def test_discretization_of_another_shape_are_named(model, shape):
    with pytest.raises(
        InvalidShapeError, match="discretization: Expected at least one configuration"
    ):
        TimeVaryingKG(model, torch.zeros(shape).double(), NOW, 1.0)


def test_the_effective_horizon_may_be_a_number_of_one_entry(model, points):
    number, tensor = (
        TimeVaryingKG(model, discretization(), NOW, r)(points) for r in (25, torch.tensor([25.0]))
    )
    torch.testing.assert_close(number, tensor)
