"""What every optimizer makes of the seconds that its run may take."""

import copy
import pickle
from functools import partial

import pytest

import botorch_costly as bc
from botorch_costly.errors import (
    HorizonExceededError,
    InvalidArgumentError,
    StateMismatchError,
)
from botorch_costly.integrations.loggers import LoggedTuner
from tests.laws.optimizer_runs import step, through_a_file
from tests.registry.optimizers import OPTIMIZERS
from tests.tuners.online.states import same
from tests.validation.clock import Clock

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "depth": bc.Integer(1, 4)})
ARMS = bc.SearchSpace({"arm": bc.Choice(["left", "middle", "right"])})
STUDY = bc.Task([{"lr": 10.0**-k, "depth": k} for k in (1, 2, 3, 4)], [0.1, 0.4, 0.2, 0.3])
FEW = bc.Search(num_restarts=4)
ROUGH = bc.Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20, first=8)
KINDS = {
    "OnlineTuner": lambda **options: bc.OnlineTuner(SPACE, search=FEW, **options),
    "TwinTuner": lambda **options: bc.TwinTuner(SPACE, **options),
    "BanditTuner GPUCB": lambda **options: bc.BanditTuner(ARMS, **options),
    "PopulationTuner": lambda **options: bc.PopulationTuner(SPACE, members=3, **options),
    "CurveOptimizer": lambda **options: bc.CurveOptimizer(SPACE, 9, search=FEW, **options),
    "SubsetOptimizer": lambda **options: bc.SubsetOptimizer(SPACE, sampling=ROUGH, **options),
    "TransferOptimizer": lambda **options: bc.TransferOptimizer(SPACE, [STUDY], **options),
    "FixedTuner": lambda **options: bc.FixedTuner(ARMS, {"arm": "left"}, **options),
    "RandomTuner": lambda **options: bc.RandomTuner(ARMS, **options),
}
WITHIN_A_SHARE = {
    f"{name} within a share of the clock": partial(KINDS[name], overhead=0.2)
    for name in ("OnlineTuner", "TwinTuner", "PopulationTuner")
}
WITH_A_HORIZON = {
    f"{name} with a horizon": partial(KINDS[name], horizon=50)
    for name in ("OnlineTuner", "TwinTuner", "PopulationTuner", "FixedTuner")
}
SECONDS, ROUNDS = 5.5, 6  # rounds of a second each; the last one begins in time, and ends later


def test_each_class_is_here():
    classes = {type(case.make(0)) for case in OPTIMIZERS.values()}
    assert classes == {type(make(seconds=1.0)) for make in KINDS.values()}


@pytest.fixture(params=KINDS)
def name(request):
    return request.param


def timed(name, clock, seconds=SECONDS):
    optimizer = KINDS[name](seconds=seconds)
    optimizer._clocks.limit._clock = clock
    return optimizer


def played(name, optimizer, clock, rounds):
    for _ in range(rounds):
        step(OPTIMIZERS[name], optimizer)
        clock.seconds += 1.0


def test_a_run_ends_when_its_seconds_have_passed(name):
    clock = Clock()
    optimizer = timed(name, clock)
    clock.seconds += 100.0  # the clock starts with the first ask
    assert not optimizer.is_over
    played(name, optimizer, clock, ROUNDS - 1)
    last = optimizer.ask()
    assert not optimizer.is_over
    clock.seconds += 1.0
    assert optimizer.is_over
    with pytest.raises(HorizonExceededError, match=r"5\.5 seconds"):
        optimizer.ask()
    assert len(optimizer.decisions) == ROUNDS
    OPTIMIZERS[name].tell(optimizer, last, 0.5)  # an outcome may be told later
    assert optimizer.observations[-1].round == last.round
    assert "5.5 seconds" in optimizer.summary()


def warned_of_no_end(optimizer, readings, caplog):
    caplog.clear()
    assert not any(optimizer.is_over for _ in range(readings))
    return sum("is_over stays False" in record.message for record in caplog.records)


def test_a_loop_until_an_end_that_never_comes_earns_one_warning(name, caplog):
    for ends in ({"seconds": 60.0}, {"horizon": 9}):
        assert warned_of_no_end(KINDS[name](**ends), 30, caplog) == 0
    if name == "TwinTuner":
        with pytest.raises(InvalidArgumentError, match="seconds="):
            KINDS[name]()
        return
    endless = KINDS[name]()
    assert warned_of_no_end(endless, 3, caplog) == 0  # a trainer reads it once in a fit
    assert warned_of_no_end(endless, 30, caplog) == 1
    assert warned_of_no_end(LoggedTuner(KINDS[name](), []), 30, caplog) == 1


