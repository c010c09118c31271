"""Trainings of random configurations, recorded once, so that policies can be played on many seeds."""

from pathlib import Path
from typing import NamedTuple

import torch

from benchmarks.curves.live.cartpole import CARTPOLE, PUBLISHED_CARTPOLE
from benchmarks.curves.live.pendulum import PENDULUM, PUBLISHED_PENDULUM
from benchmarks.curves.live.pictures import PICTURES, PUBLISHED_PICTURES
from benchmarks.curves.live.program import Program, advance
from benchmarks.harness.record import Row, rows_of
from botorch_costly.errors import CostlyError
from botorch_costly.problems import CurveProblem

PROGRAMS: dict[str, Program] = {
    "cartpole": CARTPOLE,
    "pendulum": PENDULUM,
    "pictures": PICTURES,
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
    program = PROGRAMS[task.program]
    draws = torch.Generator().manual_seed(task.number)
    config = program.space.decode(program.space.sample(1, draws)[0])
    shown = advance(program.begin(config, task.number), *program.length)
    return {
        **task._asdict(),
        "config": config,
        "iterations": program.length.iterations,
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
    space, longest = PROGRAMS[name].space, rows[0]["iterations"]
    inputs = torch.stack([space.encode(row["config"]) for row in rows])
    rewards, elapsed = torch.full((2, len(rows), longest), torch.nan, dtype=torch.float64)
    for number, row in enumerate(rows):
        known = len(row["curve"])
        rewards[number, :known] = torch.tensor(row["curve"], dtype=torch.float64)
        elapsed[number, :known] = torch.tensor(row["seconds"], dtype=torch.float64).cumsum(0)
    return CurveProblem(inputs, rewards, elapsed, [longest] * len(rows), startup=_STARTUP)
