"""The verdict of a saved run stands first, and is what the tuner itself says.

The kind: a report begins with counts, and says last, or never, whether tuning has paid.
"""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.reports import SavedRun, html_of, text_of
from tests.reports.running import SPACE, START, played, played_twins


class Mine(bc.AlwaysQuery):
    """A rule of the user's own, which a state only names."""


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
}


@pytest.mark.parametrize("name", MAKERS)
def test_it_is_that_of_the_tuner_and_stands_first(name):
    tuner = MAKERS[name]()
    expected, run = str(tuner.diagnose()), SavedRun.from_state(tuner.state_dict())
    assert run.diagnosis == expected
    verdict, *grounds = expected.splitlines()
    assert text_of(run).startswith(f"verdict: {verdict}\nrun: ")
    assert all(f"\n  {line}\n" in text_of(run) for line in grounds)
    page = html_of([run])
    assert page.index(f"<strong>{verdict}") < page.index("<table>")
    assert page.count(verdict) == 1


def test_without_a_diagnosis_a_report_begins_with_the_run():
    random, unknown = bc.RandomTuner(SPACE, 9), bc.OnlineTuner(SPACE, 9, query=Mine())
    for tuner in (random, unknown):
        tuner.tell(tuner.ask(), 0.5)
    untold = bc.OnlineTuner(SPACE, 9)
    untold.ask()
    for tuner in (random, unknown, untold):
        run = SavedRun.from_state(tuner.state_dict())
        assert run.verdict == ""
        assert text_of(run).startswith("run: ")


def test_a_damaged_belief_leaves_the_rest_of_the_report():
    state = played().state_dict()
    run = SavedRun.from_state({**state, "learner": {}})
    assert run.verdict == ""
    assert "rounds: 16 of 40" in text_of(run)
