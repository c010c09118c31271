"""One figure of the transfer benchmark: regret against evaluations, a panel for each family."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from benchmarks.harness.figures import new_figure
from benchmarks.harness.record import Row
from benchmarks.meta.families import TWISTS
from benchmarks.meta.methods import OURS, PLAIN
from benchmarks.meta.table import AT
from botorch_costly import plotting
from botorch_costly.plotting.style import MARKERS

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
    families = list(dict.fromkeys(row["family"] for row in rows))
    panels = [(f, t) for t in TWISTS for f in families if any(_is(row, f, t) for row in rows)]
    lines = max(1, math.ceil(len(panels) / _COLUMNS))
    figure = new_figure(12, 3.0 * lines)
    axes = figure.subplots(lines, _COLUMNS, squeeze=False).flatten()
    for ax, (family, twist) in zip(axes, panels, strict=False):
        _panel(ax, f"{family}, {twist}" if twist else family, rows, (family, twist))
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    found = {name: handle for ax in axes for handle, name in zip(*_labels(ax), strict=True)}
    shown = [name for name in SHOWN if name in found]
    handles = [found[name] for name in shown]
    figure.legend(handles, shown, loc="outside upper center", frameon=False, ncols=len(SHOWN))
    figure.supxlabel("evaluations; a line that leaves below has reached 0", fontsize="medium")
    figure.supylabel("mean regret, a share of the range", fontsize="medium")
    return figure


def _is(row: Row, family: str, twist: str) -> bool:
    return bool((row["family"], row["twist"]) == (family, twist))


def _labels(ax: Any) -> Any:
    return ax.get_legend_handles_labels()


def _panel(ax: Any, title: str, rows: Sequence[Row], key: tuple[str, str]) -> None:
    mine = [row for row in rows if _is(row, *key)]
    ends = [mean for name in SHOWN for mean in _line(ax, mine, name)]
    ax.set_title(title, fontsize="medium")
    ax.set_xscale("log")
    ax.set_yscale("log")
    # Where a regret of 0 is reached a logarithmic axis has no place for it.
    least = min((mean for mean in ends if mean > 0), default=1e-3)
    ax.set_ylim(bottom=max(least / 1.5, 1e-4))
    ax.set_xticks(AT, [str(count) for count in AT])
    ax.minorticks_off()


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
