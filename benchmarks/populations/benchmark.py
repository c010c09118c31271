"""Our population tuner beside Ray's PB2 at equal compute, on problems of the online suite.

All methods have as many members, decisions and rounds; validations are counted. PB2 needs ``ray[tune]``
and scikit-learn; the seeds of the rows are other ones than those that defaults were looked at with.
"""

import argparse
import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.harness.command_line import seeds_of
from benchmarks.harness.record import Row, grouped
from benchmarks.harness.sweep import measured, sweep_parser
from benchmarks.populations.methods import METHODS, Size, play
from benchmarks.suite.problems import PROBLEMS

NAME = "populations"
_PROBLEMS = ("digits_augmentation", "fine_tuning")


class Task(NamedTuple):
    """One population, and what it pays."""

    problem: str
    method: str
    seed: int
    members: int
    decisions: int
    rounds: int


def measure(task: Task) -> Row:
    """Return how a population ended."""
    problem, size = PROBLEMS[task.problem](), Size(task.members, task.decisions, task.rounds)
    decider = METHODS[task.method](problem, task.seed, size)
    return {**task._asdict(), **play(problem, decider, task.seed, size)._asdict()}


def text(rows: Sequence[Row]) -> str:
    """Return means and standard errors by method, and what ours has more than each, paired by seed."""
    lines = []
    for problem, mine in grouped(rows, "problem").items():
        one = mine[0]
        size = f"{one['members']} members, {one['decisions']} decisions of {one['rounds']} rounds"
        lines.append(f"{problem}: {size}; test accuracy in %")
        lines.append(
            f"  {'':<22}seeds   mean  worst  loss  queries  deciding s  ours less it (s.e.)"
        )
        ours = _ends(mine, "ours")
        for method, these in grouped(mine, "method").items():
            ends = _ends(mine, method)
            numbers = [
                statistics.mean(row[k] for row in these)
                for k in ("test_loss", "queries", "deciding")
            ]
            loss, queries, deciding = numbers
            lines.append(
                f"  {method:<22}{len(ends):>5}{statistics.mean(ends.values()):>7.1f}"
                f"{min(ends.values()):>7.1f}{loss:>6.2f}{queries:>9.0f}{deciding:>12.1f}"
                f"  {_less(ours, ends)}"
            )
        lines.append("")
    return "\n".join(lines)


def _ends(rows: Sequence[Row], method: str) -> dict[int, float]:
    return {r["seed"]: 100 * r["test_accuracy"] for r in rows if r["method"] == method}


def _less(ours: dict[int, float], theirs: dict[int, float]) -> str:
    """Return the mean paired difference and its standard error, if there are several seeds."""
    apart = [ours[seed] - theirs[seed] for seed in theirs if seed in ours]
    if len(apart) < 2 or ours == theirs:
        return ""
    error = statistics.stdev(apart) / math.sqrt(len(apart))
    return f"{statistics.mean(apart):+.1f} ({error:.1f})"


def tasks(options: argparse.Namespace) -> list[Task]:
    """Return what was asked for, seed by seed."""
    size = (options.members, options.decisions, options.rounds)
    return [
        Task(problem, method, seed, *size)
        for seed in seeds_of(options)
        for problem in options.problems
        for method in options.methods
    ]


def main(arguments: list[str]) -> None:
    """Measure what is not stored yet, and print the table."""
    about = "populations tuned by one belief, beside Ray's PB2"
    parser = sweep_parser(NAME, about, seeds=5, problems=PROBLEMS, methods=METHODS)
    parser.set_defaults(problems=list(_PROBLEMS))
    parser.add_argument("--members", type=int, default=4, help="networks side by side")
    parser.add_argument("--decisions", type=int, default=12, help="comparisons of the members")
    parser.add_argument("--rounds", type=int, default=5, help="of a member between two decisions")
    parser.add_argument("--smoke", action="store_true", help="one seed and two short decisions")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.seeds, options.decisions, options.rounds = 1, 2, 1
    print(text(measured(NAME, tasks(options), measure, options)))
