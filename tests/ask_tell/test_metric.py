"""The metric that a reward was made of is told beside it: shown everywhere, and read by no decision.

The kind: a tuner hears gains alone, and the loss that everyone asks for is in no report.
"""

import json
import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.ask_tell.rows import cell_of, row_of
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.integrations.loggers import LogEntry
from botorch_costly.integrations.loggers.progress_bar import line_of
from botorch_costly.reports import SavedRun, csv_of, text_of
from tests.tuners.online.states import same

SPACE = bc.SearchSpace({"lr": bc.Real(1e-3, 1.0, log=True), "kind": bc.Choice(["a", "b"])})
ARMS = bc.SearchSpace({"arm": bc.Choice(["left", "middle", "right"])})
QUICK = bc.Search(num_restarts=2)
MAKERS = {
    "OnlineTuner": lambda: bc.OnlineTuner(SPACE, 24, search=QUICK, seed=1),
    "OnlineTuner with a price": lambda: bc.OnlineTuner(
        SPACE, 24, search=QUICK, query=bc.PricedQuery(price=0.01), seed=1
    ),
    "BanditTuner": lambda: bc.BanditTuner(ARMS, 24, seed=1),
    "RandomTuner": lambda: bc.RandomTuner(SPACE, 24, seed=1),
    "FixedTuner": lambda: bc.FixedTuner(ARMS, {"arm": "left"}, horizon=24),
}
METRICS = [0.7, math.nan, math.inf, -math.inf, 1e300, torch.tensor(0.25), 3]


def play(tuner, metric_of, rounds=24):
    for number in range(rounds):
        decision = tuner.ask()
        if decision.query or number % 3 == 0:
            named = {} if metric_of is None else {"metric": metric_of(number)}
            tuner.tell(decision, 0.3 * math.sin(number), **named)
    return tuner.decisions


@pytest.mark.parametrize("name", MAKERS)
def test_no_decision_depends_on_it(name):
    without = play(MAKERS[name](), None)
    assert play(MAKERS[name](), lambda number: METRICS[number % len(METRICS)]) == without


@pytest.mark.parametrize("name", MAKERS)
def test_a_metric_that_is_no_number_is_refused_and_changes_nothing(name):
    tuner = MAKERS[name]()
    decision = tuner.ask()
    before = tuner.state_dict()
    for metric in ("0.5", True, torch.tensor(True), torch.tensor([0.5, 0.6]), [0.5], object()):
        with pytest.raises(InvalidArgumentError, match=r"metric: Expected a number; Received"):
            tuner.tell(decision, 0.1, metric=metric)
    assert same(before, tuner.state_dict())
    assert tuner.tell(decision, 0.1, metric=0.5).metric == 0.5


@pytest.mark.parametrize("metric", METRICS)
def test_it_is_recorded_as_it_was_measured_and_saved(metric, tmp_path):
    tuner, again = MAKERS["RandomTuner"](), MAKERS["RandomTuner"]()
    seen = tuner.tell(tuner.ask(), None, metric=metric)
    tuner.save(tmp_path / "run.pt")
    again.load(tmp_path / "run.pt")
    assert again.observations == tuner.observations == (seen,)
    assert repr(seen.metric) == repr(float(metric))
    assert bc.Observation.from_dict(json.loads(json.dumps(seen.to_dict()))) == seen
    assert cell_of(row_of(tuner.decisions[0], seen)["metric"]) == str(float(metric))
    assert tuner.history[0]["metric"] is seen.metric


def test_a_state_of_before_has_none():
    tuner, again = MAKERS["RandomTuner"](), MAKERS["RandomTuner"]()
    tuner.tell(tuner.ask(), 0.5, metric=0.1)
    state = tuner.state_dict()
    outcomes = json.loads(state["ledger"]["outcomes"])
    for outcome in outcomes:
        del outcome["metric"]
    state["ledger"] = {**state["ledger"], "outcomes": json.dumps(outcomes)}
    again.load_state_dict(state)
    assert [o.metric for o in again.observations] == [None]
    assert "metric" not in text_of(SavedRun.from_state(state))


def test_twins_and_populations_are_told_nothing_else():
    twins = bc.TwinTuner(SPACE, 40)
    decision = twins.ask()
    assert twins.tell(decision, 0.5).metric == 0.5
    several = bc.PopulationTuner(SPACE, 40, members=2)
    assert several.tell(several.ask(), [0.5, 0.4]).metric == 0.4
    assert math.isnan(several.tell(several.ask(), [math.nan, math.nan]).metric)


def test_logs_tables_and_reports_show_it():
    tuner = bc.OnlineTuner(ARMS, 24, hold=bc.Hold(share=0.0))
    for loss in (2.5, math.nan, 0.75):
        decision = tuner.ask()
        seen = tuner.tell(decision, 0.1 if loss == loss else math.nan, metric=loss)
        entry = LogEntry(decision=decision, observation=seen)
        assert repr(entry.metric) == repr(loss)
        assert entry.numbers().get("metric", math.nan) == loss or math.isnan(loss)
        assert line_of(entry).endswith(f" metric {loss:.4g}")
    run = SavedRun.from_state(tuner.state_dict())
    assert "metric told: 2.5 in round 0, 0.75 in round 2" in text_of(run)
    assert "; failed, metric nan\n" in text_of(run)
    header, *rows = (line.split(",") for line in csv_of(run).splitlines())
    assert [row[header.index("metric")] for row in rows] == ["2.5", "nan", "0.75"]
