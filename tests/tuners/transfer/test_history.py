"""What the history of a search says of its earlier tasks, decision by decision."""

import json

import pytest

import botorch_costly as bc
from botorch_costly import errors
from tests.tuners.transfer.test_optimizer import SPACE, played, study, value

TASKS = (study(seed=1), study(seed=2, sign=-1.0))


def test_each_decision_says_what_was_believed_when_it_was_made():
    optimizer = bc.TransferOptimizer(SPACE, TASKS)
    for _ in range(4):
        asked = optimizer.ask()
        assert asked.share == pytest.approx(optimizer.share, abs=1e-4)
        assert asked.weights == pytest.approx(optimizer.weights, abs=1e-4)
        optimizer.tell(asked, value(asked.config))
    rows = optimizer.history
    assert [row["share"] for row in rows] == [one.share for one in optimizer.decisions]
    assert rows[0]["share"] == 1.0 > rows[-1]["share"]
    assert rows[0]["weights"] == [0.5, 0.5] != rows[-1]["weights"]


def test_a_history_and_its_decisions_go_through_json():
    optimizer = played(3, TASKS)
    assert json.loads(json.dumps(optimizer.history)) == optimizer.history
    for decision in optimizer.decisions:
        again = bc.TransferDecision.from_dict(json.loads(json.dumps(decision.to_dict())))
        assert again == decision
        assert hash(again) == hash(decision)


def without(decisions, *names):
    return [{name: v for name, v in one.items() if name not in names} for one in decisions]


def test_a_state_from_before_shares_were_recorded_goes_on():
    optimizer = played(3, TASKS)
    state = optimizer.state_dict()
    rows = without(json.loads(state["ledger"]["suggestions"]), "share", "weights")
    state["ledger"]["suggestions"] = json.dumps(rows)
    state["ledger"]["first"] = json.dumps(rows[0])
    again = bc.TransferOptimizer(SPACE, TASKS)
    again.load_state_dict(state)
    assert [(one.share, one.weights) for one in again.decisions] == [(None, ())] * 3
    assert again.ask() == optimizer.ask()


@pytest.mark.parametrize("bad", [{"share": 1.2}, {"weights": 0.5}, {"weights": (float("nan"),)}])
def test_what_is_no_share_and_no_weight_is_refused(bad):
    with pytest.raises(errors.InvalidArgumentError, match=next(iter(bad))):
        bc.TransferDecision(0, {"x": 0.1}, query=True, reason="", **bad)
