"""The picture of the demo: what was played, when it was queried, and where it led."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.demo.methods import PROBLEM, SHOWN
from benchmarks.harness.figures import new_figure, save
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
    """Draw the run of a tuner, and the accuracy of others beside its own.

    Args:
        shown: The run of the tuner.
        curves: Test accuracies of other methods on the same seed.
        seed: Of all of them.
        path: Of the picture.
    """
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
