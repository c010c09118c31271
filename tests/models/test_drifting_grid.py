"""The posterior on a grid against a plain Kalman filter, and edge cases of long runs."""

import copy
import io
import pickle

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.models import DriftingGrid
from botorch_costly.numerics.knowledge_gradient import strata
from botorch_costly.numerics.separation import log_prob_min_by_draws
from tests.models.grids import NOISE, assert_is_the_oracle, fresh_oracle, prior_cov, run


def snapshot(belief):
    state = copy.deepcopy(belief.get_extra_state())
    return {**state, "column": belief.covariance(torch.zeros(belief.batch_shape).long())}


def assert_same_state(belief, before):
    for name, value in snapshot(belief).items():
        assert torch.equal(value, before[name]), name


def test_waiting_several_rounds_at_once_is_waiting_one_by_one():
    grid, many = (DriftingGrid(prior_cov(), 0.1, NOISE) for _ in range(2))
    for belief in (grid, many):
        run(belief, 20)
    for _ in range(7):
        grid.wait()
    many.wait(4.5)
    many.wait(2.5)
    torch.testing.assert_close(grid.mean, many.mean, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(grid.variance, many.variance, rtol=1e-12, atol=1e-14)


def test_restart_is_the_beginning():
    belief = DriftingGrid(prior_cov(), 0.01, NOISE)
    run(belief, 50)
    belief.restart()
    assert (belief.mean == 0).all()
    assert torch.equal(belief.variance, belief.prior_cov.diagonal())
    assert belief.num_terms == 0
    oracle = run(belief, 50, oracle=fresh_oracle(belief.prior_cov))
    assert_is_the_oracle(belief, oracle)


def test_the_prior_mean_is_where_it_relaxes_to():
    plain, shifted = (DriftingGrid(prior_cov(), 0.2, NOISE, prior_mean=m) for m in (0.0, 5.0))
    at = torch.tensor(3)
    expected = plain.observe(at, torch.tensor(2.0))
    torch.testing.assert_close(shifted.observe(at, torch.tensor(7.0)), expected)
    torch.testing.assert_close(shifted.mean, plain.mean + 5)
    assert shifted.posterior(torch.tensor([[3.0]])).mean.item() == pytest.approx(6.93, abs=0.01)
    shifted.wait(500)
    torch.testing.assert_close(shifted.mean, torch.full_like(shifted.mean, 5.0))


def test_without_queries_nothing_changes():
    belief = DriftingGrid(prior_cov(), 0.1, NOISE, torch.Size([3]))
    run(belief, 10)
    before = snapshot(belief)
    nobody = torch.zeros(3, dtype=torch.bool)
    log_prob = belief.observe(torch.tensor([0, 1, 2]), torch.full((3,), torch.nan), nobody)
    assert (log_prob == 0).all()
    assert_same_state(belief, before)


def test_what_was_read_does_not_change_later():
    belief = DriftingGrid(prior_cov(), 0.1, NOISE)
    run(belief, 5)
    read = (belief.mean, belief.variance, belief.covariance(torch.tensor(0)))
    kept = [tensor.clone() for tensor in read]
    run(belief, 5)
    assert all(torch.equal(a, b) for a, b in zip(read, kept, strict=True))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: b.observe(torch.tensor([0, 1]), torch.tensor([1.0, torch.nan])), "y: Expected"),
        (lambda b: b.observe(torch.tensor([0, 1]), torch.tensor([torch.inf, 1.0])), "y: Expected"),
        (lambda b: b.observe(torch.tensor([0, 12]), torch.ones(2)), r"index: Expected .* 0\.\.11"),
        (lambda b: b.observe(torch.tensor([-1, 0]), torch.ones(2)), r"index: Expected .* 0\.\.11"),
        (lambda b: b.covariance(torch.tensor([12, 0])), r"index: Expected .* 0\.\.11"),
        (lambda b: b.posterior(torch.tensor([[12.0]])), r"index: Expected .* 0\.\.11"),
        (lambda b: b.wait(-1), "rounds: Expected a finite number >= 0"),
        (lambda b: b.wait(float("nan")), "rounds: Expected a finite number >= 0"),
    ],
)
def test_bad_input_is_named_and_leaves_the_belief_as_it_was(call, message):
    belief = DriftingGrid(prior_cov(), 0.1, NOISE, torch.Size([2]))
    run(belief, 5)
    before = snapshot(belief)
    with pytest.raises(InvalidArgumentError, match=message):
        call(belief)
    assert_same_state(belief, before)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"forgetting": -0.1}, InvalidArgumentError),
        ({"forgetting": 1.1}, InvalidArgumentError),
        ({"forgetting": float("nan")}, InvalidArgumentError),
        ({"noise": -1.0}, InvalidArgumentError),
        ({"noise": 0.0}, InvalidArgumentError),
        ({"noise": 1e-6}, InvalidArgumentError),  # in single precision
        ({"tolerance": 1.0}, InvalidArgumentError),
        ({"prior_cov": torch.ones(3, 2)}, InvalidShapeError),
        ({"prior_cov": torch.ones(3)}, InvalidShapeError),
        ({"prior_cov": torch.ones(0, 0)}, InvalidShapeError),
    ],
)
def test_bad_construction_is_named(changed, error):
    arguments = {"prior_cov": torch.eye(3), "forgetting": 0.1, "noise": NOISE, **changed}
    with pytest.raises(error, match=rf"{next(iter(changed))}: Expected .*; Received"):
        DriftingGrid(**arguments)


