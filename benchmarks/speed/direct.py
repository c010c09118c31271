"""Choices of ``TransferOptimizer`` beside the best of many evaluations by DIRECT.

DIRECT (``scipy.optimize.direct``) has no gradient and divides the cube: with 20,000 evaluations of a
function of three variables it is an almost exhaustive search. It is kept from what the optimizer does
not ask for, too: places beside what was told, and what the target alone rules out.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.optimize import direct
from torch import Generator, Tensor

from botorch_costly.ask_tell import Domain
from botorch_costly.ask_tell.design import sobol
from botorch_costly.models import TaskEnsemble
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.transfer.belief import TargetData
from botorch_costly.tuners.transfer.choice import TransferStrategy
from botorch_costly.tuners.transfer.options import Robustness
from botorch_costly.tuners.transfer.weighting import Acquisition

ALIKE = 1e-6  # of the range of an acquisition function: less is the same value
_POINTS = 512  # that the range is taken from
_BESIDE = 1e-3  # of what was told nothing is asked for, as in tuners.transfer.choice


class Chosen(NamedTuple):
    """A choice, and what it was made from."""

    state: Mapping[str, Any]  # of the optimizer, before
    told: TargetData
    point: Tensor  # encoded, shape: (dim,)


class Beside(NamedTuple):
    """Choices beside DIRECT's."""

    lost: list[float]  # by which DIRECT's best is better, as shares of the range
    direct_seconds: list[float]  # that DIRECT took


def beside(
    space: SearchSpace,
    tasks: TaskEnsemble,
    robust: Robustness,
    chosen: Sequence[Chosen],
    budget: int,
) -> Beside:
    """Return what is lost by each choice, and the seconds of a search by DIRECT."""
    generator = Generator()
    chooser = TransferStrategy(Domain(space), tasks, robust, generator)
    found = Beside([], [])
    for one in chosen:
        chooser.load_state_dict(one.state)
        belief = chooser.weighting.learn(one.told)
        acquisition = chooser.weighting.acquisition(belief, generator)
        lost, seconds = _lost(space, acquisition, one, budget)
        found.lost.append(lost)
        found.direct_seconds.append(seconds)
    return found


def _lost(
    space: SearchSpace, acquisition: Acquisition, one: Chosen, budget: int
) -> tuple[float, float]:
    with torch.no_grad():
        everywhere = acquisition.at(sobol(space, _POINTS, seed=0))
        ours = float(acquisition.at(one.point.unsqueeze(0)))
    low, high = float(everywhere.min()), float(everywhere.max())
    began = time.perf_counter()
    best = best_by_direct(acquisition, one, low, budget)
    seconds = time.perf_counter() - began
    return (best - ours) / max(high - low, 1e-12), seconds


def best_by_direct(acquisition: Acquisition, one: Chosen, low: float, budget: int) -> float:
    """Return the largest of ``budget`` values, ``low`` standing for places that are not asked for."""
    point, lacking = one.point.unsqueeze(0), acquisition.lacking
    granted = 0.0 if lacking is None else max(0.0, float(lacking(point)))
    best = low

    def refused(at: Tensor) -> bool:
        near = bool((torch.cdist(at, one.told.points, p=torch.inf) <= _BESIDE).any())
        return near or (lacking is not None and float(lacking(at)) > granted)

    def loss(x: np.ndarray) -> float:
        nonlocal best
        at = torch.from_numpy(x).reshape(point.shape)
        value = low if refused(at) else float(acquisition.at(at))
        best = max(best, value)
        return -value

    cube = [(0.0, 1.0)] * point.shape[-1]
    with torch.no_grad():
        # All of the budget is spent: no tolerance ends the search before.
        direct(loss, cube, maxfun=budget, maxiter=budget, vol_tol=0.0, len_tol=0.0)
    return best
