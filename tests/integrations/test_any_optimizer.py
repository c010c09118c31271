"""Every optimizer can be shared by ranks, logged, and both, with what its own ``tell`` takes.

The kind: a generic room that knows some optimizers by name, and meets another one.
"""

import json
import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, RankError
from botorch_costly.integrations import distributed
from botorch_costly.integrations.distributed import SharedTuner
from botorch_costly.integrations.driver import Driver
from botorch_costly.integrations.loggers import LoggedTuner
from botorch_costly.integrations.rounds import RoundLength
from botorch_costly.integrations.training import TrainerOptions
from tests.integrations.loggers.playing import Memory
from tests.registry.optimizers import OPTIMIZERS
from tests.tuners.online.states import same

ROUNDS = 6
QUICK = {"TransferOptimizer by gaps", "OnlineTuner", "BanditTuner EXP3S", "FixedTuner", "TwinTuner"}
QUICK |= {"PopulationTuner", "CurveOptimizer of candidates", "SubsetOptimizer", "RandomTuner"}
NAMES = [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in OPTIMIZERS]


class Told:
    """What the registry tells, told to what is around an optimizer."""

    def __init__(self, around, optimizer):
        self.tell, self.members = around.tell, getattr(optimizer, "members", None)


def play(case, around, optimizer, rounds=ROUNDS):
    decisions = []
    for _ in range(rounds):
        decision = around.ask()
        if decision.query:
            case.tell(Told(around, optimizer), decision, math.sin(decision.id))
        decisions.append(decision)
    return decisions


@pytest.mark.parametrize("name", NAMES)
def test_it_is_shared_and_logged_and_decides_as_by_itself(name, caplog):
    case, memory = OPTIMIZERS[name], Memory()
    alone, optimizer = case.make(0), case.make(0)
    logged = LoggedTuner(optimizer, memory)
    around = SharedTuner(logged)
    expected = play(case, alone, alone)
    assert play(case, around, optimizer) == expected
    assert same(alone.state_dict(), optimizer.state_dict())
    logged.close()
    assert [entry.decision for entry in memory.entries] == expected
    told = {one.round: one for one in optimizer.observations}
    assert [entry.observation for entry in memory.entries] == [told.get(i) for i in range(ROUNDS)]
    assert all(entry.row()["round"] == entry.round for entry in memory.entries)
    assert "could not log" not in caplog.text
    again = SharedTuner(LoggedTuner(case.make(0), Memory()))
    again.load_state_dict(around.state_dict())
    assert again.ask() == alone.ask()


def test_what_the_tuner_has_is_reached_through_its_logs():
    tuner = bc.PopulationTuner(bc.SearchSpace({"lr": bc.Real(0.1, 1.0)}), 3, members=2)
    logged = LoggedTuner(tuner, [])
    assert logged.members == 2
    assert logged.best_member() is None
    for name in ("_generator", "weights"):
        with pytest.raises(AttributeError, match=name):
            getattr(logged, name)


class Note(bc.Decision):
    """A decision of a tuner that a user has written."""


class Noting(bc.RandomTuner):
    def ask(self):
        return Note(**super().ask().to_dict())


def test_a_record_of_a_user_is_sent_and_one_that_a_rank_does_not_know_is_named():
    space = bc.SearchSpace({"lr": bc.Real(0.1, 1.0)})
    assert type(SharedTuner(Noting(space)).ask()) is Note
    with pytest.raises(RankError, match="a tuner as on rank 0, whose decisions are Other records"):
        distributed._decision(json.loads('{"kind": "Other", "values": {}}'))


SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)})


def session(tuner):
    return bc.Session.of(tuner, torch.nn.Linear(1, 1))


def driver(tuner):
    return Driver(tuner, TrainerOptions(RoundLength(steps=1)))


def logged(tuner):
    return LoggedTuner(tuner, [])


@pytest.mark.parametrize("within", [logged, SharedTuner, lambda tuner: SharedTuner(logged(tuner))])
@pytest.mark.parametrize(
    ("around", "kind", "said"),
    [
        (session, bc.TwinTuner, r"a TwinTuner .*LoggedTuner\(session, loggers\)"),
        (driver, bc.OnlineTuner, "which the driver shares among ranks itself"),
        (logged, bc.OnlineTuner, r"SharedTuner\(LoggedTuner\(\.\.\)\)"),
        (SharedTuner, bc.OnlineTuner, "an OnlineTuner or another Optimizer"),
    ],
)
def test_what_is_put_around_a_tuner_in_another_order_works_or_says_the_order(
    within, around, kind, said
):
    """Kind: of two objects that go around a tuner, the one is handed the other, and lacks its face."""
    inner = within(kind(SPACE, 20))
    if within is logged and around in (driver, logged, SharedTuner):
        assert around(inner).tuner is inner
        return
    with pytest.raises(InvalidArgumentError, match=f"tuner: Expected .*{said}"):
        around(inner)


def test_a_session_is_put_within_all_others():
    for around in (logged, SharedTuner, lambda tuner: SharedTuner(logged(tuner))):
        assert around(session(bc.TwinTuner(SPACE, 20))).ask().round == 0
    with pytest.raises(InvalidArgumentError, match="without a session"):
        driver(session(bc.TwinTuner(SPACE, 20)))
