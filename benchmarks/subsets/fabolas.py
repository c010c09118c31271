"""Regret at the target against what was paid, by fidelities: ``python -m benchmarks fabolas``.

Budgets are in mean costs of an evaluation at the target. A regret is that of what a method would choose,
whether it was evaluated at the target or not.
"""

import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.harness.command_line import add_seeds, parser_for, seeds_of
from benchmarks.harness.missing import measure_missing
from benchmarks.harness.record import Row, rows_of
from benchmarks.subsets.methods import METHODS
from benchmarks.subsets.play import play
from benchmarks.subsets.tables import TABLES

NAME = "fabolas"
BUDGETS = (0.25, 0.5, 1, 2, 3)


class Task(NamedTuple):
    """A run of a method, and the key of its row."""

    table: str
    method: str
    seed: int


def measure(task: Task) -> Row:
    """Return the regret of a method at each budget."""
    began = time.perf_counter()
    regrets, asked = play(TABLES[task.table](), METHODS[task.method], task.seed, BUDGETS)
    seconds = (time.perf_counter() - began) / max(asked, 1)
    at = {f"at {budget}": regret for budget, regret in zip(BUDGETS, regrets, strict=True)}
    return {**task._asdict(), **at, "evaluations": asked, "seconds": seconds}


def text(rows: Sequence[Row]) -> str:
    """Return mean, median and worst regret of each method at each budget, table by table."""
    lines = []
    for table in dict.fromkeys(row["table"] for row in rows):
        head = "".join(f"{budget:>22}" for budget in BUDGETS)
        lines.append(f"{table:<24}{'seeds':>6}{head}")
        mine = [row for row in rows if row["table"] == table]
        for method in dict.fromkeys(row["method"] for row in mine):
            lines.append(_line(method, [row for row in mine if row["method"] == method]))
    lines.append("Regret: mean, median, worst. Budgets in costs of an evaluation at the target.")
    return "\n".join(lines)


def _line(method: str, rows: Sequence[Row]) -> str:
    cells = []
    for budget in BUDGETS:
        values = [row[f"at {budget}"] for row in rows]
        parts = statistics.fmean(values), statistics.median(values), max(values)
        cells.append(" ".join(f"{value:.4f}" for value in parts).rjust(22))
    return f"  {method:<22}{len(rows):>6}" + "".join(cells)


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    parser = parser_for(NAME, "regret at the target against what was paid, by fidelities")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--again", action="store_true", help="measure what is stored, too")
    add_seeds(parser, seeds=20)
    options = parser.parse_args(arguments)
    wanted = [
        Task(t, m, s) for s in seeds_of(options) for t in options.tables for m in options.methods
    ]
    measure_missing(NAME, wanted, measure, Task, options)
    print(text(rows_of(NAME, options.results)))
