"""One picture of the suite: where each run of each method ended, problem by problem."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from benchmarks.harness.command_line import parser_for
from benchmarks.harness.figures import panels, save
from benchmarks.harness.record import Row, grouped, rows_of
from benchmarks.suite.benchmark import CEILING, NAME, ends_of
from botorch_costly import plotting

# What is drawn, from below, and in which colour.
METHODS = {
    CEILING: plotting.GREEN,
    "halving": plotting.SKY,
    "population": plotting.SKY,
    "full feedback": plotting.ORANGE,
    "tuned": plotting.VERMILION,
    "random schedule": plotting.PURPLE,
    "default": plotting.BLUE,
}
_NAMES = {"full feedback": "as published, full feedback", CEILING: "best fixed, offline"}
_COLUMNS = 3
_MARGIN = 6.0  # points below the default


def draw(rows: Sequence[Row]) -> Any:
    """Return a figure with a panel for each problem and a line of dots for each method."""
    problems = grouped(rows, "problem")
    figure, axes = panels(len(problems), _COLUMNS, 11, 2.6, sharey=True)
    for ax, (problem, mine) in zip(axes.flat, problems.items(), strict=False):
        _panel(ax, {method: ends_of(mine, method) for method in METHODS})
        ax.set_title(problem.replace("_", " "), fontsize="medium")
    axes[0, 0].set_yticks(range(len(METHODS)), [_NAMES.get(name, name) for name in METHODS])
    figure.supxlabel(
        "test accuracy at the end of a run, in % (a dot a seed, a bar their mean, "
        "an arrow as many runs farther left)"
    )
    return figure


def _panel(ax: Any, ends: Mapping[str, Mapping[int, float]]) -> None:
    means = {method: mean(found.values()) for method, found in ends.items() if found}
    # Diverged runs would leave no room for the others: they are arrows at the edge.
    edge = min(means.get("default", 100.0), *sorted(means.values())[-2:]) - _MARGIN
    for height, (method, found) in enumerate(ends.items()):
        shown = [end for end in found.values() if end >= edge]
        ax.plot(shown, [height] * len(shown), "o", color=METHODS[method], alpha=0.5, markersize=4)
        if len(shown) < len(found):
            ax.plot(edge, height, "<", color=METHODS[method], markersize=6)
            text = f"{len(found) - len(shown)}"
            ax.annotate(
                text, (edge, height), (6, 5), textcoords="offset points", fontsize="x-small"
            )
        if means.get(method, edge) > edge:
            line = [means[method]] * 2
            ax.plot(line, [height - 0.35, height + 0.35], color=METHODS[method], linewidth=2)
    if "default" in means:
        ax.axvline(means["default"], color="0.7", linewidth=1, zorder=0)
    ax.set_xlim(left=edge - 0.3)
    ax.grid(axis="x", alpha=0.3)


def main(arguments: list[str]) -> None:
    """Draw what is stored."""
    parser = parser_for("online-suite-picture", "where each run of each method ended")
    options = parser.parse_args(arguments)
    save(draw(rows_of(NAME, options.results)), options.results / f"{NAME}.png", dpi=110)
