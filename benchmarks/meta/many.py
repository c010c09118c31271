"""Regret after ever more earlier tasks of the cart and its pole: ``python -m benchmarks meta-many``.

Three of eleven tasks begin near the target, as in the recorded family; of each 50 random ones of 500
policies are known. The target is the recorded one.

References:
    Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
    UAI 2022, Figure 9a.
"""

import time
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch

from benchmarks.harness.command_line import seeds_of
from benchmarks.harness.record import RESULTS, Row, grouped
from benchmarks.harness.statistics import mean_error
from benchmarks.harness.sweep import measured, sweep_parser
from benchmarks.meta.benchmark import play
from benchmarks.meta.families import Family, Study
from benchmarks.meta.live import pool
from benchmarks.meta.live.cart_pole import CART_POLE, beginnings, values_from
from benchmarks.meta.methods import METHODS, OURS, PLAIN
from botorch_costly.models import TaskEnsemble

NAME = "meta-many"
TIMES = (1, 4, 16)  # as many tasks as are recorded
COMPARED = (PLAIN, "RM-GP-UCB", "RM-GP-TS", "RGPE", "TAF", OURS)
_POLICIES, _OBSERVED = 500, 50
AT = (1, 3, 5, 10, 20)  # evaluations after which regrets are stored


class Run(NamedTuple):
    """A method after so many times the recorded tasks, and the key of its row."""

    times: int
    method: str
    seed: int


class World(NamedTuple):
    """A target with the number 0, and fitted earlier tasks."""

    family: Family
    tasks: TaskEnsemble


@lru_cache(maxsize=1)
def world(times: int, seed: int) -> World:
    """Return what all methods of a number of tasks and a seed meet."""
    known = pool.table(CART_POLE.name, RESULTS)
    points = known.points[:_POLICIES]
    target = Study(points, known.values["target"][:_POLICIES])
    draws = torch.Generator().manual_seed(seed)
    earlier = []
    states = beginnings(times)
    for place, (name, state) in enumerate(states.items()):
        rows = torch.randperm(_POLICIES, generator=draws)[:_OBSERVED]
        if name == "target":
            earlier.append(Study(points[rows], target.values[rows]))  # is never told to a method
            continue
        configs = [CART_POLE.space.decode(point) for point in points[rows]]
        seeds = [int(row) * len(states) + place for row in rows]
        values = torch.tensor(values_from(state, configs, seeds), dtype=torch.float64)
        earlier.append(Study(points[rows], values))
    tasks = TaskEnsemble([one.points for one in earlier], [one.values for one in earlier]).fit()
    names = tuple(states)
    return World(Family(names, (target, *earlier[1:]), (0,), lambda seed: earlier), tasks)


def measure(run: Run) -> Row:
    """Return the number of tasks, the least regret after some evaluations, and seconds of one."""
    family, tasks = world(run.times, run.seed)
    began = time.perf_counter()
    least = play(METHODS[run.method], family, tasks, 0, run.seed, AT[-1]).cummin(-1).values
    seconds = (time.perf_counter() - began) / AT[-1]
    at = {f"at {k}": round(float(least[k - 1]), 5) for k in AT}
    return {**run._asdict(), "tasks": tasks.count - 1, **at, "seconds": seconds}


def text(rows: Sequence[Row]) -> str:
    """Return the regrets of each method by the number of tasks."""
    lines = []
    for count, mine in sorted(grouped(rows, "tasks").items()):
        heads = "".join(f"{f'at {k}':>14}" for k in AT)
        lines += [f"{count} tasks", f"  {'':<18}{'seeds':>6}{heads}{'ms':>7}"]
        played = grouped(mine, "method")
        lines += [f"  {name:<18}{_cells(played[name])}" for name in COMPARED if name in played]
        lines.append("")
    lines.append(
        "Regret: the least so far, as a share of the range; mean and standard error over seeds. Three of "
        "eleven tasks begin near the target."
    )
    return "\n".join(lines)


def _cells(rows: Sequence[Row]) -> str:
    cells = f"{len(rows):>6}"
    for k in AT:
        mean, error = mean_error([row[f"at {k}"] for row in rows])
        cells += f"{mean:>8.3f} ±{error:.3f}".rjust(14)
    milliseconds = 1e3 * sum(row["seconds"] for row in rows) / len(rows)
    return f"{cells}{milliseconds:>7.0f}"


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    about = "regret after ever more earlier tasks of the cart and its pole"
    options = sweep_parser(NAME, about, seeds=5, methods=COMPARED).parse_args(arguments)
    wanted = [
        Run(times, method, seed)
        for seed in seeds_of(options)
        for times in TIMES
        for method in options.methods
    ]
    print(text(measured(NAME, wanted, measure, options)))