def test_a_resumed_run_has_the_seconds_that_were_left(name):
    clock, later = Clock(), Clock()
    optimizer = timed(name, clock)
    played(name, optimizer, clock, 4)
    resumed = timed(name, later)
    later.seconds += 1000.0
    resumed.load_state_dict(through_a_file(optimizer.state_dict()))
    played(name, resumed, later, ROUNDS - 4)
    assert resumed.is_over
    assert [d.round for d in resumed.decisions] == list(range(ROUNDS))


# Seconds of rounds, so that the rounds that a run is expected to have go up and down.
LASTS = (0.25, 0.5, 0.25, 0.25, 2.0, 1.0, 0.5, 0.5, 1.0, 0.25)


class Uneven:
    """A run whose rounds last for different times, from any of whose rounds another one goes on."""

    def __init__(self, name, seconds, began=0.0):
        make = {**KINDS, **WITHIN_A_SHARE, **WITH_A_HORIZON}[name]
        self.optimizer, self.clock = make(seconds=seconds), Clock()
        self.clock.seconds = began
        clocks = self.optimizer._clocks
        for part in filter(None, (clocks.limit, clocks.tariff)):
            part._clock = self.clock
        self.case = OPTIMIZERS[name.partition(" with")[0]]

    def round(self):
        """Play a round, and return what the optimizer says and holds after it."""
        step(self.case, self.optimizer)
        self.clock.seconds += LASTS[len(self.optimizer.decisions) % len(LASTS)]
        return self.facts()

    def facts(self):
        """Return the public properties, what is said of the run, and the state."""
        optimizer, passed = self.optimizer, ("position", "history")
        found = {
            name: repr(getattr(optimizer, name))
            for each in type(optimizer).__mro__
            for name, value in vars(each).items()
            if isinstance(value, property) and name[0] != "_" and name not in passed
        }
        said = optimizer.diagnose() if hasattr(optimizer, "diagnose") else None
        found |= {"summary": optimizer.summary(), "diagnose": repr(said)}
        return found, through_a_file(optimizer.state_dict())


@pytest.mark.filterwarnings("ignore")  # earlier names are read, too
@pytest.mark.parametrize("name", [*KINDS, *WITHIN_A_SHARE, *WITH_A_HORIZON])
def test_a_loaded_run_is_the_saved_one_however_the_expected_rounds_have_changed(name):
    """Kind: what follows from the clock of earlier rounds is made anew by the clock of now."""
    seconds = 20.0 if name.startswith(("Online", "Twin")) else 6.0
    run = Uneven(name, seconds)
    facts = [run.facts()]
    while not run.optimizer.is_over:
        facts.append(run.round())
    for stop in range(1, len(facts), 3):
        again = Uneven(name, seconds, began=4096.0)
        again.optimizer.load_state_dict(facts[stop][1])
        for number in range(stop, min(stop + 7, len(facts))):
            said, state = again.facts() if number == stop else again.round()
            assert said == facts[number][0]
            assert same(state, facts[number][1])


def test_a_run_is_given_more_seconds(name):
    clock = Clock()
    optimizer = timed(name, clock)
    played(name, optimizer, clock, ROUNDS)
    longer = timed(name, clock, seconds=9.5)
    with pytest.raises(StateMismatchError, match="seconds"):
        longer.load_state_dict(optimizer.state_dict())
    longer.load_state_dict(optimizer.state_dict(), changed=["seconds"])
    played(name, longer, clock, 4)
    assert longer.is_over


def test_a_copy_goes_on_with_the_seconds_that_were_left(name):
    clock = Clock()
    optimizer = timed(name, clock)
    played(name, optimizer, clock, 2)
    for copied in (copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        other = copied(optimizer)
        assert other._clocks.limit.elapsed == 2.0
        assert other.seconds == SECONDS


def test_rounds_end_a_run_that_has_seconds_left():
    clock = Clock()
    tuner = bc.OnlineTuner(SPACE, 3, seconds=SECONDS, clock=clock)
    played("OnlineTuner", tuner, clock, 3)
    assert tuner.is_over
    with pytest.raises(HorizonExceededError, match="3 rounds"):
        tuner.ask()


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), float("inf"), "60", [60]])
def test_seconds_are_a_positive_number(name, wrong):
    with pytest.raises(InvalidArgumentError, match="seconds"):
        KINDS[name](seconds=wrong)


def test_a_failed_first_ask_does_not_start_the_clock(monkeypatch):
    clock = Clock()
    tuner = timed("RandomTuner", clock)

    def fails(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(tuner._strategy, "suggest", fails)
        with pytest.raises(KeyboardInterrupt):
            tuner.ask()
    clock.seconds += 100.0
    played("RandomTuner", tuner, clock, ROUNDS)
    assert tuner.is_over


def test_no_clock_is_read_without_seconds_and_a_share():
    def broken():
        raise AssertionError

    tuner = bc.OnlineTuner(SPACE, 5, clock=broken)
    step(OPTIMIZERS["OnlineTuner"], tuner)
