"""Quality of methods against their cost."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.plotting.checked import check_by_name
from botorch_costly.plotting.style import (
    BLACK,
    CYCLE,
    MARKERS,
    WITHIN,
    columns_of,
    ensure_axes,
    legend_above,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES = ("--", ":", "-.")
_NARROW = 24  # longest name, in characters, for a legend beside the panel


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
    named = check_by_name("curves", curves, "curve")
    is_own, ax = ax is None, ensure_axes(ax)
    for i, (name, columns) in enumerate(named.items()):
        lengths = _lengths(columns)
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
    better = {True: "\n(more is better)", False: "\n(less is better)", None: ""}[maximize]
    ax.set(xlabel=cost, ylabel=quality + better)
    handles = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    names = [name for name in (*curves, *(baselines or {})) if name in handles]
    _legend(ax, [handles[name] for name in names], names, is_own=is_own)
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
    quality = "average regret per round"
    return plot_quality_against_cost(curves, quality=quality, maximize=False, ax=ax)


def _lengths(columns: Any) -> list[int]:
    """Return the lengths of arrays, 0 of what has none; nothing if they are not listed."""
    is_row = hasattr(columns, "__len__") and not isinstance(columns, str | Mapping)
    listed: Sequence[Any] = columns if is_row else ()  # of one array or tensor the rows
    return [len(column) if hasattr(column, "__len__") else 0 for column in listed]


def _legend(ax: "Axes", handles: list[Any], names: list[str], *, is_own: bool) -> None:
    """Place the legend beside the panel if that leaves most of the room to it, else above it.

    Axes of the caller may have no room around them.
    """
    if not is_own:
        ax.legend(handles, names, **WITHIN)
    elif max(map(len, names)) > _NARROW:
        legend_above(ax, (handles, names))
    else:
        ax.legend(handles, names, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
