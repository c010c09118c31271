"""Values of one list of configurations in each task of a family, recorded once."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.harness.record import Row, rows_of
from benchmarks.meta.live.cart_pole import CART_POLE
from benchmarks.meta.live.diabetes import DIABETES, DIABETES_LIKELIHOOD
from benchmarks.meta.live.family import Family, points
from benchmarks.meta.live.images import FULL_IMAGES, IMAGES
from benchmarks.meta.live.omniglot import FULL_OMNIGLOT, OMNIGLOT
from botorch_costly.errors import CostlyError

NAME = "meta-record"
SMALL = (DIABETES, DIABETES_LIKELIHOOD, CART_POLE, IMAGES, OMNIGLOT)
FAMILIES: dict[str, Family] = {f.name: f for f in (*SMALL, FULL_IMAGES, FULL_OMNIGLOT)}
_DIGITS = 4


class MissingFamilyError(CostlyError, FileNotFoundError):
    """A family has no recorded values."""


class Block(NamedTuple):
    """Configurations that are recorded together, numbered from ``first`` on; the key of their row."""

    family: str
    task: str
    first: int


class Table(NamedTuple):
    """What is recorded of a family.

    Args:
        points: Encoded configurations, shape ``(n, dim)``; ``space.decode`` gives each back.
        values: Of each task, larger is better, shape ``(n,)``.
    """

    points: Tensor
    values: dict[str, Tensor]


def blocks(family: Family, configs: int) -> list[Block]:
    """Return what to record for at least so many configurations in each task."""
    firsts = range(0, configs, family.block)
    return [Block(family.name, task, first) for first in firsts for task in family.tasks]


def record(block: Block) -> Row:
    """Return the values of a block, each with a seed of its own task and number, and seconds of one."""
    family = FAMILIES[block.family]
    numbers = range(block.first, block.first + family.block)
    place = family.tasks.index(block.task)
    seeds = [number * len(family.tasks) + place for number in numbers]
    configs = [
        family.space.decode(point) for point in points(family.space, block.first, family.block)
    ]
    began = time.perf_counter()
    values = family.evaluate_all(block.task, configs, seeds)
    seconds = (time.perf_counter() - began) / len(values)
    rounded = [round(value, _DIGITS) for value in values]
    return {**block._asdict(), "values": rounded, "seconds": round(seconds, 6)}


def table(name: str, directory: Path) -> Table:
    """Return the recorded configurations of a family, and their values in each task.

    Raises:
        MissingFamilyError: If a task has none.
    """
    family = FAMILIES[name]
    rows = [row for row in rows_of(NAME, directory) if row["family"] == name]
    values = {task: values_of(row for row in rows if row["task"] == task) for task in family.tasks}
    # Where recording was interrupted, some tasks have a block more than others.
    count = min(map(len, values.values()))
    if not count:
        raise MissingFamilyError("family", f"one recorded in {NAME}", name)
    tensors = {task: torch.tensor(v[:count], dtype=torch.float64) for task, v in values.items()}
    return Table(points(family.space, 0, count), tensors)


def values_of(rows: Iterable[Row]) -> list[float]:
    """Return the values of a task from the first configuration on, up to a block that is missing."""
    values: list[float] = []
    for row in sorted(rows, key=lambda row: row["first"]):
        if row["first"] == len(values):
            values += row["values"]
    return values
