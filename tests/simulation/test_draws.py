"""Chance in each trial: its own stream, the distribution claimed, and nothing else touched."""

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.problems import DriftingFunction
from botorch_costly.simulation import draw
from botorch_costly.simulation.draws import stream


def problem(forgetting=0.1, n=20):
    return DriftingFunction.on_unit_interval(n, forgetting)


def assert_same(first, other):
    assert all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("n", [7, 20, 33])
def test_a_trial_is_the_same_to_the_last_bit_whatever_is_drawn_beside_it(n):
    whole = draw(problem(n=n), range(12), 70, seed=3)
    for trials in (range(5, 6), range(2, 9), range(11, 12)):
        alone = draw(problem(n=n), trials, 70, seed=3)
        assert_same(alone, [values[trials.start : trials.stop] for values in whole])


def test_a_longer_run_begins_as_a_shorter_one():
    long, short = (draw(problem(), range(3), horizon) for horizon in (150, 41))
    assert torch.equal(long.paths[:, :41], short.paths)
    assert torch.equal(long.noise[:, :41], short.noise)
    assert torch.equal(long.coins[:, :41], short.coins)
    assert torch.equal(long.opening, short.opening)


def test_trials_and_seeds_differ():
    draws = [draw(problem(), range(6), 5, seed) for seed in (0, 1, 2**32, 2**32 + 1, 2**70)]
    values = torch.cat([trial.paths[:, 0, 0] for trial in draws])
    assert len(values.unique()) == len(values) == 30


def test_no_two_trials_of_a_seed_share_a_stream():
    first = torch.tensor([stream(7, trial).initial_seed() for trial in range(20_000)])
    assert len(first.unique()) == 20_000
    assert first.max() < 2**32


@pytest.mark.parametrize("forgetting", [0.05, 0.5])
def test_what_is_drawn_has_the_distribution_claimed(forgetting):
    """Over 3,000 trials: the prior's covariance times (1 - forgetting)^(lag / 2), and no other ties."""
    truth = problem(forgetting, 5)
    draws = draw(truth, range(3000), 6)
    for lag in (0, 1, 5):
        covariance = draws.paths[:, 0].mT @ draws.paths[:, lag] / 3000
        expected = truth.prior_cov * (1 - forgetting) ** (lag / 2)
        assert (covariance - expected).abs().max() < 0.09  # one standard error is about 0.026
    assert draws.noise.var().item() == pytest.approx(0.01, rel=0.05)
    assert draws.coins.mean().item() == pytest.approx(0.5, abs=0.01)
    assert (draws.coins.sort().values[0] >= 0).all()
    assert (draws.opening.bincount(minlength=5) / 3000 - 0.2).abs().max() < 0.03
    chances = torch.stack([draws.paths[:, 3, 2], draws.noise[:, 3], draws.coins[:, 3]])
    assert (chances.corrcoef() - torch.eye(3)).abs().max() < 0.08


def test_without_forgetting_it_stands_still_and_with_all_starts_anew():
    still = draw(problem(0.0), range(2), 4).paths
    assert torch.equal(still[:, 0], still[:, 3])
    anew = draw(problem(1.0, 5), range(3000), 2).paths
    assert (anew[:, 0].mT @ anew[:, 1] / 3000).abs().max() < 0.09


def test_the_global_generator_is_left_alone():
    before = torch.random.get_rng_state()
    draw(problem(), range(2), 5)
    assert torch.random.get_rng_state().equal(before)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"trials": range(0)}, "trials"),
        ({"trials": range(-1, 2)}, "first trial"),
        ({"horizon": 0}, "horizon"),
        ({"seed": -1}, "seed"),
        ({"seed": 0.5}, "seed"),
    ],
)
def test_what_is_wrong_is_named(changed, name):
    options = {"trials": range(2), "horizon": 3, "seed": 0, **changed}
    with pytest.raises(InvalidArgumentError, match=f"{name}: Expected .*; Received"):
        draw(problem(), **options)
