"""Regret on a target after earlier tasks: ``python -m benchmarks meta``.

Each task of a family in turn is the target. A row holds all targets of a method and a seed. With
``--twists`` the earlier tasks mislead: all of them negated, shuffled, or random; or they are told in
units of their own.
"""

import statistics
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import fmean
from textwrap import fill
from typing import Any, NamedTuple

import torch
from scipy.stats import wilcoxon

from benchmarks.harness.figures import panels, save
from benchmarks.harness.record import Row, grouped
from benchmarks.harness.statistics import paired
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.meta.families import FAMILIES, MISLEADING, TWISTS, UNRELATED, Family, twisted
from benchmarks.meta.methods import METHODS, NOTES, OURS, PLAIN
from benchmarks.meta.rivals import Method, Setting
from botorch_costly import plotting
from botorch_costly.models import TaskEnsemble
from botorch_costly.plotting.style import MARKERS
from botorch_costly.tuners.transfer.belief import TargetData

NAME = "meta"
_LONG = 50  # evaluations where the tasks mislead


class Run(NamedTuple):
    """A method on all targets of a family, and the key of its row."""

    family: str
    twist: str
    method: str
    seed: int


def measure(run: Run) -> Row:
    """Return regrets by target: the least after some evaluations, and the sum of all."""
    family, tasks = FAMILIES[run.family](), fitted_tasks(run.family, run.twist, run.seed)
    length = _LONG if run.twist in MISLEADING else AT[-1]
    began = time.perf_counter()
    played = [
        play(METHODS[run.method], family, tasks, target, run.seed, length)
        for target in family.targets
    ]
    seconds = (time.perf_counter() - began) / (length * len(played))
    least = torch.stack(played).cummin(-1).values
    at = {f"at {k}": _listed(least[:, k - 1]) for k in AT}
    return {**run._asdict(), **at, "sum": _listed(torch.stack(played).sum(-1)), "seconds": seconds}


@lru_cache(maxsize=1)
def fitted_tasks(family: str, twist: str, seed: int) -> TaskEnsemble:
    """Return the tasks of a family as earlier studies, fitted, which all methods meet."""
    studies = twisted(FAMILIES[family]().earlier(seed), twist, seed)
    points, values = zip(*studies, strict=True)
    return TaskEnsemble(points, values).fit()


def play(
    method: Method, family: Family, tasks: TaskEnsemble, target: int, seed: int, length: int
) -> torch.Tensor:
    """Return the regret of each evaluation of a method on a target, ``(length,)``."""
    study, others = family.whole[target], [k for k in range(tasks.count) if k != target]
    draws = torch.Generator().manual_seed(1_000 * seed + target)
    order = torch.randperm(len(study.points), generator=draws)
    policy = method(Setting(tasks.subset(others), study.points, order, draws))
    chosen: list[int] = []
    for _ in range(min(length, len(study.points))):
        with torch.no_grad():
            values = policy(TargetData(study.points[chosen], study.values[chosen]))
        values[chosen] = -torch.inf
        chosen.append(int(values.argmax()))
    # The regrets; where all has been evaluated, nothing is lost any more.
    regrets = torch.zeros(length, dtype=torch.float64)
    regrets[: len(chosen)] = study.regrets()[list(chosen)]
    return regrets


def _listed(values: torch.Tensor) -> list[float]:
    return [round(float(value), 5) for value in values]


AFTER = 10  # evaluations
_SAME = 1e-9  # regret: a smaller difference of averages is rounding
_ROUNDED = 9  # decimals: which differences are as large as each other is not left to rounding


class SignedRank(NamedTuple):
    """Over targets."""

    won: int
    tied: int
    lost: int
    p: float  # of as large a difference, two-sided, were neither better; NaN where all tied

    @property
    def differing(self) -> int:
        """Number of targets that the test is about."""
        return self.won + self.lost


def signed_rank(differences: Sequence[float]) -> SignedRank:
    """Return how often the first of two methods is better, from its regrets minus the other's.

    Targets on which both are alike do not enter the test. It is exact for up to 50 targets whose
    differences are all of different sizes, else normal as in ``scipy.stats.wilcoxon``.

    References:
        F. Wilcoxon. Individual comparisons by ranking methods. Biometrics Bulletin 1, 1945.
    """
    apart = [round(d, _ROUNDED) for d in differences if abs(d) > _SAME]
    won = sum(d < 0 for d in apart)
    p = float(wilcoxon(apart).pvalue) if apart else float("nan")
    return SignedRank(won, len(differences) - len(apart), len(apart) - won, p)


def worse_by(rows: Sequence[Row], others: Sequence[Row], at: int = AFTER) -> list[float]:
    """Return by how much each target is worse than under another method, on average over common seeds."""
    return [fmean(ours) - fmean(theirs) for ours, theirs in _by_target(rows, others, at)]


