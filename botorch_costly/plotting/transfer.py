"""The values of a search, and its weights of the earlier tasks."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.plotting.checked import OBSERVATIONS, check_records
from botorch_costly.plotting.style import (
    BLACK,
    BLUE,
    CYCLE,
    MARKERS,
    SKY,
    VERMILION,
    ensure_panels,
)
from botorch_costly.records import Observation
from botorch_costly.transfer_records import TransferDecision

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FAINT = "#999999"


def plot_transfer(
    decisions: Sequence[TransferDecision],
    observations: Sequence[Observation],
    names: Sequence[str] | None = None,
    maximize: bool = True,
    axes: "Sequence[Axes] | None" = None,
) -> "list[Axes]":
    """Draw the values with the best so far, the share of all earlier tasks, and the weight of each.

    With more than seven tasks, those that once had the largest weights are named; the others are grey.

    Args:
        decisions: Decisions of ``TransferOptimizer.decisions``, in the order of their rounds.
        observations: Their observations; crosses mark failed evaluations.
        names: Names of the tasks, in their order; numbers from 0 if omitted.
        maximize: Whether larger values are better.
        axes: Three axes; new axes if omitted.

    Returns:
        The axes of values, share and weights.

    Raises:
        InvalidArgumentError: If a decision is of another optimizer, or no decision has a share.
        InvalidShapeError: If there are not three axes, or not one name for each task.
        ImportError: If Matplotlib is missing.
    """
    expected = "decisions of a TransferOptimizer, its .decisions"
    check_records("decisions", decisions, TransferDecision, expected)
    check_records("observations", observations, Observation, OBSERVATIONS)
    with_share = [decision for decision in decisions if decision.share is not None]
    check(len(with_share) > 0, "decisions", "at least one with a share", len(decisions))
    count = len(with_share[0].weights)
    tasks = [f"task {i}" for i in range(count)] if names is None else list(names)
    check(len(tasks) == count, "names", f"{count} names", len(tasks), InvalidShapeError)
    panels = ensure_panels(axes, 3, height=2.2)
    _draw_values(panels[0], observations, maximize)
    rounds = [decision.round for decision in with_share]
    shares: Any = [decision.share for decision in with_share]
    panels[1].plot(rounds, shares, "o-", color=BLUE, markersize=3, linewidth=1.2)
    panels[1].set(ylim=(-0.05, 1.05), ylabel="share of all tasks")
    _draw_weights(panels[2], with_share, tasks)
    panels[2].set_xlabel("evaluation")
    locator: Any = panels[2].xaxis.get_major_locator()
    locator.set_params(integer=True)
    if axes is None:
        panels[0].figure.align_ylabels(panels)
    return panels


def _draw_values(ax: "Axes", observations: Sequence[Observation], maximize: bool) -> None:
    finite = [(o.round, o.reward) for o in observations if o.reward is not None]
    rounds, values = [round for round, _ in finite], [float(value) for _, value in finite]
    best = list(accumulate(values, max if maximize else min))
    ax.plot(rounds, values, "o", color=SKY, markersize=4, label="told")
    ax.step(rounds, best, where="post", color=BLACK, linewidth=1.5, label="best so far")
    failed = [o.round for o in observations if o.failed]
    if failed:
        worst = (min if maximize else max)(values, default=math.nan)
        ax.plot(failed, [worst] * len(failed), "X", color=VERMILION, markersize=5, label="failed")
    ax.set_ylabel("value")
    ax.legend(frameon=False, fontsize="small")


def _draw_weights(ax: "Axes", decisions: Sequence[TransferDecision], names: Sequence[str]) -> None:
    rounds = [decision.round for decision in decisions]
    curves = [[decision.weights[i] for decision in decisions] for i in range(len(names))]
    by_size = sorted(range(len(curves)), key=lambda i: -max(map(abs, curves[i])))
    named = sorted(by_size[: len(CYCLE)])
    others = sorted(by_size[len(CYCLE) :])
    ax.axhline(0.0, color=_FAINT, linewidth=0.8)
    for i in others:
        label = f"{len(others)} others" if i == others[0] else None
        ax.plot(rounds, curves[i], color=_FAINT, linewidth=0.6, alpha=0.6, label=label)
    for k, i in enumerate(named):
        style: Any = {"color": CYCLE[k], "marker": MARKERS[k], "markersize": 3, "linewidth": 1.2}
        ax.plot(rounds, curves[i], label=names[i], **style)
    ax.set_ylabel("weight of each")
    ax.legend(frameon=False, fontsize="small", ncols=2 if len(named) > 3 else 1)
