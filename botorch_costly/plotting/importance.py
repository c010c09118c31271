"""The importance of hyperparameters over the rounds of a run."""

from typing import TYPE_CHECKING, Any

from botorch_costly.errors import check
from botorch_costly.plotting.style import CYCLE, ensure_axes
from botorch_costly.tuners.online import Importance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OTHERS, _TOGETHER = "#777777", "#DDDDDD"


def plot_importance(importance: Importance, ax: "Axes | None" = None) -> "Axes":
    """Draw the shares of the variance that hyperparameters explain, as stacked areas.

    The share that no hyperparameter explains alone is drawn as that of several together. With more than
    seven hyperparameters, the smallest shares are merged.

    Args:
        importance: Result of ``tuners.importance``, of at least two rounds.
        ax: Axes to draw in; new axes if omitted.

    Raises:
        InvalidArgumentError: If it is not an ``Importance``, or has fewer than two rounds.
        ImportError: If Matplotlib is missing.
    """
    expected, received = "an Importance that tuners.importance returned", type(importance).__name__
    check(isinstance(importance, Importance), "importance", expected, received)
    rounds = importance.rounds
    check(len(rounds) > 1, "importance", "at least two rounds", len(rounds))
    ax = ensure_axes(ax)
    columns = map(list, zip(*importance.alone, strict=True))
    shares = dict(zip(importance.names, columns, strict=True))
    ordered = sorted(shares, key=lambda name: -sum(shares[name]))
    labels, others = ordered[: len(CYCLE)], ordered[len(CYCLE) :]
    areas, colors = [shares[name] for name in labels], list(CYCLE[: len(labels)])
    if others:
        areas.append(_sums([shares[name] for name in others]))
        colors.append(_OTHERS)
        labels.append(f"{len(others)} others")
    # Estimated shares may sum to slightly more than 1. Before any observation, all shares are 0.
    explained = _sums(areas)
    together = [
        max(1 - share, 0.0) * any(total)
        for share, total in zip(explained, importance.total, strict=True)
    ]
    scale = [max(share, 1.0) for share in explained]
    areas = [[a / s for a, s in zip(area, scale, strict=True)] for area in [*areas, together]]
    colors, labels = [*colors, _TOGETHER], [*labels, "several together"]
    ax.stackplot(rounds, *areas, colors=colors, labels=labels, linewidth=0)
    ax.set(xlim=(rounds[0], rounds[-1]), ylim=(0, 1))
    ax.set(xlabel="round", ylabel="share of the variance of the belief")
    handles, texts = ax.get_legend_handles_labels()
    # Beside the panel, so that it hides no area, and in the order of the areas from top to bottom.
    beside: Any = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    ax.legend(handles[::-1], texts[::-1], frameon=False, **beside)
    return ax


def _sums(areas: list[list[float]]) -> list[float]:
    return [sum(column) for column in zip(*areas, strict=True)]
