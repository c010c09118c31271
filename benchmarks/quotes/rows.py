"""Statistics of stored rows, as quotes need them."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from benchmarks.harness.record import Row, rows_of
from benchmarks.harness.statistics import Estimate, paired

BySeed = Mapping[int, float]


@cache
def stored(name: str) -> tuple[Row, ...]:
    """Return the stored rows of a benchmark."""
    return tuple(rows_of(name))


def rows(name: str, **where: Any) -> list[Row]:
    """Return the stored rows that have these values; at least one.

    Raises:
        LookupError: If there is no such row.
    """
    matching = [r for r in stored(name) if all(r.get(key) == value for key, value in where.items())]
    if not matching:
        raise LookupError(f"no row of {name} with {where}")
    return matching


def row(name: str, **where: Any) -> Row:
    """Return the only row that has these values.

    Raises:
        LookupError: If there is none, or more than one.
    """
    matching = rows(name, **where)
    if len(matching) > 1:
        raise LookupError(f"{len(matching)} rows of {name} with {where}")
    return matching[0]


def column(name: str, field: str, **where: Any) -> list[float]:
    """Return the values of a column."""
    return [r[field] for r in rows(name, **where)]


def by_seed(name: str, field: str, factor: float = 1.0, **where: Any) -> dict[int, float]:
    """Return the values of a column by seed, times a factor."""
    return {r["seed"]: factor * r[field] for r in rows(name, **where)}


def mean(values: Sequence[float] | BySeed) -> Estimate:
    """Return a mean and its 95 % interval over seeds."""
    data = list(values.values()) if isinstance(values, Mapping) else list(values)
    return _at_least_two(data, [0.0] * len(data))


def less(ours: BySeed, theirs: BySeed) -> Estimate:
    """Return a mean difference and its 95 % interval over the seeds that both have."""
    seeds = sorted(set(ours) & set(theirs))
    return _at_least_two([ours[s] for s in seeds], [theirs[s] for s in seeds])


def _at_least_two(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """Return an estimate that of one seed has no interval: its ends are the value."""
    if len(ours) == 1:
        return Estimate(*[ours[0] - theirs[0]] * 3)
    estimate = paired(ours, theirs)
    if estimate is None:
        raise LookupError("no seed that both have")
    return estimate
