"""Intervals are those of paired seeds, and always the same."""

import math

import numpy as np
import pytest
from scipy.stats import bootstrap, ttest_1samp

from benchmarks.harness import statistics
from benchmarks.harness.statistics import paired, paired_ratio

LEVELS = np.linspace(1, 50, 20)  # seeds differ far more than methods do


def test_what_all_seeds_share_is_certain():
    assert paired(LEVELS + 0.5, LEVELS) == pytest.approx((0.5, 0.5, 0.5))
    assert paired_ratio(0.8 * LEVELS, LEVELS) == pytest.approx((0.8, 0.8, 0.8))


def test_seeds_are_drawn_together():
    noise = np.random.default_rng(1).normal(size=20)
    found = paired(LEVELS + noise, LEVELS)
    assert found.value == pytest.approx(noise.mean())
    # Unpaired the interval would be as wide as the seeds differ, some twelve.
    assert found.high - found.low < 1.5


def test_the_interval_is_that_of_a_mean():
    noise = np.random.default_rng(2).normal(size=400)
    found = paired(noise, np.zeros(400))
    half = 1.96 * noise.std() / math.sqrt(400)
    assert found.low == pytest.approx(noise.mean() - half, abs=0.02)
    assert found.high == pytest.approx(noise.mean() + half, abs=0.02)


@pytest.mark.parametrize("seeds", [2, 7, 40])
def test_the_draws_are_those_of_scipy(seeds, monkeypatch):
    monkeypatch.setattr(statistics, "_expanded", lambda _: 0.95)
    ours, theirs = np.random.default_rng(seeds).normal(3, size=(2, seeds))
    options = {"n_resamples": 9999, "method": "percentile", "paired": True, "vectorized": True}
    for ours_by_theirs, statistic in (
        (paired, lambda a, b, axis=-1: (a - b).mean(axis)),
        (paired_ratio, lambda a, b, axis=-1: a.mean(axis) / b.mean(axis)),
    ):
        exact = bootstrap((ours, theirs), statistic, rng=np.random.default_rng(0), **options)
        expected = exact.confidence_interval
        assert ours_by_theirs(ours, theirs)[1:] == pytest.approx(tuple(expected), abs=1e-9)


@pytest.mark.parametrize("seeds", [6, 10, 20])
def test_few_seeds_have_intervals_as_wide_as_those_of_a_t_test(seeds):
    ratios = []
    for number in range(20):
        noise = np.random.default_rng(number).normal(size=seeds)
        found, exact = paired(noise, np.zeros(seeds)), ttest_1samp(noise, 0).confidence_interval()
        ratios.append((found.high - found.low) / (exact.high - exact.low))
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.1)


def test_an_interval_is_the_same_every_time():
    ours = LEVELS + np.sin(LEVELS)
    assert paired(ours, LEVELS) == paired(ours.tolist(), LEVELS.tolist())
    assert paired_ratio(ours, LEVELS) == paired_ratio(ours, LEVELS)


def test_of_a_single_seed_nothing_is_said():
    assert paired([1.0], [2.0]) is None
    assert paired_ratio([1.0], [2.0]) is None


def test_of_nothing_there_is_no_ratio():
    assert math.isnan(paired_ratio([0.0, 0.0], [0.0, 0.0]).high)
