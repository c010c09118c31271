"""Regret against what was paid, on learning curves of others: ``python -m benchmarks boil-tabular``.

Budgets are in means of the cost of a whole training; regrets are shares of what the best last reward is
above the least reward of all.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.curves.gaussian import MODELS
from benchmarks.curves.lengths import LENGTHS
from benchmarks.curves.ours import OURS
from benchmarks.curves.play import Policy, play, point_at
from benchmarks.curves.rivals import PLANNED, SIMPLE
from benchmarks.curves.tables import TABLES, problem_of
from benchmarks.harness.record import Row, grouped
from benchmarks.harness.statistics import paired
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from botorch_costly.problems import CurveProblem

NAME = "boil-tabular"
BUDGETS = (3, 5, 7, 10, 20)
OURSELF = "curve optimizer"
_COUNTED = 10  # trainings, at which seeds are counted
FOUND = f"found at {_COUNTED}"  # the configuration with the best latest reward then
POLICIES: dict[str, Policy] = {**SIMPLE, **OURS, **MODELS, **LENGTHS}


class Task(NamedTuple):
    """A run of a policy, and the key of its row."""

    table: str
    policy: str
    seed: int


def measure(task: Task, problem_of: Callable[[str, int], CurveProblem] = problem_of) -> Row:
    """Return the regret of a policy at each budget, as a share of the range of all rewards.

    Where a policy plans with what it may spend, each budget is a run of its own.
    """
    problem, began = problem_of(task.table, task.seed), time.perf_counter()
    spread, regrets, found = problem.best - problem.worst, {}, None
    points = play(problem, POLICIES[task.policy], task.seed, max(BUDGETS))
    for budget in BUDGETS:
        if task.policy in PLANNED:
            points = play(problem, POLICIES[task.policy], task.seed, budget)
        point = point_at(points, budget)
        regrets[f"at {budget}"] = point.regret / spread
        found = point.found if budget == _COUNTED else found
    seconds = (time.perf_counter() - began) / max(len(points), 1)
    return {**task._asdict(), "spread": spread, **regrets, FOUND: found, "seconds": seconds}


def text(rows: Sequence[Row]) -> str:
    """Return each policy's regrets at each budget, table by table, and how ours compares with it."""
    return f"{regrets(rows)}\n\n{verdicts(rows)}"


def regrets(rows: Sequence[Row], budgets: Sequence[int] = BUDGETS) -> str:
    """Return mean, median and worst regret of each policy at each budget, table by table."""
    lines = []
    width = max((max(len(row["table"]), len(row["policy"]) + 2) for row in rows), default=0)
    for table, mine in grouped(rows, "table").items():
        head = "".join(f"{f'{budget} trainings':>24}" for budget in budgets)
        lines.append(f"{table:<{width}}{'seeds':>6}{head}")
        for policy, played in grouped(mine, "policy").items():
            cells = []
            for budget in budgets:
                values = [row[f"at {budget}"] for row in played]
                parts = statistics.fmean(values), statistics.median(values), max(values)
                cells.append("  ".join(f"{value:.3f}" for value in parts).rjust(24))
            lines.append(f"  {policy:<{width - 2}}{len(played):>6}" + "".join(cells))
    lines.append("Regret as a share of the range of all rewards: mean, median, worst.")
    return "\n".join(lines)


def verdicts(rows: Sequence[Row], budgets: Sequence[int] = BUDGETS, ourself: str = OURSELF) -> str:
    """Return where our optimizer is better or worse than each other policy, on the seeds of both."""
    tables = grouped(rows, "table")
    width = 2 + max([2 * len(budgets) + 6, *map(len, tables)])
    title = f"{ourself} against"
    lines = [f"{title:<30}" + "".join(f"{table:>{width}}" for table in tables)]
    for policy in dict.fromkeys(row["policy"] for row in rows if row["policy"] != ourself):
        cells = [_verdict(mine, policy, budgets, ourself) for mine in tables.values()]
        lines.append(f"  {policy:<28}" + "".join(f"{cell:>{width}}" for cell in cells))
    lines.append(
        f"At {', '.join(map(str, budgets))} trainings: + better, - WORSE, = even (95 %); seeds in which"
        f" it wins and loses at {_COUNTED}."
    )
    return "\n".join(lines)


def _verdict(rows: Sequence[Row], policy: str, budgets: Sequence[int], ourself: str) -> str:
    """Return a sign for each budget, and in how many seeds ours wins and loses."""
    of = {(row["policy"], row["seed"]): row for row in rows}
    both = [
        (of[ourself, s], row) for (p, s), row in of.items() if p == policy and (ourself, s) in of
    ]
    signs = [_sign(both, f"at {budget}") for budget in budgets]
    pairs = [tuple(row[f"at {_COUNTED}"] for row in rows) for rows in both]
    won, lost = sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
    return f"{''.join(signs)} {won:>3}:{lost}" if both else ""


def _sign(both: Sequence[tuple[Row, Row]], budget: str) -> str:
    found = paired([ours[budget] for ours, _ in both], [theirs[budget] for _, theirs in both])
    if found is None or found.low <= 0 <= found.high:
        return "="
    return "+" if found.high < 0 else "-"


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    about = "regret against what was paid, on recorded learning curves"
    parser = sweep_parser(NAME, about, seeds=20, tables=TABLES, policies=POLICIES)
    options = parser.parse_args(arguments)
    wanted = tasks_of(Task, options, options.tables, options.policies)
    print(text(measured(NAME, wanted, measure, options)))
