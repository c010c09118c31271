"""The limits that a trust region sets are known for the whole run, and the first ones are logged once.

The kind: a space is cut, and nobody is told.
"""

import logging
import math

import pytest

import botorch_costly as bc
from botorch_costly.reports import SavedRun, text_of

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "dropout": bc.Real(0.0, 0.8)})
START = {"lr": 1e-2, "dropout": 0.4}


def tuned(rounds, space=SPACE, **options):
    tuner = bc.OnlineTuner(
        space, 60, **{"start": START, "search": bc.Search(num_restarts=2), **options}
    )
    limits = []
    for _ in range(rounds):
        decision = tuner.ask()
        limits.append(tuner.trust_regions[-1] if tuner.trust_regions else None)
        if decision.query:
            tuner.tell(decision, decision.config["lr"])  # larger is better, so it succeeds
    return tuner, limits


def test_each_region_is_known_from_its_first_round_on():
    tuner, limits = tuned(60)
    first, *later = tuner.trust_regions
    assert first == (0, {"lr": pytest.approx((1e-2 / 1.5, 1.5e-2))})
    assert later, "no excursion has succeeded"
    rounds = [round for round, _ in tuner.trust_regions]
    assert rounds == sorted(set(rounds))
    for decision, (round, region) in zip(tuner.decisions, limits, strict=True):
        assert round <= decision.round
        low, high = region["lr"]
        assert low * (1 - 1e-9) <= decision.config["lr"] <= high * (1 + 1e-9)
    assert SavedRun.from_state(tuner.state_dict()).limits == tuner.trust_regions


def test_they_are_saved_and_a_state_of_before_has_none():
    tuner, _ = tuned(40)
    state = tuner.state_dict()
    again, _ = tuned(0)
    again.load_state_dict(state)
    assert again.trust_regions == tuner.trust_regions
    before = {name: value for name, value in state["region"].items() if name != "trace"}
    again.load_state_dict({**state, "region": before})
    assert again.trust_regions == ()
    assert [again.ask() for _ in range(20)] == [tuner.ask() for _ in range(20)]
    assert SavedRun.from_state({**state, "region": before}).limits == ()


def test_a_cut_space_is_logged_once_in_a_run(caplog):
    caplog.set_level(logging.INFO)
    tuned(60)
    message = (
        "The trust region around the start cuts the space at first: lr 0.00667 to 0.015 (of 0.0001 to "
        "0.1). It moves and widens with success; limits=Limits(rate_factor=) sets its first factor, "
        "math.inf none."
    )
    assert [record.getMessage() for record in caplog.records] == [message]


def test_a_report_has_the_latest_limits():
    tuner, _ = tuned(60)
    low, high = tuner.trust_regions[-1][1]["lr"]
    expected = f"trust region: lr {low:.3g} to {high:.3g} (of 0.0001 to 0.1)"
    assert expected in text_of(SavedRun.from_state(tuner.state_dict()))


@pytest.mark.parametrize(
    ("space", "options"),
    [
        (SPACE, {"start": None}),
        (SPACE, {"limits": bc.Limits(rate_factor=math.inf)}),
        (bc.SearchSpace({"lr": bc.Real(8e-3, 1.2e-2, log=True), "dropout": bc.Real(0.0, 0.8)}), {}),
    ],
    ids=["no start", "no factor", "a narrow space"],
)
def test_a_space_that_is_not_cut_is_not_logged(space, options, caplog):
    caplog.set_level(logging.INFO)
    tuner, _ = tuned(3, space, **options)
    assert not caplog.records
    assert "trust region" not in text_of(SavedRun.from_state(tuner.state_dict()))
