"""The schedule of a run: its hyperparameters over the rounds."""

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from botorch_costly.ask_tell.rows import heads_of
from botorch_costly.errors import check
from botorch_costly.parameters import Parameter
from botorch_costly.plotting.bands import HALF, Rectangle, are_numbers, rectangles
from botorch_costly.plotting.bounds import (
    BOUND,
    REGION,
    Limits,
    Steps,
    around,
    bounds_of,
    span_of,
    steps_of,
)
from botorch_costly.plotting.checked import (
    check_decisions,
    check_names,
    check_records,
    check_run,
)
from botorch_costly.plotting.given_back import Segment, segments_given_back
from botorch_costly.plotting.style import (
    BLACK,
    CYCLE,
    VERMILION,
    columns_of,
    ensure_axes,
    ensure_panels,
    label_narrow_log_axis,
    lines_of,
    mixed,
    whole_rounds,
)
from botorch_costly.records import Decision, Observation
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.online import BestValues

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UNITLESS = ("reward", "value")  # which may have either sign, and whose outliers may be the best
_BESTS = "dotted: believed best; shaded: at most 1 and 2 std behind it"


def plot_schedule(
    decisions: Sequence[Decision],
    names: Sequence[str] | None = None,
    observations: Sequence[Observation] | None = None,
    axes: "Sequence[Axes] | None" = None,
    log: Collection[str] = (),
    best: Sequence[BestValues] = (),
    metric: str = "reward",
    space: SearchSpace | None = None,
    limits: Limits = (),
) -> "list[Axes]":
    """Draw each hyperparameter over the rounds, and below them rewards, metrics and costs that were told.

    Dots mark rounds with a query, crosses failed queries. Fidelities of a search, such as the share of
    the data, are drawn as hyperparameters are, and no line joins its evaluations. With a space, grey
    lines are the bounds of a hyperparameter; with limits, those of the trust region are dashed, and what
    lies outside is grey. Rounds that twins gave back are shaded.

    If best values are passed, a dotted line is the best value by the posterior mean, with the other
    hyperparameters as in the incumbent of the round. Shaded values are less than one and two standard
    deviations of the difference behind it, so the posterior does not distinguish them from the best.

    Args:
        decisions: Decisions in the order of their rounds.
        names: Hyperparameters to draw; all of them if omitted.
        observations: Observations whose rewards are drawn in a last panel; no such panel if omitted.
        axes: Axes for each hyperparameter, one more with observations, and one more each if these have
            metrics beside their rewards or differing costs; new axes if omitted.
        log: Names of the hyperparameters to draw on a logarithmic scale.
        best: Results of ``tuners.best_values`` for some of the hyperparameters.
        metric: Name of the observed quantity: ``"loss"`` or ``"accuracy"`` for twins and populations.
        space: Search space, whose bounds are drawn; no bounds if omitted.
        limits: ``OnlineTuner.trust_regions``, to be drawn; none if omitted.

    Returns:
        The axes, in the order of the panels.

    Raises:
        InvalidArgumentError: If there is nothing to draw, a name is unknown, or an argument is of another
            class, such as a tuner in place of its decisions.
        InvalidShapeError: If the number of axes is not the number of panels.
        ImportError: If Matplotlib is missing.
    """
    told = () if observations is None else observations
    check_run(decisions, told, log, space, limits)
    parameters = list(decisions[0].setting)
    check_records("best", best, BestValues, "a list of what tuners.best_values returns")
    shown = _listed(names, parameters)
    check(len(shown) > 0, "names", f"names among {parameters}", shown)
    for name in [*shown, *log]:
        check(name in parameters, "names", f"names among {parameters}", name)
    beside = told_with_rewards(told)
    count = len(shown) + (observations is not None) + len(beside)
    panels = ensure_panels(axes, count)
    bests = {values.name: values for values in best}
    check(set(bests) <= set(parameters), "best", f"names among {parameters}", list(bests))
    heads = heads_of(shown, [*([] if observations is None else [metric]), *beside])
    for i, name in enumerate(shown):
        color = CYCLE[i % len(CYCLE)]
        _draw_parameter(panels[i], decisions, name, color, bests.get(name))
        panels[i].set_ylabel(lines_of(heads[i]))
        if name in log:
            panels[i].set_yscale("log")
        _draw_bounds(panels[i], None if space is None else dict(space.parameters).get(name))
        _draw_limits(panels[i], steps_of(limits, name, decisions[-1].round + HALF))
    given_back = segments_given_back(decisions)
    for panel in panels[:count]:
        _shade_given_back(panel, given_back)
    if observations is not None:
        _draw_rewards(panels[len(shown)], observations, metric, decisions[0].queried)
    for panel, (name, points) in zip(panels[count - len(beside) :], beside.items(), strict=True):
        _draw_points(panel, points, name)
    for panel in panels[:count]:
        label_narrow_log_axis(panel.yaxis)
    panels[-1].set_xlabel(decisions[0].unit)
    whole_rounds(panels[-1])
    if axes is None:
        title = "\n".join([legend_of(decisions, space, limits), *([_BESTS] if bests else [])])
        panels[0].set_title(title, loc="right", fontsize="small")
        panels[0].figure.align_ylabels(panels)
    return panels


