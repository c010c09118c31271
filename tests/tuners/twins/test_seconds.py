"""A session whose rounds are inferred from the seconds that it may take."""

import copy

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import HorizonExceededError
from botorch_costly.integrations.loggers import LoggedTuner
from tests.cases import quick, slow
from tests.tuners.twins.running import GOOD, Run
from tests.validation.clock import Clock

RATE = bc.SearchSpace({"lr": bc.Scheduled(1e-5, 1.0)})
START = {"lr": 1e-4}


def begun(seconds, horizon=None, **options):
    clock, run = Clock(), Run()
    tuner = bc.TwinTuner(RATE, horizon, start=START, seconds=seconds, clock=clock, **options)
    return bc.Session.of(tuner, run), run, clock


def play(session, run, clock, lasts=lambda number: 1.0, rounds=10**9):
    """Play rounds until time is over, or so many; a round lasts for some seconds."""
    while not session.is_over and rounds > 0:
        decision, rounds = session.ask(), rounds - 1
        run.train(decision.config)
        clock.seconds += lasts(decision.round)
        if decision.query:
            session.tell(decision, run.loss())


@pytest.mark.parametrize(
    ("lasts", "rounds"),
    [
        (lambda number: 1.0, 200),
        slow((lambda number: 0.125, 1600)),
        (lambda number: 1.0 if number else 50.0, 151),  # as with a compilation
        (lambda number: 1.0 if number < 100 else 2.0, 150),
        (lambda number: 1.0 if number < 100 else 0.5, 300),
    ],
)
def test_the_rate_falls_when_the_seconds_end(lasts, rounds):
    session, run, clock = begun(200.0)
    play(session, run, clock, lasts)
    assert len(session.decisions) == rounds
    rates = [decision.config["lr"] for decision in session.decisions]
    assert rates[-1] < 0.1 * session.best()["lr"]
    assert rates[-1] == min(rates[rounds // 2 :])
    assert GOOD / 10 < session.best()["lr"] < GOOD * 10
    assert run.progress > 0.5 * rounds * GOOD / 10  # the run learnt, and went back to what it kept
    assert session.tuner.state_of_incumbent is None


def test_seconds_find_what_rounds_find():
    """Of a run whose rounds last equally long, the seconds tell the rounds after two of them."""
    timed, run, clock = begun(300.0)
    play(timed, run, clock)
    told, other, clock = begun(None, 300)
    play(told, other, clock)
    assert len(timed.decisions) == len(told.decisions) == 300
    assert run.progress > 0.8 * other.progress


def test_seconds_end_a_run_before_its_horizon():
    session, run, clock = begun(100.0, 300)
    play(session, run, clock)
    assert len(session.decisions) == 100
    assert session.decisions[-1].config["lr"] < 0.2 * session.best()["lr"]


def uneven(number):
    """Return the seconds of a round, so that the rounds that are expected go up and down."""
    return (0.5, 1.0, 2.0, 0.25, 0.25, 1.0, 0.5)[number * number % 7]


def known(session):
    """Return what a session says of its run, and what its next decisions depend on."""
    tuner = session.tuner
    numbers = tuner.given_back, tuner.exploration_cost, tuner.expected_rounds, tuner.incumbent
    return session.summary(), session.diagnose(), numbers, tuner.state_dict()["progress"]


@pytest.mark.parametrize("lasts", [lambda number: 1.0, uneven], ids=["even", "uneven"])
@pytest.mark.parametrize("horizon", [None, 200])
def test_a_saved_run_goes_on_as_if_it_had_not_been_saved(horizon, lasts):
    session, run, clock = begun(120.0, horizon)
    facts, states = [known(session)], []
    while not session.is_over:
        states.append(copy.deepcopy((run.state_dict(), session.state_dict())))
        play(session, run, clock, lasts, rounds=1)
        facts.append(known(session))
    assert session.tuner.given_back > 0
    for stop in (1, 2, 3, 8, 20, 60, 90, 115):
        again, other, later = begun(120.0, horizon)
        other.load_state_dict(states[stop][0])
        again.load_state_dict(states[stop][1])
        for expected in facts[stop : stop + 8]:
            assert known(again) == expected
            play(again, other, later, lasts, rounds=1)
        assert again.decisions == session.decisions[: len(again.decisions)]


def test_a_run_that_was_finished_stays_so_if_it_is_loaded_with_equal_options():
    session, run, clock = begun(60.0, 200)
    play(session, run, clock, rounds=40)
    session.finish()
    again, other, later = begun(60.0, 200)
    play(again, other, later, lambda number: 0.125, rounds=20)  # what it expected is over, too
    other.load_state_dict(run.state_dict())
    again.load_state_dict(session.state_dict())
    assert again.tuner.is_settled
    assert known(again) == known(session)


def in_a_trial(session, run, clock):
    """Play until the parts are not in the state of the incumbent."""
    while session.tuner.state_of_incumbent is None:
        play(session, run, clock, rounds=1)


@pytest.mark.parametrize("asks", [True, False])
def test_a_run_whose_time_ends_in_a_trial_goes_back(asks):
    session, run, clock = begun(200.0)
    in_a_trial(session, run, clock)
    kept = session.tuner.kept[session.tuner.state_of_incumbent][0][0]["progress"]
    clock.seconds += 1000.0  # as on a suspended machine
    if asks:
        with pytest.raises(HorizonExceededError):
            session.ask()
    else:
        assert list(session) == []
    assert run.progress == kept
    assert session.tuner.state_of_incumbent is None


def test_a_finished_run_is_open_again_with_more_seconds():
    session, run, clock = begun(100.0)
    play(session, run, clock, rounds=40)
    session.finish()
    for seconds, changed in ((100.0, []), (300.0, ["seconds"])):
        longer, other, later = begun(seconds)
        other.load_state_dict(run.state_dict())
        longer.load_state_dict(session.state_dict(), changed=changed)
        assert longer.tuner.is_settled == (seconds == 100.0)
        play(longer, other, later)
        assert len(longer.decisions) == seconds


def test_a_run_is_judged_too_short_by_rounds_after_the_first():
    """The first round takes as long as a hundred others: 200 rounds of five steps are left."""
    network = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    clock = Clock()
    session = bc.Session(RATE, None, network, optimizer, start=START, seconds=300.0, clock=clock)
    for decision in session:
        bc.integrations.apply(decision, optimizer)
        for _ in range(5):
            network(torch.ones(1, 1)).square().mean().backward()
            optimizer.step()
        clock.seconds += 1.0 if decision.round else 100.0
        if decision.query:
            session.tell(decision, 1.0)
        if decision.round > 20:
            break
    assert not session.tuner.is_settled


def test_rounds_or_seconds_are_needed():
    with pytest.raises(ValueError, match="seconds="):
        bc.TwinTuner(RATE)


class Moving(Clock):
    """A clock that goes on at each reading, as real ones do."""

    def __init__(self, step=0.01):
        super().__init__()
        self.step = step

    def __call__(self):
        self.seconds += self.step
        return self.seconds


MOMENTS = [0.5 + 0.001 * i for i in range(40)]


@pytest.mark.parametrize("seconds", quick(MOMENTS, *MOMENTS[::3]))
def test_a_loop_ends_quietly_whenever_time_ends(seconds):
    run, clock = Run(), Moving()
    session = bc.Session.of(bc.TwinTuner(RATE, start=START, seconds=seconds, clock=clock), run)
    for decision in session:
        run.train(decision.config)
        if decision.query:
            session.tell(decision, run.loss())
    by_hand = bc.RandomTuner(RATE, 10**6, seconds=seconds)
    by_hand._clocks.limit._clock = Moving(0.003)
    while not by_hand.is_over:
        by_hand.ask()


def test_a_round_begins_if_time_has_ended_since_it_was_said_to_be_left():
    session, run, clock = begun(60.0)
    session.tuner.settle()  # so that each round is planned by itself
    play(session, run, clock, rounds=59)
    clock.seconds = 59.5
    assert not session.is_over
    clock.seconds = 60.5
    session.ask()
    with pytest.raises(HorizonExceededError):
        session.ask()


def test_a_logged_session_comes_back_too():
    session, run, clock = begun(200.0)
    in_a_trial(session, run, clock)
    kept = session.tuner.kept[session.tuner.state_of_incumbent][0][0]["progress"]
    clock.seconds += 1000.0
    assert list(LoggedTuner(session, [])) == []
    assert run.progress == kept


def rates_after(horizon, changed, rounds=95, seconds=5.0):
    """Rates of a run of 100 rounds that is given seconds near its end, from two rounds before."""
    first, run, clock = begun(None, 100)
    play(first, run, clock, rounds=rounds)
    second, other, later = begun(seconds, horizon)
    other.load_state_dict(run.state_dict())
    second.load_state_dict(first.state_dict(), changed=changed)
    play(second, other, later)
    return [decision.config["lr"] for decision in second.decisions[rounds - 2 :]]


@pytest.mark.parametrize("horizon", [None, 100])
def test_the_rate_goes_on_falling_with_seconds_in_place_of_rounds(horizon):
    changed = ["seconds"] if horizon else ["seconds", "horizon"]
    rates = rates_after(horizon, changed)
    assert rates == sorted(rates, reverse=True)
    assert len(rates) == 7


def test_a_finished_run_is_open_again_with_seconds_in_place_of_rounds():
    first, run, clock = begun(None, 40)
    play(first, run, clock, rounds=30)
    first.finish()
    second, other, _ = begun(300.0)
    other.load_state_dict(run.state_dict())
    second.load_state_dict(first.state_dict(), changed=["seconds", "horizon"])
    assert not second.tuner.is_settled


def test_a_run_of_unknown_length_does_not_wait_once_it_has_a_horizon():
    first, run, clock = begun(300.0)
    play(first, run, clock, rounds=1)
    second, other, later = begun(None, 300)
    other.load_state_dict(run.state_dict())
    second.load_state_dict(first.state_dict(), changed=["seconds", "horizon"])
    play(second, other, later, rounds=20)
    assert any(decision.keep is not None for decision in second.decisions[:5])


def test_a_limit_that_a_state_lacks_begins_anew():
    first, run, clock = begun(None, 300)
    play(first, run, clock, rounds=3)
    second, other, later = begun(50.0, 300)
    play(second, other, later, rounds=20)
    second.load_state_dict(first.state_dict(), changed=["seconds"])
    assert second.tuner._clocks.limit.elapsed == 0.0
