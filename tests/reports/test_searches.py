"""A report of a search speaks of its evaluations, and shows their fidelities and costs.

The kind: reports and pictures call evaluations rounds and queries, join them by a line as if they were
one training, and leave out with what fidelity and at what cost a value was found.
"""

import math

import pytest

import botorch_costly as bc
from botorch_costly import errors, plotting
from botorch_costly.plotting.bounds import around
from botorch_costly.reports import SavedRun, html_of, picture_of, text_of
from tests.cases import quick
from tests.laws.optimizer_runs import step
from tests.registry.optimizers import BY_DEFAULT, OPTIMIZERS
from tests.reports.running import SPACE, START, played, subset_run
from tests.reports.test_html import Page

NOUNS = {"value": "evaluation", "curve": "segment"}


def costly():
    return subset_run(0, cost=lambda fidelities: {"cost": fidelities["epochs"] ** 2})


def curves():
    optimizer = bc.CurveOptimizer(SPACE, 9, seed=0)
    for cost in (4.0, 2.0, 3.0, 5.0):
        segment = optimizer.ask()
        curve = [0.1 * n for n in range(segment.since, segment.until)]
        optimizer.tell(segment, curve, cost=cost)
    return optimizer


@pytest.mark.parametrize("name", quick(OPTIMIZERS, *BY_DEFAULT))
def test_searches_have_evaluations_and_trainings_have_rounds(name, drafts):
    case = OPTIMIZERS[name]
    optimizer = case.make(0)
    for _ in range(5):
        step(case, optimizer)
    run = SavedRun.from_state(optimizer.state_dict())
    lines, page = text_of(run).splitlines(), html_of([run])
    titles = {line.partition(":")[0] for line in lines}
    assert run.is_search == (optimizer.tells in NOUNS)
    noun = NOUNS.get(optimizer.tells, "round")
    assert {"rounds", "queries", "latest queries"}.isdisjoint(titles) == run.is_search
    assert any(line.startswith(f"  {noun} 0: ") for line in lines) or noun == "round"
    assert f"<th>{noun}</th>" in page
    assert f"<h2>{run.queried.capitalize()}</h2>" in page


def test_the_fidelity_and_the_cost_of_an_evaluation_are_said(drafts):
    run = SavedRun.from_state(costly().state_dict())
    text = text_of(run)
    assert "\nevaluations: 12, 0 failed, 0 not told\n" in text
    assert "\nbest value told: 0.2011 in evaluation 5, with lr=0.01, depth=2, " in text
    assert "epochs=9\n" in text  # of the best and of the latest one
    assert "evaluation 10: lr=0.01, depth=4, policy=<b>$\\frac$, epochs=3; 3.223, cost 9\n" in text
    head, *rows = Page(html_of([run])).tables[2]
    assert head == ["evaluation", *START, "epochs", "value", "cost", "reason"]
    assert [float(row[4]) ** 2 for row in rows] == [float(row[6]) for row in rows]


def test_costs_that_are_not_told_have_no_column(drafts):
    run = SavedRun.from_state(played().state_dict())
    assert "cost" not in Page(html_of([run])).tables[2][0]
    assert "cost" not in text_of(run)


def test_a_segment_says_how_far_the_training_has_come(drafts):
    run = SavedRun.from_state(curves().state_dict())
    untils = [decision.until for decision in run.decisions]
    assert [row[4] for row in Page(html_of([run])).tables[2][1:]] == [str(u) for u in untils]
    assert f"until={untils[-1]}; " in text_of(run)


def test_failures_and_cancelled_evaluations_are_said():
    pytest.importorskip("matplotlib")
    optimizer = bc.SubsetOptimizer(SPACE, seed=0)
    optimizer.tell(optimizer.ask(), math.nan, cost=1.0)
    optimizer.tell(optimizer.ask(), math.nan, cost=2.0)
    optimizer.cancel(optimizer.ask())
    run = SavedRun.from_state(optimizer.state_dict())
    assert "\nevaluations: 3, 2 failed, 0 not told, 1 cancelled\n" in text_of(run)
    assert picture_of(run)
    axes = plotting.plot_schedule(run.decisions, observations=run.observations, metric="value")
    assert [ax.get_ylabel() for ax in axes] == [*START, "fraction", "value", "cost"]
    assert "crosses: failed evaluations (2)" in axes[-2].get_title(loc="right")