def legend_of(decisions: Sequence[Decision], space: SearchSpace | None, limits: Limits) -> str:
    """Return the legend of a schedule: a line that names the marks of its panels."""
    first = decisions[0]
    dots = "dots: rounds with a query" if first.unit == "round" else f"dots: {first.queried}"
    given_back = ["shaded: rounds given back"] if segments_given_back(decisions) else []
    bounds = ["grey lines: bounds"] if space is not None else []
    region = ["dashed: trust region"] if limits else []
    return "; ".join([dots, *bounds, *region, *given_back])


def told_with_rewards(observations: Sequence[Observation]) -> dict[str, list[tuple[int, float]]]:
    """Return rounds and values of what was told beside rewards, by name: metrics, and differing costs."""
    told = {"metric": _metrics_of(observations), "cost": _costs_of(observations)}
    return {name: points for name, points in told.items() if points}


def _costs_of(observations: Sequence[Observation]) -> list[tuple[int, float]]:
    """Return rounds and costs; none if all costs are equal."""
    told = [(o.round, cost) for o in observations if (cost := getattr(o, "cost", None)) is not None]
    return told if len({cost for _, cost in told}) > 1 else []


def _metrics_of(observations: Sequence[Observation]) -> list[tuple[int, float]]:
    """Return rounds and finite metrics; none if all of them are the rewards, as for twins."""
    told = [o for o in observations if o.metric is not None and math.isfinite(o.metric)]
    beside = any(o.metric != o.reward for o in told)
    return [(o.round, o.metric) for o in told if o.metric is not None] if beside else []


def plot_schedule_map(
    decisions: Sequence[Decision],
    names: Sequence[str] | None = None,
    limits: tuple[float, float] = (0.0, 1.0),
    ax: "Axes | None" = None,
    label: str = "value",
) -> "Axes":
    """Draw many hyperparameters with a common range as rows, coloured by their values.

    Args:
        decisions: Decisions in the order of their rounds.
        names: Hyperparameters to draw, from top to bottom; all of them if omitted.
        limits: Range of the colours.
        ax: Axes to draw in; new axes if omitted.
        label: Label of the colour bar.

    Raises:
        InvalidArgumentError: If there is no decision, a name is unknown, or values are not numbers.
        ImportError: If Matplotlib is missing.
    """
    check_decisions(decisions)
    parameters = list(decisions[0].setting)
    shown = _listed(names, parameters)
    known = len(shown) > 0 and set(shown) <= set(parameters)
    check(known, "names", f"names among {parameters}", shown)
    for name in shown:
        numbers = all(isinstance(decision.setting[name], int | float) for decision in decisions)
        check(numbers, "names", "hyperparameters whose values are numbers", name)
    ax = ensure_axes(ax, height=0.4 * len(shown) + 1)
    rows: Any = [[d.setting[name] for d in decisions] for name in shown]
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
    ax.set_xlabel(decisions[0].unit)
    ax.figure.colorbar(image, ax=ax, label=label, pad=0.01)
    return ax


def _listed(names: Sequence[str] | None, parameters: list[str]) -> list[str]:
    """Return the names to draw, all of them if they are omitted."""
    if names is None:
        return parameters
    check_names("names", names)
    return list(names)


