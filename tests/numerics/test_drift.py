"""The forgetting recursion against the dense GP, and the paper's lemmas about it."""

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

from botorch_costly.numerics.drift import (
    Belief,
    information_gain,
    memory,
    predict,
    regret_bound,
    retention,
    retention_float,
    update,
)
from tests.oracles import dense_gp

RATES = [0.0, 1e-12, 0.003, 0.05, 0.5, 1 - 1e-9, 1.0]
LAGS = [0.0, 0.25, 1.0, 2.0, 1000.0]


def double(value):
    return torch.tensor(value, dtype=torch.float64)


def test_retention_is_its_definition():
    keep = retention(double(RATES)[:, None], double(LAGS))
    for i, rate in enumerate(RATES):
        for j, lag in enumerate(LAGS):
            assert keep[i, j].item() == pytest.approx((1 - rate) ** (lag / 2), rel=1e-9)
            assert keep[i, j].item() == pytest.approx(retention_float(rate, lag), rel=1e-14)


def test_retention_is_exact_at_its_limits():
    lags = double(LAGS)
    assert (retention(double(0.0), lags) == 1).all()
    assert (retention(double(1.0), lags) == (lags == 0)).all()
    assert (retention(double(RATES), double(0.0)) == 1).all()
    assert retention_float(0.0, 1e9) == 1 == retention_float(1.0, 0.0)
    assert retention_float(1.0, 1e-9) == 0


def test_retention_has_finite_gradients_everywhere():
    rate = double(RATES)[:, None].requires_grad_()
    lag = double(LAGS).requires_grad_()
    retention(rate, lag).sum().backward()
    assert rate.grad.isfinite().all()
    assert lag.grad.isfinite().all()


def test_retention_has_the_gradient_of_the_finite_difference():
    rate = double([0.003, 0.05, 0.5])[:, None].requires_grad_()
    lag = double([0.25, 1.0, 30.0]).requires_grad_()
    assert torch.autograd.gradcheck(retention, (rate, lag))


def test_memory_is_when_an_observation_is_forgotten():
    assert memory(0.0, 1e-8) == math.inf
    assert memory(1.0, 1e-8) == 0
    for rate in (0.003, 0.05, 0.9):
        assert retention_float(rate, memory(rate, 1e-8)) ** 2 == pytest.approx(1e-8)


def problem(forgetting, adaptive=False):
    """Sparse queries at uneven rounds; where to query may depend on what was seen."""
    generator = torch.Generator().manual_seed(5)
    grid = torch.rand(9, 2, generator=generator, device=generator.device, dtype=torch.float64)
    prior = dense_gp.matern(grid, grid, 0.4, nu=1.5)
    rate, noise = double(forgetting), double(0.05)
    times = torch.tensor([0.0, 0.0, 1.0, 4.5, 5.0, 11.0, 12.0, 40.0, 40.25], dtype=torch.float64)
    belief, now, log_prob = Belief(torch.zeros(9, dtype=torch.float64), prior), 0.0, 0.0
    index, y, variances = (
        [],
        torch.randn(9, generator=generator, device=generator.device, dtype=torch.float64),
        [],
    )
    for t, value in zip(times, y, strict=True):
        belief, now = predict(belief, prior, rate, t - now), t
        ucb = belief.mean + belief.cov.diagonal().sqrt()
        at = (
            ucb.argmax()
            if adaptive
            else torch.randint(9, (), generator=generator, device=generator.device)
        )
        index.append(int(at))
        variances.append(belief.cov[at, at])
        belief, step = update(belief, at, value, noise)
        log_prob = log_prob + step
    queries = {"times": times.tolist(), "index": index, "y": y, "noise": noise, "prior": prior}
    return belief, log_prob, torch.stack(variances), queries


