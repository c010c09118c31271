"""Regret, weights and share where gaps are known: ``python -m benchmarks meta-synthetic``.

The setting of section 6.1 and appendix D.1. A row is a run, with all of it by evaluation.

References:
    Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
    UAI 2022, Figures 1, 3, 4 and 5.
"""

import statistics
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from benchmarks.harness.command_line import seeds_of
from benchmarks.harness.figures import new_figure, save
from benchmarks.harness.record import Row
from benchmarks.harness.statistics import mean_error, paired
from benchmarks.harness.sweep import measured, sweep_parser
from benchmarks.meta import rivals
from benchmarks.meta.methods import Robust
from benchmarks.meta.synthetic import bound
from benchmarks.meta.synthetic.world import (
    CELLS,
    MAIN,
    METHODS,
    NONE,
    NONE_AFTER,
    POWERS,
    RATES,
    Setting,
    World,
    dissimilar,
    draw,
)
from botorch_costly import plotting
from botorch_costly.models import TaskEnsemble
from botorch_costly.plotting.style import MARKERS
from botorch_costly.tuners.transfer.belief import TargetData

NAME = "meta-synthetic"
_FEW = 4  # tasks of which each has its own weight in a row
_KEPT = 20  # evaluations of which weights and share are stored


class Run(NamedTuple):
    """A method in a cell, and the key of its row."""

    cell: str
    method: str
    seed: int


def measure(run: Run) -> Row:
    """Return the least regret after each evaluation, and share and weights before each."""
    setting = CELLS[run.cell].setting
    world, tasks = _world(setting, run.seed)
    draws = torch.Generator().manual_seed(1_000 + run.seed)
    order = torch.randperm(len(world.points), generator=draws)
    policy = METHODS[run.method](rivals.Setting(tasks, world.points, order, draws))
    chosen = order[: setting.first].tolist()
    shares, weights = [], []
    while len(chosen) < setting.length:
        with torch.no_grad():
            values = policy(
                TargetData(world.points[chosen], (world.truth[chosen] + world.noise[: len(chosen)]))
            )
        if isinstance(policy, Robust) and len(chosen) <= _KEPT:
            shares.append(float(policy.weighting.share))
            weights.append(_by_group(policy.weighting.weights, setting))
        values[chosen] = -torch.inf
        chosen.append(int(values.argmax()))
    regrets = 1 - world.truth[chosen]
    least = regrets.cummin(-1).values
    return {
        **run._asdict(),
        "regret": _rounded(least.tolist()),
        "sum": round(float(regrets.sum()), 4),
        "sums": _rounded(regrets.cumsum(-1).tolist()),
        "share": _rounded(shares),
        "weights": [_rounded(some) for some in weights],
    }


@lru_cache(maxsize=2)
def _world(setting: Setting, seed: int) -> tuple[World, TaskEnsemble]:
    """Return what all methods of a cell and seed meet."""
    world = draw(setting, seed)
    points, values = zip(*world.studies, strict=True)
    return world, TaskEnsemble(points, values, kernel="rbf").fit()


def _by_group(weights: torch.Tensor, setting: Setting) -> list[float]:
    """Return each weight; of many tasks, the sums of absolute weights of those alike and of the rest."""
    if len(weights) <= _FEW:
        return [float(weight) for weight in weights]
    far = dissimilar(setting)
    return [float(weights[~far].abs().sum()), float(weights[far].abs().sum())]


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 4) for value in values]


AT = (3, 5, 10, 20, 50)  # evaluations
AFTER, LOST = 15, 0.9  # the goal: the dissimilar tasks have lost so much after so many
MOST_HARM = 1.2  # the goal: the sum of regrets by GP-UCB's where no task is alike


class Remaining(NamedTuple):
    """What the dissimilar tasks still weigh."""

    part: float  # after 15 evaluations, of what they weighed before the first
    lost_after: float  # evaluations after which 90 % is lost; infinite if never


