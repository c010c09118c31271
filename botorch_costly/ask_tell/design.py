"""Designs: the first points of a run, before a model can decide."""

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_costly.errors import InvalidSpaceError, check
from botorch_costly.numerics.screening import two_level
from botorch_costly.parameters import Choice
from botorch_costly.randomness import check_seed, generator_of
from botorch_costly.space import SearchSpace

DesignKind = Literal["screening", "sobol", "random"]
_LOW, _HIGH = 0.1, 0.9  # in the unit cube: many training runs diverge on its faces


def check_kind(kind: str) -> str:
    """Return the kind of a design; raise InvalidArgumentError if there is no such kind."""
    kinds = list(get_args(DesignKind))
    check(kind in kinds, "design kind", f"one of {kinds}", kind)
    return kind


def design(space: SearchSpace, runs: int, kind: str, seed: int) -> Tensor | None:
    """Return the points of a design.

    Args:
        space: Search space of the configurations.
        runs: Number of points.
        kind: ``"screening"``, ``"sobol"``, or ``"random"``.
        seed: Seed of the first two kinds.

    Returns:
        Encoded points, float64, shape ``(runs, dim)``; None for ``"random"``, whose points the generator
        of the run draws one by one.
    """
    if check_kind(kind) == "random":
        return None
    if kind == "sobol":
        return sobol(space, runs, seed)
    return screening(space, runs, generator_of(seed))


def sobol(space: SearchSpace, runs: int, seed: int) -> Tensor:
    """Return configurations spread evenly by a scrambled Sobol sequence, ``(runs, dim)``.

    Raises:
        InvalidArgumentError: If the seed is invalid.
        InvalidSpaceError: If the space has more dimensions than Sobol sequences support.
    """
    most = SobolEngine.MAXDIM
    expected = f"at most {most} dimensions for a Sobol design"
    check(space.dim <= most, "space", expected, space.dim, InvalidSpaceError)
    engine = SobolEngine(space.dim, scramble=True, seed=check_seed(seed))
    # The engine draws at least one point.
    return space.round(engine.draw(max(runs, 1), dtype=torch.float64)[:runs])


def screening(space: SearchSpace, runs: int, generator: torch.Generator) -> Tensor:
    """Return configurations near the corners, ``(runs, dim)``: numbers low or high, choices random."""
    points = space.sample(runs, generator)
    columns = [space.columns[n].start for n, p in space.parameters if not isinstance(p, Choice)]
    points[:, columns] = _LOW + (_HIGH - _LOW) * two_level(runs, len(columns), generator)
    return space.round(points)
