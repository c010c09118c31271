"""A run to look into: hyperparameters and rewards over the rounds, each round told when it is pointed at.

Pointing is what a page has over a picture, so only a run is drawn this way: it has a configuration, a
reason and an outcome in every round. Plotly comes with the extra ``botorch_costly[plotly]``.
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

    Dots mark the rounds with a query, crosses those that failed. All panels zoom together. Pointing at a
    round tells its decision, its reason and what was told of it.

    Args:
        decisions: In the order of their rounds.
        observations: What was told of them; without rewards there is no panel of rewards.
        log: Names of the hyperparameters to draw on a logarithmic scale.
        metric: What was told: ``"loss"`` or ``"accuracy"`` of twins and populations.

    Raises:
        InvalidArgumentError: If there is no decision or a name is unknown.
        MissingExtraError: If Plotly is missing.

    Example::

        explore_run(tuner.decisions, tuner.observations, log=["lr"]).write_html("run.html")
    """
    check(len(decisions) > 0, "decisions", "at least one decision", len(decisions))
    names = list(decisions[0].config)
    check(set(log) <= set(names), "log", f"names among {names}", sorted(log))
    told = {one.round: one for one in observations}
    rounds = [(decision, told.get(decision.round)) for decision in decisions]
    rewarded = [pair for pair in rounds if pair[1] is not None and pair[1].reward is not None]
    figure = _panels(len(names) + bool(rewarded))
    texts = {decision.round: _told(decision, observation) for decision, observation in rounds}
    for i, name in enumerate(names):
        _add_parameter(figure, i + 1, name, rounds, texts, log=name in log)
    if rewarded:
        _add_rewards(figure, len(names) + 1, rewarded, texts)
        figure.update_yaxes(title_text=metric, row=len(names) + 1, col=1)
    figure.update_xaxes(title_text="round", row=len(names) + bool(rewarded), col=1)
    return figure


def _panels(count: int) -> "Figure":
    try:
        from plotly.subplots import make_subplots
    except ImportError as error:
        needed = "plotly, which pip install 'botorch_costly[plotly]' brings"
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
    """Draw one hyperparameter: its value in steps, and a mark in each round with a query."""
    at = [decision.round for decision, _ in rounds]
    played: list[Any] = [decision.config[name] for decision, _ in rounds]
    numbers = are_numbers(played)
    values = played if numbers else [_shown(value) for value in played]
    color = CYCLE[(row - 1) % len(CYCLE)]
    queried = [i for i, (decision, _) in enumerate(rounds) if decision.query]
    failed = {i for i in queried if _failed(rounds[i][1])}
    said: Any = {"text": [texts[k] for k in at], "hoverinfo": "text"}
    line: Any = {"color": color, "width": 1, "shape": "hv"}
    figure.add_scatter(x=at, y=values, mode="lines", line=line, row=row, col=1, **said)
    figure.add_scatter(
        x=[at[i] for i in queried],
        y=[values[i] for i in queried],
        mode="markers",
        marker={
            "color": [VERMILION if i in failed else color for i in queried],
            "symbol": ["x" if i in failed else "circle" for i in queried],
            "size": 7,
        },
        text=[texts[at[i]] for i in queried],
        hoverinfo="text",
        row=row,
        col=1,
    )
    kind = "log" if log and numbers else "linear" if numbers else "category"
    ticks = {"dtick": "D2"} if kind == "log" else {}  # 1, 2 and 5 of each power
    figure.update_yaxes(title_text=_shown(name), type=kind, row=row, col=1, **ticks)


def _add_rewards(
    figure: "Figure",
    row: int,
    rewarded: Sequence[tuple[Decision, Observation | None]],
    texts: dict[int, str],
) -> None:
    figure.add_scatter(
        x=[decision.round for decision, _ in rewarded],
        y=[observation.reward for _, observation in rewarded if observation is not None],
        mode="markers",
        marker={"color": BLACK, "size": 6},
        text=[texts[decision.round] for decision, _ in rewarded],
        hoverinfo="text",
        row=row,
        col=1,
    )


def _failed(observation: Observation | None) -> bool:
    return observation is not None and observation.failed


def _told(decision: Decision, observation: Observation | None) -> str:
    """Return all that is known of a round, a line for each column of its row."""
    row = row_of(decision, observation)
    known = {name: cell_of(value) for name, value in row.items() if value is not None}
    return "<br>".join(f"{_shown(name)}: {_shown(value)}" for name, value in known.items())


def _shown(value: Any) -> str:
    """Return text as it is: Plotly takes tags, and what stands between dollars, for more than that."""
    return html.escape(str(value)).replace("$", "&#36;")
