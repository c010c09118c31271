"""Pictures of runs: image files of schedule, rewards and queries, and an interactive page."""

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from botorch_costly.errors import check
from botorch_costly.plotting import explore_run, plot_queries, plot_query_raster, plot_schedule
from botorch_costly.plotting.runs import legend_of, told_with_rewards
from botorch_costly.plotting.style import stack
from botorch_costly.records import Decision
from botorch_costly.reports.saved_run import SavedRun, check_saved
from botorch_costly.schedule import Schedule
from botorch_costly.space import SearchSpace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
# Without a random salt or a date, pictures of the same run have equal bytes.
_SALT = {"svg.hashsalt": "botorch_costly"}
_DATES = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
# Without the button of newer Plotly versions that uploads the run.
_BUTTONS = {
    "displaylogo": False,
    "showSendToCloud": False,
    "modeBarButtonsToRemove": ["sendChartToCloud"],
}


def picture_of(run: SavedRun | Schedule, format: str = "png") -> bytes:
    """Return a picture: a panel for each hyperparameter, and for a run its rewards and queries.

    Args:
        run: A run or schedule with at least one round.
        format: Format of the picture: ``"png"``, ``"svg"`` or ``"pdf"``.

    Returns:
        The content of a file of that format.

    Raises:
        InvalidArgumentError: If no round was played, or the format is unknown.
        ImportError: If Matplotlib is missing.
    """
    _check_begun(run)
    return _file_of(
        lambda: _draw_schedule(run) if isinstance(run, Schedule) else _draw_run(run), format
    )


def raster_of(runs: Sequence[SavedRun], format: str = "png") -> bytes:
    """Return a picture of the queries of several runs: one row per run, one tick per query.

    Args:
        runs: Runs, of which at least one has a round; runs without a round are left out.
        format: Format of the picture: ``"png"``, ``"svg"`` or ``"pdf"``.

    Returns:
        The content of a file of that format.

    Raises:
        InvalidArgumentError: If no run has a round, or the format is unknown.
        ImportError: If Matplotlib is missing.
    """
    check_saved(runs, name="runs")
    begun = {run.name: run.decisions for run in runs if run.decisions}
    check(len(begun) > 0, "runs", "a run with at least one decision to draw", len(begun))
    return _file_of(lambda: _finished([plot_query_raster(begun)]), format)


def interactive_of(run: SavedRun | Schedule) -> str:
    """Return an HTML page of a run in which hovering over a round shows its details.

    The page holds Plotly's script, 5 MB, so it needs no network.

    Args:
        run: A run or schedule with at least one round.

    Raises:
        InvalidArgumentError: If no round was played.
        MissingExtraError: If Plotly is missing.
    """
    _check_begun(run)
    if isinstance(run, Schedule):
        figure = explore_run(_decisions_of(run), log=_logarithmic(run.space))
    else:
        space = run.setting_space
        named: Any = {"space": space, "limits": run.limits}
        log = _logarithmic(space)
        figure = explore_run(run.decisions, run.observations, log, run.told_as, **named)
    # With a fixed id, pages of the same run are equal.
    page: str = figure.to_html(include_plotlyjs=True, div_id="run", config=_BUTTONS)
    return page


def _check_begun(run: SavedRun | Schedule) -> None:
    check_saved([run], Schedule)
    if isinstance(run, SavedRun):
        check(len(run.decisions) > 0, run.name, f"at least one {run.unit} to draw", 0)


def _file_of(draw: "Callable[[], Figure]", format: str) -> bytes:
    check(format in FORMATS, "format", f"one of {FORMATS}", format)
    stack(1)  # names the required extra if Matplotlib is missing
    from matplotlib import rc_context

    file, metadata = io.BytesIO(), dict(_DATES[format])
    with rc_context(dict(_SALT)), warnings.catch_warnings():
        # A character that the font lacks is drawn as a box, which needs no warning.
        warnings.filterwarnings("ignore", r"Glyph .* missing from (current )?font", UserWarning)
        draw().savefig(file, format=format, dpi=150, metadata=metadata)
    # The comments of an SVG contain names, and XML allows no control characters.
    return _CONTROL.sub(b"", file.getvalue()) if format == "svg" else file.getvalue()


def _draw_run(run: SavedRun) -> "Figure":
    rewards = any(observation.reward is not None for observation in run.observations)
    raster = not all(decision.query for decision in run.decisions)
    beside = told_with_rewards(run.observations)
    drawn = rewards or bool(beside)
    observations = run.observations if drawn else None
    last = len(run.decisions[0].setting) + drawn + len(beside)
    axes = stack(last + raster)
    space = run.setting_space
    log = _logarithmic(space)
    known: Any = {"metric": run.told_as, "space": space, "limits": run.limits}
    plot_schedule(run.decisions, None, observations, axes[:last], log, **known)
    legend = legend_of(run.decisions, space, run.limits)
    axes[0].set_title(legend, loc="right", fontsize="small")
    if raster:
        axes[last - 1].set_xlabel("")
        plot_queries(run.decisions, axes[last])
    return _finished(axes)


def _draw_schedule(schedule: Schedule) -> "Figure":
    decisions = _decisions_of(schedule)
    axes = stack(len(decisions[0].config))
    plot_schedule(decisions, None, None, axes, _logarithmic(schedule.space))
    return _finished(axes)


def _decisions_of(schedule: Schedule) -> list[Decision]:
    played = zip(schedule.rounds, schedule.replay(), strict=True)
    return [Decision(round, config, query=False, reason="") for round, config in played]


def _finished(axes: Any) -> "Figure":
    """Return the figure of the axes, in which dollars in names, options and reasons are no formulas."""
    for ax in axes:
        legend = ax.get_legend()
        texts = [ax.yaxis.label, *(legend.get_texts() if legend else ())]
        if ax.get_yscale() == "linear":  # on a logarithmic scale Matplotlib's powers are formulas
            texts += ax.get_yticklabels()
        for text in texts:
            text.set_parse_math(False)
    axes[0].figure.align_ylabels(axes)
    return axes[0].figure


def _logarithmic(space: SearchSpace | None) -> list[str]:
    parameters = () if space is None else space.parameters
    return [name for name, kind in parameters if kind.log]
