"""What a search found, and what it believed of the earlier tasks meanwhile."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.plotting.style import BLACK, BLUE, CYCLE, MARKERS, SKY, VERMILION, stack
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
    """Draw what was told and the best of it, the share of the earlier tasks, and the weight of each.

    With more than seven tasks, those that ever had the largest weights are named, the others are grey.

    Args:
        decisions: In the order of their rounds, as ``TransferOptimizer.decisions`` has them.
        observations: Their values; crosses mark evaluations that failed.
        names: Of the tasks, in their order; numbers from 0 if omitted.
        maximize: Whether larger values are better.
        axes: Three; made if omitted.

    Returns:
        The axes of values, share and weights.

    Raises:
        InvalidArgumentError: If they are of another optimizer, or none says what was believed of tasks.
        InvalidShapeError: If the axes are not three, or the names not one a task.
        ImportError: If Matplotlib is missing.
    """
    ours = all(isinstance(one, TransferDecision) for one in decisions)
    expected = "decisions of a TransferOptimizer"
    check(ours, "decisions", expected, sorted({type(one).__name__ for one in decisions}))
    believed = [one for one in decisions if one.share is not None]
    check(len(believed) > 0, "decisions", "at least one with a share", len(decisions))
    count = len(believed[0].weights)
    named = [f"task {i}" for i in range(count)] if names is None else list(names)
    check(len(named) == count, "names", f"{count} names", len(named), InvalidShapeError)
    drawn = stack(3, height=2.2) if axes is None else list(axes)
    check(len(drawn) == 3, "axes", "3 axes", len(drawn), InvalidShapeError)
    _draw_values(drawn[0], observations, maximize)
    rounds = [one.round for one in believed]
    shares: Any = [one.share for one in believed]
    drawn[1].plot(rounds, shares, "o-", color=BLUE, markersize=3, linewidth=1.2)
    drawn[1].set_ylim(-0.05, 1.05)
    drawn[1].set_ylabel("share of all tasks")
    _draw_weights(drawn[2], believed, named)
    drawn[2].set_xlabel("evaluation")
    locator: Any = drawn[2].xaxis.get_major_locator()
    locator.set_params(integer=True)
    if axes is None:
        drawn[0].figure.align_ylabels(drawn)
    return drawn


def _draw_values(ax: "Axes", observations: Sequence[Observation], maximize: bool) -> None:
    seen = [(one.round, one.reward) for one in observations if one.reward is not None]
    rounds, values = [at for at, _ in seen], [float(value) for _, value in seen]
    best = list(accumulate(values, max if maximize else min))
    ax.plot(rounds, values, "o", color=SKY, markersize=4, label="told")
    ax.step(rounds, best, where="post", color=BLACK, linewidth=1.5, label="best so far")
    failed = [one.round for one in observations if one.failed]
    if failed:
        worst = (min if maximize else max)(values, default=math.nan)
        ax.plot(failed, [worst] * len(failed), "X", color=VERMILION, markersize=5, label="failed")
    ax.set_ylabel("value")
    ax.legend(frameon=False, fontsize="small")


def _draw_weights(ax: "Axes", believed: Sequence[TransferDecision], names: Sequence[str]) -> None:
    rounds = [one.round for one in believed]
    curves = [[one.weights[i] for one in believed] for i in range(len(names))]
    by_size = sorted(range(len(curves)), key=lambda i: -max(map(abs, curves[i])))
    shown = sorted(by_size[: len(CYCLE)])
    others = sorted(by_size[len(CYCLE) :])
    ax.axhline(0.0, color=_FAINT, linewidth=0.8)
    for i in others:
        label = f"{len(others)} others" if i == others[0] else None
        ax.plot(rounds, curves[i], color=_FAINT, linewidth=0.6, alpha=0.6, label=label)
    for k, i in enumerate(shown):
        mark: Any = {"color": CYCLE[k], "marker": MARKERS[k], "markersize": 3, "linewidth": 1.2}
        ax.plot(rounds, curves[i], label=names[i], **mark)
    ax.set_ylabel("weight of each")
    ax.legend(frameon=False, fontsize="small", ncols=2 if len(shown) > 3 else 1)
