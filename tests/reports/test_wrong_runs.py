"""Reports and schedules of something that is no saved run: the error says how to make one."""

import pytest

from botorch_costly import OnlineTuner, Real, Schedule, SearchSpace, reports
from botorch_costly.errors import CostlyError

TUNER = OnlineTuner(SearchSpace({"lr": Real(0.0, 1.0)}), horizon=3)
TUNER.ask()
WRONG = {
    "the tuner": TUNER,
    "its history": TUNER.history,
    "its state": TUNER.state_dict(),
    "a path": "run.pt",
}
REPORTS = {
    "text": reports.text_of,
    "rows": reports.rows_of,
    "table": reports.csv_of,
    "picture": reports.picture_of,
    "interactive page": reports.interactive_of,
    "page": reports.html_of,
    "page of one": lambda wrong: reports.html_of([wrong]),
    "raster": reports.raster_of,
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("report", REPORTS)
def test_a_report_says_how_a_saved_run_is_made(report, wrong):
    with pytest.raises(CostlyError, match=r"saved_runs\(path\), or SavedRun\.from_state"):
        REPORTS[report](WRONG[wrong])


@pytest.mark.parametrize("wrong", [TUNER, OnlineTuner, None, 3])
def test_a_schedule_names_the_decisions_of_a_tuner(wrong):
    with pytest.raises(
        CostlyError, match=r"entries: .*Schedule\.from_decisions\(tuner\.decisions\)"
    ):
        Schedule(wrong)
    with pytest.raises(
        CostlyError, match=r"decisions: Expected a list .* such as tuner\.decisions"
    ):
        Schedule.from_decisions(wrong)


def test_rows_of_a_history_are_no_decisions():
    with pytest.raises(
        CostlyError, match=r"decisions: Expected a list .* such as tuner\.decisions"
    ):
        Schedule.from_decisions(TUNER.history)
