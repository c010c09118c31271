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
    """Return a figure with so many panels in so many columns, and its axes, ``rows x columns``.

    Args:
        count: Number of panels; the axes beyond it are hidden.
        columns: Number of columns.
        width: Inches of the figure.
        height: Inches of a row.
        options: Options of ``subplots``.
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
