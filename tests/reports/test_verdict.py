"""The verdict of a saved run stands first, and is what the tuner itself says.

The kind: a report begins with counts, and says last, or never, whether tuning has paid.
"""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.reports import SavedRun, html_of, text_of
from tests.cases import quick
from tests.laws.optimizer_runs import after, through_a_file
from tests.registry.optimizers import BY_DEFAULT, OPTIMIZERS
from tests.reports.running import SPACE, START, played, played_twins, subset_run


class Mine(bc.AlwaysQuery):
    """A rule of the user's own, which a state only names."""


def mine(model, round):
    return bc.UCB(2.0)(model, round)


def long(rounds=60, **options):
    tuner = bc.OnlineTuner(SPACE, rounds, seed=1, search=bc.Search(num_restarts=3), **options)
    for number in range(rounds):
        decision = tuner.ask()
        if decision.query:
            reward = -((math.log10(decision.config["lr"]) + 2) ** 2) + 0.1 * math.sin(number)
            tuner.tell(decision, reward)
    return tuner


MAKERS = {
    "a few queries": played,
    "a start": lambda: long(start=START),
    "losses": lambda: long(maximize=False, rewards=bc.RewardScale(clip=math.inf)),
    "a price": lambda: long(query=bc.PricedQuery(price=0.1)),
    "a mixed rule": lambda: long(query=bc.MixedQuery(10, 20, 60, bc.ConfidenceQuery(0.8))),
    "in single precision": lambda: long(dtype=torch.float32),
    "twins": played_twins,
    "an acquisition function of one's own": lambda: long(acquisition=mine),
}


@pytest.mark.parametrize(
    "name",
    quick(MAKERS, "a few queries", "losses", "twins", "an acquisition function of one's own"),
)
def test_it_is_that_of_the_tuner_and_stands_first(name, drafts):
    tuner = MAKERS[name]()
    expected, run = str(tuner.diagnose()), SavedRun.from_state(tuner.state_dict())
    assert run.diagnosis == expected
    verdict, *grounds = expected.splitlines()
    assert text_of(run).startswith(f"verdict: {verdict}\nrun: ")
    assert all(f"\n  {line}\n" in text_of(run) for line in grounds)
    page = html_of([run])
    assert page.index(f"<strong>{verdict}") < page.index("<table>")
    assert page.count(verdict) == 1


@pytest.mark.parametrize("name", quick(OPTIMIZERS, *BY_DEFAULT))
def test_it_is_that_of_each_optimizer_unless_earlier_tasks_are_missing(name, caplog):
    optimizer = after(OPTIMIZERS[name], 13)
    caplog.clear()
    run = SavedRun.from_state(through_a_file(optimizer.state_dict()))
    if name.startswith("TransferOptimizer"):
        assert "Load the state into its optimizer" in run.verdict
        assert str(optimizer.diagnose()).splitlines()[1] in run.diagnosis
    else:
        assert run.diagnosis == (str(optimizer.diagnose()) if optimizer.observations else "")
    assert not caplog.records


@pytest.mark.parametrize("seed", quick([0, 1], 0))
def test_it_is_that_of_a_search_with_fidelities_and_candidates_of_ones_own(seed):
    optimizer = subset_run(seed)
    run = SavedRun.from_state(optimizer.state_dict())
    assert run.diagnosis == str(optimizer.diagnose())
    assert "by the model" in run.verdict
    older = optimizer.state_dict()
    del older["header"]["definition_of_fidelities"]
    assert "Load the state" in SavedRun.from_state(older).verdict


def test_without_a_diagnosis_a_report_begins_with_the_run():
    unknown, untold = bc.OnlineTuner(SPACE, 9, query=Mine()), bc.OnlineTuner(SPACE, 9)
    unknown.tell(unknown.ask(), 0.5)
    untold.ask()
    for tuner in (unknown, untold):
        run = SavedRun.from_state(tuner.state_dict())
        assert run.verdict == ""
        assert text_of(run).startswith("run: ")


def test_a_damaged_belief_leaves_the_rest_of_the_report():
    state = played().state_dict()
    run = SavedRun.from_state({**state, "learner": {}})
    assert run.verdict == ""
    assert "rounds: 16 of 40" in text_of(run)
