"""What a session costs and gains by the length of a run: from a hundred steps to thousands."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from benchmarks.harness.record import Row, grouped
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.suite.compute_bound.problems import PROBLEMS
from benchmarks.suite.compute_bound.rivals import METHODS
from benchmarks.suite.data import available

NAME = "short-lengths"
STEPS = (100, 200, 400, 600, 1000, 2000, 4000, 8000)
PAIR = ("session", "wsd")


class Task(NamedTuple):
    """A run from the sensible start that lasts for about so many steps of the optimizer."""

    problem: str
    steps: int
    method: str
    seed: int


def play(task: Task) -> Row:
    """Return how a run ended."""
    problem = PROBLEMS[task.problem]()
    problem = replace(problem, horizon=max(2, round(task.steps / problem.steps)))
    result = METHODS[task.method](problem, dict(problem.default), task.seed)
    parts = {"loss": result.loss, "given_back": result.given_back, "horizon": problem.horizon}
    return {**task._asdict(), **parts}


def text(rows: Sequence[Row]) -> str:
    """Return by how much the logarithm of the loss differs from that of the default with late decay.

    The share of the rounds that were given back is beside it; means over seeds.
    """
    lengths = sorted({row["steps"] for row in rows})
    lines = [f"{'steps':<24}" + "".join(f"{steps:>15}" for steps in lengths)]
    for problem, mine in grouped(rows, "problem").items():
        lines.append(f"{problem:<24}" + "".join(_cell(mine, steps) for steps in lengths))
    return "\n".join(lines)


def _cell(rows: Sequence[Row], steps: int) -> str:
    ours, theirs = (
        {r["seed"]: r for r in rows if (r["steps"], r["method"]) == (steps, method)}
        for method in PAIR
    )
    seeds = [seed for seed in ours if seed in theirs]
    if not seeds:
        return " " * 15
    change = fmean(_log_loss(ours[seed]) - _log_loss(theirs[seed]) for seed in seeds)
    back = fmean(ours[seed]["given_back"] / ours[seed]["horizon"] for seed in seeds)
    return f"{change:>+9.3f}{back:>6.1%}"


def _log_loss(row: Mapping[str, float | None]) -> float:
    return math.inf if row["loss"] is None else math.log(row["loss"])


def main(arguments: list[str]) -> None:
    """Measure what is missing, and print the table."""
    parser = sweep_parser(NAME, "what a session costs by the length of a run", 1, problems=PROBLEMS)
    known = f"steps of the optimizer (default: {STEPS})"
    parser.add_argument("--steps", nargs="+", type=int, default=list(STEPS), help=known)
    options = parser.parse_args(arguments)
    problems = available(PROBLEMS, options.problems)
    tasks = tasks_of(Task, options, problems, options.steps, PAIR)
    print(text(measured(NAME, tasks, play, options)), flush=True)
