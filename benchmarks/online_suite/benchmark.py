"""Small real problems, and how far each method gets in one run's compute.

Every method trains with the same seeds: the same parts of the data and the same first weights. Rows
are stored one by one; methods or problems that are not asked for keep what was stored of them.
"""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from multiprocessing import get_context
from statistics import mean, median
from typing import Any, NamedTuple

import torch

from benchmarks.online_suite.methods import METHODS, Method, methods_of, one_run
from benchmarks.online_suite.offline import best_fixed
from benchmarks.online_suite.policies import FixedPolicy
from benchmarks.online_suite.problems import CONFIRMATION, PROBLEMS
from benchmarks.record import Row, add_results_argument, write_results

NAME, CEILING = "online-suite", "best fixed"


class Task(NamedTuple):
    """A run."""

    problem: str
    method: str
    seed: int
    fixed: Mapping[str, Any] | None  # for the ceiling


def play(task: Task) -> Row:
    """Return how a run ended."""
    torch.set_num_threads(1)
    problem = PROBLEMS[task.problem]()
    outcome = _method(task)(problem, task.seed)
    fixed = {} if task.fixed is None else {"config": dict(task.fixed)}
    return {**_key(task), **asdict(outcome), **fixed}


def _method(task: Task) -> Method:
    if task.fixed is None:
        return METHODS[task.method]
    config = dict(task.fixed)
    return one_run(lambda problem, seed: FixedPolicy(config))


def _key(task: Task) -> dict[str, Any]:
    return {"problem": task.problem, "method": task.method, "seed": task.seed}


@cache
def _ceiling(problem: str) -> dict[str, Any]:
    torch.set_num_threads(1)
    return best_fixed(PROBLEMS[problem]())


def tasks(
    problems: Sequence[str],
    methods: Sequence[str],
    seeds: Sequence[int],
    ceilings: Mapping[str, Mapping[str, Any]],
) -> list[Task]:
    """Return all runs, problem by problem."""
    found = []
    for problem in problems:
        sensible = [*methods_of(PROBLEMS[problem]()), CEILING]
        for method in (m for m in methods if m in sensible):
            fixed = ceilings[problem] if method == CEILING else None
            found += [Task(problem, method, seed, fixed) for seed in seeds]
    return found


def measure(work: Sequence[Task], processes: int) -> Iterator[Row]:
    """Run the tasks side by side; rows come in the order of the tasks."""
    with get_context("spawn").Pool(processes) as pool:
        yield from pool.imap(play, work)


def table(rows: Sequence[Row]) -> str:
    """Return, for each problem, the mean, worst and cost of each method, and the gap it closed."""
    lines = []
    for problem in dict.fromkeys(row["problem"] for row in rows):
        mine = [row for row in rows if row["problem"] == problem]
        ends = {m: _ends(mine, m) for m in dict.fromkeys(row["method"] for row in mine)}
        half = "confirmation" if problem in {make.__name__ for make in CONFIRMATION} else "choice"
        lines.append(f"{problem} ({half})")
        lines.append(
            f"  {'':<18}{'mean':>7}{'median':>8}{'worst':>7}{'gap':>7}{'looks':>7}{'s':>7}"
        )
        for method, end in ends.items():
            paid = [row for row in mine if row["method"] == method]
            looks, seconds = mean(r["looks"] for r in paid), mean(r["seconds"] for r in paid)
            lines.append(
                f"  {method:<18}{mean(end):>7.1f}{median(end):>8.1f}{min(end):>7.1f}"
                f"{closed_gap(ends, method):>7}{looks:>7.0f}{seconds:>7.1f}"
            )
        lines.append("")
    return "\n".join(lines)


def closed_gap(ends: Mapping[str, Sequence[float]], method: str) -> str:
    """Return which share of the way from the default to the best fixed setting a method went."""
    if not {"default", CEILING} <= set(ends):
        return ""
    low, high = mean(ends["default"]), mean(ends[CEILING])
    if math.isclose(low, high):
        return ""
    return f"{(mean(ends[method]) - low) / (high - low):.0%}" if high - low >= 2 else "(<2)"


def _ends(rows: Sequence[Row], method: str) -> list[float]:
    return [100 * row["test_accuracy"] for row in rows if row["method"] == method]


def main(arguments: list[str]) -> None:
    """Measure the methods on the problems, store the rows and print the table."""
    everything = [*METHODS, CEILING]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks online-suite",
        description="how far each method gets on small real problems",
    )
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--methods", nargs="+", choices=everything, default=everything)
    parser.add_argument("--seeds", type=int, default=10, help="how many")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2, help="runs side by side")
    add_results_argument(parser)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    ceilings = {}
    if CEILING in options.methods:
        with get_context("spawn").Pool(options.processes) as pool:
            found = pool.map(_ceiling, options.problems, chunksize=1)
        ceilings = dict(zip(options.problems, found, strict=True))
    work = tasks(options.problems, options.methods, seeds, ceilings)
    replaced = {tuple(_key(task).values()) for task in work}

    def stays(row: Row) -> bool:
        return (row["problem"], row["method"], row["seed"]) not in replaced

    rows = measure(work, options.processes)
    print(table(write_results(NAME, rows, list(seeds), directory=options.results, keep=stays)))