def surely_worse(rows: Sequence[Row], others: Sequence[Row], at: int = AFTER) -> int | None:
    """Return how many targets are harmed beyond chance; None if there are fewer than two common seeds.

    These are the harmed ones of which the 95 % interval over paired seeds lies on the worse side.
    """
    pairs = _by_target(rows, others, at)
    if not pairs or len(pairs[0][0]) < 2:
        return None
    harmed = [pair for pair, by in zip(pairs, worse_by(rows, others, at), strict=True) if by > HARM]
    found = [paired(*pair) for pair in harmed]
    return sum(one is not None and one.low > 0 for one in found)


def _by_target(
    rows: Sequence[Row], others: Sequence[Row], at: int
) -> list[tuple[list[float], list[float]]]:
    """Return regrets of both methods on each target, over the seeds that both have."""
    theirs = {row["seed"]: row[f"at {at}"] for row in others}
    common = [(row[f"at {at}"], theirs[row["seed"]]) for row in rows if row["seed"] in theirs]
    return [
        ([ours[k] for ours, _ in common], [them[k] for _, them in common])
        for k in range(len(common[0][0]) if common else 0)
    ]


AT = (1, 3, 5, 10, 20)  # evaluations after which regrets are stored
HARM = 0.005  # of the range: by which a task is worse than under plain GP-UCB
_WIDE = 138  # characters of a line, as of the table
_APART = ", ".join(UNRELATED)

_FOOT = (
    "Regret: mean and median over targets and seeds, as a share of the range. Rank: among the methods, "
    f"over the seeds that all have. Harmed: targets more than {HARM} worse than under {PLAIN} after "
    f"{AFTER}; surely: those of which the 95 % interval over paired seeds is above 0; and the worst. "
    f"Sum: of all regrets, as a share of {PLAIN}'s: median over targets and seeds, and the ninth tenth. "
    f"Won, tied, lost: targets on which {OURS} has less regret, as much and more after {AFTER}, on "
    "average over the seeds that both have; p: of Wilcoxon's signed-rank test, two-sided, over the n "
    "targets that differ, not corrected for how many methods there are."
)


def text(rows: Sequence[Row]) -> str:
    """Return what each method reached, family by family."""
    lines: list[str] = []
    for family, mine in grouped(rows, "family").items():
        for twist, some in sorted(grouped(mine, "twist").items(), key=lambda t: TWISTS.index(t[0])):
            lines += _block(family, twist, some)
    played = {row["method"] for row in rows}
    notes = [f"{name}: {note}" for name, note in NOTES.items() if name in played]
    return "\n".join([*lines, *(fill(line, _WIDE) for line in [_FOOT, *notes])])


def _block(family: str, twist: str, rows: Sequence[Row]) -> list[str]:
    """Return the table and the comparisons; targets that no earlier task is like come again, apart."""
    title = f"{family}, {twist or 'as recorded'}"
    lines = [title, *_table(_played(rows))]
    count = len(rows[0][f"at {AFTER}"])
    groups: dict[str, Sequence[int]] = {f"{count} targets": range(count)}
    if (family, twist) == ("svm", ""):
        few = list(UNRELATED.values())
        lines += ["", f"{title}: {_APART} alone, which correlate with nothing"]
        lines += _table(_played([_only(row, few) for row in rows]))
        groups[f"{count - len(few)} without these"] = [k for k in range(count) if k not in few]
        groups["these alone"] = few
    return [*lines, "", *_against(_played(rows), groups)]