def through_a_file(belief):
    file = io.BytesIO()
    torch.save(belief.state_dict(), file)
    file.seek(0)
    other = DriftingGrid(prior_cov(), belief.forgetting, NOISE, belief.batch_shape)
    other.load_state_dict(torch.load(file, weights_only=True))
    return other


@pytest.mark.parametrize("forgetting", [0.0, 0.1, 0.95])
@pytest.mark.parametrize(
    "duplicate", [through_a_file, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))]
)
def test_a_copy_continues_bit_by_bit(forgetting, duplicate):
    belief = DriftingGrid(prior_cov(), forgetting, NOISE, torch.Size([2]))
    run(belief, 45)
    other = duplicate(belief)
    run(belief, 45, seed=1)
    run(other, 45, seed=1)
    assert_same_state(belief, snapshot(other))


def test_a_loaded_state_is_not_shared():
    belief = DriftingGrid(prior_cov(), 0.1, NOISE)
    run(belief, 5)
    before, state = snapshot(belief), belief.get_extra_state()
    other = DriftingGrid(prior_cov(), 0.1, NOISE)
    other.set_extra_state(state)
    run(other, 5)
    assert_same_state(belief, before)


def test_single_precision_stays_single_and_close():
    single = DriftingGrid(prior_cov(dtype=torch.float32), 0.05, NOISE)
    double = DriftingGrid(prior_cov(), 0.05, NOISE)
    for belief in (single, double):
        run(belief, 200)
    posterior = single.posterior(torch.tensor([[0.0], [3.0]]), observation_noise=True)
    for tensor in (
        single.mean,
        single.variance,
        single.covariance(torch.tensor(1)),
        posterior.mean,
    ):
        assert tensor.dtype == torch.float32
    torch.testing.assert_close(single.mean.double(), double.mean, rtol=0, atol=1e-4)
    torch.testing.assert_close(single.variance.double(), double.variance, rtol=0, atol=1e-4)