@pytest.mark.parametrize("bounds", [(1e-300, 1e300), (1e-200, 1e200), (1e-3, 1.0)])
@pytest.mark.parametrize("log", [False, True])
def test_the_ratio_and_the_difference_of_bounds_may_overflow(bounds, log):
    low, high = around(bounds, log=log)
    assert math.isfinite(low)
    assert math.isfinite(high)
    assert low < bounds[0] < bounds[1] < high
    assert low > 0 or not log


def test_a_hyperparameter_of_the_name_of_the_iterations_is_kept():
    space = bc.SearchSpace({"until": bc.Real(0.0, 1.0)})
    decision = bc.CurveOptimizer(space, 9, seed=0).ask()
    assert decision.setting == dict(decision.config)


@pytest.mark.parametrize("make", [costly, curves])
def test_evaluations_are_points_beside_their_fidelities_and_costs(make):
    pytest.importorskip("matplotlib")
    optimizer = make()
    space = SavedRun.from_state(optimizer.state_dict()).setting_space
    known = {"observations": optimizer.observations, "metric": "value", "space": space}
    axes = plotting.plot_schedule(optimizer.decisions, log=["lr"], **known)
    labels = [ax.get_ylabel() for ax in axes]
    assert labels == [*optimizer.decisions[0].setting, "value", "cost"]
    assert axes[-1].get_xlabel() == optimizer.decisions[0].unit
    lines = [line for ax in axes for line in ax.lines if len(line.get_xdata()) > 2]
    assert all(line.get_linestyle() == "None" for line in lines)
    assert len(lines) == len(labels)
    shown = axes[-1].lines[0].get_ydata().tolist()
    assert shown == [observation.cost for observation in optimizer.observations]


def test_the_interactive_page_has_the_same_panels():
    pytest.importorskip("plotly")
    optimizer = costly()
    figure = plotting.explore_run(optimizer.decisions, optimizer.observations, metric="value")
    titles = [axis.title.text for axis in figure.select_yaxes()]
    assert titles == [*START, "epochs", "value", "cost"]
    assert {trace.mode for trace in figure.data} == {"markers"}


def test_an_evaluation_tells_its_number_value_and_cost_on_hover():
    pytest.importorskip("plotly")
    optimizer = costly()
    figure = plotting.explore_run(optimizer.decisions, optimizer.observations, metric="value")
    names = [line.partition(": ")[0] for line in figure.data[0].text[3].split("<br>")]
    assert {"evaluation", "value", "cost", "fidelities/epochs"} <= set(names)
    assert {"round", "query", "interval", "reward"}.isdisjoint(names)


# Every head that stands beside hyperparameters somewhere.
TAKEN = ["evaluation", "value", "cost", "metric", "reason", "confidence"]


@pytest.fixture(scope="module")
def namesakes():
    """A search whose hyperparameters have the names of what is told beside them."""
    space = bc.SearchSpace({"lr": bc.Real(0.0, 1.0)} | dict.fromkeys(TAKEN, bc.Real(0.0, 1.0)))
    optimizer = bc.SubsetOptimizer(space, seed=0)
    for cost in (1.0, 2.0):
        optimizer.tell(optimizer.ask(), 0.5, cost=cost)
    return optimizer


def test_no_two_columns_of_a_page_have_one_name(namesakes, drafts):
    run = SavedRun.from_state(namesakes.state_dict())
    head = Page(html_of([run])).tables[2][0]
    assert len(set(head)) == len(head)
    assert head[1:8] == ["lr", *(f"config/{name}" for name in TAKEN)]
    assert head[8:] == ["fraction", "value", "cost", "reason"]


@pytest.mark.parametrize("library", ["matplotlib", "plotly"])
def test_no_two_panels_have_one_name(namesakes, library):
    pytest.importorskip(library)
    draw = {"matplotlib": plotting.plot_schedule, "plotly": plotting.explore_run}[library]
    drawn = draw(namesakes.decisions, observations=namesakes.observations, metric="value")
    if library == "matplotlib":
        titles = [ax.get_ylabel() for ax in drawn]
    else:
        titles = [axis.title.text for axis in drawn.select_yaxes()]
    assert len(set(titles)) == len(titles) == 10
    assert {"value", "cost", "config/value", "config/cost", "metric", "reason"} <= set(titles)


def test_a_run_without_decisions_has_no_picture_and_says_of_what():
    pytest.importorskip("matplotlib")
    for make, noun in ((bc.SubsetOptimizer, "evaluation"), (bc.OnlineTuner, "round")):
        with pytest.raises(errors.InvalidArgumentError, match=f"at least one {noun} to draw"):
            picture_of(SavedRun.from_state(make(SPACE, horizon=3).state_dict()))
