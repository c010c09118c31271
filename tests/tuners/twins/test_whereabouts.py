"""The parts of a run are where its tuner takes them to be.

The kind of fault: a decision that the tuner counts on and that was not carried out, without a word.
"""

import copy
import logging
import math
import pickle

import pytest

import botorch_costly as bc
from botorch_costly import errors
from tests.cases import quick
from tests.tuners.twins.running import RATE, Run, play

HORIZON, START = 120, {"lr": 1e-4}


def fresh(horizon=HORIZON):
    return bc.TwinTuner(RATE, horizon, start=START), Run()


@pytest.fixture(scope="module")
def whole():
    """A run that was never stopped: its tuner and its loss."""
    tuner, run = fresh()
    play(tuner, run)
    return tuner, run.loss()


def stopped(rounds):
    tuner, run = fresh()
    session = play(tuner, run, rounds=rounds)
    return tuner, run, session


@pytest.mark.parametrize("rounds", [1, 8, 13, 40])
def test_a_tuner_saved_without_its_session_goes_on_identically(whole, rounds, tmp_path):
    tuner, run, _ = stopped(rounds)
    bc.save(tmp_path / "run.pt", tuner=tuner, network=run)
    again, parts = fresh()
    bc.load(tmp_path / "run.pt", tuner=again, network=parts)
    play(again, parts)
    assert again.decisions == whole[0].decisions
    assert parts.loss() == whole[1]


@pytest.mark.parametrize("rounds", [1, 8, 13, 40])
def test_a_second_session_goes_on_where_the_first_was(whole, rounds, caplog):
    tuner, run, _ = stopped(rounds)
    with caplog.at_level(logging.WARNING):
        play(tuner, run)
    assert [r.getMessage() for r in caplog.records if "for a new run" in r.getMessage()]
    assert tuner.decisions == whole[0].decisions
    assert run.loss() == whole[1]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda both: pickle.loads(pickle.dumps(both))])
@pytest.mark.parametrize("rounds", [0, 8, 13])
def test_a_copy_with_its_parts_goes_on_identically(whole, rounds, copied):
    _, run, session = stopped(rounds)
    session, run = copied((session, run))
    for decision in session:
        run.train(decision.config)
        if decision.query:
            session.tell(decision, run.loss())
    assert session.tuner.decisions == whole[0].decisions
    assert run.loss() == whole[1]


def test_a_state_that_is_not_held_is_said_and_the_incumbent_is_played(whole, caplog):
    """The states are lost, as those of rounds that another loop asked for are."""
    rounds = next(n for n in range(8, 60) if stopped(n)[2].ask().restore is not None)
    tuner, run, _ = stopped(rounds)
    tuner.kept.clear()
    session = bc.Session.of(tuner, run)
    with caplog.at_level(logging.WARNING):
        for decision in session:
            run.train(decision.config)
            if decision.query:
                session.tell(decision, run.loss())
    said = [r.getMessage() for r in caplog.records if "no way back" in r.getMessage()]
    assert len(said) == 1
    assert "not held" in said[0]
    assert tuner.is_settled
    assert tuner.decisions[-1].peak == tuner.incumbent
    assert run.loss() < 3 * whole[1]


def test_a_session_notices_that_its_tuner_was_asked_elsewhere():
    tuner, run, session = stopped(5)
    tuner.ask()
    with pytest.raises(errors.RestoreError, match="1 decisions asked for elsewhere"):
        session.ask()
    with pytest.raises(errors.RestoreError, match="asked for elsewhere"):
        session.finish()
    with pytest.raises(errors.RestoreError, match="asked for elsewhere"):
        bc.Session.of(tuner, run).ask() and session.ask()


def test_a_tuner_that_was_loaded_meanwhile_is_followed(tmp_path):
    tuner, run, session = stopped(5)
    bc.save(tmp_path / "run.pt", tuner=tuner, network=run)
    play(tuner, run, rounds=6)
    bc.load(tmp_path / "run.pt", tuner=tuner, network=run)
    assert session.ask().round == 5


def test_going_back_by_hand_is_warned_of_once_and_nothing_is_said_to_have_paid(caplog):
    tuner = bc.TwinTuner(RATE, HORIZON, start=START)
    with caplog.at_level(logging.WARNING):
        for _ in range(HORIZON):
            decision = tuner.ask()
            if decision.query:
                tuner.tell(decision, math.exp(-decision.round / HORIZON))
    said = [r.getMessage() for r in caplog.records if "no Session carries" in r.getMessage()]
    assert len(said) == 1
    assert "no Session carried out" in str(tuner.diagnose())
    assert "Exploring has paid:" not in str(tuner.diagnose())


@pytest.mark.parametrize("rounds", range(1, 60, 3))
def test_a_run_that_is_stopped_hands_over_the_incumbent(rounds):
    """Not the network of a trial: only rates that became the incumbent have trained it."""
    tuner, run, session = stopped(rounds)
    on_trial = tuner.state_of_incumbent is not None
    incumbent, before = session.finish(), len(run.played)
    assert incumbent == tuner.incumbent
    assert (len(run.played) < rounds) or not on_trial
    assert run.played[-1]["lr"] == pytest.approx(incumbent["lr"])
    assert len(run.played) == before
    again = session.ask()
    assert again.restore is None
    assert again.peak == incumbent


def test_a_stopped_run_without_the_state_of_the_incumbent_says_so():
    tuner, run, _ = stopped(4)
    while tuner.state_of_incumbent is None:
        play(tuner, run, rounds=1)
    tuner.kept.clear()
    with pytest.raises(errors.RestoreError, match="finish"):
        bc.Session.of(tuner, run).finish()


@pytest.mark.parametrize("rounds", [0, 8, 40, 100, HORIZON])
@pytest.mark.parametrize("longer", quick([60, 150, 300], 60, 150))
def test_a_run_goes_on_with_another_horizon(rounds, longer, tmp_path):
    tuner, run, _ = stopped(rounds)
    bc.save(tmp_path / "run.pt", tuner=tuner, network=run)
    again, parts = fresh(longer)
    with pytest.raises(errors.StateMismatchError, match="horizon"):
        bc.load(tmp_path / "run.pt", tuner=again, network=parts)
    if longer < rounds:
        with pytest.raises(errors.StateMismatchError, match=f"at least {rounds} rounds"):
            bc.load(tmp_path / "run.pt", changed=["horizon"], tuner=again, network=parts)
        return
    bc.load(tmp_path / "run.pt", changed=["horizon"], tuner=again, network=parts)
    before = again.decisions
    assert before == tuner.decisions
    play(again, parts, rounds=longer - rounds)
    assert len(again.decisions) == longer
    third = fresh(longer)[0]
    third.load_state_dict(again.state_dict())
    assert third.state_dict()["progress"] == again.state_dict()["progress"]
    if longer > HORIZON:
        assert parts.loss() < Alone.of(rounds)
        last = again.decisions[-1]
        assert last.config["lr"] < last.peak["lr"] / 2  # which falls to the new end


class Alone:
    """The loss of a run with its start throughout."""

    @staticmethod
    def of(rounds):
        run = Run()
        for _ in range(rounds):
            run.train(START)
        return run.loss() if rounds else 1.0
