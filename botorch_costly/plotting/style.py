"""Colours, axes and legends of all pictures. Figures are made outside of pyplot."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from botorch_costly.errors import InvalidShapeError, MissingExtraError, check

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
"""The palette of Okabe and Ito, which is safe for colour-blind readers."""

CYCLE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)  # yellow is too pale for lines
BROWN, GREY, PALE = "#7A4A21", "#777777", "#BBBBBB"
REASONS = (*CYCLE, YELLOW, BROWN)  # ticks are wide enough for yellow
_NARROW = 48  # longest label, in characters, for a legend of two columns
WITHIN: Any = {
    "framealpha": 0.85,
    "edgecolor": "none",
}  # of a legend within the panel, on white ground
_LINE = 16  # longest line of a panel's label, in characters
_DECADES = 2  # of a narrow logarithmic axis, fewer than these
_SHORT = (1e-3, 1e4)  # numbers from the first on and below the second are written plainly
MARKERS = "osD^vP*"  # distinguish curves in addition to their colours


def mixed(color: str, share: float) -> str:
    """Return a colour mixed with white; it is opaque, so that areas may overlap.

    Example:
        >>> mixed("#000000", 0.2)
        '#cccccc'
    """
    channels = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(share * c + (1 - share) * 255):02x}" for c in channels)


def columns_of(points: Sequence[tuple[float, ...]], number: int) -> list[list[float]]:
    """Return the coordinates of the points as ``number`` columns."""
    return [[point[i] for point in points] for i in range(number)]


def ensure_axes(ax: "Axes | None", height: float = 4.0) -> "Axes":
    """Return ``ax``, or new axes if it is None; raise InvalidArgumentError if it is no ``Axes``."""
    return stack(1, height)[0] if ax is None else _checked("ax", ax)


def ensure_panels(axes: "Sequence[Axes] | None", count: int, height: float = 1.6) -> "list[Axes]":
    """Return given axes, or new axes below each other if they are None.

    Args:
        axes: The axes.
        count: Number of the panels.
        height: Height of a new panel, in inches.

    Raises:
        InvalidArgumentError: If one is no ``Axes``.
        InvalidShapeError: If there are not as many axes as panels.
    """
    if axes is None:
        return stack(count, height)
    are_several = isinstance(axes, Iterable) and hasattr(axes, "__len__")
    check(are_several, "axes", f"{count} axes in a list", axes)
    check(len(axes) == count, "axes", f"{count} axes", len(axes), InvalidShapeError)
    return [_checked("axes", ax) for ax in axes]


def _checked(name: str, ax: "Axes") -> "Axes":
    expected = "Axes of Matplotlib, such as matplotlib.pyplot.subplots()[1]"
    check(hasattr(ax, "get_xaxis"), name, expected, ax)
    return ax


def stack(panels: int, height: float = 1.6) -> "list[Axes]":
    """Return the axes of a new figure with panels below each other."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        needed = "version 3.8 or newer: pip install 'matplotlib>=3.8'"
        raise MissingExtraError("matplotlib", needed, "not installed") from error
    figure = Figure(figsize=(7, max(height * panels, 2.0)), layout="constrained")
    FigureCanvasAgg(figure)
    return list(figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0])


def legend_above(ax: "Axes", named: "tuple[list[Any], list[str]] | None" = None) -> None:
    """Place the legend above the panel, where it hides nothing, in two columns if they fit.

    Args:
        ax: The panel.
        named: Handles and their labels; all of the panel if omitted.
    """
    handles, labels = ax.get_legend_handles_labels() if named is None else named
    options: Any = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": _columns(labels)}
    ax.legend(handles, labels, fontsize="small", frameon=False, **options)


def legend(ax: "Axes", *, is_own: bool) -> None:
    """Place the legend where its text meets no curve.

    Args:
        ax: The panel.
        is_own: Whether the panel was made here, so that there is room above it; the caller's may have a
            title there, and gets the legend within, on white ground.
    """
    if is_own:
        legend_above(ax)
    else:
        ax.legend(fontsize="small", **WITHIN)


def height_above(labels: Sequence[str]) -> float:
    """Return the height of a legend above a panel, in inches."""
    return 0.19 * -(-len(labels) // _columns(labels))


def _columns(labels: Sequence[str]) -> int:
    return 2 if len(labels) > 1 and all(len(label) <= _NARROW for label in labels) else 1


def lines_of(name: str) -> str:
    """Return a name wrapped after its separators, in at most three lines, to label a panel.

    Example:
        >>> print(lines_of("augmentation/strength_of_rotation"))
        augmentation/
        strength_of_
        rotation
    """
    lines = [""]
    for word in re.findall(rf"[^/._ -]{{0,{_LINE - 1}}}[/._ -]|.{{1,{_LINE}}}", name, flags=re.S):
        if len(lines[-1]) + len(word) <= _LINE:
            lines[-1] += word
        else:
            lines.append(word)
    return "\n".join(lines if len(lines) <= 3 else [*lines[:2], lines[2][: _LINE - 1] + "…"])


def whole_rounds(ax: "Axes") -> None:
    """Set the ticks of the axis of rounds to whole numbers."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))


def label_narrow_log_axis(axis: "Axis") -> None:
    """Label 1, 2 and 5 of each decade of a logarithmic axis of less than two.

    Short numbers are written plainly. Matplotlib itself labels up to nine values of a decade there, such
    as 4 times 10 to the power of 1, which collide.
    """
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if axis.get_scale() != "log" or high >= 10**_DECADES * low:
        return
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    is_short = _SHORT[0] <= low and high < _SHORT[1]
    powers = LogFormatterSciNotation(labelOnlyBase=False, minor_thresholds=(_DECADES, _DECADES))
    axis.set_major_formatter("{x:g}" if is_short else powers)
    axis.set_minor_formatter(NullFormatter())
