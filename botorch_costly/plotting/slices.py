"""The posterior over one hyperparameter in a round, with the others fixed."""

from typing import TYPE_CHECKING, Any

from botorch_costly.errors import check, check_positive
from botorch_costly.plain import value_text
from botorch_costly.plotting.bands import are_numbers
from botorch_costly.plotting.style import (
    BLUE,
    PURPLE,
    VERMILION,
    ensure_axes,
    label_narrow_log_axis,
    legend_above,
)
from botorch_costly.tuners.online import Slice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW = 12  # number of values up to which each is drawn as a point
_FAR = 0.02  # nearness below which a reward is not drawn


def plot_slice(found: Slice, ax: "Axes | None" = None, width: float = 2.0) -> "Axes":
    """Draw the posterior over one hyperparameter in a round, and the rewards that it is based on.

    A reward is drawn darker the nearer it is to the slice. A reward of another round, or with other
    values of the other hyperparameters, is less informative; uninformative ones are not drawn.

    Args:
        found: Result of ``tuners.slice_of``.
        ax: Axes to draw in; new axes if omitted.
        width: Half the height of the band, in standard deviations.

    Raises:
        InvalidArgumentError: If ``found`` is not a ``Slice``, or the width is not positive.
        ImportError: If Matplotlib is missing.
    """
    check(isinstance(found, Slice), "found", "a Slice that slice_of returned", type(found).__name__)
    width = check_positive("width", width)
    ax = ensure_axes(ax)
    numbers = are_numbers(found.values)
    x: list[Any] = list(found.values) if numbers else list(range(len(found.values)))
    heights = [width * std for std in found.std]
    band = f"mean ± {width:.3g} std"
    if found.log:
        ax.set_xscale("log")
    if numbers and len(x) > _FEW:
        low = [mean - height for mean, height in zip(found.mean, heights, strict=True)]
        high = [mean + height for mean, height in zip(found.mean, heights, strict=True)]
        ax.fill_between(x, low, high, color="#DDDDDD", linewidth=0, label=band)
        ax.plot(x, found.mean, color=BLUE, label="believed mean")
    else:
        ax.errorbar(x, found.mean, heights, fmt="o", color=BLUE, capsize=4, zorder=3, label=band)
        ax.set_xticks(x, list(map(value_text, found.values)))
        ax.set_xticks([], minor=True)
    _draw_rewards(ax, found, None if numbers else dict(zip(found.values, x, strict=True)))
    held = found.held[found.name]
    position: Any = held if numbers else x[found.values.index(held)]
    label = f"held configuration: {f'{held:.4g}' if isinstance(held, float) else held}"
    ax.axvline(position, color=VERMILION, linestyle=":", linewidth=1, label=label)
    ax.set(xlabel=found.name, ylabel=f"reward in round {found.round}")
    if numbers and len(x) > _FEW:
        label_narrow_log_axis(ax.xaxis)
    legend_above(ax)
    return ax


def _draw_rewards(ax: "Axes", slice_: Slice, positions: dict[Any, int] | None) -> None:
    near = [reward for reward in slice_.told if reward.nearness > _FAR]
    if not near:
        return
    from matplotlib.colors import to_rgba

    values = [reward.value for reward in near]
    x: list[Any] = values if positions is None else [positions[value] for value in values]
    colors = [to_rgba(PURPLE, min(reward.nearness, 1.0)) for reward in near]
    ax.scatter(x, [reward.reward for reward in near], s=28, c=colors, linewidths=0, zorder=1.8)
    ax.scatter([], [], s=28, color=PURPLE, label="rewards as believed (darker: nearer)")
