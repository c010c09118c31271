"""What all pictures share: colours, and axes that pyplot does not know."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
"""The palette of Okabe and Ito, which readers with any colour vision tell apart."""

CYCLE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)  # yellow is too pale for lines
_NARROW = 48  # characters of a label of which two fit beside each other
_LINE = 16  # characters beside a panel
MARKERS = "osD^vP*"  # a second way to tell curves apart


def mixed(color: str, share: float) -> str:
    """Return a share of a colour with white for the rest: opaque, so that areas may overlap.

    Example:
        >>> mixed("#000000", 0.2)
        '#cccccc'
    """
    parts = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(share * part + (1 - share) * 255):02x}" for part in parts)


def columns_of(points: Sequence[tuple[float, ...]], number: int) -> list[list[float]]:
    """Return each coordinate of the points by itself."""
    return [[point[i] for point in points] for i in range(number)]


def one(ax: "Axes | None", height: float = 4.0) -> "Axes":
    """Return the axes that were given, or new ones."""
    return stack(1, height)[0] if ax is None else ax


def stack(panels: int, height: float = 1.6) -> "list[Axes]":
    """Return panels below each other in a figure that pyplot does not know."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        needed = "Plotting needs Matplotlib: pip install 'botorch_costly[plot]'"
        raise ImportError(needed) from error
    figure = Figure(figsize=(7, max(height * panels, 2.0)), layout="constrained")
    FigureCanvasAgg(figure)
    return list(figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0])


def above(ax: "Axes") -> None:
    """Set the legend above the panel, where it hides nothing; in two columns if there is room."""
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(
        handles,
        labels,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        fontsize="small",
        frameon=False,
        ncols=_columns(labels),
    )


def height_above(labels: Sequence[str]) -> float:
    """Return the inches that a legend above a panel needs."""
    return 0.19 * -(-len(labels) // _columns(labels))


def _columns(labels: Sequence[str]) -> int:
    return 2 if len(labels) > 1 and all(len(label) <= _NARROW for label in labels) else 1


def lines_of(name: str) -> str:
    """Return a name in at most three lines that a panel has room for, broken after its separators.

    Example:
        >>> print(lines_of("augmentation/strength_of_rotation"))
        augmentation/
        strength_of_
        rotation
    """
    lines = [""]
    for part in re.findall(rf"[^/._ -]{{0,{_LINE - 1}}}[/._ -]|.{{1,{_LINE}}}", name, flags=re.S):
        if len(lines[-1]) + len(part) <= _LINE:
            lines[-1] += part
        else:
            lines.append(part)
    return "\n".join(lines if len(lines) <= 3 else [*lines[:2], lines[2][: _LINE - 1] + "…"])


def whole_rounds(ax: "Axes") -> None:
    """Let the axis of rounds have ticks at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