def text(rows: Sequence[Row]) -> str:
    """Return what each method reached, cell by cell, and whether the goal is met."""
    lines = [_goal(rows), _worst(rows, NONE), _worst(rows, NONE_AFTER), ""]
    for cell in CELLS:
        some = [row for row in rows if row["cell"] == cell]
        if some:
            lines += [cell, *_table(some), ""]
    lines.append(
        "Regret: the least so far, mean and standard error over seeds; the target's range is [0, 1]. "
        "Sum: of all regrets, and what it is more than GP-UCB's, with the 95 % interval over paired "
        f"seeds. Left: what dissimilar tasks weigh after {AFTER} evaluations, as a share of what they "
        "weighed before the first, median; seeds in which it is at most a tenth; after how many "
        "evaluations it was, median. Weights by evidence have any sign: their absolute values, as a "
        f"share of all. Share: of all tasks, after 5 and {AFTER} evaluations, mean."
    )
    return "\n".join(lines)


def _goal(rows: Sequence[Row]) -> str:
    found = [
        remaining(row)
        for row in rows
        if row["cell"] == next(iter(CELLS)) and row["method"] == "RM-GP-UCB"
    ]
    if not found:
        return "Goal: not measured."
    met = sum(one.part <= 1 - LOST for one in found)
    left = statistics.median(one.part for one in found)
    verdict = "met" if met == len(found) else "not met in all"
    return (
        f"Goal: under RM-GP-UCB the two dissimilar tasks lose at least {LOST:.0%} of their weight within "
        f"{AFTER} evaluations: in {met} of {len(found)} seeds ({verdict}); median left {left:.2g}, "
        f"largest {max(one.part for one in found):.2g}."
    )


def _worst(rows: Sequence[Row], cell: str) -> str:
    """Return the sum of regrets in a cell, beside that of GP-UCB on equal seeds."""
    sums = {
        name: {row["seed"]: row["sum"] for row in rows if _is(row, cell, name)}
        for name in ("RM-GP-UCB", "GP-UCB")
    }
    seeds = sorted(set.intersection(*map(set, sums.values())))
    if not seeds:
        return f"Goal, {cell}: not measured."
    ours, theirs = (statistics.fmean(some[seed] for seed in seeds) for some in sums.values())
    verdict = "met" if ours <= MOST_HARM * theirs else "missed"
    times = f"{ours / theirs:.2f} times on {len(seeds)} seeds"
    return (
        f"Goal, {cell}: the sum of regrets of RM-GP-UCB is at most {MOST_HARM:g} times GP-UCB's: "
        f"{ours:.1f} of {theirs:.1f}, {times} ({verdict})."
    )


def remaining(row: Row) -> Remaining:
    """Return what the dissimilar tasks still weigh in a run that knows both sorts."""
    setting = CELLS[row["cell"]].setting
    far = dissimilar(setting).tolist() if len(row["weights"][0]) == len(setting.gaps) else [0, 1]
    parts = []
    for weights in row["weights"]:
        total = sum(abs(weight) for weight in weights)
        theirs = sum(abs(weight) for weight, apart in zip(weights, far, strict=True) if apart)
        parts.append(theirs / total if total else 0.0)
    parts = [part / parts[0] for part in parts]
    least = [number for number, part in enumerate(parts) if part <= 1 - LOST]
    after = least[0] + setting.first if least else float("inf")
    return Remaining(parts[AFTER - setting.first], after)


def _table(rows: Sequence[Row]) -> list[str]:
    heads = "".join(f"{f'at {k}':>14}" for k in AT)
    lines = [
        f"  {'':<25}{'seeds':>5}{heads}{'sum':>7}{'more than GP-UCB':>22}{'left':>9}{'seeds':>7}"
        f"{'after':>7}{'share':>11}"
    ]
    plain = {row["seed"]: row for row in rows if row["method"] == "GP-UCB"}
    for method in METHODS:
        some = [row for row in rows if row["method"] == method]
        if some:
            cells = f"{_regrets(some)}{_sums(some, plain)}{_left(some)}{_shares(some)}"
            lines.append(f"  {method:<25}{len(some):>5}{cells}".rstrip())
    return lines


def _regrets(rows: Sequence[Row]) -> str:
    pairs = [mean_error([row["regret"][k - 1] for row in rows]) for k in AT]
    return "".join(f"{mean:>8.4f} ±{error:.3f}".rjust(14) for mean, error in pairs)


