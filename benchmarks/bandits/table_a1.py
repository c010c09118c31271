"""Table A1: regret and queries of bandits on arms that drift, beside the printed numbers.

Every policy meets equal noise, coins and luck in a trial. Rows are stored in blocks of trials as they
come; a run that is cut short goes on where it stopped, and a longer one keeps what is there.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.bandits.policies import rows
from benchmarks.bandits.report import PROBLEMS as KINDS
from benchmarks.bandits.report import draw, report
from benchmarks.harness.command_line import seeds_of
from benchmarks.harness.record import Row
from benchmarks.harness.sweep import measured, sweep_parser
from botorch_costly.bandits import BanditPlayer
from botorch_costly.bandits.simulate import draw_for_arms
from botorch_costly.problems import DriftingArms
from botorch_costly.simulation import drive

BLOCK = 50  # trials of a task: many learn together
POINTS = 100  # of the curve of running regret
SEED = 20  # of all draws


class Task(NamedTuple):
    """Some trials of a policy on every problem."""

    row: str
    variant: str
    horizon: int
    first: int
    trials: int


def tasks(seeds: range, horizon: int, match: Sequence[str] = ("",)) -> list[Task]:
    """Return what makes the table: blocks of trials, so that all rows grow alike."""
    blocks = [range(i, min(i + BLOCK, seeds.stop)) for i in range(seeds.start, seeds.stop, BLOCK)]
    return [
        Task(row, variant, horizon, block.start, len(block))
        for block in blocks
        for row, variants in rows().items()
        for variant in variants
        if any(word in row for word in match)
    ]


def work(task: Task) -> Row:
    """Return what the trials of a task paid, of all problems side by side in one program."""
    policy = rows()[task.row][task.variant]
    start = time.perf_counter()
    problems = [DriftingArms(kind) for kind in KINDS]
    numbers = range(task.first, task.first + task.trials)
    chance = draw_for_arms(problems[0].noise, numbers, task.horizon, SEED)
    curves = [problem.values(task.horizon).expand(task.trials, -1, -1) for problem in problems]
    values = torch.cat(curves)
    player = BanditPlayer(policy, len(values), values.shape[-1], task.horizon)
    noise, coins, luck = (part.repeat(len(KINDS), 1) for part in chance)
    course = drive(player, values, noise, coins, luck)
    regret = (values.amax(-1) - course.value).split(task.trials)
    queries = course.query.split(task.trials)
    found = {
        kind: _paid(*both)
        for kind, both in zip(KINDS, zip(regret, queries, strict=True), strict=True)
    }
    return {**task._asdict(), **found, "seconds": round(time.perf_counter() - start, 1)}


def _paid(
    regret: Tensor,  # shape: (trials, horizon)
    query: Tensor,  # bool, shape: (trials, horizon)
) -> dict[str, list[float]]:
    """Return regret and queries by trial, and the average regret so far at some rounds."""
    horizon = regret.shape[-1]
    step = max(horizon // POINTS, 1)
    rounds = torch.arange(step, horizon + 1, step)
    running = regret.mean(0).cumsum(-1)[rounds - 1] / rounds
    return {
        "regret": regret.mean(-1).tolist(),
        "queries": query.sum(-1).tolist(),
        "running": running.tolist(),
    }


def main(arguments: list[str]) -> None:
    """Measure what is missing, print the table and draw the pictures."""
    parser = sweep_parser("table-a1", "bandits on arms whose rewards drift", seeds=100)
    parser.add_argument("--horizon", type=int, default=2000, help="rounds of a run")
    parser.add_argument("--match", nargs="+", default=[""], help="words of the rows to measure")
    parser.add_argument("--report", action="store_true", help="only report what is stored")
    options = parser.parse_args(arguments)
    seeds = range(0) if options.report else seeds_of(options)
    stored = measured("table-a1", tasks(seeds, options.horizon, options.match), work, options)
    print(report(stored))
    draw(stored, options.results)
