"""Whether a run within a share of the clock can be interrupted, copied, refused and resumed."""

import copy
import math
import pickle

import pytest

from botorch_costly.errors import AlreadyToldError, InvalidArgumentError, StateMismatchError
from tests.cases import quick
from tests.registry.optimizers import OPTIMIZERS
from tests.tuners.online.playing import through_a_file
from tests.tuners.online.states import same
from tests.tuners.within_a_share.playing import KINDS, Play, begun, make
from tests.validation.clock import Clock

each_kind = pytest.mark.parametrize("kind", KINDS)


def resumed(run, kind, horizon, overhead, seconds=0.0, changed=()):
    """Return a run of a new process, whose clock begins elsewhere."""
    clock = Clock()
    clock.seconds = seconds
    tuner = make(kind, horizon, overhead, clock)
    tuner.load_state_dict(through_a_file(run.tuner.state_dict()), changed=changed)
    return Play(tuner, clock, run.price, says=run.says)


@each_kind
@pytest.mark.parametrize("stop", quick([0, 1, 23, 60], 1, 23))
def test_a_resumed_run_goes_on_as_it_would_have(kind, stop):
    run = begun(kind, 100, 0.1, 0.5).rounds(stop)
    again = resumed(run, kind, 100, 0.1, seconds=-5e4)
    expected = run.rounds(40).decisions[stop:]
    assert again.rounds(40).decisions == expected


@each_kind
def test_a_run_that_is_saved_within_a_round_goes_on_within_it(kind):
    """Before its training, after it, and before its outcome is told."""
    run = begun(kind, 100, 0.1, 0.5).rounds(37)
    for _ in range(12):
        decision = run.tuner.ask()
        run.train(0.4)
        run = resumed(run, kind, 100, 0.1, seconds=9.0)
        run.train(0.6)
        if decision.query:
            run.query(decision)
    whole = begun(kind, 100, 0.1, 0.5).rounds(49)
    assert run.tuner.decisions == whole.tuner.decisions
    ours, theirs = run.tuner.state_dict()["tariff"], whole.tuner.state_dict()["tariff"]
    assert ours["training"]["total"] == pytest.approx(theirs["training"]["total"])
    assert ours["validation"]["total"] == pytest.approx(theirs["validation"]["total"])


@each_kind
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_within_a_round_goes_on_alike(kind, copied):
    run = begun(kind, 100, 0.1, 0.5).rounds(30)
    run.tuner.ask()
    run.train()
    other = copied((run.tuner, run.clock))
    again = Play(*other, 0.5)
    assert again.tuner._clocks.tariff._clock is again.clock or copied is not copy.deepcopy
    assert same(again.tuner.state_dict(), run.tuner.state_dict())


@each_kind
@pytest.mark.parametrize("seconds", [math.nan, -1.0, math.inf, "1"])
def test_seconds_that_are_none_are_named_and_change_nothing(kind, seconds):
    run = begun(kind, 100, 0.2, 0.5)
    decision = run.round()
    while not decision.query:
        decision = run.tuner.ask()
        run.train()
    before = copy.deepcopy(run.tuner.state_dict())
    with pytest.raises(InvalidArgumentError, match="seconds: Expected"):
        run.tuner.tell(decision, run.outcome(decision), seconds=seconds)
    assert same(run.tuner.state_dict(), before)
    run.query(decision)
    state = copy.deepcopy(run.tuner.state_dict())
    with pytest.raises(AlreadyToldError):
        run.tuner.tell(decision, run.outcome(decision), seconds=9.0)
    assert same(run.tuner.state_dict(), state)


@each_kind
def test_an_ask_that_fails_leaves_the_round_running(kind, monkeypatch):
    run, whole = (begun(kind, 100, 0.1, 0.5).rounds(30) for _ in range(2))
    before = copy.deepcopy(run.tuner.state_dict())

    def fails(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run.tuner._ledger, "suggest", fails)
        with pytest.raises(KeyboardInterrupt):
            run.tuner.ask()
    assert same(run.tuner.state_dict(), before)
    assert run.rounds(20).decisions == whole.rounds(20).decisions


@each_kind
def test_a_run_without_a_share_can_get_one_and_lose_it(kind):
    run = begun(kind, 100, None, 0.5).rounds(20)
    state = run.tuner.state_dict()
    assert "tariff" not in state
    older = {**state, "header": {k: v for k, v in state["header"].items() if k != "overhead"}}
    clock = Clock()
    make(kind, 100, None, clock).load_state_dict(older)
    limited = make(kind, 100, 0.1, clock)
    with pytest.raises(StateMismatchError, match=r"option overhead: Expected 0\.1; Received None"):
        limited.load_state_dict(older)
    limited.load_state_dict(older, changed=["overhead"])
    play = Play(limited, clock, 0.5).rounds(60)
    assert max(play.shares[1:], default=0.0) <= 0.1 + 1e-9
    free = resumed(play, kind, 100, None, changed=["overhead"])
    free.rounds(5)
    assert "tariff" not in free.tuner.state_dict()


@each_kind
@pytest.mark.parametrize("jump", quick([-1e7, 1e7, math.nan], -1e7, math.nan))
def test_a_clock_that_jumps_counts_as_usual(kind, jump, caplog):
    """In a round without a query: the rest of the run is as it would have been."""
    run, whole = (begun(kind, 100, 0.1, 0.5).rounds(30) for _ in range(2))
    for one in (run, whole):
        while one.tuner.ask().query:
            one.train()
        one.train()
    started = run.clock.seconds
    run.clock.seconds += jump
    run.tuner.ask()
    if math.isnan(jump):  # the clock has come back
        run.clock.seconds = started
    whole.tuner.ask()
    assert "The clock jumped" in caplog.text
    ours, theirs = run.tuner.state_dict()["tariff"], whole.tuner.state_dict()["tariff"]
    for kind_of_work in ("training", "validation"):
        assert ours[kind_of_work] == theirs[kind_of_work]


@pytest.mark.parametrize("asked", [5, 6, 10])
def test_a_state_without_its_count_is_refused_once_the_opening_is_over(asked):
    """Without the count the opening would begin again."""
    case = OPTIMIZERS["OnlineTuner within a share of the clock"]
    tuner = case.make(0)
    for _ in range(asked):
        case.tell(tuner, tuner.ask(), math.nan)
    before = copy.deepcopy(tuner.state_dict())
    with pytest.raises(StateMismatchError, match="complete state_dict"):
        tuner.load_state_dict({**tuner.state_dict(), "num_told": None})
    assert same(tuner.state_dict(), before)