def _sums(rows: Sequence[Row], plain: dict[int, Row]) -> str:
    mean = statistics.fmean(row["sum"] for row in rows)
    pairs = [(row["sum"], plain[row["seed"]]["sum"]) for row in rows if row["seed"] in plain]
    ours, theirs = zip(*pairs, strict=True) if pairs else ((), ())
    apart = paired(ours, theirs) if rows[0]["method"] != "GP-UCB" else None
    said = f"{apart.value:+.1f} ({apart.low:+.1f}, {apart.high:+.1f})" if apart else ""
    return f"{mean:>7.1f}{said:>22}"


def _left(rows: Sequence[Row]) -> str:
    far = dissimilar(CELLS[rows[0]["cell"]].setting)
    if not rows[0]["weights"] or bool(far.all()) or not bool(far.any()):
        return f"{'':>23}"
    found = [remaining(row) for row in rows]
    met = sum(one.part <= 1 - LOST for one in found)
    after = statistics.median(one.lost_after for one in found)
    said = f"{after:.0f}" if after < float("inf") else "never"
    return f"{statistics.median(one.part for one in found):>9.2g}{met:>7}{said:>7}"


def _shares(rows: Sequence[Row]) -> str:
    first = CELLS[rows[0]["cell"]].setting.first
    if not rows[0]["share"]:
        return ""
    pairs = [statistics.fmean(row["share"][k - first] for row in rows) for k in (5, AFTER)]
    return f"{pairs[0]:>6.2f}{pairs[1]:>6.3f}"


_COLORS = {
    "random": plotting.BLACK,
    "GP-UCB": plotting.BLUE,
    "GP-TS": plotting.SKY,
    "RM-GP-UCB": plotting.VERMILION,
    "RM-GP-UCB, even weights": plotting.ORANGE,
    "RM-GP-TS": plotting.PURPLE,
    "TransferOptimizer": plotting.GREEN,
}
_RATES = dict(
    zip(RATES, (plotting.PURPLE, plotting.ORANGE, plotting.GREEN), strict=True)
)  # 1 has the colour of RM-GP-UCB
_POWERS = dict(
    zip(POWERS, (plotting.ORANGE, plotting.PURPLE, plotting.VERMILION, plotting.BLACK), strict=True)
)
_EVERY = 8  # evaluations between error bars
_LEAST = 1e-3  # regret at the lower edge


def figure_of(rows: Sequence[Row]) -> Any:
    """Return the figure."""
    figure = new_figure(13, 7.6)
    axes = figure.subplots(2, 3)
    _example(axes[0, 0])
    _draw_regrets(axes[0, 1], rows, {name: (MAIN, name) for name in _COLORS}, _COLORS)
    axes[0, 1].set_title("regret", fontsize="medium")
    _weights(axes[0, 2], [row for row in rows if _is(row, MAIN, "RM-GP-UCB")])
    names = {f"η = {rate:g}": (MAIN, f"RM-GP-UCB, eta {rate:g}") for rate in RATES}
    names = {**names, "η = 1": (MAIN, "RM-GP-UCB")}
    colors = {f"η = {rate:g}": color for rate, color in _RATES.items()}
    colors["η = 1"] = plotting.VERMILION
    _draw_regrets(axes[1, 0], rows, names, colors)
    axes[1, 0].set_title("regret of RM-GP-UCB by learning rate", fontsize="medium")
    # Draw what both dissimilar tasks weigh together.
    ax = axes[1, 1]
    for number, (label, key) in enumerate(names.items()):
        runs = [[sum(w[2:]) for w in row["weights"]] for row in rows if _is(row, *key)]
        if runs:
            _line(ax, runs, 0, label, colors[label], number)
    ax.set_title("weight of both dissimilar tasks", fontsize="medium")
    ax.set(xlabel="evaluations", ylabel="weight", ylim=(0, 0.55))
    _legend(ax)
    powers = {f"ε' = {power:g}": (NONE, f"RM-GP-UCB, power {power:g}") for power in POWERS}
    colors = {f"ε' = {power:g}": color for power, color in _POWERS.items()}
    powers, colors["GP-UCB"] = {"GP-UCB": (NONE, "GP-UCB"), **powers}, plotting.BLUE
    _draw_regrets(axes[1, 2], rows, powers, colors)
    axes[1, 2].set_title("regret where no task is alike", fontsize="medium")
    return figure


