"""A session goes back, bit for bit, and says so where it cannot."""

import copy
import itertools
import logging
import random
from collections import OrderedDict, defaultdict

import numpy as np
import pytest
import torch
from torch import nn

import botorch_costly as bc
from botorch_costly import errors
from tests.cases import quick
from tests.tuners.twins.networks import HORIZON, SPACE, START, Training, equal, flat, play
from tests.tuners.twins.running import GOOD, Run, by_rate


@pytest.fixture(autouse=True)
def global_generators():
    """The generators of the process are as they were when a test is over."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        yield
    random.setstate(python)
    np.random.set_state(numpy)  # noqa: NPY002


def tuner(seed=0):
    return bc.TwinTuner(SPACE, HORIZON, start=START, seed=seed)


def storages(state):
    if isinstance(state, dict):
        return {s for value in state.values() for s in storages(value)}
    if isinstance(state, list | tuple):
        return {s for value in state for s in storages(value)}
    return {state.untyped_storage().data_ptr()} if isinstance(state, torch.Tensor) else set()


def test_everything_goes_back_bit_for_bit():
    training = Training()
    session, kept, restored = bc.Session.of(tuner(), *training.parts), {}, 0
    for _ in range(HORIZON):
        before = training.everything()
        decision = session.ask()
        if decision.keep is not None:
            kept[decision.keep] = before
        expected = before if decision.restore is None else kept[decision.restore]
        restored += decision.restore is not None
        assert equal(training.everything(), expected)
        training.train(decision.config)
        if decision.query:
            session.tell(decision, training.loss)
    assert restored >= 3


def test_a_scheduler_counts_the_rounds_that_lead_to_the_state():
    """Twins train with equal rates; so at the end it has counted fewer rounds than the horizon."""
    training = Training()
    session, counted, kept = bc.Session.of(tuner(), *training.parts), 0, {}
    for decision in session:
        if decision.keep is not None:
            kept[decision.keep] = counted
        counted = counted if decision.restore is None else kept[decision.restore]
        assert training.scheduler.last_epoch == counted
        training.train(decision.config)
        if decision.query:
            session.tell(decision, training.loss)
        counted += 1
    assert counted < HORIZON


def test_kept_states_are_few_and_share_no_memory_with_training():
    training = Training()
    session, first = bc.Session.of(tuner(), *training.parts), {}
    for _ in range(HORIZON):
        play(session, training, 1)
        kept = session.state_dict()["tuner"]["kept"]
        live = storages([training.network.state_dict(), training.optimizer.state_dict()])
        assert not storages(kept) & live
        for number, state in kept.items():
            assert equal(first.setdefault(number, flat(state)), flat(state))
    assert len(first) > 2


@pytest.mark.parametrize("factor", [1 / 30, 1, 10])
@pytest.mark.parametrize("dropout", [0.0, 0.8])
def test_three_copies_are_held_at_most_and_one_more_while_the_parts_go_back(factor, dropout):
    space = bc.SearchSpace(
        {"lr": bc.Real(1e-5, 1.0, log=True), "dropout": bc.Real(0.0, 0.9), "a": bc.Real(0.1, 1.0)}
    )
    held, made = [], []
    run = Run(lambda config: by_rate(config) * (1 - config["dropout"]), noise=0.02)
    twins = bc.TwinTuner(space, 150, start={"lr": GOOD * factor, "dropout": dropout, "a": 0.5})

    class Counting(Run):
        """A part that counts the copies whenever one more is made."""

        def state_dict(self):
            made.append(len(twins.kept) + 1)
            return run.state_dict()

        def load_state_dict(self, state):
            run.load_state_dict(state)

    session = bc.Session.of(twins, Counting())
    for decision in session:
        held.append(len(twins.kept))
        run.train(decision.config)
        if decision.query:
            session.tell(decision, run.loss())
    assert 2 <= max(held) <= 3
    assert max(made) <= 4


def test_iterating_plays_what_is_left():
    training = Training()
    session = bc.Session.of(tuner(), *training.parts)
    begun = play(session, training, 5)
    rest = []
    for decision in session:
        training.train(decision.config)
        rest.append(decision)
    assert [decision.round for decision in begun + rest] == list(range(HORIZON))
    assert list(session) == []


@pytest.mark.parametrize("stop", quick([1, 6, 11, 23], 6, 23))
def test_a_run_that_was_saved_continues_to_the_last_bit(stop, tmp_path):
    whole = Training()
    decisions = play(bc.Session.of(tuner(), *whole.parts), whole, HORIZON)
    path, first = tmp_path / "run.pt", Training()
    session = bc.Session.of(tuner(), *first.parts)
    begun = play(session, first, stop)
    parts = {"network": first.network, "optimizer": first.optimizer, "scheduler": first.scheduler}
    bc.save(path, session=session, **parts)
    generators = torch.get_rng_state(), random.getstate(), np.random.get_state()  # noqa: NPY002
    own = first.generator.get_state()

    second = Training(seed=9)
    again = bc.Session.of(tuner(), *second.parts)
    parts = {
        "network": second.network,
        "optimizer": second.optimizer,
        "scheduler": second.scheduler,
    }
    bc.load(path, session=again, **parts)
    torch.set_rng_state(generators[0])
    random.setstate(generators[1])
    np.random.set_state(generators[2])  # noqa: NPY002
    second.generator.set_state(own)
    rest = play(again, second, HORIZON - stop)
    assert begun + rest == decisions
    # The scheduler's own counters and all weights, moments and draws.
    torch.manual_seed(1)
    theirs = flat([whole.network.state_dict(), whole.optimizer.state_dict()])
    ours = flat([second.network.state_dict(), second.optimizer.state_dict()])
    assert equal(ours, theirs)


class Part:
    """A part whose state is what it is given."""

    def __init__(self, state=None):
        self.state = {} if state is None else state

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state


class Uncopied:
    def __deepcopy__(self, memo):
        raise TypeError("no copy of a file")


class Silent(Part):
    def __init__(self, patience):
        super().__init__()
        self.patience = patience

    def state_dict(self):
        self.patience -= 1
        if self.patience < 0:
            raise RuntimeError("no state any more")
        return {}


@pytest.mark.parametrize(
    "part", [lambda: Part({"file": Uncopied()}), lambda: Silent(0), lambda: Silent(4)]
)
def test_what_cannot_be_copied_is_said_once_and_the_run_goes_on(part, caplog):
    training = Training()
    session = bc.Session.of(tuner(), *training.parts, part())
    with caplog.at_level(logging.WARNING):
        decisions = play(session, training, HORIZON)
    said = [r.getMessage() for r in caplog.records if "could not be copied" in r.getMessage()]
    assert len(said) == 1
    assert len(decisions) == HORIZON
    assert not session.state_dict()["tuner"]["kept"]
    assert all(d.peak == session.tuner.incumbent for d in decisions[-HORIZON // 2 :])


def test_a_part_that_does_not_take_its_state_is_named():
    class Deaf(Part):
        def load_state_dict(self, state):
            raise KeyError("weights")

    training = Training()
    session = bc.Session.of(tuner(), *training.parts, Deaf())
    with pytest.raises(errors.RestoreError, match="Deaf to take an earlier state"):
        play(session, training, HORIZON)


@pytest.mark.parametrize("part", [None, 3, nn.Linear, {"weights": 1}, [nn.Linear(1, 1)]])
def test_bad_parts_are_refused_at_the_door(part):
    with pytest.raises(errors.InvalidArgumentError, match="parts"):
        bc.Session.of(tuner(), part)


def test_a_session_needs_a_tuner_and_a_part():
    with pytest.raises(errors.InvalidArgumentError, match="at least one"):
        bc.Session.of(tuner())
    with pytest.raises(errors.InvalidArgumentError, match="a TwinTuner"):
        bc.Session.of(bc.FixedTuner(SPACE, START), nn.Linear(1, 1))


def test_dictionaries_of_any_kind_are_copied_as_what_they_are():
    counts = defaultdict(list, steps=[torch.zeros(2)])
    named = OrderedDict(a=torch.ones(1))
    named._metadata = {"version": 2}  # as networks have it
    part, training = Part({"counts": counts, "named": named}), Training()
    session = bc.Session.of(tuner(), *training.parts, part)
    seen = copy.deepcopy(part.state)
    restored = False
    for _ in range(HORIZON):
        decision = session.ask()
        training.train(decision.config)
        if decision.query:
            session.tell(decision, training.loss)
        restored = restored or decision.restore is not None
        if decision.restore == 0:
            assert equal(flat(part.state), flat(seen))
            assert type(part.state["counts"]) is defaultdict
            assert part.state["named"]._metadata == {"version": 2}
        part.state["counts"]["steps"][0] += 1
    assert restored
    assert part.state["counts"]["other"] == []


def test_a_state_of_another_tuner_changes_nothing():
    training = Training()
    session = bc.Session.of(tuner(), *training.parts)
    play(session, training, 7)
    before = flat(session.state_dict())
    other = bc.Session.of(tuner(seed=1), *training.parts).state_dict()
    with pytest.raises(errors.StateMismatchError, match="option seed"):
        session.load_state_dict(other)
    assert equal(flat(session.state_dict()), before)


def test_the_state_of_the_best_query_can_be_had_back():
    training = Training()
    session = bc.Session.of(tuner(), *training.parts, keep_best=True)
    best, state = None, None
    for decision in session:
        training.train(decision.config)
        if decision.query:
            session.tell(decision, training.loss)
            if best is None or training.loss.item() < best:
                best, state = training.loss.item(), training.everything()
    assert not equal(training.everything(), state)
    assert session.restore_best() == pytest.approx(best)
    assert equal(training.everything(), state)


def test_the_best_state_survives_a_file(tmp_path):
    training, other = Training(), Training(seed=1)
    session = bc.Session.of(tuner(), *training.parts, keep_best=True)
    play(session, training, HORIZON)
    bc.save(tmp_path / "run.pt", session=session)
    resumed = bc.Session.of(tuner(), *other.parts, keep_best=True)
    bc.load(tmp_path / "run.pt", session=resumed)
    assert resumed.restore_best() == session.restore_best()
    assert equal(flat(other.network.state_dict()), flat(training.network.state_dict()))


def test_without_a_best_state_there_is_none_to_restore():
    training = Training()
    session = bc.Session.of(tuner(), *training.parts)
    play(session, training, HORIZON)
    with pytest.raises(errors.RestoreError, match="keep_best=True"):
        session.restore_best()
    with pytest.raises(errors.InvalidArgumentError, match="keep_best"):
        bc.Session.of(tuner(), *training.parts, keep_best=1)


def test_a_scheduler_beside_a_scheduled_rate_is_named_once(caplog):
    training = Training()
    bc.Session.of(tuner(), *training.parts)
    assert [r for r in caplog.messages if "base='constant'" in r]
    caplog.clear()
    constant = bc.SearchSpace({"lr": bc.Scheduled(1e-6, 10.0, base="constant")})
    bc.Session.of(bc.TwinTuner(constant, HORIZON), *training.parts)
    bc.Session.of(tuner(), training.network, training.optimizer)
    assert not caplog.messages


def test_a_session_is_logged_as_a_tuner_is(tmp_path):
    """Kind: pages say that twins are logged, and no face of theirs could be."""
    from botorch_costly.integrations.loggers import CsvLogger, LoggedTuner

    training = Training()
    session = bc.Session.of(tuner(), *training.parts)
    path = tmp_path / "run.csv"
    with LoggedTuner(session, CsvLogger(path)) as logged:
        for decision in itertools.islice(logged, 20):  # as the session itself
            training.train(decision.config)
            if decision.query:
                logged.tell(decision, training.loss, seconds=0.5)
        state = logged.state_dict()
        assert logged.horizon == HORIZON
    assert len(path.read_text().splitlines()) == 21
    other = Training()
    resumed = LoggedTuner(bc.Session.of(tuner(), *other.parts), CsvLogger(path))
    resumed.load_state_dict(state)
    assert resumed.decisions == session.decisions
