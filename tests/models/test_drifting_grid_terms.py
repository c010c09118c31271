"""Dropping, compressing and rounding the terms of observations does not change the posterior."""

import itertools

import pytest
import torch

from botorch_costly.errors import NumericalError
from botorch_costly.models import DriftingGrid
from botorch_costly.numerics.drift import Belief, predict, update
from tests.cases import quick
from tests.models.grids import NOISE, assert_is_the_oracle, fresh_oracle, prior_cov, run


@pytest.mark.parametrize("forgetting", quick([0.6, 0.97, 1.0], 0.97))
def test_dead_terms_make_room_over_thousands_of_rounds(forgetting):
    prior = prior_cov(60)
    belief = DriftingGrid(prior, forgetting, NOISE)
    oracle = run(belief, 2000, oracle=fresh_oracle(prior))
    assert_is_the_oracle(belief, oracle)
    assert belief.num_terms <= 60
    assert belief.get_extra_state()["terms"].shape[1] <= 120


@pytest.mark.parametrize("forgetting", quick([0.0, 1e-4, 0.02], 1e-4))
def test_compression_changes_nothing(forgetting):
    prior = prior_cov(12)
    belief = DriftingGrid(prior, forgetting, NOISE)
    oracle = run(belief, 700, oracle=fresh_oracle(prior))
    assert_is_the_oracle(belief, oracle)
    assert belief.num_terms <= 24
    assert belief.get_extra_state()["terms"].shape[1] <= 24


@pytest.mark.parametrize("forgetting", quick([0.1, 0.9, 1.0], 0.9))
def test_many_queries_in_one_round_all_count(forgetting):
    prior = prior_cov(40)
    belief = DriftingGrid(prior, forgetting, NOISE)
    oracle = run(belief, 30, oracle=fresh_oracle(prior), at_once=50)
    assert_is_the_oracle(belief, oracle)
    for i in range(5):
        belief.observe(torch.tensor(i), torch.tensor(1.0))
        oracle, _ = update(oracle, torch.tensor(i), torch.tensor(1.0), torch.tensor(NOISE).double())
    # Noise of the oracle above is rounded to single precision.
    torch.testing.assert_close(belief.covariance(torch.tensor(2)), oracle.cov[2], atol=1e-6, rtol=0)


@pytest.mark.parametrize("number", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_one_point_queried_at_thousands_of_times(number):
    belief = DriftingGrid(prior_cov(3), 0.0, NOISE)
    for _ in range(number):
        belief.observe(torch.tensor(1), torch.tensor(2.0))
    precision = 1 / 1.4 + number / NOISE
    assert belief.variance[1].item() == pytest.approx(1 / precision, rel=1e-6)
    assert belief.mean[1].item() == pytest.approx(2 * number / NOISE / precision, rel=1e-8)
    assert (belief.variance >= 0).all()


def rank_one(n, seed):
    return 1 + torch.rand(n, 1, generator=torch.Generator().manual_seed(seed))


def least_noise(prior):
    """Just above the smallest noise that is allowed."""
    return 101 * torch.finfo(prior.dtype).eps * float(prior.diagonal().max())


@pytest.mark.parametrize(("n", "seed"), quick(itertools.product([5, 30, 100], range(3)), (100, 2)))
def test_rounding_does_not_feed_on_itself(n, seed):
    """One query tells all, in single precision; more than two thousand follow."""
    v = rank_one(n, seed)
    belief = DriftingGrid(v @ v.mT, 0.0, least_noise(v @ v.mT))
    for i in range(2000 + 2 * n):
        belief.observe(torch.tensor(i % n), v[i % n, 0])
        assert (belief.variance >= 0).all()
    torch.testing.assert_close(belief.mean, v.squeeze(-1), rtol=0, atol=2e-2)
    # The truth is a variance of noise / queries, far below the rounding errors of the prior's 4.
    assert float(belief.variance.max()) < 1e-4


@pytest.mark.parametrize(
    ("lengthscale", "forgetting"),
    quick(
        itertools.product([0.01, 0.5, 1e3], [0.0, 0.001, 0.05]),
        (0.5, 0.001),
    ),
)
def test_single_precision_at_the_least_noise_is_the_filter_in_double(lengthscale, forgetting):
    n, generator = 20, torch.Generator().manual_seed(3)
    x = torch.linspace(0, 1, n)[:, None]
    prior = (-0.5 * ((x - x.mT) / lengthscale).square()).exp()
    noise = least_noise(prior)
    belief = DriftingGrid(prior, forgetting, noise)
    dense = Belief(torch.zeros(n).double(), prior.double())
    for _ in range(1500):
        at = torch.randint(n, (), generator=generator)
        y = noise**0.5 * torch.randn((), generator=generator).double()
        belief.observe(at, y.float())
        dense, _ = update(dense, at, y, torch.tensor(noise).double())
        belief.wait()
        dense = predict(dense, prior.double(), torch.tensor(forgetting), torch.tensor(1.0))
    truth = dense.cov.diagonal().clamp_min(0)  # it rounds as well
    scale = truth.sqrt() + noise**0.5
    assert float(((belief.mean.double() - dense.mean) / scale).abs().max()) < 2
    torch.testing.assert_close(belief.variance.double(), truth, rtol=0.05, atol=2 * noise)


def test_a_belief_that_is_not_finite_is_named_and_stays_as_it_is():
    belief = DriftingGrid(prior_cov(3), 0.1, NOISE)
    belief.observe(torch.tensor(1), torch.tensor(2.0))
    state = belief.get_extra_state()
    broken = {**state, "mean": state["mean"] * torch.nan}
    belief.set_extra_state(broken)
    variance = belief.variance
    with pytest.raises(NumericalError, match="finite covariances"):
        belief.observe(torch.tensor(1), torch.tensor(2.0))
    assert torch.equal(belief.variance, variance)
    assert belief.num_terms == 1
