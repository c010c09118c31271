"""Optimizers, and what is wrapped around them, are copied, sent and called by threads as a whole.

The kinds: an object that holds a generator, a tensor or a function cannot be copied, pickled or sent to a
process that is spawned, or shares memory with its copy; and two threads that call one object get the same
round, or leave it half changed.
"""

import copy
import math
import multiprocessing.reduction
import pickle
import sys
import threading

import pytest
import torch
import torch.multiprocessing

import botorch_costly as bc
from botorch_costly.ask_tell.earlier_names import EarlierNames
from botorch_costly.ask_tell.serial import Serial
from botorch_costly.bandits import UCB1, BanditPlayer, BanditPolicy
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.integrations.distributed import SharedTuner
from botorch_costly.integrations.loggers import CsvLogger, LoggedTuner, ProgressBar
from tests.registry.optimizers import OPTIMIZERS
from tests.tuners.online.states import same

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)})
FORKING = multiprocessing.reduction.ForkingPickler  # of queues and of the starts of processes
# The plan of a TwinTuner is a generator of Python, which its own tests send and copy.
CASES = {name: case for name, case in OPTIMIZERS.items() if name != "TwinTuner"}
QUICK = {"TransferOptimizer by gaps", "OnlineTuner", "BanditTuner GPUCB", "BanditTuner EXP3S"}
QUICK |= {"FixedTuner", "RandomTuner", "PopulationTuner", "CurveOptimizer of candidates"}
QUICK |= {"SubsetOptimizer"}
NAMES = [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in CASES]
COPIES = {
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
    "sent": lambda one: pickle.loads(FORKING.dumps(one)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def step(case, optimizer, asked=None):
    asked = optimizer if asked is None else asked
    suggestion = asked.ask()
    if suggestion.query:
        case.tell(optimizer, suggestion, math.sin(suggestion.id))
    return suggestion


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_goes_on_alike_and_what_it_learns_is_its_own(name):
    case = CASES[name]
    optimizer = case.make(0)
    for _ in range(4):
        step(case, optimizer)
    before = copy.deepcopy(optimizer.state_dict())
    copies = [copied(copied(optimizer)) for copied in COPIES.values()]
    courses = [[step(case, one) for _ in range(3)] for one in copies]
    assert all(course == courses[0] for course in courses)
    assert same(optimizer.state_dict(), before)
    assert [step(case, optimizer) for _ in range(3)] == courses[0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrapped", [SharedTuner, lambda tuner: LoggedTuner(tuner, ProgressBar())])
def test_a_wrapped_tuner_is_copied_with_its_tuner(name, wrapped):
    case = CASES[name]
    around = wrapped(case.make(0))
    step(case, around.tuner, around)
    for copied in COPIES.values():
        other = copied(around)
        assert same(other.state_dict(), around.state_dict())
        assert other.ask() == copy.deepcopy(around).ask()


def test_nothing_of_an_optimizer_lies_in_memory_that_processes_share():
    """The pickler of processes shares each tensor that it meets: it may meet none."""
    tuner = bc.OnlineTuner(SPACE, 9)
    tuner.tell(tuner.ask(), 0.5)
    assert b"rebuild_storage" not in bytes(FORKING.dumps(tuner))
    assert b"rebuild_storage" in bytes(FORKING.dumps(torch.zeros(3)))  # as it is done otherwise


def test_a_player_of_bandits_is_sent_as_well():
    policy = BanditPolicy("UCB1", UCB1(), bc.AlwaysQuery())
    player = BanditPlayer(policy, 2, 3)
    player.chance()
    assert b"rebuild_storage" in bytes(FORKING.dumps(player))  # its tensors are tensors
    generator = copy.deepcopy(player)._generator
    assert b"rebuild_storage" not in bytes(FORKING.dumps(generator))


def child(rank, tuners, queue):
    queue.put([tuner.ask().to_dict() for tuner in tuners])


@pytest.mark.slow
def test_a_process_that_is_spawned_gets_tuners_that_decide_as_ours(tmp_path):
    tuners = [case.make(0) for case in CASES.values()]
    tuners += [LoggedTuner(CASES["OnlineTuner"].make(0), CsvLogger(tmp_path / "run.csv"))]
    tuners += [SharedTuner(CASES["RandomTuner"].make(0))]
    queue = torch.multiprocessing.get_context("spawn").SimpleQueue()
    torch.multiprocessing.spawn(child, (tuners, queue), nprocs=1)
    assert queue.get() == [tuner.ask().to_dict() for tuner in tuners]


def test_an_option_that_cannot_be_pickled_is_named_and_can_be_copied_all_the_same():
    tuner = bc.OnlineTuner(
        SPACE,
        9,
        acquisition=lambda belief, now: bc.UCB(1.0)(belief, now),
        design=bc.Design(rounds=0),
    )
    tuner.tell(tuner.ask(), 0.5)
    with pytest.raises(
        InvalidArgumentError, match=r"OnlineTuner: Expected options that can be pickled"
    ):
        pickle.dumps(tuner)
    assert copy.deepcopy(tuner).ask() == tuner.ask()


class Both:
    def __init__(self, around):
        self.around, self.tuner = around, around.tuner


def test_a_tuner_that_is_held_twice_is_one_tuner_in_a_copy():
    tuner = bc.RandomTuner(SPACE)
    for copied in COPIES.values():
        shared = copied(Both(SharedTuner(tuner)))
        assert shared.around.tuner is shared.tuner


@pytest.mark.parametrize("name", CASES)
def test_all_that_is_public_holds_the_lock(name):
    """The earlier names call the present ones."""
    for base in type(CASES[name].make(0)).__mro__:
        public = [member for member in vars(base) if not member.startswith("_")]
        assert not public or issubclass(base, Serial) or base is EarlierNames, (base, public)


@pytest.fixture
def eager():
    """Threads that change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(call, count=4):
    raised = []

    def run():
        try:
            call()
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert raised == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrapped", [None, SharedTuner, lambda tuner: LoggedTuner(tuner, [])])
def test_threads_get_each_round_once_and_what_they_tell_is_all_there(name, wrapped, eager):
    case = CASES[name]
    optimizer = case.make(0)
    around = optimizer if wrapped is None else wrapped(optimizer)
    rounds = []

    def call():
        for _ in range(2):
            rounds.append(step(case, optimizer, around).round)
            assert len(optimizer.history) >= 1
            optimizer.state_dict()

    in_threads(call)
    assert sorted(rounds) == list(range(8))
    assert {one.round for one in optimizer.observations} | {
        one.round for one in optimizer.decisions if not one.query
    } == set(range(8))


@pytest.mark.parametrize("name", NAMES)
def test_a_call_within_inference_mode_decides_as_outside(name):
    case = CASES[name]
    ours, theirs = case.make(0), None
    with torch.inference_mode():
        theirs = case.make(0)
        inside = [step(case, theirs) for _ in range(5)]
    assert inside == [step(case, ours) for _ in range(5)]
    assert step(case, theirs) == step(case, ours)
