"""Columns of the encoded space by role, and candidates around a configuration."""

import math

import torch
from torch import Generator, Tensor

from botorch_costly.parameters import Choice, Real
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.twins.constants import CONSTANTS

_CANDIDATES = 128
_STEPS = torch.tensor([-1.0, -0.5, 0.0, 0.5, 1.0], dtype=torch.float64)
_APART = 0.05  # candidates closer than this, in every column, are one


def candidates(
    space: SearchSpace, point: Tensor, box: float, fixed: set[int], generator: Generator
) -> Tensor:
    """Return encoded configurations, shape ``m x d``; each moves several hyperparameters at once.

    Args:
        space: Space of the configurations.
        point: Encoded configuration at the centre, shape ``(d,)``.
        box: Largest step of a number, in the unit cube, and probability of another option.
        fixed: Columns that do not change.
        generator: Source of random numbers.
    """
    m, d = _CANDIDATES, len(point)
    steps = _STEPS[torch.randint(len(_STEPS), (m, d), generator=generator)]
    points = (point + box * steps).clamp(0, 1)
    for name, parameter in space.parameters:
        if isinstance(parameter, Choice) and parameter.width:
            columns = space.columns[name]
            drawn = torch.rand(m, parameter.width, generator=generator).double()
            changes = torch.rand(m, 1, generator=generator) < box
            points[:, columns] = torch.where(changes, drawn, point[columns])
    held = list(fixed)
    points[:, held] = point[held]
    return apart_from(space.round(points), point)


def apart_from(points: Tensor, point: Tensor) -> Tensor:
    """Return the points that differ from another one enough to tell something new, shape ``k x d``."""
    return points[(points - point).abs().amax(-1) > _APART]


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


def weakened(space: SearchSpace, point: Tensor, fixed: set[int]) -> list[Tensor]:
    """Return two configurations, with strong strengths weak and off; empty if none is strong.

    A number whose range begins at 0 is the strength of an optional technique, such as dropout or an
    augmentation.

    Args:
        space: Space of the configurations.
        point: Encoded present configuration, shape ``(d,)``.
        fixed: Columns that do not change.
    """
    weak, off = point.clone(), point.clone()
    for name, parameter in space.parameters:
        column = space.columns[name].start
        is_strength = not isinstance(parameter, Choice) and parameter.low == 0
        if is_strength and column not in fixed and point[column] > CONSTANTS.strong:
            weak[column], off[column] = CONSTANTS.weak, 0.0
    weaker = [space.round(point) for point in (weak, off)]
    return [] if torch.equal(weaker[0], point) else weaker


def tenfold(space: SearchSpace, column: int) -> float:
    """Return the step in the unit cube that multiplies a logarithmic parameter by ten."""
    name = next(n for n, columns in space.columns.items() if columns.start == column)
    parameter = dict(space.parameters)[name]
    assert isinstance(parameter, Real)
    return math.log(10) / math.log(parameter.high / parameter.low)
