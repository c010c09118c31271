"""Table A1: regret and queries of bandits on arms that drift, beside the printed numbers.

Every policy meets equal noise, coins and luck in a trial. Rows are stored in blocks of trials as they
come; a run that is cut short goes on where it stopped, and a longer one keeps what is there.
"""

import argparse
import time
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.bandits.policies import rows
from benchmarks.bandits.report import draw, report
from benchmarks.harness.command_line import add_seeds, parser_for, seeds_of
from benchmarks.harness.missing import measure_missing
from benchmarks.harness.record import Row, rows_of
from botorch_costly.bandits import simulate_arms
from botorch_costly.problems import DriftingArms

KINDS = ("sine", "bump", "steps")
BLOCK = 50  # trials of a task: many learn together
POINTS = 100  # of the curve of running regret
SEED = 20  # of all draws


class Task(NamedTuple):
    """Some trials of a policy on a problem."""

    problem: str
    row: str
    variant: str
    horizon: int
    first: int
    trials: int


def tasks(seeds: range, horizon: int, match: Sequence[str] = ("",)) -> list[Task]:
    """Return what makes the table: blocks of trials, so that all rows grow alike."""
    blocks = [range(i, min(i + BLOCK, seeds.stop)) for i in range(seeds.start, seeds.stop, BLOCK)]
    return [
        Task(kind, row, variant, horizon, block.start, len(block))
        for block in blocks
        for kind in KINDS
        for row, variants in rows().items()
        for variant in variants
        if any(word in row for word in match)
    ]


def work(task: Task) -> Row:
    """Return what the trials of a task paid."""
    policy = rows()[task.row][task.variant]
    start = time.perf_counter()
    run = simulate_arms(
        DriftingArms(task.problem),
        [policy],
        task.trials,
        task.horizon,
        seed=SEED,
        first_trial=task.first,
    )
    seconds = time.perf_counter() - start
    regret = run.regret[0]
    at = range(task.horizon // POINTS - 1, task.horizon, max(task.horizon // POINTS, 1))
    running = regret.cumsum(-1).mean(0)
    return {
        **task._asdict(),
        "regret": regret.mean(-1).tolist(),
        "queries": run.query[0].sum(-1).tolist(),
        "running": [float(running[t]) / (t + 1) for t in at if t >= 0],
        "seconds": round(seconds, 1),
    }


def main(arguments: list[str]) -> None:
    """Measure what is missing, print the table and draw the pictures."""
    parser = parser_for("table-a1", "bandits on arms whose rewards drift")
    add_seeds(parser, 100)
    parser.add_argument("--horizon", type=int, default=2000, help="rounds of a run")
    parser.add_argument("--match", nargs="+", default=[""], help="words of the rows to measure")
    parser.add_argument("--again", action="store_true", help="measure what is stored, too")
    parser.add_argument("--report", action="store_true", help="only report what is stored")
    options: argparse.Namespace = parser.parse_args(arguments)
    if not options.report:
        wanted = tasks(seeds_of(options), options.horizon, options.match)
        measure_missing("table-a1", wanted, work, Task, options)
    stored = rows_of("table-a1", options.results)
    print(report(stored))
    draw(stored, options.results)
