"""What is varied: settings, and the methods that are played in each."""

from collections.abc import Mapping
from typing import NamedTuple

from benchmarks.meta.methods import robust
from benchmarks.meta.policy import Method
from benchmarks.meta.rivals import gp_ts, gp_ucb, random
from benchmarks.meta.synthetic.world import Setting
from botorch_costly import ByEvidence, ByGaps

RATES = (0.01, 0.1, 10.0)  # eta, beside 1
POWERS = (0.0, 0.35, 0.7, 1.4)  # epsilon'
DECAYS = (0.5, 0.9, 1.0)  # beside 0.7

METHODS: Mapping[str, Method] = {
    "random": random,
    "GP-UCB": gp_ucb,
    "GP-TS": gp_ts,
    "RM-GP-UCB": robust(ByGaps()),
    "RM-GP-UCB, even weights": robust(ByGaps(rate=0.0)),
    "RM-GP-UCB, largest gap": robust(ByGaps(largest=True)),
    "RM-GP-TS": robust(ByGaps(thompson=True)),
    "TransferOptimizer": robust(ByEvidence()),
    **{f"RM-GP-UCB, eta {rate:g}": robust(ByGaps(rate=rate)) for rate in RATES},
    **{f"RM-GP-UCB, decay {decay:g}": robust(ByGaps(decay=decay)) for decay in DECAYS},
    # The share falls by the gaps alone.
    **{f"RM-GP-UCB, power {power:g}": robust(ByGaps(decay=1.0, power=power)) for power in POWERS},
}
"""Policies by name."""

_SIX = ("random", "GP-UCB", "GP-TS", "RM-GP-UCB", "RM-GP-TS", "TransferOptimizer")
_SOME = ("GP-UCB", "RM-GP-UCB", "RM-GP-TS", "TransferOptimizer")
_RATES = tuple(f"RM-GP-UCB, eta {rate:g}" for rate in RATES)
_DECAYS = tuple(f"RM-GP-UCB, decay {decay:g}" for decay in DECAYS)
_POWERS = tuple(f"RM-GP-UCB, power {power:g}" for power in POWERS)


class Cell(NamedTuple):
    """Methods that are played in a setting, on as many seeds."""

    setting: Setting
    methods: tuple[str, ...]
    seeds: int = 10


CELLS: Mapping[str, Cell] = {
    "two alike, two not": Cell(
        Setting(),
        (*_SIX, "RM-GP-UCB, even weights", "RM-GP-UCB, largest gap", *_RATES, *_DECAYS),
        seeds=50,
    ),
    "three random first": Cell(Setting(first=3), _SOME),
    "gaps .05 and .5": Cell(Setting(gaps=(0.05, 0.05, 0.5, 0.5)), _SOME),
    "gaps .05 and 1.5": Cell(Setting(gaps=(0.05, 0.05, 1.5, 1.5)), _SOME),
    "gaps .05 and 1.5, smooth": Cell(Setting(gaps=(0.05, 0.05, 1.5, 1.5), smooth=True), _SOME),
    "all alike": Cell(Setting(gaps=(0.05,) * 4), _SOME),
    "none alike": Cell(Setting(gaps=(4.0,) * 4), (*_SOME, "RM-GP-UCB, even weights", *_POWERS)),
    "none alike, smooth": Cell(Setting(gaps=(1.5,) * 4, smooth=True), (*_SOME, *_POWERS)),
    "5 observations": Cell(Setting(counts=(5,) * 4), _SOME),
    "50 observations": Cell(Setting(counts=(50,) * 4), _SOME),
    "100 observations": Cell(Setting(counts=(100,) * 4), _SOME),
    "5, 35, 5, 35 observations": Cell(Setting(counts=(5, 35, 5, 35)), _SOME),
    "short lengthscale": Cell(Setting(lengthscale=0.05), _SIX),
    "two dimensions": Cell(Setting(dim=2, lengthscale=0.2, counts=(40,) * 4), _SIX),
    "1,000 tasks": Cell(
        Setting(
            gaps=(0.1,) * 50,
            counts=(100,) * 50,
            dim=2,
            lengthscale=0.2,
            smooth=True,
            unrelated=950,
        ),
        _SIX,
        seeds=3,
    ),
}
"""Cells by name."""
