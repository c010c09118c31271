"""Families of related tasks, evaluated once: ``python -m benchmarks meta-record``."""

import argparse
import itertools
import statistics
from collections.abc import Sequence

from scipy.stats import spearmanr

from benchmarks.harness.command_line import parser_for
from benchmarks.harness.missing import measure_missing
from benchmarks.harness.record import Row, rows_of
from benchmarks.meta.live.pool import FAMILIES, NAME, SMALL, Block, blocks, record, values_of

_QUICK = 1  # configuration, so that there is one block


def main(arguments: list[str]) -> None:
    """Record the blocks that are missing, and print what the tasks are like."""
    options = _parser().parse_args(arguments)
    wanted = [
        block
        for name in options.families
        for block in blocks(FAMILIES[name], _count(name, options))
    ]
    seeded = argparse.Namespace(**vars(options), first_seed=0, seeds=1)
    measure_missing(NAME, wanted, record, Block, seeded)
    print(text(rows_of(NAME, options.results)))


def _parser() -> argparse.ArgumentParser:
    parser = parser_for(NAME, "families of related tasks, evaluated once")
    small = [family.name for family in SMALL]
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=small)
    parser.add_argument("--configs", type=int, help="at least so many; each family has its number")
    parser.add_argument("--quick", action="store_true", help="a block of each task alone")
    parser.add_argument("--again", action="store_true", help="evaluate what is stored, too")
    parser.add_argument("--processes", type=int, default=1, help="blocks side by side")
    return parser


def _count(name: str, options: argparse.Namespace) -> int:
    if options.quick:
        return _QUICK
    return FAMILIES[name].recorded if options.configs is None else options.configs


def text(rows: Sequence[Row]) -> str:
    """Return the values of each task, and how its ranks agree with those of the targets."""
    lines = []
    for family in dict.fromkeys(row["family"] for row in rows):
        mine = [row for row in rows if row["family"] == family]
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
    if len(set(one[:both])) == 1 or len(set(other[:both])) == 1:
        return 0.0
    return float(spearmanr(one[:both], other[:both]).statistic)
