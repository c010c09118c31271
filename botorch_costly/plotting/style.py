"""What all pictures share: colours, and axes that pyplot does not know."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
"""The palette of Okabe and Ito, which readers with any colour vision tell apart."""

CYCLE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)  # yellow is too pale for lines
MARKERS = "osD^vP*"  # a second way to tell curves apart


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
