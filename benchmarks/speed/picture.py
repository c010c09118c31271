"""Milliseconds of a decision against the number of observations, in one picture."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.figures import new_figure, save
from benchmarks.harness.record import Row

COLOURS = ("#1b6ca8", "#c8553d", "#4f772d", "#7b2d8b")
WAYS = {"ours_ms": ("this package", "-", "o"), "botorch_ms": ("BoTorch's pieces", "--", "s")}


def curve(rows: Sequence[Row], dim: int, way: str) -> tuple[list[int], list[float]]:
    """Return observations and milliseconds of one way in one dimension, where it was timed."""
    timed = [row for row in rows if row["dim"] == dim and row[way] is not None]
    timed.sort(key=lambda row: row["observations"])
    return [row["observations"] for row in timed], [row[way] for row in timed]


def draw_grid(rows: Sequence[Row], path: Path) -> None:
    """Draw the rows of the grid, both axes logarithmic."""
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator, ScalarFormatter

    figure = new_figure(6.6, 4.8)
    ax = figure.subplots()
    ax.set_xscale("log")
    ax.set_yscale("log")
    for colour, dim in zip(COLOURS, sorted({row["dim"] for row in rows}), strict=False):
        for way, (name, line, marker) in WAYS.items():
            sizes, spent = curve(rows, dim, way)
            label = f"d = {dim}, {name}"
            ax.plot(sizes, spent, line, color=colour, marker=marker, markersize=4, label=label)
    ax.set_xticks(sorted({row["observations"] for row in rows}))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_minor_formatter(NullFormatter())
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(ScalarFormatter())
    ax.set_xlabel("observations learnt before")
    ax.set_ylabel("milliseconds of one decision after a query")
    ax.grid(True, which="major", color="#dddddd", linewidth=0.6)
    dims = len({row["dim"] for row in rows})
    figure.legend(loc="outside lower center", ncols=dims, fontsize=8, frameon=False)
    save(figure, path)
