"""Which hyperparameters the belief of a run depends on, over its rounds."""

from typing import TYPE_CHECKING

from botorch_costly.errors import check
from botorch_costly.plotting.style import CYCLE, one
from botorch_costly.tuners import Importance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OTHERS, _TOGETHER = "#777777", "#DDDDDD"


def plot_importance(importance: Importance, ax: "Axes | None" = None) -> "Axes":
    """Draw the shares of the variance that hyperparameters explain, as areas on top of each other.

    What none explains alone is explained by some together. With more than seven hyperparameters the
    smallest are one area.

    Args:
        importance: What ``tuners.importance`` returned, of two rounds at least.
        ax: Where to draw; made if omitted.

    Raises:
        InvalidArgumentError: If it is none, or there are fewer than two rounds.
        ImportError: If Matplotlib is missing.
    """
    expected, given = "an Importance that tuners.importance returned", type(importance).__name__
    check(isinstance(importance, Importance), "importance", expected, given)
    rounds = importance.rounds
    check(len(rounds) > 1, "importance", "at least two rounds", len(rounds))
    ax = one(ax)
    shares = dict(
        zip(importance.names, map(list, zip(*importance.alone, strict=True)), strict=True)
    )
    ordered = sorted(shares, key=lambda name: -sum(shares[name]))
    named, others = ordered[: len(CYCLE)], ordered[len(CYCLE) :]
    areas, colors, labels = [shares[name] for name in named], list(CYCLE[: len(named)]), named
    if others:
        areas = [*areas, _sums([shares[name] for name in others])]
        colors, labels = [*colors, _OTHERS], [*labels, f"{len(others)} others"]
    # Estimates of shares may sum to a little more than 1; where nothing is known all of them are 0.
    explained, known = _sums(areas), [any(row) for row in importance.total]
    rest = [
        max(1 - share, 0.0) * is_known for share, is_known in zip(explained, known, strict=True)
    ]
    scale = [max(share, 1.0) for share in explained]
    areas = [[a / s for a, s in zip(area, scale, strict=True)] for area in [*areas, rest]]
    ax.stackplot(
        rounds,
        *areas,
        colors=[*colors, _TOGETHER],
        labels=[*labels, "several together"],
        linewidth=0,
    )
    ax.set_xlim(rounds[0], rounds[-1])
    ax.set_ylim(0, 1)
    ax.set_xlabel("round")
    ax.set_ylabel("share of the variance of the belief")
    handles, texts = ax.get_legend_handles_labels()
    # In the order in which the areas lie, beside them: within, they would hide some.
    ax.legend(
        handles[::-1], texts[::-1], loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False
    )
    return ax


def _sums(areas: list[list[float]]) -> list[float]:
    return [sum(column) for column in zip(*areas, strict=True)]
