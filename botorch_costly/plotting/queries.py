"""The queries of a run, or of several runs, and their reasons."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botorch_costly.plotting.checked import check_by_name, check_decisions
from botorch_costly.plotting.style import (
    CYCLE,
    GREY,
    PALE,
    REASONS,
    ensure_axes,
    height_above,
    legend_above,
    whole_rounds,
)
from botorch_costly.records import Decision

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TRAINED = "#EEEEEE"
_WIDEST, _THINNEST = 1.2, 0.5  # limits of the width of a round, in points
_OTHERS = "other reasons"
_ROOM = 360.0  # width of all rounds of a run, in points


def reason_of(decision: Decision) -> str:
    """Return the reason of a decision without its parenthesis, such as a confidence."""
    return decision.reason.partition(" (")[0]


def plot_queries(decisions: Sequence[Decision], ax: "Axes | None" = None) -> "Axes":
    """Draw the rounds with and without a query, coloured by the reason.

    Reasons that differ only in parentheses count as the same. Of more than nine groups, the rarest are
    drawn as other reasons.

    Args:
        decisions: Decisions in the order of their rounds.
        ax: Axes to draw in; new axes if omitted.

    Raises:
        InvalidArgumentError: If there is no decision.
        ImportError: If Matplotlib is missing.
    """
    check_decisions(decisions)
    counts = Counter((decision.query, reason_of(decision)) for decision in decisions)
    named = dict(counts.most_common(len(REASONS)))
    groups: dict[tuple[bool, str], list[int]] = {}
    for decision in decisions:
        group = decision.query, reason_of(decision)
        group = group if group in named else (decision.query, _OTHERS)
        groups.setdefault(group, []).append(decision.round)
    queries = sum(decision.query for decision in decisions)
    ordered = sorted(
        groups.items(), key=lambda group: (not group[0][0], group[0] not in named, -len(group[1]))
    )
    colors = iter(REASONS)
    labels = [
        f"{'query' if query else 'skip'}: {reason} ({len(rounds)})"
        for (query, reason), rounds in ordered
    ]
    ax = ensure_axes(ax, height=1.8 + height_above(labels))
    for label, (group, rounds) in zip(labels, ordered, strict=True):
        query = group[0]
        ax.eventplot(
            rounds,
            lineoffsets=1.0 if query else 0.0,
            linelengths=0.8,
            linewidths=_width(len(decisions)),
            colors=next(colors) if group in named else GREY if query else PALE,
            label=label,
        )
    ax.set_yticks([0, 1], [f"skip ({len(decisions) - queries})", f"query ({queries})"])
    ax.set(ylim=(-0.6, 1.6), xlabel="round")
    whole_rounds(ax)
    legend_above(ax)
    legend: Any = ax.get_legend()
    for handle in legend.legend_handles:
        handle.set_linewidth(2)  # in the width of a round the colour would be hard to see
    return ax


def plot_query_raster(runs: Mapping[str, Sequence[Decision]], ax: "Axes | None" = None) -> "Axes":
    """Draw the queries of several runs: one row per run, one tick per query, coloured by the reason.

    The number of queries and of rounds stands at the right of each row. Reasons that differ only in
    parentheses count as the same. Of more than seven reasons, the rarest share a colour.

    Args:
        runs: Name of each run, from top to bottom, to its decisions in the order of their rounds.
        ax: Axes to draw in; new axes if omitted.

    Raises:
        InvalidArgumentError: If there is no run, or a run has no decision.
        ImportError: If Matplotlib is missing.
    """
    for name, decisions in check_by_name("runs", runs, "run").items():
        check_decisions(decisions, str(name))
    counts = Counter(reason_of(d) for decisions in runs.values() for d in decisions if d.query)
    most = max(len(decisions) for decisions in runs.values())
    last = max(decisions[-1].round for decisions in runs.values())
    named = [reason for reason, _ in counts.most_common(len(CYCLE))]
    labels = [f"{reason} ({counts[reason]})" for reason in named]
    if others := counts.total() - sum(counts[reason] for reason in named):
        labels.append(f"{_OTHERS} ({others})")
    ax, width = ensure_axes(ax, 0.35 * len(runs) + 0.8 + height_above(labels)), _width(most)
    for row, decisions in enumerate(runs.values()):
        first, end = decisions[0].round, decisions[-1].round
        ax.barh(row, end - first + 1, 0.8, first - 0.5, color=_TRAINED, zorder=0)
        queries = [d for d in decisions if d.query]
        for reason in dict.fromkeys(map(reason_of, queries)):
            rounds = [d.round for d in queries if reason_of(d) == reason]
            color = CYCLE[named.index(reason)] if reason in named else GREY
            ax.eventplot(rounds, lineoffsets=row, linelengths=0.8, linewidths=width, colors=color)
        share = f" {len(queries)}/{len(decisions)}"
        ax.text(last + 0.5, row, share, va="center", fontsize="small")
    for color, label in zip([*CYCLE[: len(named)], GREY], labels, strict=False):
        ax.plot([], [], color=color, linewidth=2, label=label)
    ax.set_yticks(range(len(runs)), [str(name) for name in runs])
    first = min(decisions[0].round for decisions in runs.values())
    ax.set(xlim=(first - 0.5, last + 0.5), ylim=(len(runs) - 0.4, -0.6), xlabel="round")
    whole_rounds(ax)
    if counts:
        legend_above(ax)
    return ax


def _width(rounds: int) -> float:
    """Return the width of a round, in points."""
    return min(max(_ROOM / rounds, _THINNEST), _WIDEST)
