"""The table and the picture of the demo."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.demo.methods import PROBLEM, SHOWN
from benchmarks.harness.figures import new_figure, save
from benchmarks.harness.record import grouped
from benchmarks.harness.statistics import paired
from benchmarks.suite.runner import Record
from botorch_costly.plotting import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    VERMILION,
    plot_queries,
    plot_schedule_map,
)

Curve = Sequence[tuple[int, float]]  # rounds, test accuracy
COLOURS = {
    SHOWN: VERMILION,
    "as published": ORANGE,
    "good fixed": GREEN,
    "all off": BLUE,
    "fixed 0.5": BLACK,
}
"""Methods whose accuracy is drawn."""
DIPS = "dips: a worse configuration is tried, and the guard rolls the network back after its query"


def draw(shown: Record, curves: Mapping[str, Curve], seed: int, path: Path) -> None:
    """Draw the run of a tuner, and the accuracy of others beside its own."""
    figure = new_figure(9, 8.5)
    schedule, queries, accuracy = figure.subplots(3, 1, height_ratios=[3, 0.9, 2.4], sharex=True)
    figure.suptitle(
        f"{SHOWN} as it comes: one training run of {PROBLEM.horizon} rounds on digits (seed {seed})"
    )
    plot_schedule_map(shown.decisions, ax=schedule, label="probability that is played")
    plot_queries(shown.decisions, ax=queries)
    for name, color in COLOURS.items():
        curve = shown.test_accuracy if name == SHOWN else curves.get(name, ())
        if curve:
            rounds, values = zip(*curve, strict=True)
            width = 2.5 if name == SHOWN else 1.2
            shares = [100 * value for value in values]
            accuracy.plot(rounds, shares, color=color, linewidth=width, label=name)
    accuracy.set(xlabel="round", ylabel="test accuracy (%)", ylim=(0, 100))
    accuracy.legend(frameon=False, loc="lower right", ncols=2)
    accuracy.set_title(DIPS, loc="left", fontsize="small")
    accuracy.grid(axis="y", color="#dddddd", linewidth=0.6)
    accuracy.set_xlim(-0.5, PROBLEM.horizon - 0.5)
    for axes in (schedule, queries):
        axes.set_xlabel("")
    save(figure, path)


Rows = Sequence[Mapping[str, Any]]
REFERENCE = "full feedback"
_WIDTH = 24


def format_table(rows: Rows) -> str:
    """Return the table, and how the methods that save queries compare with full feedback."""
    table = grouped(rows, "method")  # in the order they were run
    seeds = max(len(mine) for mine in table.values())
    wide = max(5 * seeds, len(head := "test accuracy (%) by seed")) + 2
    lines = [f"{'method':<{_WIDTH}}{head:<{wide}}median  worst  queries  seconds"]
    for method, mine in table.items():
        accuracies = _accuracies(mine)
        each = " ".join(f"{a:.1f}" for a in accuracies)
        queries = statistics.mean(row["queries"] for row in mine)
        seconds = statistics.mean(row["seconds"] for row in mine)
        lines.append(
            f"{method:<{_WIDTH}}{each:<{wide}}{statistics.median(accuracies):>6.1f}"
            f"{min(accuracies):>7.1f}{queries:>9.0f}{seconds:>9.1f}"
        )
    return "\n".join([*lines, "", *_comparison(table)])


def _accuracies(rows: Rows) -> list[float]:
    return [100 * row["test_accuracy"] for row in rows]


def _comparison(table: Mapping[str, Rows]) -> list[str]:
    """Compare every method that queries now and then with full feedback, paired over seeds."""
    if REFERENCE not in table:
        return []
    full, paid = _accuracies(table[REFERENCE]), sum(row["queries"] for row in table[REFERENCE])
    lines = []
    for method, mine in table.items():
        queries = sum(row["queries"] for row in mine)
        found = paired(_accuracies(mine), full) if 0 < queries < paid else None
        if found is not None:
            lines.append(
                f"{method} less {REFERENCE}: {found.value:+.1f} points on average (95 %"
                f" {found.low:+.1f} to {found.high:+.1f}, {len(full)} seeds)"
                f" at {queries / paid:.0%} of its queries"
            )
    return lines
