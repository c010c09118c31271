"""Regret against what was paid, on trainings of our own.

``python -m benchmarks boil-rl``, ``boil-cnn`` or ``boil-decay``: trainings of random configurations are
recorded once, so that policies can be played on many seeds.
"""

import argparse
import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from benchmarks.curves.live.actor_critic import PENDULUM, PUBLISHED_PENDULUM, REACHER
from benchmarks.curves.live.best import best_text
from benchmarks.curves.live.cartpole import CARTPOLE, PUBLISHED_CARTPOLE
from benchmarks.curves.live.decayed import DIGITS, NETWORK, TEACHER
from benchmarks.curves.live.pictures import LONG_PICTURES, PICTURES, PUBLISHED_PICTURES
from benchmarks.curves.live.pools import over_pools, pooled, program_of, training_numbers
from benchmarks.curves.live.program import Program, advance
from benchmarks.curves.tabular import POLICIES, Task, measure, text
from benchmarks.harness.record import Row, grouped, rows_of
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from botorch_costly.errors import CostlyError
from botorch_costly.problems import CurveProblem

CURVES = "-curves"  # after the name of a benchmark: its recorded trainings
PROGRAMS: dict[str, Program] = {
    "cartpole": CARTPOLE,
    "pendulum": PENDULUM,
    "reacher": REACHER,
    "pictures": PICTURES,
    "pictures, 150 epochs": LONG_PICTURES,
    "decayed digits": DIGITS,
    "decayed pictures": NETWORK,
    "decayed regression": TEACHER,
    "cartpole, published": PUBLISHED_CARTPOLE,
    "pendulum, published": PUBLISHED_PENDULUM,
    "pictures, published": PUBLISHED_PICTURES,
}

_STARTUP = 1e-3  # seconds of a training that diverges before its first reward


class MissingPoolError(CostlyError, FileNotFoundError):
    """A program has no recorded trainings."""


class PoolTask(NamedTuple):
    """A training to record; its number is the seed of its configuration and of all its draws."""

    program: str
    number: int


def record(task: PoolTask) -> Row:
    """Return the curve of a whole training, and the seconds of each of its iterations."""
    program = PROGRAMS[program_of(task.program)]
    draws = torch.Generator().manual_seed(task.number)
    config = program.space.decode(program.space.sample(1, draws)[0])
    iterations = program.length.of(config)
    shown = advance(program.begin(config, task.number), iterations, program.length.rounds)
    return {
        **task._asdict(),
        "config": config,
        "iterations": iterations,
        "curve": [round(reward, 4) for reward in shown.curve],
        "seconds": [round(seconds, 4) for seconds in shown.seconds],
    }


def recorded(name: str, benchmark: str, directory: Path) -> CurveProblem:
    """Return the recorded trainings of a program.

    Raises:
        MissingPoolError: If there are none.
    """
    rows = [row for row in rows_of(benchmark, directory) if row["program"] == name]
    if not rows:
        raise MissingPoolError("program", f"one recorded in {benchmark}", name)
    space, lengths = PROGRAMS[program_of(name)].space, [row["iterations"] for row in rows]
    inputs = torch.stack([space.encode(row["config"]) for row in rows])
    rewards, elapsed = torch.full((2, len(rows), max(lengths)), torch.nan, dtype=torch.float64)
    for number, row in enumerate(rows):
        known = len(row["curve"])
        rewards[number, :known] = torch.tensor(row["curve"], dtype=torch.float64)
        elapsed[number, :known] = torch.tensor(row["seconds"], dtype=torch.float64).cumsum(0)
    return CurveProblem(inputs, rewards, elapsed, lengths, startup=_STARTUP)


def run(name: str, programs: Sequence[str], arguments: list[str]) -> None:
    """Record the trainings that are missing, play the policies on them, and print the table."""
    about = f"regret against what was paid: {', '.join(programs)}"
    parser = sweep_parser(name, about, seeds=20, programs=programs, policies=POLICIES)
    parser.add_argument("--pool", type=int, default=64, help="trainings of a pool, recorded")
    parser.add_argument("--pools", type=int, default=1, help="each played on by itself")
    parser.add_argument("--published", action="store_true", help="as those of the paper")
    options = parser.parse_args(arguments)
    tables = [
        pooled(_named(program, options.published), number)
        for program in options.programs
        for number in range(options.pools)
    ]
    pool = [
        PoolTask(table, number)
        for table in tables
        for number in training_numbers(table, options.pool)
    ]
    seeds = {"first_seed": 0, "seeds": options.pool, "again": False}
    measured(name + CURVES, pool, record, argparse.Namespace(**{**vars(options), **seeds}))

    def problem_of(table: str, seed: int) -> CurveProblem:
        return recorded(table, name + CURVES, options.results)

    wanted = tasks_of(Task, options, tables, options.policies)
    print(live_text(measured(name, wanted, partial(measure, problem_of=problem_of), options)))


def _named(program: str, published: bool) -> str:
    """Return the name of a program at the paper's length, if that is wanted and another one."""
    longer = f"{program}, published"
    return longer if published and longer in PROGRAMS else program


def reinforcement(arguments: list[str]) -> None:
    """Play on trainings of reinforcement learning."""
    run("boil-rl", ["cartpole", "pendulum", "reacher"], arguments)


def network(arguments: list[str]) -> None:
    """Play on trainings of a convolutional network on CIFAR-10."""
    run("boil-cnn", ["pictures", "pictures, 150 epochs"], arguments)


def decayed(arguments: list[str]) -> None:
    """Play on trainings whose rate falls to 0 at the end, and whose number of epochs is chosen, too."""
    run("boil-decay", ["decayed digits", "decayed regression", "decayed pictures"], arguments)


def live_text(rows: Sequence[Row]) -> str:
    """Return the regrets on each pool, and then over all pools of a program."""
    together = over_pools(rows)
    return "\n\n".join([text(rows), *([text(together)] if together else [])])


def curves_text(rows: Sequence[Row]) -> str:
    """Return what the recorded trainings of each program are like, and the best beside the paper's."""
    lines = [f"{'':28}{'trainings':>10}{'diverged':>10}{'best':>10}{'median':>10}{'seconds':>10}"]
    for program, mine in grouped(rows, "program").items():
        ends = [row["curve"][-1] for row in mine if len(row["curve"]) == row["iterations"]]
        numbers = max(ends), statistics.median(ends), sum(sum(row["seconds"]) for row in mine)
        counts = f"{len(mine):>10}{len(mine) - len(ends):>10}"
        lines.append(f"{program:<28}{counts}" + "".join(f"{number:>10.3f}" for number in numbers))
    best = best_text(rows)
    return "\n".join([*lines, *(["", best] if best else [])])
