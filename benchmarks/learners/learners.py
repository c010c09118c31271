"""The best learner on all of the data, by trainings on parts of it: ``python -m benchmarks learners``.

Every second data set of ``lcdb`` was there to choose what our method is made of; the others confirm.
Budgets are shares of the seconds of training all learners on all of the data. A regret is that of the
learner that a method would choose, in mean accuracy in test on all of the data. Slow methods make at
most 40 evaluations.
"""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product, starmap
from typing import NamedTuple

from benchmarks.harness.command_line import seeds_of
from benchmarks.harness.record import Row, grouped
from benchmarks.harness.sweep import measured, sweep_parser
from benchmarks.learners.arms import KnowledgeGradientOfArms
from benchmarks.learners.earlier import AfterOthers
from benchmarks.learners.problems import TOLD, LearnerProblem, data_sets, problem_of
from benchmarks.learners.rivals import Doubling, Halving, Hyperband, MostlyBest, Screening
from benchmarks.subsets.base import AtTarget, Method, play
from benchmarks.subsets.methods import Ours

NAME = "learners"
HALVES = ("choose", "confirm")
BUDGETS: Mapping[str, float] = {
    "1/50": 1 / 50,
    "1/20": 1 / 20,
    "1/10": 1 / 10,
    "1/5": 1 / 5,
    "1/2": 1 / 2,
    "1": 1.0,
}
CLOSE = 0.002  # of accuracy
METHODS: dict[str, Callable[[LearnerProblem, int], Method]] = {
    "random on all": AtTarget,
    "mostly best": MostlyBest,
    "all at 1/32": partial(Screening, fraction=1 / 32),
    "all at 1/16": partial(Screening, fraction=1 / 16),
    "all at 1/8": partial(Screening, fraction=1 / 8),
    "halving": Halving,
    "Hyperband": Hyperband,
    "doubling the best": Doubling,
    "arms by knowledge gradient": KnowledgeGradientOfArms,
    "SubsetOptimizer": Ours,
    "SubsetOptimizer after 25 sets": AfterOthers,
}
_UNTIL = {
    "arms by knowledge gradient": "1/5",
    "SubsetOptimizer": "1/10",
    "SubsetOptimizer after 25 sets": "1/10",
}  # the last budget of slow ones
_EVERY = {"SubsetOptimizer": 8, "SubsetOptimizer after 25 sets": 8}  # that data set of a half alone
_MOST = {"SubsetOptimizer": 40, "SubsetOptimizer after 25 sets": 40}  # evaluations of slow ones


class Task(NamedTuple):
    """Runs of a method, and the key of their row."""

    half: str
    told: str
    method: str
    seed: int


def measure(task: Task, most: int | None = None) -> Row:
    """Return the regrets of a method at each budget, one for each data set, or the first ``most``."""
    shares = budgets_of(task.method)
    sets = sets_of(task.method, task.half)[:most]
    began = time.perf_counter()
    runs = [_play(task, data_set, list(shares.values())) for data_set in sets]
    asked = sum(count for _, count in runs)
    by_budget = zip(*(regrets for regrets, _ in runs), strict=True)
    return {
        **task._asdict(),
        "data_sets": sets,
        **{f"at {name}": list(r) for name, r in zip(shares, by_budget, strict=True)},
        "evaluations": asked / len(runs),
        "seconds": round((time.perf_counter() - began) / max(asked, 1), 4),
    }


def _play(task: Task, data_set: int, shares: Sequence[float]) -> tuple[list[float], int]:
    problem = problem_of(data_set, task.told)
    make = METHODS[task.method]
    budgets = [share * len(problem.targets) for share in shares]
    most = _MOST.get(task.method, math.inf)
    regrets, asked = play(problem, lambda _, seed: make(problem, seed), task.seed, budgets, most)
    return [round(regret, 5) for regret in regrets], asked


def budgets_of(method: str) -> dict[str, float]:
    """Return the budgets that a method is played to."""
    names = list(BUDGETS)
    last = names.index(_UNTIL.get(method, names[-1]))
    return {name: BUDGETS[name] for name in names[: last + 1]}


def sets_of(method: str, half: str) -> list[int]:
    """Return the data sets that a method is played on: of a half all, or some if it is slow."""
    return data_sets(half)[:: _EVERY.get(method, 1)]


def text(rows: Sequence[Row]) -> str:
    """Return regrets of each method at each budget, for each half and what is told."""
    lines = []
    for (half, told), mine in grouped(rows, "half", "told").items():
        title = f"{half}, {told}"
        lines.append(f"{title:<32}{'sets':>5}{'runs':>5}" + "".join(f"{b:>27}" for b in BUDGETS))
        for method in METHODS:
            lines += _line(method, [row for row in mine if row["method"] == method])
    lines.append(
        "Regret in test accuracy: median, mean, worst, and the share of runs within "
        f"{CLOSE}; budgets as shares of the seconds of all learners on all of the data."
    )
    return "\n".join(lines)


def _line(method: str, rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    cells = []
    for budget in BUDGETS:
        values = [value for row in rows for value in row.get(f"at {budget}", ())]
        cells.append((_cell(values) if values else "").rjust(27))
    sets, runs = len(rows[0]["data_sets"]), sum(len(row["data_sets"]) for row in rows)
    return [f"  {method:<30}{sets:>5}{runs:>5}" + "".join(cells)]


def _cell(values: Sequence[float]) -> str:
    middle, mean = statistics.median(values), statistics.fmean(values)
    close = statistics.fmean(value <= CLOSE for value in values)
    return f"{middle:.4f} {mean:.4f} {max(values):.3f} {close:>4.0%}"


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    about = "the best learner on all of the data, by trainings on parts of it"
    parser = sweep_parser(NAME, about, seeds=1, halves=HALVES, told=TOLD, methods=METHODS)
    parser.set_defaults(halves=["confirm"])
    parser.add_argument("--sets", type=int, help="the first of each half alone")
    options = parser.parse_args(arguments)
    wanted = starmap(
        Task, product(options.halves, options.told, options.methods, seeds_of(options))
    )
    print(text(measured(NAME, list(wanted), partial(measure, most=options.sets), options)))