def _played(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of each method that has some."""
    by_name = {name: [row for row in rows if row["method"] == name] for name in METHODS}
    return {name: some for name, some in by_name.items() if some}


def _only(row: Row, targets: Sequence[int]) -> Row:
    """Return a row of some of its targets."""
    by_target = [f"at {k}" for k in AT] + ["sum"]
    return {**row, **{name: [row[name][k] for k in targets] for name in by_target}}


def _against(played: Mapping[str, Sequence[Row]], groups: Mapping[str, Sequence[int]]) -> list[str]:
    """Return a line for each rival; nothing without rows of ours, or without rivals."""
    if OURS not in played or len(played) < 2:
        return []
    width = 31
    lines = [
        f"  {f'{OURS} against':<28}" + "".join(f"{name:>{width}}" for name in groups),
        f"  {'':<22}{'seeds':>6}"
        + f"{'won':>9}{'tied':>5}{'lost':>5}{'n':>4}{'p':>8}" * len(groups),
    ]
    for name, some in played.items():
        worse = worse_by(played[OURS], some)
        if name == OURS or not worse:
            continue
        seeds = len({row["seed"] for row in some} & {row["seed"] for row in played[OURS]})
        cells = "".join(_compared([worse[k] for k in targets]) for targets in groups.values())
        lines.append(f"  {name:<22}{seeds:>6}{cells}")
    return [*lines, ""]


def _compared(differences: Sequence[float]) -> str:
    won, tied, lost, p = found = signed_rank(differences)
    shown = f"{p:>8.4f}" if found.differing else f"{'-':>8}"
    return f"{won:>9}{tied:>5}{lost:>5}{found.differing:>4}{shown}"


def _table(played: Mapping[str, Sequence[Row]]) -> list[str]:
    ranks = _ranks(played)
    heads = "".join(f"{f'at {k}':>14}" for k in AT)
    lines = [
        f"  {'':<22}{'seeds':>6}{heads}{'rank':>6}{'harmed':>8}{'surely':>8}{'worst':>7}"
        f"{'sum':>12}{'ms':>6}"
    ]
    for name, some in played.items():
        lines.append(f"  {name:<22}{_cells(some, played.get(PLAIN, []), ranks[name])}")
    return lines


def _cells(rows: Sequence[Row], plain: Sequence[Row], rank: float) -> str:
    cells = f"{len(rows):>6}"
    for k in AT:
        values = [value for row in rows for value in row[f"at {k}"]]
        cells += f"{statistics.fmean(values):>8.4f}{statistics.median(values):>6.3f}"
    harms = worse_by(rows, plain)
    harmed, worst = sum(harm > HARM for harm in harms), max([*harms, 0.0])
    seconds = statistics.fmean(row["seconds"] for row in rows)
    surely = surely_worse(rows, plain)
    counts = f"{harmed:>8}{'-' if surely is None else surely:>8}{worst:>7.3f}"
    return f"{cells}{rank:>6.2f}{counts}{_sums(rows, plain)}{1e3 * seconds:>6.0f}"


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


def _ranks(played: Mapping[str, Sequence[Row]], at: int = AFTER) -> dict[str, float]:
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


SHOWN = {
    "random": plotting.BLACK,
    PLAIN: plotting.BLUE,
    "portfolio": plotting.SKY,
    "ScaML-GP": plotting.ORANGE,
    "RGPE": plotting.PURPLE,
    "TAF": plotting.YELLOW,
    "RM-GP-UCB": plotting.GREEN,
    OURS: plotting.VERMILION,
}
_COLUMNS = 4


def figure_of(rows: Sequence[Row]) -> Any:
    """Return a figure of mean regrets over all targets and seeds that a method was measured on."""
    played = grouped(rows, "family", "twist")
    shown_panels = sorted(played, key=lambda panel: TWISTS.index(panel[1]))
    figure, axes = panels(len(shown_panels), _COLUMNS, 12, 3.0)
    for ax, (family, twist) in zip(axes.flat, shown_panels, strict=False):
        title = f"{family}, {twist}" if twist else family
        mine = played[family, twist]
        ends = [mean for name in SHOWN for mean in _line(ax, mine, name)]
        ax.set_title(title, fontsize="medium")
        ax.set_xscale("log")
        ax.set_yscale("log")
        # Where a regret of 0 is reached a logarithmic axis has no place for it.
        least = min((mean for mean in ends if mean > 0), default=1e-3)
        ax.set_ylim(bottom=max(least / 1.5, 1e-4))
        ax.set_xticks(AT, [str(count) for count in AT])
        ax.minorticks_off()
    found = {
        name: handle
        for ax in axes.flat
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    shown = [name for name in SHOWN if name in found]
    handles = [found[name] for name in shown]
    figure.legend(handles, shown, loc="outside upper center", frameon=False, ncols=len(SHOWN))
    figure.supxlabel("evaluations; a line that leaves below has reached 0", fontsize="medium")
    figure.supylabel("mean regret, a share of the range", fontsize="medium")
    return figure


def _line(ax: Any, rows: Sequence[Row], name: str) -> list[float]:
    """Draw a method, and return its means; nothing without rows of it."""
    some = [row for row in rows if row["method"] == name]
    if not some:
        return []
    means = [fmean(value for row in some for value in row[f"at {count}"]) for count in AT]
    number = list(SHOWN).index(name)
    width = 2.5 if name == OURS else 1.2
    marker = MARKERS[number % len(MARKERS)]
    ax.plot(AT, means, color=SHOWN[name], linewidth=width, marker=marker, markersize=4, label=name)
    return means


def main(arguments: list[str]) -> None:
    """Measure, store the rows, draw the figure and print the table."""
    about = "regret on a target after earlier tasks, and which targets are harmed"
    known = {"families": FAMILIES, "methods": METHODS, "twists": TWISTS}
    options = sweep_parser(NAME, about, seeds=10, **known).parse_args(arguments)
    wanted = tasks_of(Run, options, options.families, options.twists, options.methods)
    rows = measured(NAME, wanted, measure, options)
    save(figure_of(rows), options.results / f"{NAME}.png")
    print(text(rows))
