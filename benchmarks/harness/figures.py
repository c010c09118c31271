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


def save(figure: Any, path: Path, dpi: int = DPI) -> None:
    """Write a figure as PNG, and say where."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=dpi)
    print(f"Wrote {path}")
