"""A session that is left in the middle of a trial says so when it ends."""

import copy
import gc
import pickle
import subprocess
import sys
import textwrap

import pytest

import botorch_costly as bc
from botorch_costly.integrations.loggers import LoggedTuner
from botorch_costly.tuners.twins import left_open
from tests.integrations.launching import ROOT
from tests.tuners.twins.networks import HORIZON, SPACE, START, Training

SAID = "in the middle of a trial: its network is not in the state of the incumbent"


@pytest.fixture(autouse=True)
def no_error_before(monkeypatch):
    monkeypatch.delattr(sys, "last_value", raising=False)
    monkeypatch.setattr(left_open, "_said", [])


def in_a_trial(session):
    return session.tuner.state_of_incumbent is not None


def left(after, around=lambda session: session, until=in_a_trial):
    """Leave the loop over a session by ``break``; then do something, and give the session up."""
    training = Training()
    session = bc.Session.of(bc.TwinTuner(SPACE, HORIZON, start=START), *training.parts)
    for decision in around(session):
        training.train(decision.config)
        if decision.query:
            session.tell(decision, training.loss)
        if until(session):
            break
    after(session, training)


def said(caplog):
    gc.collect()  # of an interpreter without reference counts
    return [text for text in caplog.messages if SAID in text]


def nothing(session, training):
    """Go on with other things."""


@pytest.mark.parametrize(
    "around", [lambda session: session, lambda session: LoggedTuner(session, [])]
)
def test_a_loop_that_is_left_in_a_trial(around, caplog):
    left(nothing, around)
    (text,) = said(caplog)
    assert "session.finish()" in text


def test_a_search_that_gives_up_several(caplog):
    """As one does that prunes: their networks are given up, too."""

    def pruned(session, training):
        raise InterruptedError

    for _ in range(3):
        with pytest.raises(InterruptedError):
            left(pruned)
    assert len(said(caplog)) == 1


def test_a_loop_of_asks_that_is_left_in_a_trial(caplog):
    training = Training()
    session = bc.Session.of(bc.TwinTuner(SPACE, HORIZON, start=START), *training.parts)
    while not in_a_trial(session):
        decision = session.ask()
        training.train(decision.config)
        if decision.query:
            session.tell(decision, training.loss)
    assert not said(caplog)
    del session
    assert len(said(caplog)) == 1


def goes_on(session, training):
    for decision in session:
        training.train(decision.config)
        if decision.query:
            session.tell(decision, training.loss)


def is_saved(session, training):
    session.state_dict()


def is_loaded(session, training):
    session.load_state_dict(session.state_dict())


def is_copied(session, training):
    copy.deepcopy(session)


def is_pickled(session, training):
    pickle.dumps(session)


def another_takes_over(session, training):
    other = bc.Session.of(session.tuner, *training.parts)
    other.ask()
    other.finish()


@pytest.mark.parametrize(
    "after",
    [
        lambda session, training: session.finish(),
        goes_on,
        is_saved,
        is_copied,
        is_pickled,
        is_loaded,
        another_takes_over,
    ],
)
def test_a_loop_after_which_the_trial_ends_or_goes_on_elsewhere(after, caplog):
    left(after)
    assert not said(caplog)


def test_the_best_state_is_restored_after_it(caplog):
    training = Training()
    tuner = bc.TwinTuner(SPACE, HORIZON, start=START)
    session = bc.Session.of(tuner, *training.parts, keep_best=True)
    for decision in session:
        training.train(decision.config)
        if decision.query:
            session.tell(decision, training.loss)
        if in_a_trial(session) and session._best is not None:
            break
    session.restore_best()
    del session
    assert not said(caplog)


def test_a_loop_that_is_left_between_trials_or_not_at_all(caplog):
    left(nothing, until=lambda session: not in_a_trial(session))
    left(nothing, until=lambda session: False)
    assert not said(caplog)


def test_an_error_that_ends_the_program_says_more(caplog, monkeypatch):
    monkeypatch.setattr(sys, "last_value", ValueError("of the loop"), raising=False)
    left(nothing)
    assert not said(caplog)


def test_the_summary_says_so_before(caplog):
    seen = []
    left(
        lambda session, training: seen.extend(
            [session.summary(), session.finish(), session.summary()]
        )
    )
    before, _, after = seen
    assert "in the middle of a trial: to end here, session.finish()" in before
    assert "in the middle of a trial" not in after


PROGRAM = """
import sys
sys.path.insert(0, {root!r})
import botorch_costly as bc
from tests.tuners.twins.networks import HORIZON, SPACE, START, Training

training = Training()
session = bc.Session.of(bc.TwinTuner(SPACE, HORIZON, start=START), *training.parts)
for decision in session:
    training.train(decision.config)
    if decision.query:
        session.tell(decision, training.loss)
    if session.tuner.state_of_incumbent is not None:
        {leave}
print("the end")
"""


@pytest.mark.parametrize(("leave", "count"), [("break", 1), ("raise KeyboardInterrupt", 0)])
def test_a_program_says_so_as_it_ends(leave, count, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM).format(root=str(ROOT), leave=leave))
    ended = subprocess.run(
        [sys.executable, program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.stderr.count(SAID) == count
    assert ("the end" in ended.stdout) == bool(count)
