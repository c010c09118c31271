"""Where each method ended, seed by seed, and how its eight probabilities went."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.harness.figures import new_figure, save
from benchmarks.harness.record import Row
from benchmarks.training.simclr.augmentation import AUGMENTATIONS
from benchmarks.training.simclr.methods import EXPERT
from benchmarks.training.simclr.table import by_method
from botorch_costly import plotting

COLOURS = {
    "full feedback": plotting.BLUE,
    "confidence 0.8": plotting.ORANGE,
    "priced": plotting.GREEN,
    "coin": plotting.PURPLE,
    "as it comes": "black",
}
_COLUMNS = 4


def draw(rows: Sequence[Row], directory: Path, name: str) -> None:
    """Draw both figures of the rows of a recipe."""
    runs = by_method(rows)
    if not runs:
        return
    save(ends_figure(runs), directory / f"{name}.png", dpi=110)
    save(schedule_figure(runs), directory / f"{name}-schedules.png", dpi=110)


def ends_figure(runs: Mapping[str, Mapping[int, Row]]) -> Any:
    """Return top-1 of each run, methods by their mean."""
    ranked = sorted(runs, key=lambda m: mean(run["top_1"] for run in runs[m].values()))
    figure = new_figure(7, 0.3 * len(ranked) + 1)
    ax = figure.subplots()
    for place, method in enumerate(ranked):
        ends = [100 * run["top_1"] for run in runs[method].values()]
        colour = COLOURS.get(method, "0.6")
        ax.plot(ends, [place] * len(ends), "o", color=colour, alpha=0.6, markersize=4)
        ax.plot(mean(ends), place, "|", color=colour, markersize=16)
    ax.set_yticks(range(len(ranked)), ranked)
    ax.set_xlabel("top-1 of a linear readout in per cent; line: mean over seeds")
    ax.grid(axis="x", alpha=0.3)
    return figure


def schedule_figure(runs: Mapping[str, Mapping[int, Row]]) -> Any:
    """Return each probability over the run, under methods that change it: the mean over seeds."""
    lines = -(-len(AUGMENTATIONS) // _COLUMNS)
    figure = new_figure(3 * _COLUMNS, 2.2 * lines + 0.8)
    axes = figure.subplots(lines, _COLUMNS, squeeze=False, sharex=True, sharey=True)
    for place, (ax, augmentation) in enumerate(zip(axes.flat, AUGMENTATIONS, strict=True)):
        for method, colour in COLOURS.items():
            stretches = [run["schedule"] for run in runs.get(method, {}).values()]
            if stretches:
                values = [mean(s[place] for s in at) for at in zip(*stretches, strict=True)]
                shares = [(i + 0.5) / len(values) for i in range(len(values))]
                ax.plot(shares, values, color=colour, label=method)
        ax.axhline(EXPERT[augmentation], color="0.5", linewidth=0.8, linestyle="--", label="expert")
        ax.set_title(augmentation.replace("_", " "), fontsize="medium")
        ax.set_ylim(-0.03, 1.03)
    for ax in axes[-1]:
        ax.set_xlabel("share of the run")
    handles = axes[0, 0].get_legend_handles_labels()
    if handles[0]:
        figure.legend(*handles, loc="outside lower center", ncols=6)
    return figure
