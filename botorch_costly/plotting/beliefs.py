"""The posterior of a function of one variable, and the value of a query."""

from typing import TYPE_CHECKING, Any, NamedTuple

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.plotting.style import BLACK, BLUE, GREEN, PURPLE, VERMILION, ensure_axes, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_QUERY, _SKIP = PURPLE, GREEN
_FAINTEST = 0.3  # opacity of the oldest mark


class Marks(NamedTuple):
    """Rounds drawn as points, shaded by their age."""

    x: Any  # shape: (k,)
    y: Any  # shape: (k,)
    age: Any  # age in rounds, shape: (k,)


def plot_belief(
    x: Any,
    mean: Any,
    std: Any,
    truth: Any = None,
    queries: Marks | None = None,
    skips: Marks | None = None,
    ax: "Axes | None" = None,
    width: float = 2.0,
) -> "Axes":
    """Draw the posterior of a function of one variable, and the rounds that were played.

    Args:
        x: Points in ascending order, shape ``(n,)``.
        mean: Posterior mean, shape ``(n,)``.
        std: Posterior standard deviation, shape ``(n,)``.
        truth: The true function, if known, shape ``(n,)``.
        queries: Rounds with a query; recent ones are darker.
        skips: Rounds without a query.
        ax: Axes to draw in; new axes if omitted.
        width: Half the height of the band, in standard deviations.

    Raises:
        InvalidShapeError: If the arrays differ in length.
        ImportError: If Matplotlib is missing.
    """
    lengths = [len(values) for values in (mean, std, truth) if values is not None]
    fits = all(length == len(x) for length in lengths)
    check(fits, "mean, std, truth", f"{len(x)} values each", lengths, InvalidShapeError)
    is_own, ax = ax is None, ensure_axes(ax)
    low, high = mean - width * std, mean + width * std
    band = f"mean ± {width:.3g} std"
    ax.fill_between(x, low, high, color="#999999", alpha=0.3, linewidth=0, label=band)
    ax.plot(x, mean, "--", color=VERMILION, label="posterior mean")
    if truth is not None:
        ax.plot(x, truth, color=BLUE, label="truth")
    ages = [float(age) for marks in (queries, skips) if marks for age in marks.age]
    oldest = max(ages, default=1.0)
    _draw_marks(ax, skips, "skip", "s", _SKIP, oldest)
    _draw_marks(ax, queries, "query", "o", _QUERY, oldest)
    ax.set(xlabel="x", ylabel="reward")
    legend(ax, is_own=is_own)
    return ax


def plot_query_value(x: Any, value: Any, price: float, ax: "Axes | None" = None) -> "Axes":
    """Draw the value of a query at each point, and its price.

    A query pays where the curve is above the price. The best point is marked.

    Args:
        x: Points in ascending order, shape ``(n,)``.
        value: Value of a query at each point, in rewards: ``mean + effective_horizon * gain - max mean``
            (``gain`` is the knowledge gradient), shape ``(n,)``.
        price: Price of a query, in rewards.
        ax: Axes to draw in; new axes if omitted.

    Raises:
        InvalidShapeError: If the arrays differ in length.
        ImportError: If Matplotlib is missing.
    """
    fits = len(value) == len(x)
    check(fits, "value", f"{len(x)} values", len(value), InvalidShapeError)
    is_own, ax = ax is None, ensure_axes(ax)
    heights = [float(height) for height in value]
    best = max(range(len(heights)), key=heights.__getitem__)
    pays = heights[best] > price
    ax.plot(x, heights, color=BLACK, label="value of a query at x")
    ax.axhline(price, color=VERMILION, linestyle="--", label=f"price of a query, {price:.3g}")
    above = [height > price for height in heights]
    ax.fill_between(x, heights, price, where=above, color=_QUERY, alpha=0.3, linewidth=0)
    color, marker, label = (_QUERY, "o", "query here") if pays else (_SKIP, "s", "no query")
    ax.plot([float(x[best])], [heights[best]], marker, color=color, label=label)
    ax.set(xlabel="x", ylabel="value, in rewards")
    legend(ax, is_own=is_own)
    return ax


def _draw_marks(
    ax: "Axes", marks: Marks | None, label: str, marker: str, color: str, oldest: float
) -> None:
    if marks is None or len(marks.x) == 0:
        return
    from matplotlib.colors import to_rgba

    freshness = [1 - float(age) / max(oldest, 1.0) for age in marks.age]
    colors = [to_rgba(color, _FAINTEST + (1 - _FAINTEST) * fresh) for fresh in freshness]
    ax.scatter(marks.x, marks.y, s=28, c=colors, marker=marker, linewidths=0, zorder=3)
    ax.scatter([], [], s=28, color=color, marker=marker, label=f"{label} (darker: more recent)")