def _is(row: Row, cell: str, method: str) -> bool:
    return bool(row["cell"] == cell and row["method"] == method)


def _example(ax: Any) -> None:
    """Draw the target and the tasks of the first seed."""
    setting = CELLS[MAIN].setting
    world = draw(setting, 0)
    ax.plot(world.points[:, 0], world.truth, color=plotting.BLACK, label="target")
    for number, (study, gap) in enumerate(zip(world.studies, setting.gaps, strict=True)):
        color, marker = _task(number)
        label = f"task {number + 1}, gap {gap:g}"
        ax.plot(study.points[:, 0], study.values, marker, color=color, markersize=4, label=label)
    ax.set_title("target and earlier tasks of one seed", fontsize="medium")
    ax.set(xlabel="input", ylabel="value", ylim=(-4.5, 7))
    _legend(ax, ncols=2)


def _task(number: int) -> tuple[str, str]:
    colors = (plotting.GREEN, plotting.SKY, plotting.VERMILION, plotting.PURPLE)
    return colors[number], "osx+"[number]


def _draw_regrets(
    ax: Any, rows: Sequence[Row], names: dict[str, tuple[str, str]], colors: dict[str, str]
) -> None:
    """Draw least regrets with standard errors, from the first evaluation on."""
    for number, (label, key) in enumerate(names.items()):
        runs = [row["regret"] for row in rows if _is(row, *key)]
        if runs:
            _line(ax, runs, 1, label, colors[label], number)
    ax.set_yscale("log")
    ax.set(xlabel="evaluations", ylabel="regret, a share of the range", ylim=(_LEAST, 1))
    _legend(ax, ncols=2)


def _line(
    ax: Any, runs: Sequence[Sequence[float]], start: int, label: str, color: str, number: int
) -> None:
    """Draw a mean over runs, with bars that no other line has at the same place."""
    pairs = [mean_error(column) for column in zip(*runs, strict=True)]
    means, errors = zip(*pairs, strict=True)
    at = range(start, start + len(means))
    first = (2 + number) % _EVERY
    bars = {"errorevery": (first, _EVERY), "capsize": 2, "elinewidth": 0.8}
    marked = {"marker": MARKERS[number], "markevery": (first, _EVERY), "markersize": 3.5}
    ax.errorbar(at, means, yerr=errors, color=color, linewidth=1.3, label=label, **bars, **marked)


def _weights(ax: Any, rows: Sequence[Row]) -> None:
    """Draw the weight of each task under RM-GP-UCB."""
    if not rows:
        return
    for number, gap in enumerate(CELLS[MAIN].setting.gaps):
        runs = [[weights[number] for weights in row["weights"]] for row in rows]
        label = f"task {number + 1}, gap {gap:g}"
        _line(ax, runs, 0, label, _task(number)[0], number)
    ax.set_title("weights under RM-GP-UCB", fontsize="medium")
    ax.set(xlabel="evaluations", ylabel="weight", ylim=(0, 1))
    _legend(ax)


def _legend(ax: Any, ncols: int = 1) -> None:
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, fontsize="x-small", ncols=ncols)


def main(arguments: list[str]) -> None:
    """Measure, store the rows, draw the figure and print the table."""
    about = "regret, weights and share where the gaps of the tasks are known"
    options = sweep_parser(NAME, about, seeds=50, cells=CELLS).parse_args(arguments)
    wanted = [
        Run(cell, method, seed)
        for cell in options.cells
        for seed in seeds_of(options)[: CELLS[cell].seeds]
        for method in CELLS[cell].methods
    ]
    rows = measured(NAME, wanted, measure, options)
    save(figure_of(rows), options.results / f"{NAME}.png")
    save(bound.figure_of(rows), options.results / f"{NAME}-bound.png")
    print(text(rows))
