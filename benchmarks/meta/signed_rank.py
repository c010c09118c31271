"""Two methods on the same targets: how often either is better, and a signed-rank test."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from scipy.stats import wilcoxon

from benchmarks.harness.record import Row

AFTER = 10  # evaluations
_SAME = 1e-9  # regret: a smaller difference of averages is rounding
_ROUNDED = 9  # decimals: which differences are as large as each other is not left to rounding


class SignedRank(NamedTuple):
    """Over targets."""

    won: int
    tied: int
    lost: int
    p: float  # of as large a difference, two-sided, were neither better; NaN where all tied

    @property
    def differing(self) -> int:
        """Number of targets that the test is about."""
        return self.won + self.lost


def signed_rank(differences: Sequence[float]) -> SignedRank:
    """Return how often the first of two methods is better, from its regrets minus the other's.

    Targets on which both are alike do not enter the test. It is exact for up to 50 targets whose
    differences are all of different sizes, else normal as in ``scipy.stats.wilcoxon``.

    References:
        F. Wilcoxon. Individual comparisons by ranking methods. Biometrics Bulletin 1, 1945.
    """
    apart = [round(d, _ROUNDED) for d in differences if abs(d) > _SAME]
    won = sum(d < 0 for d in apart)
    p = float(wilcoxon(apart).pvalue) if apart else float("nan")
    return SignedRank(won, len(differences) - len(apart), len(apart) - won, p)


def worse_by(rows: Sequence[Row], others: Sequence[Row], at: int = AFTER) -> list[float]:
    """Return by how much each target is worse than under another method, on average over common seeds."""
    theirs = {row["seed"]: row[f"at {at}"] for row in others}
    pairs = [(row[f"at {at}"], theirs[row["seed"]]) for row in rows if row["seed"] in theirs]
    if not pairs:
        return []
    apart = [[a - b for a, b in zip(ours, them, strict=True)] for ours, them in pairs]
    return [statistics.fmean(column) for column in zip(*apart, strict=True)]
