"""Learning curves of many trainings, and the weights of their iterations."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botorch_costly.errors import check
from botorch_costly.plotting.checked import check_by_name, check_records
from botorch_costly.plotting.style import (
    BLACK,
    BLUE,
    CYCLE,
    MARKERS,
    ORANGE,
    SKY,
    VERMILION,
    columns_of,
    ensure_axes,
    legend,
)
from botorch_costly.tuners.curves.trainings import Training

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from botorch_costly.transforms import CurveCompression


def plot_trainings(trainings: Sequence[Training], ax: "Axes | None" = None) -> "Axes":
    """Draw the learning curves of all trainings of a search, as they were told, marked by their states.

    Args:
        trainings: Trainings of ``CurveOptimizer.trainings``, all of one search.
        ax: Axes to draw in; new axes if omitted.

    Raises:
        InvalidArgumentError: If an item is not a training, or no training has a reward.
        ImportError: If Matplotlib is missing.
    """
    check_records("trainings", trainings, Training, "trainings of a CurveOptimizer, its .trainings")
    begun = [training for training in trainings if training.known]
    check(len(begun) > 0, "trainings", "at least one with a reward", len(trainings))
    is_own, ax = ax is None, ensure_axes(ax)
    kinds: Mapping[str, tuple[list[Training], str, str]] = {
        "left where it was": ([t for t in begun if t.may_go_on], "o", SKY),
        "in training": ([t for t in begun if t.until is not None], ">", ORANGE),
        "diverged": ([t for t in begun if t.broken], "X", VERMILION),
        "trained to its end": ([t for t in begun if t.is_whole], "s", BLUE),
    }
    for name, (group, marker, color) in kinds.items():
        for training in group:
            ax.plot(*_curve(training), color=color, linewidth=0.8, alpha=0.6)
        if group:
            ends = columns_of([(t.known[-1], t.sign * t.latest) for t in group], 2)
            ax.plot(*ends, marker, color=color, markersize=4, label=f"{name} ({len(group)})")
    best = max(begun, key=lambda training: training.latest)
    ax.plot(*_curve(best), color=BLACK, linewidth=2, label="the best training")
    better = "more" if best.sign > 0 else "less"
    ax.set(xlabel="iteration", ylabel=f"value told\n({better} is better)")
    legend(ax, is_own=is_own)
    return ax


def _curve(training: Training) -> tuple[Any, Any]:
    """Return the iterations of a training that were measured, and their values."""
    return training.known, [training.values[k - 1] for k in training.known]


def plot_curve_weights(
    compressions: "Mapping[str, CurveCompression]", ax: "Axes | None" = None
) -> "Axes":
    """Draw the weight of each iteration of a training in its score.

    Args:
        compressions: Compressions by name; their midpoints and growths are scalars.
        ax: Axes to draw in; new axes if omitted.

    Raises:
        InvalidArgumentError: If there is no compression, or an entry is none.
        ImportError: If Matplotlib is missing.
    """
    named = check_by_name("compressions", compressions, "compression")
    is_own, ax = ax is None, ensure_axes(ax)
    for i, (name, compression) in enumerate(named.items()):
        check(hasattr(compression, "weights"), name, "a CurveCompression", compression)
        weights = compression.weights.detach().flatten()
        shares = [(k + 1) / len(weights) for k in range(len(weights))]
        style: Any = {"color": CYCLE[i % len(CYCLE)], "marker": MARKERS[i % len(MARKERS)]}
        relative = (weights / weights.max()).tolist()
        ax.plot(shares, relative, label=name, markevery=0.1, markersize=4, **style)
    ax.set(xlabel="share of the training", ylabel="weight, relative to the largest")
    legend(ax, is_own=is_own)
    return ax
