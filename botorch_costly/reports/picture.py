"""A picture of a run: its schedule, its rewards, its queries."""

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from botorch_costly.errors import check
from botorch_costly.parameters import Choice
from botorch_costly.plotting import plot_queries, plot_query_raster, plot_schedule
from botorch_costly.plotting.style import stack
from botorch_costly.records import Decision
from botorch_costly.reports.saved_run import SavedRun
from botorch_costly.schedule import Schedule
from botorch_costly.space import SearchSpace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_SALT = {"svg.hashsalt": "botorch_costly"}  # pictures of one run have equal bytes
_DATES = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def picture_of(run: SavedRun | Schedule, format: str = "png") -> bytes:
    """Return a picture: a panel for each hyperparameter, and for a run its rewards and queries.

    Args:
        run: With a round at least.
        format: Of the picture: ``"png"``, ``"svg"`` or ``"pdf"``.

    Returns:
        What a file of that format holds.

    Raises:
        InvalidArgumentError: If nothing was played, or the format is another.
        ImportError: If Matplotlib is missing.
    """
    if isinstance(run, SavedRun):
        check(len(run.decisions) > 0, run.name, "at least one round to draw", 0)
    return _drawn(lambda: _of_schedule(run) if isinstance(run, Schedule) else _of_run(run), format)


def raster_of(runs: Sequence[SavedRun], format: str = "png") -> bytes:
    """Return a picture of the queries of several runs: a row a run, a tick a query, by its reason.

    Args:
        runs: Those that have not begun are left out; one at least has a round.
        format: As above.

    Returns:
        What a file of that format holds.

    Raises:
        InvalidArgumentError: If no run has begun, or the format is another.
        ImportError: If Matplotlib is missing.
    """
    begun = {run.name: run.decisions for run in runs if run.decisions}
    check(len(begun) > 0, "runs", "a run with at least one round to draw", len(begun))
    return _drawn(lambda: _figure([plot_query_raster(begun)]), format)


def _drawn(draw: "Callable[[], Figure]", format: str) -> bytes:
    """Return the file of a figure, with equal bytes for equal runs."""
    check(format in FORMATS, "format", f"one of {FORMATS}", format)
    stack(1)  # says which extra is needed if Matplotlib is missing
    from matplotlib import rc_context

    file, metadata = io.BytesIO(), dict(_DATES[format])
    with rc_context(dict(_SALT)), warnings.catch_warnings():
        # A character that the font lacks is drawn as a box, which is seen without a warning.
        warnings.filterwarnings("ignore", r"Glyph .* missing from (current )?font", UserWarning)
        draw().savefig(file, format=format, dpi=150, metadata=metadata)
    # Names are in comments of an SVG, too, and XML has no control characters.
    return _CONTROL.sub(b"", file.getvalue()) if format == "svg" else file.getvalue()


def _of_run(run: SavedRun) -> "Figure":
    names = list(run.decisions[0].config)
    rewards = any(one.reward is not None for one in run.observations)
    raster = not all(one.query for one in run.decisions)
    axes = stack(len(names) + rewards + raster)
    last = len(names) + rewards
    observations = run.observations if rewards else None
    log = logarithmic(run.space)
    plot_schedule(run.decisions, None, observations, axes[:last], log, metric=run.told_as)
    axes[0].set_title("dots: rounds with a query", loc="right", fontsize="small")
    if raster:
        axes[last - 1].set_xlabel("")
        plot_queries(run.decisions, axes[last])
    return _figure(axes)


def _of_schedule(schedule: Schedule) -> "Figure":
    decisions = decisions_of(schedule)
    axes = stack(len(decisions[0].config))
    plot_schedule(decisions, None, None, axes, logarithmic(schedule.space))
    return _figure(axes)


def decisions_of(schedule: Schedule) -> list[Decision]:
    """Return the rounds of a schedule as decisions without a query."""
    played = zip(schedule.rounds, schedule.replay(), strict=True)
    return [Decision(round, config, query=False, reason="") for round, config in played]


def _figure(axes: Any) -> "Figure":
    for ax in axes:
        _show_dollars(ax)
    axes[0].figure.align_ylabels(axes)
    return axes[0].figure


def _show_dollars(ax: Any) -> None:
    """Show names, options and reasons as they are: those with dollars are no formulas."""
    legend = ax.get_legend()
    texts = [ax.yaxis.label, *(legend.get_texts() if legend else ())]
    if ax.get_yscale() == "linear":  # on a logarithmic scale Matplotlib's own powers are formulas
        texts += ax.get_yticklabels()
    for text in texts:
        text.set_parse_math(False)


def logarithmic(space: SearchSpace | None) -> list[str]:
    """Return the names of the parameters that are searched on a logarithmic scale."""
    parameters = () if space is None else space.parameters
    return [name for name, one in parameters if not isinstance(one, Choice) and one.log]
