"""Regret on a target after earlier tasks: ``python -m benchmarks meta``.

Each task of a family in turn is the target. A row holds all targets of a method and a seed. With
``--twists`` the earlier tasks mislead: all of them negated, shuffled, or random.
"""

import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

import torch

from benchmarks.harness.command_line import add_seeds, parser_for, seeds_of
from benchmarks.harness.missing import measure_missing
from benchmarks.harness.record import Row, rows_of
from benchmarks.meta.families import FAMILIES, Family, Study, twisted
from benchmarks.meta.methods import METHODS
from benchmarks.meta.policy import Method, Setting
from botorch_costly.models import TaskEnsemble
from botorch_costly.tuners.transfer.belief import Told

NAME = "meta"
AT = (1, 3, 5, 10, 20)  # evaluations after which regrets are stored
HARM = 0.005  # of the range: by which a task is worse than under plain GP-UCB
_LONG = 50  # evaluations where the tasks mislead
_TWISTS = ("", "negated", "shuffled", "random")


class Run(NamedTuple):
    """A method on all targets of a family, and the key of its row."""

    family: str
    twist: str
    method: str
    seed: int


def measure(run: Run) -> Row:
    """Return regrets by target: the least after some evaluations, and the sum of all."""
    family = FAMILIES[run.family]()
    studies = twisted(family.earlier(run.seed), run.twist, run.seed)
    tasks = TaskEnsemble([one.points for one in studies], [one.values for one in studies]).fit()
    length = _LONG if run.twist else AT[-1]
    began = time.perf_counter()
    played = [
        _play(METHODS[run.method], family, tasks, target, run.seed, length)
        for target in family.targets
    ]
    seconds = (time.perf_counter() - began) / (length * len(played))
    least = torch.stack(played).cummin(-1).values
    at = {f"at {k}": _listed(least[:, k - 1]) for k in AT}
    return {**run._asdict(), **at, "sum": _listed(torch.stack(played).sum(-1)), "seconds": seconds}


def _play(
    method: Method, family: Family, tasks: TaskEnsemble, target: int, seed: int, length: int
) -> torch.Tensor:
    """Return the regret of each evaluation, ``(length,)``."""
    study, others = family.whole[target], [k for k in range(tasks.count) if k != target]
    draws = torch.Generator().manual_seed(1_000 * seed + target)
    order = torch.randperm(len(study.points), generator=draws)
    policy = method(Setting(tasks.subset(others), study.points, order, draws))
    chosen: list[int] = []
    for _ in range(min(length, len(study.points))):
        with torch.no_grad():
            values = policy(Told(study.points[chosen], study.values[chosen]))
        values[chosen] = -torch.inf
        chosen.append(int(values.argmax()))
    return _padded(study, chosen, length)


def _padded(study: Study, chosen: Sequence[int], length: int) -> torch.Tensor:
    """Return the regrets; where all has been evaluated, nothing is lost any more."""
    regrets = torch.zeros(length, dtype=torch.float64)
    regrets[: len(chosen)] = study.regrets()[list(chosen)]
    return regrets


def _listed(values: torch.Tensor) -> list[float]:
    return [round(float(value), 5) for value in values]


def text(rows: Sequence[Row]) -> str:
    """Return what each method reached, family by family."""
    lines: list[str] = []
    for family in dict.fromkeys(row["family"] for row in rows):
        for twist in _TWISTS:
            some = [row for row in rows if (row["family"], row["twist"]) == (family, twist)]
            if some:
                lines += [f"{family}, {twist or 'as recorded'}", *_table(some), ""]
    lines.append(
        "Regret: mean and median over targets and seeds, as a share of the range. Harmed: targets more "
        f"than {HARM} worse than under GP-UCB after 10, and the worst of them. Sum: of all regrets, as a "
        "share of GP-UCB's: median over targets and seeds, and the ninth tenth."
    )
    return "\n".join(lines)


