"""What methods reach at what cost."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.plotting.style import BLACK, CYCLE, MARKERS, columns_of, one

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
    """Draw what each method reaches over what it costs, and what comes without that cost.

    Args:
        curves: Name to ``(cost, quality)`` or ``(cost, quality, standard error)``, each of shape
            ``(k,)``; points are joined in the order of their costs. The first curve is drawn thicker.
        quality: What is reached, with its unit: ``"test accuracy in %"``, ``"validation loss"``.
        cost: What is paid, with its unit: ``"seconds"``, ``"dollars"``.
        maximize: Whether more quality is better, which the label then says; nothing is said if omitted.
        baselines: Name to the quality of what has no such cost, such as a fixed setting; dashed lines.
        ax: Where to draw; made if omitted.

    Raises:
        InvalidArgumentError: If there is no curve.
        InvalidShapeError: If the arrays of a curve differ in length.
        ImportError: If Matplotlib is missing.
    """
    check(len(curves) > 0, "curves", "at least one curve", len(curves))
    # Beside the panel it hides nothing; in axes of others there may be no room.
    beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    place: dict[str, Any] = beside if ax is None else {}
    ax = one(ax)
    for i, (name, columns) in enumerate(curves.items()):
        lengths = [len(column) for column in columns]
        fits = len(lengths) in (2, 3) and len(set(lengths)) == 1 and lengths[0] > 0
        check(fits, name, "two or three arrays of one length", lengths, InvalidShapeError)
        points = sorted(zip(*(map(float, column) for column in columns), strict=True))
        paid, reached, *error = columns_of(points, len(columns))
        ax.errorbar(
            paid,
            reached,
            error[0] if error else None,
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
    ax.set_xlabel(cost)
    ax.set_ylabel(quality + better)
    handles = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    shown = [name for name in (*curves, *(baselines or {})) if name in handles]
    ax.legend([handles[name] for name in shown], shown, frameon=False, **place)
    return ax


def plot_regret_against_cost(
    curves: Mapping[str, tuple[Any, ...]],
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the regret of each method over its number of queries: lower left is better.

    Args:
        curves: Name to ``(queries, regret)`` or ``(queries, regret, standard error)``, each of shape
            ``(k,)``; points are joined in the order of their queries.
        ax: Where to draw; made if omitted.

    Raises:
        InvalidArgumentError: If there is no curve.
        InvalidShapeError: If the arrays of a curve differ in length.
        ImportError: If Matplotlib is missing.
    """
    return plot_quality_against_cost(curves, quality="average regret per round", ax=ax)
