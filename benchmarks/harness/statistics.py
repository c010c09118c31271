"""Two methods on the same seeds: bootstrap intervals, those of ``scipy.stats.bootstrap``.

Seeds are drawn again together, so that both methods meet them. Intervals are percentiles of the
statistic over these draws, from a fixed generator: draws of equal numbers of seeds are the same, and
made once. Percentiles of few seeds are too close together (of
ten seeds by a fifth), so those farther out are taken, as far as a t-distribution is wider than a
normal one.

References:
    T. Hesterberg. What teachers should know about the bootstrap. The American Statistician 69, 2015,
    section 4.2: expanded percentile intervals.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, spearmanr, t

from benchmarks.harness.record import grouped

LEVEL = 0.95
_RESAMPLES = 9999
_WIDEST = 0.9999  # level: beyond it the draws have no percentiles
_ROUNDED = 9  # decimals: whether an end is on this side of a verdict is not left to rounding


Runs = Mapping[int, Mapping[str, Any]]  # rows of a method, by seed


class Estimate(NamedTuple):
    """A statistic of seeds, and its 95 % interval."""

    value: float
    low: float
    high: float


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Estimate | None:
    """Return by how much one method has more than another on average; None of fewer than two seeds."""

    def difference(ours: Any, theirs: Any) -> Any:
        return np.mean(ours - theirs, axis=-1)

    return _estimate(difference, ours, theirs)


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Estimate | None:
    """Return the ratio of the means of two methods on the same seeds; None of fewer than two seeds.

    If a mean of drawn seeds is zero, the interval is NaN.
    """

    def ratio(ours: Any, theirs: Any) -> Any:
        return np.mean(ours, axis=-1) / np.mean(theirs, axis=-1)

    return _estimate(ratio, ours, theirs)


def shared(runs: Runs, others: Runs, name: str) -> list[tuple[float, float]]:
    """Return pairs of the values that two methods have under a name, of the seeds that both have."""
    return [(runs[seed][name], others[seed][name]) for seed in sorted(set(runs) & set(others))]


def ratio_of_totals(runs: Runs, others: Runs, name: str) -> str:
    """Return a total by that of another method, of the seeds that both have; nothing without any."""
    pairs = shared(runs, others, name)
    theirs = sum(other for _, other in pairs)
    return f"{sum(own for own, _ in pairs) / theirs:.2f}" if theirs else ""


def by_method(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[int, Any]]:
    """Return the rows by method and seed."""
    methods = grouped(rows, "method").items()
    return {method: {row["seed"]: row for row in runs} for method, runs in methods}


def rank_correlation(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return Spearman's rank correlation, 0 where all values of either are equal."""
    alike = len(set(ours)) < 2 or len(set(theirs)) < 2
    return 0.0 if alike else float(spearmanr(ours, theirs).statistic)


def mean_error(values: Sequence[float]) -> tuple[float, float]:
    """Return a mean and its standard error, 0 of one value."""
    error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return fmean(values), error


def _estimate(
    statistic: Callable[..., Any], ours: Sequence[float], theirs: Sequence[float]
) -> Estimate | None:
    data = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    seeds = len(data[0])
    if seeds < 2:
        return None
    drawn, outside = _draws(seeds), (1 - _expanded(seeds)) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        value, draws = statistic(*data), statistic(*(values[drawn] for values in data))
        found = np.quantile(draws, (outside, 1 - outside))
    return Estimate(*(round(float(x), _ROUNDED) for x in (value, *found)))


@lru_cache(maxsize=8)
def _draws(seeds: int) -> Any:  # shape: (_RESAMPLES, seeds)
    return np.random.default_rng(0).integers(0, seeds, (_RESAMPLES, seeds))


@lru_cache(maxsize=8)
def _expanded(seeds: int) -> float:
    """Return the level at which percentiles of so many seeds make an interval of ``LEVEL``."""
    quantile = float(t.ppf((1 + LEVEL) / 2, seeds - 1))
    spread = (
        seeds / (seeds - 1)
    ) ** 0.5  # a bootstrap divides by n where a t-test divides by n - 1
    return min(1 - 2 * float(norm.cdf(-spread * quantile)), _WIDEST)
