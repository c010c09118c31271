"""Candidates around a configuration: several hyperparameters at once move some way up or down."""

import math

import torch
from torch import Generator, Tensor

from botorch_costly.parameters import Choice, Real, Scheduled
from botorch_costly.space import SearchSpace

_CANDIDATES = 128
_STAY = 0.1  # chance that a hyperparameter stays as it is
_HALF = 1 / 3  # chance of half a step
_OTHER = 0.4  # chance that another option is drawn, at a box of one half
NEAR = 0.05  # what lies nearer in every column is no candidate


def candidates(
    space: SearchSpace, point: Tensor, box: float, fixed: set[int], generator: Generator
) -> Tensor:
    """Return encoded configurations, shape ``m x d``, each a step of many hyperparameters at once.

    Args:
        space: Of the configurations.
        point: The configuration they surround, encoded, shape ``(d,)``.
        box: The largest step of a number, in the unit cube; with it grows the chance of another option.
        fixed: Columns that stay as they are.
        generator: Source of the draw.
    """
    d = len(point)
    coins = torch.rand(3, _CANDIDATES, d, generator=generator, dtype=torch.float64)
    sign = torch.where(coins[0] < 0.5, -1.0, 1.0).double()
    size = torch.where(coins[1] < _STAY, 0.0, torch.where(coins[2] < _HALF, 0.5, 1.0)).double()
    found = (point + box * sign * size).clamp(0, 1)
    for name, parameter in space.parameters:
        if isinstance(parameter, Choice) and parameter.width:
            columns = space.columns[name]
            drawn = torch.rand(_CANDIDATES, parameter.width, generator=generator).double()
            moves = torch.rand(_CANDIDATES, 1, generator=generator) < 2 * _OTHER * box
            found[:, columns] = torch.where(moves, drawn, point[columns])
    held = list(fixed)
    found[:, held] = point[held]
    found = space.round(found)
    return found[(found - point).abs().amax(-1) > NEAR]


def rate_columns(space: SearchSpace) -> list[int]:
    """Return the columns of learning rates: what is ``Scheduled``, or else is named ``lr`` and the like.

    Comparisons late in a run favour small learning rates, whatever is best in the end, so they need
    a search of their own.
    """
    named = {"lr", "learning_rate"}
    scheduled = [n for n, p in space.parameters if isinstance(p, Scheduled)]
    usual = [n for n, p in space.parameters if n in named and isinstance(p, Real) and p.log]
    return [space.columns[name].start for name in scheduled or usual]


def early_columns(space: SearchSpace) -> set[int]:
    """Return the columns of what multiplies the learning rate by other means: it is tried early alone."""
    names = {"momentum", "beta1", "beta2"}
    return {space.columns[name].start for name in names if name in space.columns}


def tenfold(space: SearchSpace, column: int) -> float:
    """Return the step in the unit cube that multiplies a logarithmic parameter by ten."""
    name = next(n for n, columns in space.columns.items() if columns.start == column)
    parameter = dict(space.parameters)[name]
    assert isinstance(parameter, Real)
    return math.log(10) / math.log(parameter.high / parameter.low)