def _table(rows: Sequence[Row]) -> list[str]:
    played = {name: [row for row in rows if row["method"] == name] for name in METHODS}
    ranks = _ranks({name: some for name, some in played.items() if some})
    heads = "".join(f"{f'at {k}':>14}" for k in AT)
    lines = [
        f"  {'':<22}{'seeds':>6}{heads}{'rank':>6}{'harmed':>8}{'worst':>7}{'sum':>12}{'ms':>6}"
    ]
    for name, some in played.items():
        if some:
            lines.append(f"  {name:<22}{_cells(some, played['GP-UCB'], ranks[name])}")
    return lines


def _cells(rows: Sequence[Row], plain: Sequence[Row], rank: float) -> str:
    cells = f"{len(rows):>6}"
    for k in AT:
        values = [value for row in rows for value in row[f"at {k}"]]
        cells += f"{statistics.fmean(values):>8.4f}{statistics.median(values):>6.3f}"
    harms = _harms(rows, plain)
    harmed, worst = sum(harm > HARM for harm in harms), max([*harms, 0.0])
    seconds = statistics.fmean(row["seconds"] for row in rows)
    return f"{cells}{rank:>6.2f}{harmed:>8}{worst:>7.3f}{_sums(rows, plain)}{1e3 * seconds:>6.0f}"


def _harms(rows: Sequence[Row], plain: Sequence[Row], at: int = 10) -> list[float]:
    """Return by how much each target is worse than under GP-UCB, on average over common seeds."""
    theirs = {row["seed"]: row[f"at {at}"] for row in plain}
    pairs = [(row[f"at {at}"], theirs[row["seed"]]) for row in rows if row["seed"] in theirs]
    if not pairs:
        return []
    apart = [[a - b for a, b in zip(ours, them, strict=True)] for ours, them in pairs]
    return [statistics.fmean(column) for column in zip(*apart, strict=True)]


def _sums(rows: Sequence[Row], plain: Sequence[Row]) -> str:
    theirs = {row["seed"]: row["sum"] for row in plain}
    ratios = [
        a / b
        for row in rows
        if row["seed"] in theirs
        for a, b in zip(row["sum"], theirs[row["seed"]], strict=True)
        if b > 0
    ]
    if not ratios:
        return f"{'-':>12}"
    ratios.sort()
    return f"{statistics.median(ratios):>7.2f}{ratios[int(0.9 * (len(ratios) - 1))]:>5.2f}"


def _ranks(played: dict[str, list[Row]], at: int = 10) -> dict[str, float]:
    """Return the mean rank of each method over targets and common seeds, ties shared."""
    seeds = set.intersection(*({row["seed"] for row in rows} for rows in played.values()))
    ranks: dict[str, list[float]] = {name: [] for name in played}
    for seed in sorted(seeds):
        columns = [
            next(row[f"at {at}"] for row in rows if row["seed"] == seed) for rows in played.values()
        ]
        for values in zip(*columns, strict=True):
            for name, value in zip(played, values, strict=True):
                below = sum(other < value for other in values)
                equal = sum(other == value for other in values)
                ranks[name].append(below + (equal + 1) / 2)
    return {name: statistics.fmean(some) if some else float("nan") for name, some in ranks.items()}


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    parser = parser_for(
        NAME, "regret on a target after earlier tasks, and which targets are harmed"
    )
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--twists", nargs="+", choices=_TWISTS, default=list(_TWISTS))
    parser.add_argument("--again", action="store_true", help="measure what is stored, too")
    add_seeds(parser, seeds=10)
    options = parser.parse_args(arguments)
    wanted = [
        Run(f, t, m, s)
        for s in seeds_of(options)
        for f in options.families
        for t in options.twists
        for m in options.methods
    ]
    measure_missing(NAME, wanted, measure, Run, options)
    print(text(rows_of(NAME, options.results)))
