"""The interactive page of a run: the text of a round on hover, and that names in it do nothing."""

import json
import re
import sys

import pytest

import botorch_costly as bc
from botorch_costly.command_line import main
from botorch_costly.errors import InvalidArgumentError, MissingExtraError
from botorch_costly.plotting import explore_run
from botorch_costly.reports import SavedRun, interactive_of
from tests.reports.browser import needs_browser, shown
from tests.reports.running import FAILED, UNTOLD, played, played_twins, saved

HOSTILE = "<img src=x onerror=alert(1)>$x$"


@pytest.fixture(scope="module")
def tuner():
    pytest.importorskip("plotly", reason="needs the extra botorch_costly[plotly]")
    return played()


@pytest.fixture(scope="module")
def curves(tuner):
    figure = explore_run(tuner.decisions, tuner.observations, log=["lr"])
    return json.loads(figure.to_json())


def test_there_is_a_panel_for_each_hyperparameter_and_one_for_the_rewards(tuner, curves):
    layout = curves["layout"]
    titles = [layout[f"yaxis{i}"]["title"]["text"] for i in ("", 2, 3, 4)]
    assert titles == ["lr", "depth", "policy", "reward"]
    assert [layout[f"yaxis{i}"].get("type") for i in ("", 2, 3)] == ["log", "linear", "category"]
    assert "yaxis5" not in layout
    played_lr = curves["data"][0]
    assert played_lr["y"] == [decision.config["lr"] for decision in tuner.decisions]
    assert played_lr["line"]["shape"] == "hv"
    rewards = curves["data"][-1]
    assert rewards["y"] == [o.reward for o in tuner.observations if o.reward is not None]


def test_a_metric_that_was_told_has_its_name(tuner):
    page = interactive_of(SavedRun.from_state(played_twins().state_dict()))
    assert '"text":"loss"' in page
    assert '"text":"reward"' not in page


def test_marks_are_the_rounds_with_a_query_and_crosses_those_that_failed(tuner, curves):
    marks = curves["data"][1]
    queried = [decision.round for decision in tuner.decisions if decision.query]
    assert marks["x"] == queried
    symbols = dict(zip(queried, marks["marker"]["symbol"], strict=True))
    assert [at for at, symbol in symbols.items() if symbol == "x"] == [FAILED]


def test_a_round_tells_its_decision_and_its_outcome(tuner, curves):
    texts = dict(zip(curves["data"][0]["x"], curves["data"][0]["text"], strict=True))
    assert len(texts) == len(tuner.decisions)
    assert f"reason: {tuner.decisions[9].reason}" in texts[9]
    assert f"config/lr: {tuner.decisions[9].config['lr']}" in texts[9]
    assert "reward: " in texts[9]
    assert "reward: " not in texts[UNTOLD]
    assert "failed: True" in texts[FAILED]


def test_without_rewards_there_is_no_panel_of_them(tuner):
    layout = explore_run(tuner.decisions).to_dict()["layout"]
    assert "yaxis3" in layout
    assert "yaxis4" not in layout


def axis_of(played, **options):
    decisions = [bc.Decision(i, {"lr": v}, query=True, reason="") for i, v in enumerate(played)]
    return explore_run(decisions, log=["lr"], **options).to_dict()["layout"]["yaxis"]


def test_ticks_of_a_wide_axis_are_powers_of_ten(tuner):
    """Kind: ticks at 2 and 5 collide in a panel of many decades, and one reads "100µ"."""
    wide = bc.SearchSpace({"lr": bc.Real(1e-5, 1.0, log=True)})
    assert axis_of([0.01, 0.02])["dtick"] == "D2"
    assert axis_of([1e-4, 0.02])["dtick"] == 1
    axis = axis_of([0.01, 0.02], space=wide)
    assert (axis["dtick"], axis["exponentformat"]) == (1, "power")
    low, high = axis["range"]
    assert low < -5 < 0 < high


def test_limits_and_metrics_are_drawn_where_they_are_known(tuner):
    decision = bc.Decision(0, {"lr": 0.1}, query=True, reason="")
    seen = [bc.Observation(0, {"lr": 0.1}, 0.2, metric=1.5)]
    figure = explore_run([decision], seen, limits=[(0, {"lr": (0.05, 0.15)})]).to_dict()
    assert [list(trace["y"]) for trace in figure["data"][2:]] == [
        [0.05] * 2,
        [0.15] * 2,
        [0.2],
        [1.5],
    ]
    assert figure["layout"]["yaxis3"]["title"]["text"] == "metric"


def test_arguments_that_are_wrong(tuner):
    with pytest.raises(InvalidArgumentError, match="decision"):
        explore_run([])
    with pytest.raises(InvalidArgumentError, match="log"):
        explore_run(tuner.decisions, log=["rate"])
    empty = SavedRun.from_state(played(rounds=0).state_dict(), "mine")
    with pytest.raises(InvalidArgumentError, match="at least one round"):
        interactive_of(empty)


def test_a_command_writes_it_and_equal_runs_have_equal_pages(tmp_path, tuner):
    path = saved(tmp_path, tuner)
    for name in ("a.html", "b.html"):
        assert main(["plot", str(path), "-o", str(tmp_path / name)]) == 0
    page = (tmp_path / "a.html").read_text()
    assert page == (tmp_path / "b.html").read_text()
    # A browser fetches only URLs in attributes; the script itself names sites of its makers.
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=[\"']?http", page)


def test_a_schedule_is_a_page_too(tuner):
    page = interactive_of(SavedRun.from_state(tuner.state_dict(), "mine").schedule())
    assert "policy" in page
    assert "reward" not in re.sub(r"<script.*?</script>", "", page, count=2, flags=re.S)


@pytest.mark.slow
@needs_browser
def test_a_browser_draws_it_and_names_do_nothing(tmp_path, tuner):
    space = bc.SearchSpace({HOSTILE: bc.Choice([HOSTILE, "b"]), "x": bc.Real(0.0, 1.0)})
    fixed = bc.FixedTuner(space, {HOSTILE: HOSTILE, "x": 0.5}, horizon=3)
    fixed.tell(fixed.ask(), 0.5)
    page = tmp_path / "run.html"
    page.write_text(interactive_of(SavedRun.from_state(fixed.state_dict(), "mine")))
    dom = shown(page, tmp_path, "--virtual-time-budget=10000")
    drawn = re.sub(r"<script.*?</script>", "", dom, flags=re.S)
    assert drawn.count('class="ytitle"') + drawn.count("y2title") + drawn.count("y3title") >= 3
    assert "onerror" not in re.sub(r"&lt;.*?&gt;|data-unformatted=\"[^\"]*\"", "", drawn)
    assert "sendChartToCloud" not in drawn
    assert "Plotly Cloud" not in drawn


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.subplots", None)
    with pytest.raises(MissingExtraError, match="pip install 'plotly"):
        explore_run(played().decisions)
