"""A run as a page to look into: one file that loads nothing from elsewhere."""

from botorch_costly.errors import check
from botorch_costly.plotting import explore_run
from botorch_costly.reports.picture import decisions_of, logarithmic
from botorch_costly.reports.saved_run import SavedRun
from botorch_costly.schedule import Schedule

# None that sends the run elsewhere: newer versions of Plotly have one unless it is taken away.
_BUTTONS = {
    "displaylogo": False,
    "showSendToCloud": False,
    "modeBarButtonsToRemove": ["sendChartToCloud"],
}


def interactive_of(run: SavedRun | Schedule) -> str:
    """Return a page with the hyperparameters and rewards of a run; each round is told on pointing at it.

    The page holds Plotly's script, 5 MB, so that it can be read without a network.

    Args:
        run: With a round at least.

    Raises:
        InvalidArgumentError: If nothing was played.
        MissingExtraError: If Plotly is missing.
    """
    if isinstance(run, Schedule):
        figure = explore_run(decisions_of(run), log=logarithmic(run.space))
    else:
        check(len(run.decisions) > 0, run.name, "at least one round to draw", 0)
        figure = explore_run(run.decisions, run.observations, logarithmic(run.space), run.told_as)
    # An id that is drawn would make pages of equal runs differ.
    page: str = figure.to_html(include_plotlyjs=True, div_id="run", config=_BUTTONS)
    return page
