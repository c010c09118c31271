"""What a run played and queried, and what that cost."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.plotting.style import BLACK, CYCLE, MARKERS, columns_of, one, stack
from botorch_costly.records import Decision, Observation

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_schedule(
    decisions: Sequence[Decision],
    names: Sequence[str] | None = None,
    observations: Sequence[Observation] | None = None,
    axes: "Sequence[Axes] | None" = None,
    log: Collection[str] = (),
) -> "list[Axes]":
    """Draw each hyperparameter over the rounds, and the rewards below them.

    Dots mark the rounds with a query.

    Args:
        decisions: In the order of their rounds.
        names: The hyperparameters to draw; all of them if omitted.
        observations: Their rewards are drawn in a last panel; no such panel if omitted.
        axes: One for each hyperparameter, and one more with observations; made if omitted.
        log: Names of the hyperparameters to draw on a logarithmic scale.

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
    for i, name in enumerate(shown):
        _draw_parameter(drawn[i], decisions, name, CYCLE[i % len(CYCLE)])
        if name in log:
            drawn[i].set_yscale("log")
    if axes is None:
        drawn[0].set_title("dots: rounds with a query", loc="right", fontsize="small")
    if observations is not None:
        seen = [(o.round, o.reward) for o in observations if o.reward is not None]
        drawn[-1].plot(*columns_of(seen, 2), "o", color=BLACK, markersize=3)
        drawn[-1].set_ylabel("reward")
    drawn[-1].set_xlabel("round")
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
        InvalidArgumentError: If there is no decision or a name is unknown.
        ImportError: If Matplotlib is missing.
    """
    check(len(decisions) > 0, "decisions", "at least one decision", len(decisions))
    known = list(decisions[0].config)
    shown = known if names is None else list(names)
    check(set(shown) <= set(known), "names", f"names among {known}", shown)
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


def plot_queries(decisions: Sequence[Decision], ax: "Axes | None" = None) -> "Axes":
    """Draw the rounds with a query and those without one, coloured by the reason.

    Reasons that differ only in what stands in parentheses are one group.

    Args:
        decisions: In the order of their rounds.
        ax: Where to draw; made if omitted.

    Raises:
        InvalidArgumentError: If there is no decision.
        ImportError: If Matplotlib is missing.
    """
    check(len(decisions) > 0, "decisions", "at least one decision", len(decisions))
    ax = one(ax, height=2.2)
    groups: dict[tuple[bool, str], list[int]] = {}
    for decision in decisions:
        key = (decision.query, decision.reason.partition(" (")[0])
        groups.setdefault(key, []).append(decision.round)
    queries = sum(decision.query for decision in decisions)
    ordered = sorted(groups.items(), key=lambda group: (not group[0][0], -len(group[1])))
    for i, ((query, reason), rounds) in enumerate(ordered):
        word = "query" if query else "skip"
        ax.eventplot(
            rounds,
            lineoffsets=1.0 if query else 0.0,
            linelengths=0.8,
            linewidths=1.2,
            colors=CYCLE[i % len(CYCLE)],
            label=f"{word}: {reason} ({len(rounds)})",
        )
    ax.set_yticks([0, 1], [f"skip ({len(decisions) - queries})", f"query ({queries})"])
    ax.set_ylim(-0.6, 1.6)
    ax.set_xlabel("round")
    columns = 2 if len(groups) > 2 else 1
    ax.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        fontsize="small",
        frameon=False,
        ncols=columns,
    )
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
    check(len(curves) > 0, "curves", "at least one curve", len(curves))
    ax = one(ax)
    for i, (name, columns) in enumerate(curves.items()):
        lengths = [len(column) for column in columns]
        fits = len(lengths) in (2, 3) and len(set(lengths)) == 1 and lengths[0] > 0
        check(fits, name, "two or three arrays of one length", lengths, InvalidShapeError)
        points = sorted(zip(*(map(float, column) for column in columns), strict=True))
        cost, regret, *error = columns_of(points, len(columns))
        ax.errorbar(
            cost,
            regret,
            error[0] if error else None,
            color=CYCLE[i % len(CYCLE)],
            marker=MARKERS[i % len(MARKERS)],
            markersize=5,
            linewidth=2 if i == 0 else 1.2,
            capsize=2,
            label=name,
        )
    ax.set_xlabel("queries in a run")
    ax.set_ylabel("average regret per round")
    ax.legend(frameon=False)
    return ax


def _draw_parameter(ax: "Axes", decisions: Sequence[Decision], name: str, color: str) -> None:
    rounds = [decision.round for decision in decisions]
    values: list[Any] = [decision.config[name] for decision in decisions]
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        levels = list(dict.fromkeys(values))  # in the order they were first played
        values = [levels.index(value) for value in values]
        ax.set_yticks(range(len(levels)), [str(level) for level in levels])
        ax.set_ylim(-0.5, len(levels) - 0.5)
    ax.plot(rounds, values, drawstyle="steps-post", color=color, linewidth=1)
    queried = [i for i, decision in enumerate(decisions) if decision.query]
    x, y = [rounds[i] for i in queried], [values[i] for i in queried]
    ax.plot(x, y, "o", color=color, markersize=3)
    ax.set_ylabel(name)
