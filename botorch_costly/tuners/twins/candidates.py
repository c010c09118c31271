"""Columns of the encoded space by role, and candidates around a configuration."""

import math

import torch
from torch import Generator, Tensor

from botorch_costly.parameters import Choice, Real
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.twins.constants import CONSTANTS


def candidates(
    space: SearchSpace, point: Tensor, box: float, fixed: set[int], generator: Generator
) -> Tensor:
    """Return encoded configurations, shape ``m x d``; each moves several hyperparameters at once.

    Args:
        space: Space of the configurations.
        point: Encoded configuration at the centre, shape ``(d,)``.
        box: Largest step of a number, in the unit cube; the probability of another option grows with it.
        fixed: Columns that do not change.
        generator: Source of random numbers.
    """
    m, d = CONSTANTS.num_candidates, len(point)
    coins = torch.rand(3, m, d, generator=generator, dtype=torch.float64)
    sign = torch.where(coins[0] < 0.5, -1.0, 1.0).double()
    step = torch.where(coins[2] < CONSTANTS.half_step_probability, 0.5, 1.0)
    size = torch.where(coins[1] < CONSTANTS.stay_probability, 0.0, step).double()
    points = (point + box * sign * size).clamp(0, 1)
    for name, parameter in space.parameters:
        if isinstance(parameter, Choice) and parameter.width:
            columns = space.columns[name]
            drawn = torch.rand(m, parameter.width, generator=generator).double()
            probability = 2 * CONSTANTS.option_probability * box
            changes = torch.rand(m, 1, generator=generator) < probability
            points[:, columns] = torch.where(changes, drawn, point[columns])
    held = list(fixed)
    points[:, held] = point[held]
    points = space.round(points)
    return points[(points - point).abs().amax(-1) > CONSTANTS.least_distance]


def rate_columns(space: SearchSpace) -> list[int]:
    """Return the columns of learning rates.

    Learning rates have a search of their own: late in a run, comparisons favour small ones, even where
    larger ones end better.
    """
    return [space.columns[name].start for name in space.rates]


def momentum_columns(space: SearchSpace) -> set[int]:
    """Return the columns of momenta, which trials hold: small ones calm a network, as small rates do."""
    return {space.columns[name].start for name in space.with_role("momentum")}


def number_columns(space: SearchSpace) -> Tensor:
    """Return 1 for the columns of numbers and 0 for those of choices, shape ``(d,)``."""
    is_number = torch.zeros(space.dim, dtype=torch.float64)
    for name, parameter in space.parameters:
        if not isinstance(parameter, Choice):
            is_number[space.columns[name]] = 1.0
    return is_number


def switched_off(space: SearchSpace, point: Tensor, fixed: set[int]) -> Tensor | None:
    """Return the configuration with all strengths switched off; None if they are nearly off already.

    A number whose range begins at 0 is the strength of an optional technique, such as dropout or an
    augmentation.

    Args:
        space: Space of the configurations.
        point: Encoded present configuration, shape ``(d,)``.
        fixed: Columns that do not change.
    """
    off = point.clone()
    for name, parameter in space.parameters:
        column = space.columns[name].start
        if not isinstance(parameter, Choice) and parameter.low == 0 and column not in fixed:
            off[column] = 0.0
    return off if bool((point - off > CONSTANTS.on_threshold).any()) else None


def tenfold(space: SearchSpace, column: int) -> float:
    """Return the step in the unit cube that multiplies a logarithmic parameter by ten."""
    name = next(n for n, columns in space.columns.items() if columns.start == column)
    parameter = dict(space.parameters)[name]
    assert isinstance(parameter, Real)
    return math.log(10) / math.log(parameter.high / parameter.low)
