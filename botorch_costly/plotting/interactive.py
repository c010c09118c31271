"""An interactive figure of a run: hyperparameters and rewards over the rounds.

Hovering over a round shows its configuration, reason and outcome. Plotly comes with the extra
``botorch_costly[plotly]``.
"""

import html
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from botorch_costly.ask_tell.rows import cell_of, row_of
from botorch_costly.errors import MissingExtraError, check
from botorch_costly.plotting.bands import are_numbers
from botorch_costly.plotting.style import BLACK, CYCLE, VERMILION
from botorch_costly.records import Decision, Observation

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_PANEL, _MARGIN = 150, 80  # pixels


def explore_run(
    decisions: Sequence[Decision],
    observations: Sequence[Observation] = (),
    log: Collection[str] = (),
    metric: str = "reward",
) -> "Figure":
    """Return a run as a figure of Plotly: a panel for each hyperparameter, and the rewards below them.

    Dots mark rounds with a query, crosses failed queries. All panels zoom together. Hovering over a round
    shows its decision, its reason and its outcome.

    Args:
        decisions: Decisions in the order of their rounds.
        observations: Their observations; without rewards there is no panel of rewards.
        log: Names of the hyperparameters to draw on a logarithmic scale.
        metric: Name of the observed quantity: ``"loss"`` or ``"accuracy"`` for twins and populations.

    Raises:
        InvalidArgumentError: If there is no decision or a name is unknown.
        MissingExtraError: If Plotly is missing.

    Example::

        explore_run(tuner.decisions, tuner.observations, log=["lr"]).write_html("run.html")
    """
    check(len(decisions) > 0, "decisions", "at least one decision", len(decisions))
    names = list(decisions[0].config)
    check(set(log) <= set(names), "log", f"names among {names}", sorted(log))
    by_round = {observation.round: observation for observation in observations}
    rounds = [(decision, by_round.get(decision.round)) for decision in decisions]
    rewarded = [pair for pair in rounds if pair[1] is not None and pair[1].reward is not None]
    figure = _panels(len(names) + bool(rewarded))
    texts = {decision.round: _hover_text(decision, outcome) for decision, outcome in rounds}
    for i, name in enumerate(names):
        _add_parameter(figure, i + 1, name, rounds, texts, log=name in log)
    if rewarded:
        x = [decision.round for decision, _ in rewarded]
        y = [outcome.reward for _, outcome in rewarded if outcome is not None]
        marker = {"color": BLACK, "size": 6}
        _scatter(figure, len(names) + 1, x, y, texts, mode="markers", marker=marker)
        figure.update_yaxes(title_text=metric, row=len(names) + 1, col=1)
    figure.update_xaxes(title_text="round", row=len(names) + bool(rewarded), col=1)
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
    played: list[Any] = [decision.config[name] for decision, _ in rounds]
    numbers = are_numbers(played)
    values = played if numbers else [_escaped(value) for value in played]
    color = CYCLE[(row - 1) % len(CYCLE)]
    queried = [i for i, (decision, _) in enumerate(rounds) if decision.query]
    outcomes = [outcome for _, outcome in rounds]
    failed = {i for i in queried if (outcome := outcomes[i]) is not None and outcome.failed}
    line = {"color": color, "width": 1, "shape": "hv"}
    _scatter(figure, row, x, values, texts, mode="lines", line=line)
    marker = {
        "color": [VERMILION if i in failed else color for i in queried],
        "symbol": ["x" if i in failed else "circle" for i in queried],
        "size": 7,
    }
    x, values = [x[i] for i in queried], [values[i] for i in queried]
    _scatter(figure, row, x, values, texts, mode="markers", marker=marker)
    kind = "log" if log and numbers else "linear" if numbers else "category"
    ticks = {"dtick": "D2"} if kind == "log" else {}  # 1, 2 and 5 of each power
    figure.update_yaxes(title_text=_escaped(name), type=kind, row=row, col=1, **ticks)


def _scatter(
    figure: "Figure", row: int, x: list[int], y: list[Any], texts: dict[int, str], **style: Any
) -> None:
    """Add points or a line to a panel, with the texts of the rounds on hover."""
    text = [texts[round] for round in x]
    figure.add_scatter(x=x, y=y, text=text, hoverinfo="text", row=row, col=1, **style)


def _hover_text(decision: Decision, outcome: Observation | None) -> str:
    """Return the text of a round: a line for each value of its row that is not None."""
    row = row_of(decision, outcome)
    cells = {name: cell_of(value) for name, value in row.items() if value is not None}
    return "<br>".join(f"{_escaped(name)}: {_escaped(value)}" for name, value in cells.items())


def _escaped(value: Any) -> str:
    """Escape tags, and dollars, between which Plotly would read a formula."""
    return html.escape(str(value)).replace("$", "&#36;")
