"""Regret against what was paid, on trainings of our own: recorded once, then played on by policies."""

import argparse
import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.curves.live.pool import PoolTask, record, recorded
from benchmarks.curves.tabular import POLICIES, Task, measure, text
from benchmarks.harness.command_line import add_seeds, parser_for, seeds_of
from benchmarks.harness.missing import measure_missing
from benchmarks.harness.record import Row, rows_of
from botorch_costly.problems import CurveProblem

CURVES = "-curves"  # after the name of a benchmark: its recorded trainings


def run(name: str, programs: Sequence[str], arguments: list[str]) -> None:
    """Record the trainings that are missing, play the policies on them, and print the table."""
    options = _parser(name, programs).parse_args(arguments)
    tables = [one + ", published" * options.published for one in options.programs]
    pool = [PoolTask(table, number) for table in tables for number in range(options.pool)]
    seeds = {"first_seed": 0, "seeds": options.pool}
    recording = argparse.Namespace(**{**vars(options), **seeds, "again": False})
    measure_missing(name + CURVES, pool, record, PoolTask, recording)

    wanted = [Task(t, p, s) for s in seeds_of(options) for t in tables for p in options.policies]
    problem_of = partial(_problem, name + CURVES, options.results)
    measure_missing(name, wanted, partial(measure, problem_of=problem_of), Task, options)
    print(text(rows_of(name, options.results)))


def _parser(name: str, programs: Sequence[str]) -> argparse.ArgumentParser:
    parser = parser_for(name, f"regret against what was paid: {', '.join(programs)}")
    parser.add_argument("--programs", nargs="+", choices=programs, default=list(programs))
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    parser.add_argument("--pool", type=int, default=64, help="trainings that are recorded")
    parser.add_argument("--published", action="store_true", help="as those of the paper")
    parser.add_argument("--again", action="store_true", help="play what is stored, too")
    add_seeds(parser, seeds=20)
    return parser


def _problem(benchmark: str, directory: Path, table: str, seed: int) -> CurveProblem:
    return recorded(table, benchmark, directory)


def curves_text(rows: Sequence[Row]) -> str:
    """Return what the recorded trainings of each program are like."""
    lines = [f"{'':24}{'trainings':>10}{'diverged':>10}{'best':>10}{'median':>10}{'seconds':>10}"]
    for program in dict.fromkeys(row["program"] for row in rows):
        mine = [row for row in rows if row["program"] == program]
        ends = [row["curve"][-1] for row in mine if len(row["curve"]) == row["iterations"]]
        numbers = max(ends), statistics.median(ends), sum(sum(row["seconds"]) for row in mine)
        counts = f"{len(mine):>10}{len(mine) - len(ends):>10}"
        lines.append(f"{program:<24}{counts}" + "".join(f"{number:>10.3f}" for number in numbers))
    return "\n".join(lines)
