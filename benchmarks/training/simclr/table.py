"""Where each method ended and what it paid, beside full feedback and fixed 0.5; and in pictures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.harness.figures import new_figure, save
from benchmarks.harness.record import Row, grouped
from benchmarks.harness.statistics import Runs, mean_error, ratio_of_totals, shared
from benchmarks.training.simclr.augmentation import AUGMENTATIONS
from benchmarks.training.simclr.methods import EXPERT, FIXED, FULL
from botorch_costly import plotting

# Table 1 of the paper: top-1 of a linear readout after 10 and after 100 epochs, and the time.
PAPER: dict[str, tuple[float, float, str]] = {
    "fixed 0.5": (70.91, 73.20, "1.00"),
    "full feedback": (75.14, 77.95, "1.97"),
    "coin 0.6": (72.15, 75.31, "1.64"),
    "confidence 0.9": (74.80, 77.56, "1.88"),
    "confidence 0.8": (74.77, 77.62, "1.71"),
    "confidence 0.7": (74.58, 77.27, "1.61"),
    "expert": (75.00, 77.99, "-"),
}


def by_method(rows: Sequence[Row]) -> dict[str, dict[int, Row]]:
    """Return the rows by method and seed."""
    methods = grouped(rows, "method").items()
    return {method: {row["seed"]: row for row in mine} for method, mine in methods}


def text(rows: Sequence[Row]) -> str:
    """Return a line for each method of each recipe, with lines of the paper's table below."""
    lines = []
    for recipe, mine in grouped(rows, "recipe").items():
        lines += [*_table(recipe, by_method(mine)), ""]
    lines.append(
        "ResNet-50 on ImageNet100 in the paper, one run: top-1 R10, R100, time by that of fixed"
    )
    for method, (brief, long, time) in PAPER.items():
        lines.append(f"{method:<18}{brief:>14.2f}{long:>8.2f}{time:>8}")
    return "\n".join(lines)


def _table(recipe: str, found: Mapping[str, Runs]) -> list[str]:
    lines = [
        "top-1 of a linear readout in per cent, its standard error over seeds, and paired differences",
        f"{recipe:<18}{'seeds':>6}{'top-1':>8}{'(se)':>8}{'worst':>8}{'less fixed':>16}{'less full':>16}"
        f"{'queries':>9}{'of full':>9}{'x fixed':>9}{'query':>8}{'tuner':>8}{'failed':>8}",
    ]
    for method, runs in found.items():
        ends = [100 * run["top_1"] for run in runs.values()]
        error = f"({mean_error(ends)[1]:.2f})" if len(ends) > 1 else ""
        queries = mean(run["queries"] for run in runs.values())
        lines.append(
            f"{method:<18}{len(runs):>6}{mean(ends):>8.2f}{error:>8}{min(ends):>8.2f}"
            f"{_less(runs, found.get(FIXED, {})):>16}{_less(runs, found.get(FULL, {})):>16}"
            f"{queries:>9.1f}{ratio_of_totals(runs, found.get(FULL, {}), 'queries'):>9}"
            f"{ratio_of_totals(runs, found.get(FIXED, {}), 'seconds'):>9}"
            f"{_share(runs, 'query_seconds'):>8}{_share(runs, 'tuner_seconds'):>8}"
            f"{sum(run['failed'] for run in runs.values()):>8}"
        )
    return lines


def _less(runs: Runs, others: Runs) -> str:
    """Return the mean difference of top-1, and its standard error, paired over seeds."""
    differences = [100 * (ours - theirs) for ours, theirs in shared(runs, others, "top_1")]
    if not differences or runs is others:
        return ""
    mean, error = mean_error(differences)
    return f"{mean:+.2f} ({error:.2f})" if len(differences) > 1 else f"{mean:+.2f}"


def _share(runs: Runs, name: str) -> str:
    """Return the share of a part of the time."""
    return f"{sum(r[name] for r in runs.values()) / sum(r['seconds'] for r in runs.values()):.1%}"


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
