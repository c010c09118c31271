"""The time to a target after trainings on other workloads: ``python -m benchmarks algoperf``.

Each workload of AlgoPerf in turn is the target, and all others are earlier studies; see
``time_to_target``. They mislead: over pairs of workloads the times of the settings have a rank
correlation of about 0 in the median. A ratio is the time of the best setting trained so far, over that of
the best setting of all. A seed resamples the repeated trainings of each setting.
"""

import time
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.harness.record import Row, grouped
from benchmarks.harness.statistics import rank_correlation
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.meta.benchmark import play
from benchmarks.meta.families import Family
from benchmarks.meta.methods import METHODS, OURS, PLAIN
from benchmarks.meta.rivals import Method, Policy, Setting, in_random_order
from benchmarks.meta.time_to_target import ENCODINGS, family
from botorch_costly.models import TaskEnsemble

NAME = "algoperf"
AT = (1, 3, 5, 10)  # trainings after which ratios are stored
HARM = 0.05  # of the time without earlier studies, by which a workload counts as harmed
BARS = {3: (1.34, 2.0)}  # mean and worst ratio after so many trainings
_SMOKE = ["random", PLAIN, "portfolio", OURS]


class Run(NamedTuple):
    """A method on all workloads, and the key of its row."""

    encoding: str
    method: str
    seed: int


def earlier_bests(setting: Setting) -> Policy:
    """Choose by the greedy portfolio of settings, by the mean of the least time ratios of the tasks.

    It needs no model: a setting that a task did not train counts as the task's worst.
    """
    ratios = _ratios_on(setting.tasks, setting.points)
    least, left = torch.full_like(ratios[:, 0], torch.inf), in_random_order(setting)
    order = left.argsort(descending=True).tolist()
    for place in range(min(AT[-1], len(order))):
        after = torch.minimum(least.unsqueeze(-1), ratios[:, order]).mean(0)
        pick = order.pop(int(after.argmin()))
        least = torch.minimum(least, ratios[:, pick])
        left[pick] = 1.0 + len(left) - place
    return lambda told: left


def _ratios_on(tasks: TaskEnsemble, points: Tensor) -> Tensor:
    """Return the times of all tasks at points as a ratio of the task's best, ``tasks x m``."""
    x, y, seen = tasks.rows
    logs = -(tasks.offset.unsqueeze(-1) + tasks.scale.unsqueeze(-1) * y)
    logs = logs - logs.masked_fill(~seen, torch.inf).amin(-1, keepdim=True)
    worst = logs.masked_fill(~seen, -torch.inf).amax(-1)
    same = (x.unsqueeze(2) == points).all(-1) & seen.unsqueeze(-1)  # tasks x n x m
    known = torch.where(same, logs.unsqueeze(-1), torch.inf).amin(1)
    return torch.where(same.any(1), known, worst.unsqueeze(-1)).exp()


PLAYED: Mapping[str, Method] = {"earlier bests": earlier_bests, **METHODS}


def measure(run: Run) -> Row:
    """Return the ratios by workload after some trainings."""
    workloads = family(run.encoding, run.seed)
    whole = workloads.whole
    tasks = TaskEnsemble([one.points for one in whole], [one.values for one in whole]).fit()
    began = time.perf_counter()
    ratios = []
    for target in workloads.targets:
        values = whole[target].values
        width = float(values.max() - values.min())
        regrets = play(PLAYED[run.method], workloads, tasks, target, run.seed, AT[-1])
        ratios.append((width * regrets).exp().cummin(-1).values)
    seconds = (time.perf_counter() - began) / (AT[-1] * len(ratios))
    after = {f"at {k}": [round(float(one[k - 1]), 4) for one in ratios] for k in AT}
    return {**run._asdict(), **after, "seconds": seconds}


def correlations(workloads: Family) -> list[float]:
    """Return the rank correlation of each pair of targets, over the settings that both have."""
    found = []
    for place, one in enumerate(workloads.targets):
        for other in workloads.targets[:place]:
            first, second = workloads.whole[one], workloads.whole[other]
            pairs = (first.points.unsqueeze(1) == second.points).all(-1).nonzero().mT
            values = first.values[pairs[0]].tolist(), second.values[pairs[1]].tolist()
            found.append(rank_correlation(*values))
    return found


def text(rows: Sequence[Row]) -> str:
    """Return the ratios of each method, and which workloads it harms."""
    lines = []
    for encoding, mine in grouped(rows, "encoding").items():
        heads = "".join(f"{f'after {k}: mean, worst':>25}" for k in AT)
        lines += [
            f"configurations by {encoding}",
            f"  {'':<24}{'seeds':>6}{heads}{'harmed':>8}{'by':>7}",
        ]
        played = grouped(mine, "method")
        plain = played.get(PLAIN, [])
        lines += [f"  {name:<24}{_cells(played[name], plain)}" for name in PLAYED if name in played]
        lines.append("")
    bars = ", ".join(f"{mean} and {worst} after {k}" for k, (mean, worst) in BARS.items())
    return "\n".join([*lines, _FOOT.format(bars=bars)])


_FOOT = (
    "Time of the best setting so far over that of the best of all: mean over workloads and seeds, and "
    "the worst workload, on average over seeds (goal: {bars}). Harmed: workloads that need more than "
    f"5 % more time than under {PLAIN} after 5 trainings, and the largest excess."
)


def _cells(rows: Sequence[Row], plain: Sequence[Row]) -> str:
    cells = f"{len(rows):>6}"
    for k in AT:
        means = by_workload(rows, k)
        cells += f"{fmean(means):>19.2f}{max(means):>6.2f}"
    excess = [ours / theirs - 1 for ours, theirs in _common(rows, plain, 5)]
    return f"{cells}{sum(one > HARM for one in excess):>8}{max([*excess, 0.0]):>7.2f}"


def by_workload(rows: Sequence[Row], at: int) -> list[float]:
    """Return the mean ratio of each workload over the seeds."""
    return [fmean(column) for column in zip(*(row[f"at {at}"] for row in rows), strict=True)]


def _common(rows: Sequence[Row], others: Sequence[Row], at: int) -> list[tuple[float, float]]:
    """Return the mean ratios of two methods by workload, over the seeds that both have."""
    seeds = {row["seed"] for row in rows} & {row["seed"] for row in others}
    pair = [[row for row in some if row["seed"] in seeds] for some in (rows, others)]
    return list(zip(*(by_workload(some, at) for some in pair), strict=True))


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the tables."""
    about = "time to a target after trainings on other workloads, which mislead"
    known: dict[str, Any] = {"encodings": ENCODINGS, "methods": PLAYED}
    parser = sweep_parser(NAME, about, seeds=20, **known)
    parser.add_argument("--smoke", action="store_true", help="four methods on one seed")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.encodings, options.methods, options.seeds = ENCODINGS[:1], _SMOKE, 1
    wanted = tasks_of(Run, options, options.encodings, options.methods)
    rows = measured(NAME, wanted, measure, options)
    some = correlations(family(ENCODINGS[0], 0))
    low, high = min(some), max(some)
    print(f"rank correlation of workloads {median(some):.2f} ({low:.2f} to {high:.2f})\n")
    print(text(rows))
