"""What the priced look loses where its model is wrong, beside what the confidence rule loses.

The model believes the setting of Table A2: Matérn-3/2 with lengthscale 0.2, forgetting rate 0.01, noise
variance 0.01. Either it believes something else of functions drawn from that, or the functions are
others: of another kernel, going round in a circle, or changing all at once. ``L_T = R_T + price * C_T``
as in ``continuous``; the threshold of the confidence rule is chosen in hindsight for each scenario and
price, the priced look is told the price and nothing else.

Three parts: ``grid``, many trials on a grid; and two with ``OnlineTuner`` on the functions of that grid
with straight lines between its points, ``fixed`` with what it believes, ``learned`` with refits of
lengthscale, variance, noise and forgetting rate that start from what it believes.
"""

import argparse
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.grid_simulation import GridPolicy, simulate
from benchmarks.priced.continuous import (
    Outcome,
    compare,
    confident,
    in_processes,
    play,
    priced,
    units_of_the_prior,
)
from benchmarks.record import Row, add_results_argument, recording
from botorch_costly import OnlineTuner, QueryRule, Real, SearchSpace
from botorch_costly.acquisition import LogBeta
from botorch_costly.problems import DriftingFunction

PARTS = ("grid", "fixed", "learned")
PRICES = (0.3, 1.0)
KAPPAS = {"grid": (0.6, 0.7, 0.8, 0.9, 0.95), "fixed": (0.8, 0.9), "learned": (0.8, 0.9)}
_PERIOD, _STAND = 200, 125  # rounds of a turn, and between abrupt changes
_REFIT_EVERY, _REFIT_SECONDS = 15, 60.0  # the cap is never to bind: rows would depend on the machine


class Setting(NamedTuple):
    """A drifting function, as it is or as it is believed to be."""

    lengthscale: float = 0.2
    forgetting: float = 0.01
    noise: float = 0.01
    family: str = "matern32"

    def on(self, points: int) -> DriftingFunction:
        """Return it on a grid over [0, 1]."""
        options = self.forgetting, self.noise, self.lengthscale, self.family
        return DriftingFunction.on_unit_interval(points, *options)


class Scenario(NamedTuple):
    """What is true, how it changes, and what the model believes."""

    truth: Setting = Setting()
    drift: str = "forgetting"  # or "turning" or "abrupt"
    belief: Setting = Setting()


class Task(NamedTuple):
    """One trial of ``OnlineTuner`` in one scenario."""

    part: str
    scenario: str
    trial: int
    trials: int
    horizon: int
    points: int
    seed: int


SCENARIOS: dict[str, Scenario] = {
    "matched": Scenario(),
    "lengthscale halved": Scenario(belief=Setting(lengthscale=0.1)),
    "lengthscale doubled": Scenario(belief=Setting(lengthscale=0.4)),
    "forgetting tripled": Scenario(belief=Setting(forgetting=0.03)),
    "forgetting a third": Scenario(belief=Setting(forgetting=0.01 / 3)),
    "noise tripled": Scenario(belief=Setting(noise=0.03)),
    "noise a third": Scenario(belief=Setting(noise=0.01 / 3)),
    "truth rbf": Scenario(truth=Setting(family="rbf")),
    "truth matern12": Scenario(truth=Setting(family="matern12")),
    "truth turning": Scenario(drift="turning"),
    "truth abrupt": Scenario(drift="abrupt"),
}


class Line(NamedTuple):
    """A function between the points of its grid, for ``play``."""

    path: Tensor  # shape: (horizon, n)

    def value(self, t: int, X: Tensor) -> Tensor:
        """Return ``f_t`` at points of [0, 1], ``(m, 1) -> (m,)``."""
        last = self.path.shape[-1] - 1
        place = X[:, 0] * last
        left = place.long().clamp(max=last - 1)
        return torch.lerp(self.path[t, left], self.path[t, left + 1], place - left)

    def maximum(self, t: int) -> float:
        """Return ``max f_t``, which is at a point of the grid."""
        return float(self.path[t].max())


def draw(
    scenario: Scenario, trials: int, horizon: int, points: int, seed: int
) -> tuple[Tensor, Tensor]:
    """Return the functions, ``trials x horizon x points``, and the noise, ``trials x horizon``.

    Scenarios in which the same is true have the same functions, and all have the same noise.
    """
    generator = torch.Generator().manual_seed(seed)
    normal = torch.randn(trials, horizon, generator=generator, dtype=torch.float64)
    truth = scenario.truth.on(points)
    if scenario.drift == "forgetting":
        paths = truth.paths(horizon, trials, generator)
    else:
        anew = truth._replace_forgetting(1.0)
        paths = anew
    return paths, truth.noise**0.5 * normal
