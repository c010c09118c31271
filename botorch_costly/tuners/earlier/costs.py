"""A model of the costs of earlier studies' evaluations, by configuration and fidelities."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.models.fidelity_cost import FidelityCost, LogShares
from botorch_costly.numerics.spread_rows import evenly_spread
from botorch_costly.task_encoding import EncodedTask
from botorch_costly.task_records import Task

_FEWEST = 3  # costs that say something of a study
_MOST = 256  # rows of all studies together
_LARGEST = 25.0  # logarithm of a cost in units of the median


class Costs(NamedTuple):
    """Costs of one study's evaluations."""

    points: Tensor  # configurations and fidelities, encoded, shape: (n, d)
    whole: Tensor  # costs, of whole trainings, shape: (n, 1)


def costs_of(task: Task, study: EncodedTask, shares: Sequence[float]) -> Costs | None:
    """Return the costs of a study, in units of their median; None if it tells fewer than three.

    An evaluation that was stopped early, or failed, counts with the cost of a whole one.

    Args:
        task: The study.
        study: The same, encoded.
        shares: Share of a whole training that each observation of the task was paid for.
    """
    if task.costs is None:
        return None
    pairs = [(task.costs[number], shares[number]) for number in study.kept]
    rows = [row for row, (cost, _) in enumerate(pairs) if cost is not None]
    if len(rows) < _FEWEST:
        return None
    logs = [[math.log(cost) - math.log(share)] for cost, share in pairs if cost is not None]
    relative = study.points.new_tensor(logs)
    relative = (relative - relative.median()).clamp(-_LARGEST, _LARGEST)
    return Costs(study.points[rows], relative.exp())


def expected_cost(
    studies: Sequence[Costs], log_shares: LogShares, fidelities: int
) -> FidelityCost | None:
    """Return the cost that earlier studies let expect, up to a factor; None without one.

    Studies may have different units: the costs of each are divided by what it lets expect in the middle
    of the space, at the target.

    Args:
        studies: Costs of the studies.
        log_shares: Returns the logarithms of encoded fidelities as shares of the target.
        fidelities: Number of fidelities, the last columns.
    """
    if not studies:
        return None
    relative = []
    for points, whole in studies:
        middle = points.new_full((1, points.shape[-1]), 0.5)
        middle[:, -fidelities:] = 1.0
        unit = FidelityCost(points, whole, log_shares, fidelities)(middle)
        relative.append((whole.log() - unit.log()).clamp(-_LARGEST, _LARGEST).exp())
    points, cost = torch.cat([study.points for study in studies]), torch.cat(relative)
    few = evenly_spread(len(points), _MOST)
    return FidelityCost(points[few], cost[few], log_shares, fidelities)
