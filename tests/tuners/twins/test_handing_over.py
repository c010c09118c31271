"""Kind: a session hands over a state, or is given one, that its parts or its tuner cannot go on from."""

import copy
import json

import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from tests.cases import quick
from tests.tuners.twins.networks import HORIZON, SPACE, START, Training, equal, flat, play
from tests.tuners.twins.running import Run, by_rate


def fresh(training, horizon=HORIZON, **options):
    tuner = bc.TwinTuner(SPACE, horizon, start=START)
    return bc.Session.of(tuner, training.network, training.optimizer, **options)


OTHERS = {
    "fewer": lambda t: [t.network],
    "more": lambda t: [t.network, t.optimizer, t.generator],
    "of another kind": lambda t: [t.network, t.generator],
    "in another order": lambda t: [t.optimizer, t.network],
}


@pytest.mark.parametrize(
    ("says", "others"), [*((True, one) for one in OTHERS), (False, "fewer"), (False, "more")]
)
def test_a_state_of_other_parts_is_refused_when_it_is_loaded(says, others):
    """Earlier states do not say of what kinds the parts are."""
    training = Training()
    session = fresh(training, keep_best=True)
    play(session, training, 8)
    state = session.state_dict()
    if not says:
        del state["parts"]
    other = bc.Session.of(bc.TwinTuner(SPACE, HORIZON, start=START), *OTHERS[others](training))
    with pytest.raises(errors.StateMismatchError, match="state: parts"):
        other.load_state_dict(state)
    assert not other.decisions


def test_a_tuner_with_states_of_more_parts_is_refused_by_name():
    training = Training()
    first = fresh(training)
    play(first, training, 3)
    session = bc.Session.of(first.tuner, training.network)

    def go_on():
        for decision in session:
            if decision.query:
                session.tell(decision, 1.0)

    with pytest.raises(errors.RestoreError, match="the 1 parts of this session"):
        go_on()


def test_a_device_that_there_is_not_is_refused_at_once():
    with pytest.raises(errors.InvalidArgumentError, match="device"):
        fresh(Training(), device="gpu")


@pytest.mark.parametrize("restored", ["restore_best", "finish"])
def test_what_is_restored_in_inference_mode_can_be_trained_on(restored):
    training = Training()
    session = fresh(training, keep_best=True)
    for _ in range(40):
        decision = session.ask()
        training.train(decision.config)
        with torch.inference_mode():
            if decision.query:
                session.tell(decision, training.loss)
            if decision.query and session.tuner.state_of_incumbent is not None:
                getattr(session, restored)()
                break
    assert session.tuner.is_settled
    training.train(START)


def test_a_session_that_was_loaded_in_inference_mode_goes_on(tmp_path):
    training, other = Training(), Training(seed=1)
    session = fresh(training)
    play(session, training, 8)
    bc.save(tmp_path / "run.pt", session=session, net=training.network, opt=training.optimizer)
    resumed = fresh(other)
    with torch.inference_mode():
        bc.load(tmp_path / "run.pt", session=resumed, net=other.network, opt=other.optimizer)
    play(resumed, other, HORIZON - 8)


@pytest.mark.parametrize("rounds", [9, 20, HORIZON])
def test_after_the_best_state_the_incumbent_goes_on_from_it(rounds):
    training = Training()
    session = fresh(training, keep_best=True)
    play(session, training, rounds)
    session.restore_best()
    before = flat(training.network.state_dict())
    assert session.tuner.is_settled
    for decision in copy.deepcopy(session):  # which has parts of its own
        assert decision.restore is None
        assert decision.peak == session.tuner.incumbent
    if rounds < HORIZON:
        session.ask()
    assert equal(flat(training.network.state_dict()), before)


TWO = bc.SearchSpace({"lr": bc.Real(1e-5, 1.0, log=True), "a": bc.Real(1e-3, 1.0, log=True)})


def begun(horizon):
    """A session of a run with two hyperparameters, both ten times too small."""

    def speed(config):
        return by_rate(config) * min(config["a"] / 0.1, 0.1 / config["a"]) ** 0.3

    run = Run(speed, slope=0.1)
    tuner = bc.TwinTuner(TWO, horizon, start={"lr": 1e-3, "a": 1e-2})
    return bc.Session.of(tuner, run, keep_best=True), run


def going_on(session, run, rounds):
    for _ in range(rounds):
        decision = session.ask()
        run.train(decision.config)
        if decision.query:
            session.tell(decision, run.loss())


@pytest.mark.parametrize("restored", ["restore_best", "finish"])
@pytest.mark.parametrize("rounds", quick([5, 20, 60], 20))
def test_a_settled_run_that_is_extended_tries_others_again(restored, rounds, tmp_path):
    """From the state that was handed over, and in the same way after another save."""
    session, run = begun(60)
    going_on(session, run, rounds)
    getattr(session, restored)()
    bc.save(tmp_path / "run.pt", session=session, network=run)
    same, parts = begun(60)
    bc.load(tmp_path / "run.pt", session=same, network=parts)
    assert same.tuner.is_settled
    longer, parts = begun(150)
    bc.load(tmp_path / "run.pt", session=longer, network=parts, changed=["horizon"])
    assert not longer.tuner.is_settled
    progress = parts.progress
    assert longer.ask().restore is None
    assert parts.progress == progress
    going_on(longer, parts, 20)
    bc.save(tmp_path / "more.pt", session=longer, network=parts)
    again, others = begun(150)
    bc.load(tmp_path / "more.pt", session=again, network=others)
    for one, state in ((longer, parts), (again, others)):
        going_on(one, state, 150 - len(one.decisions))
    assert again.decisions == longer.decisions
    assert others.loss() == parts.loss()
    further = longer.decisions[rounds:]
    assert any(decision.query for decision in further)
    if rounds <= 20:  # later a trial costs more than it promises
        assert any(decision.restore is not None for decision in further)


def test_a_run_that_settles_twice_goes_on_identically():
    session, run = begun(60)
    for horizon in (60, 90, 150):
        longer, parts = begun(horizon)
        longer.load_state_dict(session.state_dict(), changed=["horizon"])
        parts.load_state_dict(run.state_dict())
        session, run = longer, parts
        going_on(session, run, 10)
        session.finish()
        going_on(session, run, 5)
    again, others = begun(150)
    again.load_state_dict(session.state_dict())
    others.load_state_dict(run.state_dict())
    assert again.tuner.is_settled
    for one, state in ((session, run), (again, others)):
        going_on(one, state, 20)
    assert again.decisions == session.decisions


@pytest.mark.parametrize("settles", [False, True])
def test_an_earlier_state_says_when_it_settled(settles):
    session, run = begun(60)
    going_on(session, run, 10)
    if settles:
        session.finish()
        going_on(session, run, 5)
    state = session.tuner.state_dict()
    progress = json.loads(state["progress"])
    progress[3] = progress[3][0][0] if progress[3] else None
    earlier = begun(60)[0].tuner
    earlier.load_state_dict({**state, "progress": json.dumps(progress)})
    assert earlier.state_dict()["progress"] == state["progress"]
