"""Quality of methods against their cost."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.plotting.style import BLACK, CYCLE, MARKERS, columns_of, ensure_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES = ("--", ":", "-.")


def plot_quality_against_cost(
    curves: Mapping[str, tuple[Any, ...]],
    *,
    quality: str,
    cost: str = "queries in a run",
    maximize: bool | None = None,
    baselines: Mapping[str, float] | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the quality of each method over its cost, and baselines that have no such cost.

    Args:
        curves: Name to ``(cost, quality)`` or ``(cost, quality, standard error)``, each of shape
            ``(k,)``; points are joined in the order of their costs. The first curve is drawn thicker.
        quality: Name of the quality, with its unit: ``"test accuracy in %"``, ``"validation loss"``.
        cost: Name of the cost, with its unit: ``"seconds"``, ``"dollars"``.
        maximize: Whether larger quality is better; the label says so unless this is omitted.
        baselines: Name to quality of methods without that cost, such as a fixed setting; dashed lines.
        ax: Axes to draw in; new axes if omitted.

    Raises:
        InvalidArgumentError: If there is no curve.
        InvalidShapeError: If the arrays of a curve differ in length.
        ImportError: If Matplotlib is missing.
    """
    check(len(curves) > 0, "curves", "at least one curve", len(curves))
    # A legend beside the panel hides no curve, but axes of the caller may have no room for it.
    beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    location: dict[str, Any] = beside if ax is None else {}
    ax = ensure_axes(ax)
    for i, (name, columns) in enumerate(curves.items()):
        lengths = [len(column) for column in columns]
        fits = len(lengths) in (2, 3) and len(set(lengths)) == 1 and lengths[0] > 0
        check(fits, name, "two or three arrays of one length", lengths, InvalidShapeError)
        points = sorted(zip(*(map(float, column) for column in columns), strict=True))
        costs, qualities, *errors = columns_of(points, len(columns))
        ax.errorbar(
            costs,
            qualities,
            errors[0] if errors else None,
            color=CYCLE[i % len(CYCLE)],
            marker=MARKERS[i % len(MARKERS)],
            markersize=5,
            linewidth=2 if i == 0 else 1.2,
            capsize=2,
            label=name,
        )
    for i, (name, level) in enumerate((baselines or {}).items()):
        ax.axhline(level, color=BLACK, linestyle=_DASHES[i % len(_DASHES)], linewidth=1, label=name)
    better = {True: " (more is better)", False: " (less is better)", None: ""}[maximize]
    ax.set(xlabel=cost, ylabel=quality + better)
    handles = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    names = [name for name in (*curves, *(baselines or {})) if name in handles]
    ax.legend([handles[name] for name in names], names, frameon=False, **location)
    return ax


def plot_regret_against_cost(
    curves: Mapping[str, tuple[Any, ...]],
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the regret of each method over its number of queries; lower left is better.

    Args:
        curves: Name to ``(queries, regret)`` or ``(queries, regret, standard error)``, each of shape
            ``(k,)``; points are joined in the order of their queries.
        ax: Axes to draw in; new axes if omitted.

    Raises:
        InvalidArgumentError: If there is no curve.
        InvalidShapeError: If the arrays of a curve differ in length.
        ImportError: If Matplotlib is missing.
    """
    return plot_quality_against_cost(curves, quality="average regret per round", ax=ax)