def _draw_parameter(
    ax: "Axes", decisions: Sequence[Decision], name: str, color: str, bests: BestValues | None
) -> None:
    rounds = [decision.round for decision in decisions]
    values: list[Any] = [decision.setting[name] for decision in decisions]
    best: list[Any] = [] if bests is None else list(bests.best)
    if not are_numbers(values):
        # Decisions alone do not have all options: those played are in the order of their first round.
        levels = list(dict.fromkeys(values)) if bests is None else list(bests.values)
        values, best = ([levels.index(value) for value in line] for line in (values, best))
        ax.set_yticks(range(len(levels)), [str(level) for level in levels])
        ax.set_ylim(-0.5, len(levels) - 0.5)
    if bests is not None:
        for behind, share in ((2.0, 0.1), (1.0, 0.25)):
            _shade(ax, rectangles(bests, behind, rounds[-1]), mixed(color, share))
        ends = [*bests.rounds, max(rounds[-1], bests.rounds[-1]) + HALF]
        ax.plot(ends, [*best, best[-1]], ":", drawstyle="steps-post", color=BLACK, linewidth=1)
    if decisions[0].unit == "round":  # evaluations of a search are no course of one training
        ax.plot(rounds, values, drawstyle="steps-post", color=color, linewidth=1)
    queried = [i for i, decision in enumerate(decisions) if decision.query]
    x, y = [rounds[i] for i in queried], [values[i] for i in queried]
    ax.plot(x, y, "o", color=color, markersize=3)


def _draw_bounds(ax: "Axes", parameter: Parameter | None) -> None:
    """Draw both bounds of a hyperparameter, and make the axis show them."""
    bounds = bounds_of(parameter)
    if bounds is not None:
        for bound in bounds:
            ax.axhline(bound, color=BOUND, linewidth=0.8, zorder=0.5)
        (low, high), ends = around(bounds, log=ax.get_yscale() == "log"), ax.get_ylim()
        # A schedule multiplies values beyond the bounds.
        ax.set_ylim(min(low, ends[0]), max(high, ends[1]))


def _draw_limits(ax: "Axes", steps: Steps | None) -> None:
    """Draw the limits, and shade what lies outside of them."""
    if steps is None:
        return
    ends = ax.get_ylim()
    for outer, inner in zip(ends, (steps.low, steps.high), strict=True):
        ax.fill_between(steps.rounds, outer, inner, step="post", color=REGION, lw=0, zorder=-1)
        # The line is visible where the best values are shaded, too.
        style: Any = {"drawstyle": "steps-post", "linewidth": 0.8, "zorder": 0.5}
        ax.plot(steps.rounds, inner, "--", color=BLACK, **style)
    ax.set_ylim(ends)


def _shade(ax: "Axes", areas: Sequence[Rectangle], color: str) -> None:
    from matplotlib.collections import PolyCollection

    corners = [
        [(a.left, a.low), (a.right, a.low), (a.right, a.high), (a.left, a.high)] for a in areas
    ]
    ax.add_collection(PolyCollection(corners, facecolor=color, edgecolor="none", zorder=0))
    ax.autoscale_view()


def _shade_given_back(ax: "Axes", segments: Sequence[Segment]) -> None:
    for left, right in segments:
        ax.axvspan(left, right, color=REGION, lw=0, zorder=-1)


def _draw_rewards(
    ax: "Axes", observations: Sequence[Observation], metric: str, queried: str
) -> None:
    _draw_points(ax, [(o.round, o.reward) for o in observations if o.reward is not None], metric)
    failed = [o.round for o in observations if o.failed]
    if failed:  # drawn at the foot of the panel, as they have no reward
        foot = ax.get_xaxis_transform()
        ax.plot(failed, [0.05] * len(failed), "x", color=VERMILION, markersize=5, transform=foot)
        _add_title(ax, f"crosses: failed {queried} ({len(failed)})")


def _draw_points(ax: "Axes", points: Sequence[tuple[int, float]], name: str) -> None:
    """Draw rewards, or metrics on an axis that suits them; those beyond it are triangles at its top."""
    span = span_of([value for _, value in points]) if points and name not in UNITLESS else None
    most = math.inf if span is None else span.most
    shown = [point for point in points if point[1] <= most]
    ax.plot(*columns_of(shown, 2), "o", color=BLACK, markersize=3)
    if span is not None and span.log:
        ax.set_yscale("log")
    beyond = [round for round, value in points if value > most]
    if beyond:
        top = ax.get_xaxis_transform()
        ax.plot(beyond, [0.95] * len(beyond), "^", color=VERMILION, markersize=5, transform=top)
        _add_title(ax, f"triangles: beyond the axis ({len(beyond)})")
    ax.set_ylabel(name)


def _add_title(ax: "Axes", text: str) -> None:
    before = ax.get_title(loc="right")
    ax.set_title(f"{before}; {text}" if before else text, loc="right", fontsize="small")
