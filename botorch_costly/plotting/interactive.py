"""An interactive figure of a run: hyperparameters and rewards over the rounds.

Hovering over a round shows its configuration, reason and outcome. Plotly comes with the extra
``botorch_costly[plotly]``.
"""

import html
import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from botorch_costly.ask_tell.rows import cell_of, heads_of, row_of
from botorch_costly.errors import MissingExtraError, check
from botorch_costly.plotting.bands import HALF, are_numbers
from botorch_costly.plotting.bounds import (
    BOUND,
    REGION,
    Limits,
    Span,
    Steps,
    around,
    bounds_of,
    span_of,
    steps_of,
)
from botorch_costly.plotting.checked import check_run
from botorch_costly.plotting.given_back import segments_given_back
from botorch_costly.plotting.runs import UNITLESS, legend_of, told_with_rewards
from botorch_costly.plotting.style import BLACK, CYCLE, VERMILION
from botorch_costly.records import Decision, Observation
from botorch_costly.space import SearchSpace

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_PANEL, _MARGIN = 150, 80  # pixels
_NARROW = 1.5  # decades; more have ticks at powers of ten alone


def explore_run(
    decisions: Sequence[Decision],
    observations: Sequence[Observation] = (),
    log: Collection[str] = (),
    metric: str = "reward",
    space: SearchSpace | None = None,
    limits: Limits = (),
) -> "Figure":
    """Return a run as a figure of Plotly: a panel for each hyperparameter, and the rewards below them.

    Metrics and costs that were told beside the rewards have panels, too. Dots mark rounds with a query,
    crosses failed queries. With a space, grey lines are the bounds of a hyperparameter; with limits,
    dashed lines are those of the trust region. Rounds that twins gave back are shaded. All panels zoom
    together. Hovering over a round shows its decision, its reason and its outcome.

    Args:
        decisions: Decisions in the order of their rounds.
        observations: Their observations; without rewards there is no panel of rewards.
        log: Names of the hyperparameters to draw on a logarithmic scale.
        metric: Name of the observed quantity: ``"loss"`` or ``"accuracy"`` for twins and populations.
        space: Search space, whose bounds are drawn; no bounds if omitted.
        limits: ``OnlineTuner.trust_regions``, to be drawn; none if omitted.

    Raises:
        InvalidArgumentError: If there is no decision or a name is unknown.
        MissingExtraError: If Plotly is missing.

    Example::

        explore_run(tuner.decisions, tuner.observations, log=["lr"]).write_html("run.html")
    """
    check_run(decisions, observations, log, space, limits)
    names = list(decisions[0].setting)
    check(set(log) <= set(names), "log", f"names among {names}", sorted(log))
    by_round = {observation.round: observation for observation in observations}
    rounds = [(decision, by_round.get(decision.round)) for decision in decisions]
    rewarded = [(o.round, o.reward) for o in observations if o.reward is not None]
    drawn = [*([(metric, rewarded)] if rewarded else []), *told_with_rewards(observations).items()]
    figure = _panels(len(names) + len(drawn))
    texts = {decision.round: _hover_text(decision, told, metric) for decision, told in rounds}
    heads = heads_of(names, [head for head, _ in drawn])
    for i, name in enumerate(names):
        _add_parameter(figure, i + 1, name, rounds, texts, log=name in log)
        figure.update_yaxes(title_text=_escaped(heads[i]), row=i + 1, col=1)
        bounds = bounds_of(None if space is None else dict(space.parameters).get(name))
        steps = steps_of(limits, name, decisions[-1].round + HALF)
        _add_limits(figure, i + 1, bounds, steps, log=name in log)
    for row, (name, points) in enumerate(drawn, len(names) + 1):
        _add_points(figure, row, name, points, texts)
    for left, right in segments_given_back(decisions):
        figure.add_vrect(left, right, fillcolor=REGION, line_width=0, layer="below")
    figure.update_xaxes(title_text=decisions[0].unit, row=len(names) + len(drawn), col=1)
    legend = {
        "text": legend_of(decisions, space, limits),
        "font": {"size": 12},
        "x": 1,
        "xanchor": "right",
    }
    figure.update_layout(title=legend)
    return figure


def _panels(count: int) -> "Figure":
    try:
        from plotly.subplots import make_subplots
    except ImportError as error:
        needed = "version 5.18 or newer: pip install 'plotly>=5.18'"
        raise MissingExtraError("plotly", needed, "not installed") from error
    figure = make_subplots(rows=count, cols=1, shared_xaxes=True, vertical_spacing=0.2 / count)
    figure.update_layout(
        template="plotly_white",
        height=_PANEL * count + _MARGIN,
        hovermode="closest",
        hoverlabel={"align": "left"},
        showlegend=False,
        margin={"t": 50},
    )
    return figure


