"""Figures without a window: nothing opens, and nothing has to be closed."""

from pathlib import Path
from typing import Any

DPI = 150


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of so many inches, unknown to pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def panels(
    count: int, columns: int, width: float, height: float, **options: Any
) -> tuple[Any, Any]:
    """Return a figure with ``count`` panels in so many columns, and its axes, ``rows x columns``.

    The width is that of the figure and the height that of a row, in inches; ``options`` are those of
    ``subplots``. Axes beyond the panels are hidden.
    """
    rows = max(1, -(-count // columns))
    figure = new_figure(width, height * rows)
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for ax in axes.flat[count:]:
        ax.set_visible(False)
    return figure, axes


def save(figure: Any, path: Path, dpi: int = DPI) -> None:
    """Write a figure as PNG, and say where."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=dpi)
    print(f"Wrote {path}")
