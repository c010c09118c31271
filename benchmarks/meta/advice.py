"""Proposals, good or hostile, before a search: ``python -m benchmarks advice``.

A proposal is a random configuration of a list: good, of its best twentieth; mediocre, within a twentieth
around the median; hostile, of its worst twentieth. Hostile proposals also come five times: by one adviser
or by five. A seed draws the target, or shifts the function, and the proposals; all searches of a seed
have the same target. Regrets are shares of the range of the list.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean, median
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.harness.record import Row, grouped
from benchmarks.harness.statistics import paired
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.meta import rivals
from benchmarks.meta.families import FAMILIES, Study
from benchmarks.meta.rivals import Setting
from botorch_costly import Real, SearchSpace, Task, TransferOptimizer
from botorch_costly.models import TaskEnsemble
from botorch_costly.tuners.transfer.belief import TargetData

NAME = "advice"
AT = (1, 3, 5, 10, 20)
_LISTED = 1_000  # configurations of a function
_STUDIES = 10  # earlier studies beside advice
ALONE = "none"
_SHARES = {"good": (0.95, 1.0), "mediocre": (0.475, 0.525), "hostile": (0.0, 0.05)}
KINDS = (ALONE, "none, LogEI", *_SHARES, "hostile, five of one", "hostile, of five")


class Run(NamedTuple):
    """A problem, the advice, and the key of its row."""

    problem: str
    advice: str
    seed: int


class Problem(NamedTuple):
    """A list of configurations, and earlier studies of it, perhaps none."""

    study: Study
    earlier: Sequence[Study] = ()


def _branin(x: Tensor) -> Tensor:
    a, b = 15 * x[:, 0] - 5, 15 * x[:, 1]
    bowl = (b - 0.129 * a.square() + 1.592 * a - 6).square()
    return -(bowl + 10 * (1 - 0.0398) * a.cos() + 10).clamp_min(1e-9).log()


def _hartmann(x: Tensor) -> Tensor:
    scale = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14]]
    scale += [[3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
    center = [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991]]
    center += [[2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]
    offsets = (x.unsqueeze(1) - 1e-4 * x.new_tensor(center)).square()
    return (x.new_tensor([1, 1.2, 3, 3.2]) * (-(x.new_tensor(scale) * offsets).sum(-1)).exp()).sum(
        -1
    )


def _rosenbrock(x: Tensor) -> Tensor:
    z = 4 * x - 2
    steps = 100 * (z[:, 1:] - z[:, :-1].square()).square() + (1 - z[:, :-1]).square()
    return -(1 + steps.sum(-1)).log()


def _listed(function: Callable[[Tensor], Tensor], dim: int, seed: int) -> Problem:
    """Return a function on Sobol points, shifted on the torus by at most a tenth."""
    draws = torch.Generator().manual_seed(seed)
    engine = torch.quasirandom.SobolEngine(dim, scramble=True, seed=seed)
    points = engine.draw(_LISTED, dtype=torch.float64)
    shift = 0.2 * torch.rand(dim, generator=draws, dtype=torch.float64) - 0.1
    return Problem(Study(points, function((points + shift).clamp(0, 1))))


def _recorded(family: str, studies: int, seed: int) -> Problem:
    found = FAMILIES[family]()
    target = found.targets[seed % len(found.targets)]
    others = [one for k, one in enumerate(found.earlier(seed)) if k != target]
    drawn = torch.randperm(len(others), generator=torch.Generator().manual_seed(seed))
    return Problem(found.whole[target], [others[k] for k in drawn[:studies].tolist()])


PROBLEMS: Mapping[str, Callable[[int], Problem]] = {
    "svm": partial(_recorded, "svm", 0),
    "svm, ten studies": partial(_recorded, "svm", _STUDIES),
    "lcbench": partial(_recorded, "lcbench", 0),
    "branin": partial(_listed, _branin, 2),
    "rosenbrock": partial(_listed, _rosenbrock, 4),
    "hartmann": partial(_listed, _hartmann, 6),
}


def measure(run: Run) -> Row:
    """Return the least regret after some evaluations."""
    problem, began = PROBLEMS[run.problem](run.seed), time.perf_counter()
    advice = proposals(problem.study, run.advice, run.seed)
    length = min(AT[-1], len(problem.study.values))
    if advice or problem.earlier:
        chosen = _transferred(problem, advice, run.seed, length)
    else:
        chosen = _alone(problem, run.advice, run.seed, length)
    least = problem.study.regrets()[chosen].cummin(-1).values
    after = {f"at {k}": round(float(least[min(k, length) - 1]), 5) for k in AT}
    return {**run._asdict(), **after, "seconds": (time.perf_counter() - began) / length}


def proposals(study: Study, kind: str, seed: int) -> list[list[int]]:
    """Return the numbers of the configurations that each adviser proposes."""
    name = kind.partition(",")[0]
    if name not in _SHARES:
        return []
    draws, count = torch.Generator().manual_seed(1_000 + seed), len(study.values)
    low, high = (round(share * count) for share in _SHARES[name])
    some = study.values.argsort()[low:high]
    picked = some[torch.randperm(len(some), generator=draws)].tolist()
    if kind.endswith("five of one"):
        return [picked[:5]]
    return [[number] for number in picked[: 5 if kind.endswith("of five") else 1]]


def _transferred(problem: Problem, advice: list[list[int]], seed: int, length: int) -> list[int]:
    """Return the numbers that ``TransferOptimizer`` evaluates after earlier studies and advice."""
    study = problem.study
    names = [f"x{k}" for k in range(study.points.shape[-1])]
    listed = [dict(zip(names, row, strict=True)) for row in study.points.tolist()]
    number_of = {tuple(config.values()): number for number, config in enumerate(listed)}
    tasks = [Task(one.points, one.values, names=names) for one in problem.earlier]
    tasks += [Task.advice([listed[number] for number in of_one]) for of_one in advice]
    space = SearchSpace({name: Real(0.0, 1.0) for name in names})
    distinct = [dict(zip(names, values, strict=True)) for values in number_of]
    optimizer = TransferOptimizer(space, tasks, candidates=distinct, seed=seed)
    chosen = []
    for _ in range(min(length, len(distinct))):
        suggestion = optimizer.ask()
        chosen.append(number_of[tuple(suggestion.config.values())])
        optimizer.tell(suggestion, float(study.values[chosen[-1]]))
    return chosen + chosen[-1:] * (length - len(chosen))


def _alone(problem: Problem, kind: str, seed: int, length: int) -> list[int]:
    """Return the numbers that a search without studies evaluates."""
    study, draws = problem.study, torch.Generator().manual_seed(seed)
    order = torch.randperm(len(study.points), generator=draws)
    unused = TaskEnsemble([study.points[:2]], [study.values[:2]])
    method = rivals.gp_ucb if kind == ALONE else rivals.log_ei
    policy = method(Setting(unused, study.points, order, draws))
    chosen: list[int] = []
    for _ in range(length):
        with torch.no_grad():
            values = policy(TargetData(study.points[chosen], study.values[chosen]))
        values[chosen] = -torch.inf
        chosen.append(int(values.argmax()))
    return chosen


def text(rows: Sequence[Row]) -> str:
    """Return the regrets by advice, and by how much more than without advice after 20 evaluations."""
    lines = []
    for problem, mine in grouped(rows, "problem").items():
        by_kind = {
            kind: {r["seed"]: r for r in some} for kind, some in grouped(mine, "advice").items()
        }
        heads = "".join(f"{f'at {k}':>14}" for k in AT)
        lines.append(f"{problem}\n  {'advice':<24}{'seeds':>6}{heads}{f'more at {AT[-1]}':>26}")
        for kind in KINDS:
            if kind in by_kind:
                lines.append(f"  {kind:<24}{_cells(by_kind[kind], by_kind.get(ALONE, {}))}")
        lines.append("")
    return "\n".join([*lines, _FOOT])


_FOOT = (
    "Regret as a share of the range: mean and median over seeds. More: the difference of the means to "
    "the search without advice (GP-UCB without studies, TransferOptimizer with them) and its 95 % "
    "interval."
)


def _cells(rows: Mapping[int, Row], alone: Mapping[int, Row]) -> str:
    cells = f"{len(rows):>6}"
    for k in AT:
        values = [row[f"at {k}"] for row in rows.values()]
        cells += f"{fmean(values):>8.3f}{median(values):>6.3f}"
    seeds = sorted(set(rows) & set(alone))
    pair = [[some[seed][f"at {AT[-1]}"] for seed in seeds] for some in (rows, alone)]
    more = paired(*pair) if seeds else None
    if more is None or rows is alone:
        return cells
    return f"{cells}{more.value:>10.3f} ({more.low:.3f} to {more.high:.3f})"


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the tables."""
    about = "regret after proposals, good or hostile, beside a search without any"
    parser = sweep_parser(NAME, about, seeds=25, problems=PROBLEMS, advice=KINDS)
    options = parser.parse_args(arguments)
    wanted = tasks_of(Run, options, options.problems, options.advice)
    print(text(measured(NAME, wanted, measure, options)))
