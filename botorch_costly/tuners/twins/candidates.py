"""Columns of the encoded space by role, and candidates around a configuration."""

import math
from collections.abc import Mapping
from typing import cast

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
    """Return three configurations, with strong strengths moderate, weak and off; empty if none is strong.

    A number whose range begins at 0 is the strength of an optional technique, such as dropout or an
    augmentation; a weight decay is one with any range. Moderate is the geometric mean of given and weak.

    Args:
        space: Space of the configurations.
        point: Encoded present configuration, shape ``(d,)``.
        fixed: Columns that do not change.
    """
    given = space.decode(point)
    decays = space.with_role("weight_decay")
    strong = {
        name: (p.low, CONSTANTS.weak * p.high)
        for name, p in space.parameters
        if not isinstance(p, Choice)
        and (p.low == 0 or name in decays)
        and space.columns[name].start not in fixed
        and cast(float, given[name]) > CONSTANTS.strong * p.high
    }
    if not strong:
        return []
    off = {name: low for name, (low, _) in strong.items()}
    weak = {name: max(low, weak) for name, (low, weak) in strong.items()}
    moderate = {name: math.sqrt(cast(float, given[name]) * weak[name]) for name in strong}
    return [_with(space, point, values) for values in (moderate, weak, off)]


def _with(space: SearchSpace, point: Tensor, values: Mapping[str, float]) -> Tensor:
    """Return an encoded configuration with some numbers changed; rounded to its values."""
    point, parameters = point.clone(), dict(space.parameters)
    for name, value in values.items():
        parameter = parameters[name]
        plain = value
        if parameter.values is not None and not isinstance(parameter, Choice):
            unit = parameter.to_unit(torch.tensor([value], dtype=torch.float64))
            plain = parameter.decode(unit)
        point[space.columns[name]] = torch.as_tensor(parameter.encode(plain), dtype=point.dtype)
    return point


def tenfold(space: SearchSpace, column: int) -> float:
    """Return the step in the unit cube that multiplies a logarithmic parameter by ten."""
    name = next(n for n, columns in space.columns.items() if columns.start == column)
    parameter = dict(space.parameters)[name]
    assert isinstance(parameter, Real)
    return math.log(10) / math.log(parameter.high / parameter.low)
