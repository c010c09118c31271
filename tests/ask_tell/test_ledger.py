"""What a user tells that nothing can be learnt from, and decisions that were changed on their way.

The kinds: all that is told is empty or fails, without a word; and a decision that is not the one that was
asked for is taken for it.
"""

import dataclasses
import json
import math

import pytest

from botorch_costly import errors
from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.records import Decision, Observation
from tests.machines.abuse import interrupted
from tests.registry.optimizers import OPTIMIZERS
from tests.tuners.online.states import same

EMPTY = ["OnlineTuner", "BanditTuner UCB1", "FixedTuner", "RandomTuner", "PopulationTuner"]
FAILING = [*EMPTY, "SubsetOptimizer of candidates", "TransferOptimizer by gaps"]
FAILING += ["CurveOptimizer of candidates", "TwinTuner"]


def nothing_of(optimizer):
    return [None] * optimizer.members if hasattr(optimizer, "members") else None


@pytest.mark.parametrize("name", EMPTY)
def test_rewards_that_are_all_none_earn_one_hint(name, caplog):
    optimizer = OPTIMIZERS[name].make(0)
    for _ in range(12):
        optimizer.tell(optimizer.ask(), nothing_of(optimizer))
    said = [one.message for one in caplog.records]
    assert len(said) == 1
    assert said[0].startswith("8 queries have been told, all without a ")
    assert ("make it once, before the loop" in said[0]) == (name != "PopulationTuner")


@pytest.mark.parametrize("name", EMPTY)
def test_a_reward_among_them_earns_none(name, caplog):
    case = OPTIMIZERS[name]
    optimizer = case.make(0)
    for i in range(12):
        decision = optimizer.ask()
        if i == 5:
            case.tell(optimizer, decision, 0.5)
        else:
            optimizer.tell(decision, nothing_of(optimizer))
    assert caplog.records == []


@pytest.mark.parametrize("name", FAILING)
def test_queries_that_fail_are_reported_at_powers_of_two(name, caplog):
    case = OPTIMIZERS[name]
    optimizer, told = case.make(0), 0
    for _ in range(6):
        decision = optimizer.ask()
        if decision.query or name in ("FixedTuner", "RandomTuner"):
            case.tell(optimizer, decision, math.nan)
            told += 1
    said = [one for one in caplog.records if " so far: " in one.message]
    assert len(said) == sum(1 for n in (1, 2, 4) if n <= told) > 0


ODD = [math.nan, -1.0, math.inf, 10**400, "1", b"1", True, 1j, [1.0], {}, object(), float]


@pytest.mark.parametrize("name", ["OnlineTuner", "BanditTuner UCB1", "FixedTuner", "TwinTuner"])
def test_seconds_that_are_no_time_are_named_and_change_nothing(name):
    """An integer may be too large for a float: checks of numbers refuse it as any other."""
    optimizer = OPTIMIZERS[name].make(0)
    decision = optimizer.ask()
    before = optimizer.state_dict()
    for seconds in ODD:
        with pytest.raises(errors.InvalidArgumentError, match="seconds: Expected"):
            optimizer.tell(decision, 0.5, seconds=seconds)
    assert same(optimizer.state_dict(), before)


def test_every_check_of_a_number_takes_integers_of_any_size():
    checks = [errors.check_probability, errors.check_rate, errors.check_positive]
    for one in [*checks, errors.check_nonnegative]:
        for huge in (10**400, -(10**400)):
            with pytest.raises(errors.InvalidArgumentError, match="share: Expected"):
                one("share", huge)
    with pytest.raises(errors.InvalidArgumentError, match="count: Expected"):
        errors.check_count("count", -(10**400))
    assert errors.check_count("count", 10**400) == 10**400


def stranger(decision):
    """Return what is no decision of a tuner, or no longer the one it was, with the error it earns."""
    text = json.loads(json.dumps(decision.to_dict()))
    changed = dataclasses.replace
    return [
        (None, errors.InvalidArgumentError),
        (text, errors.InvalidArgumentError),
        ("decision", errors.InvalidArgumentError),
        (changed(decision, round=7), errors.UnknownDecisionError),
        (changed(decision, query=not decision.query), errors.UnknownDecisionError),
        (changed(decision, reason="another"), errors.UnknownDecisionError),
        (changed(decision, config={**decision.config, "more": 1}), errors.UnknownDecisionError),
    ]


@pytest.mark.parametrize("name", [n for n in OPTIMIZERS if "published" not in n])
def test_a_decision_that_was_changed_is_none_of_the_tuner_and_a_copy_through_json_is(name):
    case = OPTIMIZERS[name]
    optimizer = case.make(0)
    decision = optimizer.ask()
    before = optimizer.state_dict()
    for other, error in stranger(decision):
        with pytest.raises(error, match="decision: Expected"):
            case.tell(optimizer, other, 0.5)
    assert same(optimizer.state_dict(), before)
    read = type(decision).from_dict(json.loads(json.dumps(decision.to_dict())))
    case.tell(optimizer, read, 0.5)
    assert len(optimizer.observations) == 1


def test_suggestions_that_are_not_kept_are_forgotten_with_their_outcomes():
    ledger = Ledger(Decision, Observation, kept=3)
    asked = [Decision(i, {"lr": 0.1}, query=True, reason="") for i in range(5)]
    for one in asked:
        ledger.suggest(one)
        assert [kept.round for kept in ledger.suggestions] == list(
            range(max(one.round - 2, 0), one.round + 1)
        )


def calls_of(ledger, query):
    asked = Decision(0, {"lr": 0.1}, query=query, reason="")
    outcome = Observation(0, {"lr": 0.1}, None, failed=True)
    return [
        lambda: ledger.suggest(asked),
        lambda: ledger.tell(outcome),
        lambda: ledger.cancel(asked),
    ]


@pytest.mark.parametrize("query", [True, False])
@pytest.mark.parametrize("calls", [[0], [0, 1], [0, 2]])
def test_an_interrupted_call_has_entered_all_or_nothing(calls, query):
    """The kind: an outcome is there, and is not counted, for the call ended in between."""
    for after in range(1, 40):
        ledger, whole = Ledger(Decision, Observation), Ledger(Decision, Observation)
        for number in calls[:-1]:
            calls_of(ledger, query)[number]()
        before = ledger.state_dict()
        for number in calls:
            calls_of(whole, query)[number]()
        last = calls_of(ledger, query)[calls[-1]]
        with interrupted(after):
            last()
        assert ledger.state_dict() in (before, whole.state_dict())
    assert ledger.state_dict() == whole.state_dict() != before


@pytest.mark.parametrize(
    ("name", "noun", "failed", "count"),
    [
        ("SubsetOptimizer of candidates", "evaluation", "Evaluation 0", "evaluations"),
        ("TransferOptimizer by gaps", "evaluation", "Evaluation 0", "evaluations"),
        ("CurveOptimizer of candidates", "segment", "Segment 0", "segments"),
        ("OnlineTuner", "round", "The query in round 0", "queries"),
    ],
)
def test_messages_name_what_was_asked_for(name, noun, failed, count, caplog):
    optimizer = OPTIMIZERS[name].make(0)
    first = optimizer.ask()
    told = [math.nan] * (first.iterations if noun == "segment" else 1)
    optimizer.tell(first, told if noun == "segment" else math.nan)
    assert f"{failed} failed: no finite " in caplog.text
    assert f"(failed {count} so far: 1)" in caplog.text
    with pytest.raises(errors.AlreadyToldError, match=f"the first outcome of {noun} 0"):
        optimizer.tell(first, told if noun == "segment" else math.nan)
