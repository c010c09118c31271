"""Values of one list of configurations in each task of a family: ``python -m benchmarks meta-record``."""

import itertools
import statistics
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.harness.command_line import parser_for
from benchmarks.harness.record import Row, grouped, rows_of
from benchmarks.harness.statistics import rank_correlation
from benchmarks.harness.sweep import measured
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
    """What is recorded of a family."""

    points: Tensor  # encoded configurations, shape ``(n, dim)``; ``space.decode`` gives each back
    values: dict[str, Tensor]  # of each task, larger is better, shape ``(n,)``


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


def text(rows: Sequence[Row]) -> str:
    """Return the values of each task, and how its ranks agree with those of the targets."""
    lines = []
    for family, mine in grouped(rows, "family").items():
        lines += [*_told(family, mine), ""]
    lines.append("ranks: rank correlation with a target, over all configurations; spread: standard")
    lines.append("deviation; values: how many different ones; seconds: of one evaluation.")
    return "\n".join(lines)


def _told(name: str, rows: Sequence[Row]) -> list[str]:
    every = {
        task: values_of(row for row in rows if row["task"] == task) for task in FAMILIES[name].tasks
    }
    by_task = {task: values for task, values in every.items() if values}
    targets = [task for task in FAMILIES[name].targets if task in by_task]
    heads = "".join(f"{'ranks, ' + target:>18}" for target in targets)
    head = f"{'best':>8}{'median':>8}{'least':>8}{'spread':>8}{'values':>8}{'seconds':>9}"
    lines = [f"{name:<18}{head}{heads}"]
    for task, values in by_task.items():
        numbers = max(values), statistics.median(values), min(values), statistics.pstdev(values)
        seconds = statistics.median(row["seconds"] for row in rows if row["task"] == task)
        cells = "".join(f"{number:>8.3f}" for number in numbers)
        ranks = "".join(f"{_ranks(values, by_task[target]):>+18.2f}" for target in targets)
        lines.append(f"{task:<18}{cells}{len(set(values)):>8}{seconds:>9.2g}{ranks}")
    pairs = [_ranks(a, b) for a, b in itertools.combinations(by_task.values(), 2)]
    count = min(map(len, by_task.values()))
    between = f"{statistics.median(pairs):+.2f}, at least {min(pairs):+.2f}" if pairs else "none"
    lines.append(f"{count} configurations; ranks between any two tasks, median: {between}")
    return lines


def _ranks(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the rank correlation of what both have, 0 where all values are equal."""
    both = min(len(one), len(other))
    return rank_correlation(one[:both], other[:both])


def main(arguments: list[str]) -> None:
    """Record the blocks that are missing, and print what the tasks are like."""
    parser = parser_for(NAME, "families of related tasks, evaluated once")
    small = [family.name for family in SMALL]
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=small)
    parser.add_argument("--configs", type=int, help="at least so many; each family has its number")
    parser.add_argument("--quick", action="store_true", help="a block of each task alone")
    parser.add_argument("--again", action="store_true", help="evaluate what is stored, too")
    parser.add_argument("--processes", type=int, default=1, help="blocks side by side")
    parser.set_defaults(first_seed=0, seeds=1)
    options = parser.parse_args(arguments)
    wanted: list[Block] = []
    for family in map(FAMILIES.__getitem__, options.families):
        count = family.recorded if options.configs is None else options.configs
        wanted += blocks(family, 1 if options.quick else count)
    print(text(measured(NAME, wanted, record, options)))
