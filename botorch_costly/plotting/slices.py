"""What is believed of one hyperparameter in a round, the others held."""

from typing import TYPE_CHECKING, Any

from botorch_costly.errors import check, check_positive
from botorch_costly.plotting.bands import are_numbers
from botorch_costly.plotting.style import BLUE, PURPLE, VERMILION, above, one
from botorch_costly.tuners import Slice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW = 12  # values that are drawn one by one
_FAR = 0.02  # nearness below which a reward is not drawn


def plot_slice(found: Slice, ax: "Axes | None" = None, width: float = 2.0) -> "Axes":
    """Draw what is believed of one hyperparameter in a round, and the rewards that it rests on.

    The nearer a reward is to the slice, the darker: one of another round, or with other values of the
    other hyperparameters, says less. Those that say nothing are not drawn.

    Args:
        found: What ``tuners.slice_of`` returned.
        ax: Where to draw; made if omitted.
        width: Half the height of the band, in standard deviations.

    Raises:
        InvalidArgumentError: If there is no slice, or the width is not positive.
        ImportError: If Matplotlib is missing.
    """
    check(isinstance(found, Slice), "found", "a Slice that slice_of returned", type(found).__name__)
    width = check_positive("width", width)
    ax = one(ax)
    numbers = are_numbers(found.values)
    places: list[Any] = list(found.values) if numbers else list(range(len(found.values)))
    heights = [width * std for std in found.std]
    band = f"mean ± {width:.3g} std"
    if numbers and len(places) > _FEW:
        low = [mean - height for mean, height in zip(found.mean, heights, strict=True)]
        high = [mean + height for mean, height in zip(found.mean, heights, strict=True)]
        ax.fill_between(places, low, high, color="#DDDDDD", linewidth=0, label=band)
        ax.plot(places, found.mean, color=BLUE, label="believed mean")
    else:
        ax.errorbar(
            places, found.mean, heights, fmt="o", color=BLUE, capsize=4, zorder=3, label=band
        )
        ax.set_xticks(places, [str(value) for value in found.values])
    if found.log:
        ax.set_xscale("log")
    _draw_told(ax, found, None if numbers else dict(zip(found.values, places, strict=True)))
    held = found.held[found.name]
    at: Any = held if numbers else places[found.values.index(held)]
    said = f"{held:.4g}" if isinstance(held, float) else str(held)
    says = f"held configuration: {said}"
    ax.axvline(at, color=VERMILION, linestyle=":", linewidth=1, label=says)
    ax.set_xlabel(found.name)
    ax.set_ylabel(f"reward in round {found.round}")
    above(ax)
    return ax


def _draw_told(ax: "Axes", found: Slice, places: dict[Any, int] | None) -> None:
    near = [told for told in found.told if told.nearness > _FAR]
    if not near:
        return
    from matplotlib.colors import to_rgba

    x: list[Any] = [told.value if places is None else places[told.value] for told in near]
    colors = [to_rgba(PURPLE, min(told.nearness, 1.0)) for told in near]
    ax.scatter(x, [told.reward for told in near], s=28, c=colors, linewidths=0, zorder=1.8)
    ax.scatter([], [], s=28, color=PURPLE, label="rewards as believed (darker: nearer)")