def _add_parameter(
    figure: "Figure",
    row: int,
    name: str,
    rounds: Sequence[tuple[Decision, Observation | None]],
    texts: dict[int, str],
    *,
    log: bool,
) -> None:
    """Draw the values of a hyperparameter as steps, with a mark in each round with a query."""
    x = [decision.round for decision, _ in rounds]
    played: list[Any] = [decision.setting[name] for decision, _ in rounds]
    numbers = are_numbers(played)
    values = played if numbers else [_escaped(value) for value in played]
    color = CYCLE[(row - 1) % len(CYCLE)]
    queried = [i for i, (decision, _) in enumerate(rounds) if decision.query]
    outcomes = [outcome for _, outcome in rounds]
    failed = {i for i in queried if (outcome := outcomes[i]) is not None and outcome.failed}
    line = {"color": color, "width": 1, "shape": "hv"}
    if rounds[0][0].unit == "round":  # evaluations of a search are no course of one training
        _scatter(figure, row, x, values, texts, mode="lines", line=line)
    marker = {
        "color": [VERMILION if i in failed else color for i in queried],
        "symbol": ["x" if i in failed else "circle" for i in queried],
        "size": 7,
    }
    x, values = [x[i] for i in queried], [values[i] for i in queried]
    _scatter(figure, row, x, values, texts, mode="markers", marker=marker)
    kind = "log" if log and numbers else "linear" if numbers else "category"
    figure.update_yaxes(type=kind, row=row, col=1)
    if kind == "log":
        _set_ticks(figure, row, min(played), max(played))


def _add_limits(
    figure: "Figure",
    row: int,
    bounds: tuple[float, float] | None,
    steps: Steps | None,
    *,
    log: bool,
) -> None:
    """Draw the bounds of a hyperparameter, which its axis then shows, and the limits of trust regions."""
    if bounds is not None:
        for bound in bounds:
            figure.add_hline(bound, line={"color": BOUND, "width": 1}, row=row, col=1)
        played = [value for trace in figure.select_traces(row=row, col=1) for value in trace.y]
        low, high = min(bounds[0], *played), max(bounds[1], *played)
        if log and low > 0:
            _set_ticks(figure, row, low, high)
        ends = around((low, high), log=log and low > 0)
        shown = [math.log10(end) for end in ends] if log and low > 0 else ends
        figure.update_yaxes(range=shown, row=row, col=1)
    if steps is not None:
        line = {"color": BLACK, "width": 1, "dash": "dash", "shape": "hv"}
        for side in (steps.low, steps.high):
            figure.add_scatter(
                x=steps.rounds, y=side, mode="lines", line=line, hoverinfo="skip", row=row, col=1
            )


def _add_points(
    figure: "Figure",
    row: int,
    name: str,
    points: Sequence[tuple[int, float]],
    texts: dict[int, str],
) -> None:
    """Draw rewards, or metrics on an axis that suits them; those beyond it are triangles at its top."""
    values = [value for _, value in points]
    span = Span(log=False, most=math.inf) if name in UNITLESS else span_of(values)
    marker = {
        "color": [BLACK if value <= span.most else VERMILION for value in values],
        "symbol": ["circle" if value <= span.most else "triangle-up" for value in values],
        "size": 6,
    }
    x, y = [round for round, _ in points], [min(value, span.most) for value in values]
    _scatter(figure, row, x, y, texts, mode="markers", marker=marker)
    figure.update_yaxes(title_text=name, type="log" if span.log else "linear", row=row, col=1)
    if span.log:
        _set_ticks(figure, row, min(y), max(y))


def _set_ticks(figure: "Figure", row: int, low: float, high: float) -> None:
    """Set the ticks of a logarithmic axis: powers of ten, with 2 and 5 between them where few fit."""
    decades = math.log10(high) - math.log10(low) if low > 0 else math.inf
    spacing: dict[str, Any] = {"dtick": "D2" if decades < _NARROW else 1}
    figure.update_yaxes(exponentformat="power", row=row, col=1, **spacing)


def _scatter(
    figure: "Figure", row: int, x: list[int], y: list[Any], texts: dict[int, str], **style: Any
) -> None:
    """Add points or a line to a panel, with the texts of the rounds on hover."""
    text = [texts[round] for round in x]
    figure.add_scatter(x=x, y=y, text=text, hoverinfo="text", row=row, col=1, **style)


def _hover_text(decision: Decision, outcome: Observation | None, metric: str) -> str:
    """Return the text of a decision: a line for each value of its row that is not None."""
    row = row_of(decision, outcome)
    heads = {"round": decision.unit, "reward": metric}
    if (
        decision.unit != "round"
    ):  # each evaluation of a search is paid for, and has a number of its own
        row = {name: value for name, value in row.items() if name not in ("query", "interval")}
        heads["query_seconds"] = "seconds"
    cells = {heads.get(name, name): cell_of(row[name]) for name in row if row[name] is not None}
    return "<br>".join(f"{_escaped(name)}: {_escaped(value)}" for name, value in cells.items())


def _escaped(value: Any) -> str:
    """Escape tags, and dollars, between which Plotly would read a formula."""
    return html.escape(str(value)).replace("$", "&#36;")
