"""Candidates around a configuration: several hyperparameters at once move some way up or down."""

import math

import torch
from torch import Generator, Tensor

from botorch_costly.parameters import Choice, Real
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.twins.constants import CONSTANTS


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
    m, d = CONSTANTS.num_candidates, len(point)
    coins = torch.rand(3, m, d, generator=generator, dtype=torch.float64)
    sign = torch.where(coins[0] < 0.5, -1.0, 1.0).double()
    step = torch.where(coins[2] < CONSTANTS.half_step_probability, 0.5, 1.0)
    size = torch.where(coins[1] < CONSTANTS.stay_probability, 0.0, step).double()
    found = (point + box * sign * size).clamp(0, 1)
    for name, parameter in space.parameters:
        if isinstance(parameter, Choice) and parameter.width:
            columns = space.columns[name]
            drawn = torch.rand(m, parameter.width, generator=generator).double()
            probability = 2 * CONSTANTS.option_probability * box
            moves = torch.rand(m, 1, generator=generator) < probability
            found[:, columns] = torch.where(moves, drawn, point[columns])
    held = list(fixed)
    found[:, held] = point[held]
    found = space.round(found)
    return found[(found - point).abs().amax(-1) > CONSTANTS.least_distance]


def momentum_columns(space: SearchSpace) -> set[int]:
    """Return the columns of momenta. They are not tried: smaller ones calm a network, as rates do."""
    return {space.columns[name].start for name in space.with_role("momentum")}


def switched_off(space: SearchSpace, point: Tensor, fixed: set[int]) -> Tensor | None:
    """Return a configuration without what can be switched off; None if little of it is on.

    A number whose range begins at 0 is the strength of something that training can do without, such as
    dropout or an augmentation.

    Args:
        space: Of the configurations.
        point: The present configuration, encoded, shape ``(d,)``.
        fixed: Columns that stay as they are.
    """
    off = point.clone()
    for name, parameter in space.parameters:
        column = space.columns[name].start
        if not isinstance(parameter, Choice) and parameter.low == 0 and column not in fixed:
            off[column] = 0.0
    return off if bool((point - off > CONSTANTS.on_threshold).any()) else None


def number_columns(space: SearchSpace) -> Tensor:
    """Return 1 for the columns of numbers and 0 for those of choices, shape ``(d,)``."""
    found = torch.zeros(space.dim, dtype=torch.float64)
    for name, parameter in space.parameters:
        if not isinstance(parameter, Choice):
            found[space.columns[name]] = 1.0
    return found


def tenfold(space: SearchSpace, column: int) -> float:
    """Return the step in the unit cube that multiplies a logarithmic parameter by ten."""
    name = next(n for n, columns in space.columns.items() if columns.start == column)
    parameter = dict(space.parameters)[name]
    assert isinstance(parameter, Real)
    return math.log(10) / math.log(parameter.high / parameter.low)
