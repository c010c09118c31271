"""Regret at the target against what was paid, by fidelities: ``python -m benchmarks fabolas``.

Budgets are in mean costs of an evaluation at the target. A regret is that of what a method would choose,
whether it was evaluated at the target or not.
"""

import math
import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.harness.record import Row, grouped
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.subsets.base import play
from benchmarks.subsets.methods import METHODS
from benchmarks.subsets.tables import TABLES, Table

NAME = "fabolas"
_LONGEST = 3  # budgets that methods which decide slowly are played to
_SLOW = (
    "MF-MES",
    "MF-KG",
    "SubsetOptimizer",
    "Fabolas as published",
    "MTBO, 1/64",
    "MTBO, 1/16",
)


class Task(NamedTuple):
    """A run of a method, and the key of its row."""

    table: str
    method: str
    seed: int


def measure(task: Task) -> Row:
    """Return the regret of a method at each budget."""
    table = TABLES[task.table]
    most = _LONGEST if task.method in _SLOW else math.inf
    budgets = [budget for budget in table.budgets if budget <= most]
    began = time.perf_counter()
    regrets, asked = play(table.make(task.seed), METHODS[task.method], task.seed, budgets)
    seconds = (time.perf_counter() - began) / max(asked, 1)
    at = {f"at {budget}": regret for budget, regret in zip(budgets, regrets, strict=True)}
    return {**task._asdict(), **at, "evaluations": asked, "seconds": seconds}


def text(rows: Sequence[Row]) -> str:
    """Return mean, median and worst regret of each method at each budget, table by table."""
    lines = []
    for name, mine in grouped(rows, "table").items():
        table = TABLES[name]
        head = "".join(f"{budget:>21}" for budget in table.budgets)
        lines.append(f"{name:<30}{'seeds':>6}{'s':>7}{f'<= {table.goal}':>9}{head}")
        for method in METHODS:
            played = [row for row in mine if row["method"] == method]
            if played:
                seconds = statistics.median(row["seconds"] for row in played)
                about = f"  {method:<28}{len(played):>6}{seconds:>7.2f}"
                lines.append(about + _cells(played, table))
    lines.append(
        "Regret: mean, median, worst. Budgets in costs of an evaluation at the target; <= is the least "
        "from which the median is that; s, the seconds of a decision, is a median of the seeds' means."
    )
    return "\n".join(lines)


def _cells(rows: Sequence[Row], table: Table) -> str:
    cells, reached = "", "-"
    for budget in table.budgets:
        values = [row[f"at {budget}"] for row in rows if f"at {budget}" in row]
        if len(values) < len(rows):
            cells += f"{'-':>21}"
            continue
        median = statistics.median(values)
        reached = "-" if median > table.goal else str(budget) if reached == "-" else reached
        cells += f"{statistics.fmean(values):>9.4f}{median:>6.3f}{max(values):>6.3f}"
    return f"{reached:>9}{cells}"


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    about = "regret at the target against what was paid, by fidelities"
    parser = sweep_parser(NAME, about, seeds=20, tables=TABLES, methods=METHODS)
    options = parser.parse_args(arguments)
    tasks = tasks_of(Task, options, options.tables, options.methods)
    wanted = [task for task in tasks if task.method not in TABLES[task.table].without]
    print(text(measured(NAME, wanted, measure, options)))