def test_values_of_another_shape_are_named():
    belief = DriftingGrid(torch.eye(4, dtype=torch.float64), 0.1, 0.1, torch.Size([3]))
    index = torch.tensor([0, 1, 2])
    with pytest.raises(InvalidShapeError, match=r"y: Expected one value or shape \(3,\)"):
        belief.observe(index, torch.zeros(2))
    with pytest.raises(InvalidShapeError, match="query: Expected one value or shape"):
        belief.observe(index, torch.zeros(3), torch.tensor([True, False]))
    assert belief.num_terms == 0


@pytest.mark.parametrize("capacity", [1, 7, 500])
def test_memory_set_aside_changes_nothing(capacity):
    small = DriftingGrid(prior_cov(), 0.1, NOISE, torch.Size([3]), capacity=capacity)
    usual = DriftingGrid(prior_cov(), 0.1, NOISE, torch.Size([3]))
    for belief in (small, usual):
        run(belief, 60)
    torch.testing.assert_close(small.mean, usual.mean, rtol=0, atol=1e-13)
    torch.testing.assert_close(small.variance, usual.variance, rtol=0, atol=1e-13)
    with pytest.raises(InvalidArgumentError, match="capacity: Expected an integer >= 1"):
        DriftingGrid(prior_cov(), 0.1, NOISE, capacity=0)


def test_terms_of_single_precision_keep_moments_of_double_precision():
    half = DriftingGrid(prior_cov(), 0.05, NOISE, term_dtype=torch.float32)
    double = DriftingGrid(prior_cov(), 0.05, NOISE)
    for belief in (half, double):
        run(belief, 200)
    assert half.get_extra_state()["terms"].dtype == torch.float32
    at = torch.tensor(3)
    for tensor in (half.mean, half.variance, half.covariance(at)):
        assert tensor.dtype == torch.float64
    torch.testing.assert_close(half.mean, double.mean, rtol=0, atol=1e-5)
    torch.testing.assert_close(half.variance, double.variance, rtol=0, atol=1e-6)
    torch.testing.assert_close(half.covariance(at), double.covariance(at), rtol=0, atol=1e-6)
    with pytest.raises(InvalidArgumentError, match="noise: Expected at least"):
        DriftingGrid(prior_cov(), 0.1, 1e-6, term_dtype=torch.float32)


@pytest.mark.parametrize(
    "call",
    [
        lambda mean: log_prob_min_by_draws(mean, torch.eye(3, dtype=torch.float64), draws=17),
        lambda mean: strata((-0.37, 0.11))[0] * mean,
    ],
    ids=["draws", "strata"],
)
def test_what_is_kept_within_inference_mode_serves_gradients_later(call):
    mean = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
    with torch.inference_mode():
        call(mean)
    mean.requires_grad_()
    call(mean)[0].backward()
    assert mean.grad.isfinite().all()


def test_a_belief_goes_on_in_single_precision():
    prior = (-(torch.arange(3.0).double() - torch.arange(3.0).double()[:, None]).abs()).exp()
    rates = torch.tensor([0.1, 0.3], dtype=torch.float64)
    belief = DriftingGrid(prior, rates, 0.1, torch.Size([2]))
    single = copy.deepcopy(belief).float()
    for step, y in enumerate([1.0, -0.5, 2.0]):
        for grid in (belief, single):
            grid.observe(torch.tensor([step, 2 - step]), torch.tensor([y, y]))
            grid.wait()
    assert single.mean.dtype == single.variance.dtype == torch.float32
    torch.testing.assert_close(single.mean.double(), belief.mean, rtol=1e-5, atol=1e-5)
    again = copy.deepcopy(single).double()
    assert again.mean.dtype == again.covariance(torch.tensor(1)).dtype == torch.float64


def test_a_noise_below_the_rounding_of_another_dtype_is_refused_and_nothing_is_converted():
    belief = DriftingGrid(torch.eye(3, dtype=torch.float64), forgetting=0.1, noise=1e-9)
    with pytest.raises(InvalidArgumentError, match="noise: Expected at least"):
        belief.float()
    assert belief.prior_cov.dtype == belief.mean.dtype == torch.float64