@pytest.mark.parametrize("forgetting", [0.0, 0.02, 0.5, 1.0])
def test_the_recursion_is_the_dense_gp(forgetting):
    belief, log_prob, _, queries = problem(forgetting)
    prior, index = queries["prior"], queries["index"]
    now = 43.0
    belief = predict(belief, prior, double(forgetting), double(now - 40.25))
    mean, cov, expected = dense_gp.posterior(
        prior[index][:, index], queries["times"], queries["y"], 0.05, prior[:, index], prior, now,
        forgetting,
    )  # fmt: skip
    torch.testing.assert_close(belief.mean, mean, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(belief.cov, cov, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(log_prob, expected, rtol=1e-10, atol=0)


def test_a_batch_of_beliefs_is_a_loop(generator):
    prior = dense_gp.matern(
        *[torch.rand(5, 1, generator=generator, device=generator.device, dtype=torch.float64)] * 2,
        0.3,
    )
    belief = Belief(torch.zeros(2, 3, 5, dtype=torch.float64), prior.expand(2, 3, 5, 5))
    index = torch.randint(5, (2, 3), generator=generator, device=generator.device)
    y = torch.randn(2, 3, generator=generator, device=generator.device, dtype=torch.float64)
    rate, lag = torch.rand(
        2, 2, 3, generator=generator, device=generator.device, dtype=torch.float64
    )
    noise = double(0.1)
    many, log_prob = update(predict(belief, prior, rate, lag), index, y, noise)
    for i in range(2):
        for j in range(3):
            alone = predict(Belief(belief.mean[i, j], prior), prior, rate[i, j], lag[i, j])
            alone, step = update(alone, index[i, j], y[i, j], noise)
            torch.testing.assert_close(many.mean[i, j], alone.mean)
            torch.testing.assert_close(many.cov[i, j], alone.cov)
            torch.testing.assert_close(log_prob[i, j], step)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("forgetting", [0.0, 0.02, 0.5, 1.0])
def test_lemma_3_holds_for_sparse_and_adaptive_queries(forgetting, adaptive):
    _, _, variances, queries = problem(forgetting, adaptive)
    index, noise = queries["index"], queries["noise"]
    t = double(queries["times"])
    kernel = queries["prior"][index][:, index] * (1 - forgetting) ** ((t[:, None] - t).abs() / 2)
    log_determinant = torch.logdet(torch.eye(9, dtype=torch.float64) + kernel / noise)  # (15)
    gain = information_gain(variances, noise)  # (17)
    torch.testing.assert_close(gain, log_determinant / 2, rtol=1e-10, atol=0)


@settings(deadline=None, max_examples=60)
@given(
    st.floats(0, 1),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 20)), max_size=8),
    st.floats(0.3, 1.0),
)
def test_lemma_2_bounds_the_growth_of_the_variance(forgetting, queries, scale):
    x = torch.linspace(0, 1, 6, dtype=torch.float64)[:, None]
    prior = dense_gp.matern(x, x, 0.4, scale)  # variances of at most 1
    rate = double(forgetting)
    belief = Belief(torch.zeros(6, dtype=torch.float64), prior)
    for at, lag in queries:
        belief = predict(belief, prior, rate, double(float(lag)))
        belief, _ = update(belief, torch.tensor(at), double(1.0), double(0.05))
    before = belief.cov.diagonal()
    after = predict(belief, prior, rate, double(1.0)).cov.diagonal()
    assert (before <= after + 1e-12).all()
    assert (after <= (1 - forgetting) * before + forgetting + 1e-12).all()  # (12)


def test_lemma_1_is_false_rankings_swap_while_waiting():
    """The paper keeps a point while waiting because UCB rankings would not change. They do."""
    prior = torch.eye(2, dtype=torch.float64)
    belief = Belief(torch.zeros(2, dtype=torch.float64), prior)
    # A query at the second point that leaves it at 0.5 +- 0.1.
    belief, _ = update(belief, torch.tensor(1), double(0.5 / 0.99), double(0.01 / 0.99))
    torch.testing.assert_close(belief.mean, double([0.0, 0.5]))
    torch.testing.assert_close(belief.cov.diagonal().sqrt(), double([1.0, 0.1]))
    later = predict(belief, prior, double(0.36), double(1.0))  # a = 0.8
    before, after = (b.mean + b.cov.diagonal().sqrt() for b in (belief, later))
    assert before.argmax() == 0
    assert after.argmax() == 1
    torch.testing.assert_close(after, double([1.0, 1.005]), rtol=0, atol=5e-4)


def test_the_regret_bound_is_above_the_sum_of_variances_it_bounds():
    # (28) <= (31), with equality up to the factor sqrt(1) at variances of 1.
    beta, noise, queries = double(4.0), double(0.1), double(20.0)
    variance = torch.rand(50, 20, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    variance[0] = 1.0
    bound = regret_bound(information_gain(variance, noise), beta, noise, 100, queries)
    summed = (4 * beta * 100**2 / queries * variance.sum(-1)).sqrt()  # (28)
    torch.testing.assert_close(bound[0], summed[0])
    assert (bound[1:] > summed[1:]).all()


def test_the_regret_bound_grows_with_everything_but_queries():
    base = {"gain": 5.0, "beta": 4.0, "noise": 0.1, "queries": 20.0}

    def bound(horizon=100, **changed):
        values = {name: double(value) for name, value in {**base, **changed}.items()}
        return regret_bound(horizon=horizon, **values).item()

    for name in ("gain", "beta"):
        assert bound(**{name: 4 * base[name]}) == pytest.approx(2 * bound())
    assert bound(horizon=200) == pytest.approx(2 * bound())
    assert bound(queries=80.0) == pytest.approx(bound() / 2)
    assert bound(noise=0.2) > bound()
    assert bound(gain=0.0) == 0
