"""What a run played: its hyperparameters over the rounds."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.plotting.bands import HALF, Rectangle, are_numbers, rectangles
from botorch_costly.plotting.style import (
    BLACK,
    CYCLE,
    VERMILION,
    columns_of,
    lines_of,
    mixed,
    one,
    stack,
    whole_rounds,
)
from botorch_costly.records import Decision, Observation
from botorch_costly.tuners import BestValues

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_schedule(
    decisions: Sequence[Decision],
    names: Sequence[str] | None = None,
    observations: Sequence[Observation] | None = None,
    axes: "Sequence[Axes] | None" = None,
    log: Collection[str] = (),
    best: Sequence[BestValues] = (),
    metric: str = "reward",
) -> "list[Axes]":
    """Draw each hyperparameter over the rounds, and the rewards below them.

    Dots mark the rounds with a query, crosses those that failed. Where the best values are given, a
    dotted line is the value believed best, with the others as in the incumbent of the round. The
    shades are the values less than one and two standard deviations of the difference behind it: those
    that the belief cannot tell from the best, whatever was played.

    Args:
        decisions: In the order of their rounds.
        names: The hyperparameters to draw; all of them if omitted.
        observations: Their rewards are drawn in a last panel; no such panel if omitted.
        axes: One for each hyperparameter, and one more with observations; made if omitted.
        log: Names of the hyperparameters to draw on a logarithmic scale.
        best: What ``tuners.best_values`` returned of some of the hyperparameters.
        metric: What was told: ``"loss"`` or ``"accuracy"`` of twins and populations.

    Returns:
        The axes, in the order of the panels.

    Raises:
        InvalidArgumentError: If there is nothing to draw or a name is unknown.
        InvalidShapeError: If the number of axes is not the number of panels.
        ImportError: If Matplotlib is missing.
    """
    check(len(decisions) > 0, "decisions", "at least one decision", len(decisions))
    known = list(decisions[0].config)
    shown = known if names is None else list(names)
    check(len(shown) > 0, "names", f"names among {known}", shown)
    for name in [*shown, *log]:
        check(name in known, "names", f"names among {known}", name)
    panels = len(shown) + (observations is not None)
    drawn = stack(panels) if axes is None else list(axes)
    check(len(drawn) == panels, "axes", f"{panels} axes", len(drawn), InvalidShapeError)
    believed = {one.name: one for one in best}
    check(set(believed) <= set(known), "best", f"names among {known}", list(believed))
    for i, name in enumerate(shown):
        color = CYCLE[i % len(CYCLE)]
        _draw_parameter(drawn[i], decisions, name, color, believed.get(name))
        if name in log:
            drawn[i].set_yscale("log")
    if axes is None:
        explain_schedule(drawn[0], bool(believed))
    if observations is not None:
        _draw_rewards(drawn[-1], observations, metric)
    drawn[-1].set_xlabel("round")
    whole_rounds(drawn[-1])
    if axes is None:
        drawn[0].figure.align_ylabels(drawn)
    return drawn


def plot_schedule_map(
    decisions: Sequence[Decision],
    names: Sequence[str] | None = None,
    limits: tuple[float, float] = (0.0, 1.0),
    ax: "Axes | None" = None,
    label: str = "value",
) -> "Axes":
    """Draw many hyperparameters of one range: one row each, coloured by its value.

    Args:
        decisions: In the order of their rounds.
        names: The hyperparameters to draw, from top to bottom; all of them if omitted.
        limits: The range of the colours.
        ax: Where to draw; made if omitted.
        label: Name of the colours.

    Raises:
        InvalidArgumentError: If there is no decision, a name is unknown, or values are no numbers.
        ImportError: If Matplotlib is missing.
    """
    check(len(decisions) > 0, "decisions", "at least one decision", len(decisions))
    known = list(decisions[0].config)
    shown = known if names is None else list(names)
    check(set(shown) <= set(known), "names", f"names among {known}", shown)
    for name in shown:
        played = [d.config[name] for d in decisions]
        numbers = all(isinstance(value, int | float) for value in played)
        check(numbers, "names", "hyperparameters whose values are numbers", name)
    ax = one(ax, height=0.4 * len(shown) + 1)
    rows: Any = [[d.config[name] for d in decisions] for name in shown]
    first, last = decisions[0].round, decisions[-1].round
    image = ax.imshow(
        rows,
        aspect="auto",
        interpolation="nearest",
        cmap="cividis",
        vmin=limits[0],
        vmax=limits[1],
        extent=(first - 0.5, last + 0.5, len(shown) - 0.5, -0.5),
    )
    ax.set_yticks(range(len(shown)), shown)
    ax.set_xlabel("round")
    ax.figure.colorbar(image, ax=ax, label=label, pad=0.01)
    return ax


def explain_schedule(ax: "Axes", believed: bool) -> None:
    """Say above a schedule what its marks mean."""
    said = "dots: rounds with a query"
    if believed:
        said += "; dotted: believed best; shaded: at most 1 and 2 std behind it"
    ax.set_title(said, loc="right", fontsize="small")


def _draw_parameter(
    ax: "Axes", decisions: Sequence[Decision], name: str, color: str, found: BestValues | None
) -> None:
    rounds = [decision.round for decision in decisions]
    values: list[Any] = [decision.config[name] for decision in decisions]
    best: list[Any] = [] if found is None else list(found.best)
    if not are_numbers(values):
        # In the order in which they were first played, unless all that could be are known.
        levels = list(dict.fromkeys(values)) if found is None else list(found.values)
        values, best = ([levels.index(value) for value in line] for line in (values, best))
        ax.set_yticks(range(len(levels)), [str(level) for level in levels])
        ax.set_ylim(-0.5, len(levels) - 0.5)
    if found is not None:
        for behind, share in ((2.0, 0.1), (1.0, 0.25)):
            _shade(ax, rectangles(found, behind, rounds[-1]), mixed(color, share))
        ends = [*found.rounds, max(rounds[-1], found.rounds[-1]) + HALF]
        ax.plot(ends, [*best, best[-1]], ":", drawstyle="steps-post", color=BLACK, linewidth=1)
    ax.plot(rounds, values, drawstyle="steps-post", color=color, linewidth=1)
    queried = [i for i, decision in enumerate(decisions) if decision.query]
    x, y = [rounds[i] for i in queried], [values[i] for i in queried]
    ax.plot(x, y, "o", color=color, markersize=3)
    ax.set_ylabel(lines_of(name))


def _shade(ax: "Axes", areas: Sequence[Rectangle], color: str) -> None:
    from matplotlib.collections import PolyCollection

    corners = [
        [(a.left, a.low), (a.right, a.low), (a.right, a.high), (a.left, a.high)] for a in areas
    ]
    ax.add_collection(PolyCollection(corners, facecolor=color, edgecolor="none", zorder=0))
    ax.autoscale_view()


def _draw_rewards(ax: "Axes", observations: Sequence[Observation], metric: str) -> None:
    seen = [(o.round, o.reward) for o in observations if o.reward is not None]
    ax.plot(*columns_of(seen, 2), "o", color=BLACK, markersize=3)
    failed = [o.round for o in observations if o.failed]
    if failed:  # there is no reward to draw them at
        foot = ax.get_xaxis_transform()
        ax.plot(failed, [0.05] * len(failed), "x", color=VERMILION, markersize=5, transform=foot)
        ax.set_title(f"crosses: failed queries ({len(failed)})", loc="right", fontsize="small")
    ax.set_ylabel(metric)
