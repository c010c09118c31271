"""Many trainings, and how much each of their iterations counts."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botorch_costly.errors import check
from botorch_costly.plotting.style import (
    BLACK,
    BLUE,
    CYCLE,
    MARKERS,
    ORANGE,
    SKY,
    VERMILION,
    columns_of,
    one,
)
from botorch_costly.tuners.curves.trainings import Training

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from botorch_costly.transforms import CurveCompression


def plot_trainings(trainings: Sequence[Training], ax: "Axes | None" = None) -> "Axes":
    """Draw the learning curves of all trainings of a search, and how each of them ended.

    Args:
        trainings: As ``CurveOptimizer.trainings`` has them, rewards such that larger is better.
        ax: Where to draw; made if omitted.

    Raises:
        InvalidArgumentError: If they are no trainings, or none has a reward.
        ImportError: If Matplotlib is missing.
    """
    ours = all(isinstance(one, Training) for one in trainings)
    kinds_given = sorted({type(one).__name__ for one in trainings})
    check(ours, "trainings", "trainings of a CurveOptimizer", kinds_given)
    seen = [training for training in trainings if training.known]
    check(len(seen) > 0, "trainings", "at least one with a reward", len(trainings))
    ax = one(ax)
    best = max(seen, key=lambda training: training.latest)
    kinds: Mapping[str, tuple[list[Training], str, str]] = {
        "left where it was": ([t for t in seen if t.may_go_on], "o", SKY),
        "in training": ([t for t in seen if t.until is not None], ">", ORANGE),
        "diverged": ([t for t in seen if t.broken], "X", VERMILION),
        "trained to its end": ([t for t in seen if t.is_whole], "s", BLUE),
    }
    for name, (mine, marker, color) in kinds.items():
        for training in mine:
            at = training.known
            ax.plot(at, [training.curve[k - 1] for k in at], color=color, linewidth=0.8, alpha=0.6)
        ends = [(t.known[-1], t.latest) for t in mine]
        if mine:
            label = f"{name} ({len(mine)})"
            ax.plot(*columns_of(ends, 2), marker, color=color, markersize=4, label=label)
    curve = [best.curve[k - 1] for k in best.known]
    ax.plot(best.known, curve, color=BLACK, linewidth=2, label="best at hand")
    ax.set_xlabel("iteration")
    ax.set_ylabel("reward")
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_curve_weights(
    compressions: "Mapping[str, CurveCompression]", ax: "Axes | None" = None
) -> "Axes":
    """Draw the weight that each iteration of a training has in its score.

    Args:
        compressions: By name; their midpoints and growths are single numbers.
        ax: Where to draw; made if omitted.

    Raises:
        InvalidArgumentError: If there is none.
        ImportError: If Matplotlib is missing.
    """
    check(len(compressions) > 0, "compressions", "at least one", len(compressions))
    ax = one(ax)
    for i, (name, compression) in enumerate(compressions.items()):
        weights = compression.weights.detach().flatten()
        shares = [(k + 1) / len(weights) for k in range(len(weights))]
        color = CYCLE[i % len(CYCLE)]
        marker: Any = {"marker": MARKERS[i % len(MARKERS)], "markevery": 0.1, "markersize": 4}
        ax.plot(shares, (weights / weights.max()).tolist(), color=color, label=name, **marker)
    ax.set_xlabel("share of the training")
    ax.set_ylabel("weight, of the largest")
    ax.legend(frameon=False, fontsize="small")
    return ax
