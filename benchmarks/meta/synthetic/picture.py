"""One figure of the synthetic setting: an example, regrets, weights, and the constants of the paper."""

from collections.abc import Sequence
from typing import Any

from benchmarks.harness.figures import new_figure
from benchmarks.harness.record import Row
from benchmarks.meta.synthetic.cells import CELLS, POWERS, RATES
from benchmarks.meta.synthetic.table import mean_error
from benchmarks.meta.synthetic.world import draw
from botorch_costly import plotting
from botorch_costly.plotting.style import MARKERS

MAIN, NONE = "two alike, two not", "none alike"
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
    zip(
        POWERS,
        (plotting.ORANGE, plotting.PURPLE, plotting.VERMILION, plotting.BLACK),
        strict=True,
    )
)
_EVERY = 8  # evaluations between error bars
_LEAST = 1e-3  # regret at the lower edge


def figure_of(rows: Sequence[Row]) -> Any:
    """Return the figure."""
    figure = new_figure(13, 7.6)
    axes = figure.subplots(2, 3)
    _example(axes[0, 0])
    _regrets(axes[0, 1], rows, {name: (MAIN, name) for name in _COLORS}, _COLORS)
    axes[0, 1].set_title("regret", fontsize="medium")
    _weights(axes[0, 2], [row for row in rows if _is(row, MAIN, "RM-GP-UCB")])
    names = {f"η = {rate:g}": (MAIN, f"RM-GP-UCB, eta {rate:g}") for rate in RATES}
    names = {**names, "η = 1": (MAIN, "RM-GP-UCB")}
    colors = {f"η = {rate:g}": color for rate, color in _RATES.items()}
    colors["η = 1"] = plotting.VERMILION
    _regrets(axes[1, 0], rows, names, colors)
    axes[1, 0].set_title("regret of RM-GP-UCB by learning rate", fontsize="medium")
    _dissimilar(axes[1, 1], rows, names, colors)
    powers = {f"ε' = {power:g}": (NONE, f"RM-GP-UCB, power {power:g}") for power in POWERS}
    colors = {f"ε' = {power:g}": color for power, color in _POWERS.items()}
    powers, colors["GP-UCB"] = {"GP-UCB": (NONE, "GP-UCB"), **powers}, plotting.BLUE
    _regrets(axes[1, 2], rows, powers, colors)
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


def _regrets(
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


def _dissimilar(
    ax: Any, rows: Sequence[Row], names: dict[str, tuple[str, str]], colors: dict[str, str]
) -> None:
    """Draw what both dissimilar tasks weigh together."""
    for number, (label, key) in enumerate(names.items()):
        runs = [[sum(w[2:]) for w in row["weights"]] for row in rows if _is(row, *key)]
        if runs:
            _line(ax, runs, 0, label, colors[label], number)
    ax.set_title("weight of both dissimilar tasks", fontsize="medium")
    ax.set(xlabel="evaluations", ylabel="weight", ylim=(0, 0.55))
    _legend(ax)


def _legend(ax: Any, ncols: int = 1) -> None:
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, fontsize="x-small", ncols=ncols)
