"""Rounds without a step of the optimizer among the parts earn one warning that says why."""

import copy
import pickle
import sys
import threading

import pytest
import torch
from torch import nn

import botorch_costly as bc
from botorch_costly.integrations import apply
from botorch_costly.rewards import GainReward, GuardedReward
from botorch_costly.rewards.idle_rounds import IdleRounds
from tests.cases import slow

SPACE = bc.SearchSpace({"lr": bc.Real(1e-5, 1e-1, log=True)})
_IDLE, _OTHER, _TWICE, _UNAPPLIED = (
    "had no step of the optimizer among the parts",
    "SGD trains instead",
    "was ask called twice",
    "are not applied",
)
STEPS = 30


def network():
    torch.manual_seed(0)
    return nn.Linear(2, 1)


def sgd(module, **options):
    return torch.optim.SGD(module.parameters(), lr=1e-2, **options)


def train(module, optimizer, steps=STEPS, *, accumulate=1, closure=False):
    def loss():
        optimizer.zero_grad()
        value = (module(torch.ones(8, 2)) - 1).square().mean()
        value.backward()
        return value

    for step in range(steps):
        if closure:
            optimizer.step(loss)
            continue
        (module(torch.rand(8, 2)) - 1).square().mean().backward()
        if (step + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()


def play(parts, round_of, *, rounds=40, kind="session", copied=lambda run: run):
    """Play a run, or a copy of it; ``round_of(decision, session)`` trains."""
    if kind == "session":
        session = copied(bc.Session(SPACE, rounds, *parts, queries=1.0))
        for decision in session:
            round_of(decision, session)
            session.tell(session.tuner.decisions[-1], 0.5)
        return
    guard = copied(GuardedReward.of(GainReward("loss"), *parts))
    tuner = bc.OnlineTuner(SPACE, 14, query=bc.AlwaysQuery())
    for _ in range(14):
        decision = tuner.ask()
        round_of(decision, None)
        tuner.tell(decision, guard(0.5, decision))


def pickled(run):
    return pickle.loads(pickle.dumps(run))


def count(caplog, part):
    return sum(part in message for message in caplog.messages)


def remade(net, optimizer):
    def one(decision, session):
        apply(decision, optimizer, net)
        train(net, sgd(net))

    return one


def elsewhere(net, optimizer):
    other = network()
    trained = sgd(other)

    def one(decision, session):
        apply(decision, trained, other)
        train(other, trained)

    return one


@pytest.mark.parametrize(
    ("mistake", "kind"),
    [
        (remade, "guard"),
        (elsewhere, "session"),
        slow((remade, "session")),
        slow((elsewhere, "guard")),
    ],
)
def test_another_optimizer_that_trains_is_named_once(kind, mistake, caplog):
    net = network()
    optimizer = sgd(net)
    play((net, optimizer), mistake(net, optimizer), kind=kind)
    assert (count(caplog, _IDLE), count(caplog, _OTHER), count(caplog, _UNAPPLIED)) == (1, 1, 0)


@pytest.mark.parametrize("kind", ["session", "guard"])
@pytest.mark.parametrize("way", [copy.deepcopy, pickled])
def test_a_copy_of_a_run_does_not_train_what_the_run_was_made_of(kind, way, caplog):
    net = network()
    optimizer = sgd(net)

    def one(decision, session):
        apply(decision, optimizer, net)
        train(net, optimizer)

    play((net, optimizer), one, kind=kind, copied=way)
    assert (count(caplog, _IDLE), count(caplog, _OTHER), count(caplog, _UNAPPLIED)) == (1, 1, 0)


@pytest.mark.parametrize("way", [copy.deepcopy, pickled])
def test_a_copy_with_its_parts_is_watched_like_the_run(way, caplog):
    net = network()
    optimizer = sgd(net)
    session = bc.Session(SPACE, 40, net, optimizer, queries=1.0)
    session, net, optimizer = way((session, net, optimizer))
    for decision in session:
        apply(decision, optimizer, net)
        train(net, optimizer)
        session.tell(decision, 0.5)
    assert count(caplog, _IDLE) == count(caplog, _UNAPPLIED) == 0
    session, net = way((bc.Session(SPACE, 40, net, optimizer, queries=1.0), net))
    other = sgd(net, momentum=0.9)
    for decision in session:
        apply(decision, other, net)
        train(net, other)
    assert count(caplog, "Make it once") == 1


def test_one_with_moments_earns_that_warning_alone(caplog):
    net = network()
    other = sgd(net, momentum=0.9)
    play((net, sgd(net)), lambda decision, session: train(net, other))
    assert count(caplog, "Make it once") == 1
    assert count(caplog, _IDLE) == count(caplog, _UNAPPLIED) == 0


@pytest.mark.parametrize("kind", ["session", "guard"])
def test_a_forgotten_step_is_noticed(kind, caplog):
    net = network()
    optimizer = sgd(net)
    play((net, optimizer), lambda *_: net(torch.ones(8, 2)).mean().backward(), kind=kind)
    assert count(caplog, _TWICE) == 1


def test_a_second_ask_in_a_loop_is_noticed(caplog):
    net = network()
    optimizer = sgd(net)

    def one(decision, session):
        apply(session.ask(), optimizer, net)
        train(net, optimizer)

    play((net, optimizer), one)
    assert count(caplog, _TWICE) == 1


def in_other_ways(net, optimizer):
    """Rounds that train, by name."""
    weights = list(net.parameters())

    def unseen(*_):
        with torch.no_grad():
            for weight in weights:
                weight.sub_(1e-3)

    def over_rounds(decision, session):
        if decision.round % 3 == 2:
            train(net, optimizer, 1)

    def second_of_two(decision, session):
        if decision.round % 2:
            train(net, optimizer, 2)

    return {
        "plain": lambda *_: train(net, optimizer),
        "accumulated": lambda *_: train(net, optimizer, accumulate=STEPS),
        "over rounds": over_rounds,
        "over two rounds": second_of_two,
        "unseen": unseen,
        "closure": lambda *_: train(net, optimizer, 4, closure=True),
    }


@pytest.mark.parametrize("kind", ["session", "guard"])
@pytest.mark.parametrize("way", in_other_ways(network(), None))
def test_rounds_that_train_earn_no_warning(way, kind, caplog):
    net = network()
    optimizer = torch.optim.LBFGS(net.parameters()) if way == "closure" else sgd(net)
    play((net, optimizer), in_other_ways(net, optimizer)[way], kind=kind)
    assert count(caplog, _IDLE) == 0


def test_a_run_without_an_optimizer_among_the_parts_earns_none(caplog):
    net = network()
    play((net,), lambda *_: train(net, sgd(net)))
    play((net,), lambda *_: None)
    assert count(caplog, _IDLE) == 0


def test_what_cannot_be_compared_earns_none(caplog):
    """Parameters of the ``meta`` device, and sharded ones, say nothing about their values."""
    module = nn.Linear(2, 1, device="meta")
    rounds = IdleRounds([sgd(module)])
    for _ in range(12):
        rounds.begin_round()
        rounds.end_round()
    assert count(caplog, _IDLE) == 0


def test_a_part_of_unknown_kind_may_hold_the_optimizer_that_trains(caplog):
    class Holder:
        def __init__(self, inner):
            self.state_dict, self.load_state_dict = inner.state_dict, inner.load_state_dict

    net = network()
    trained = sgd(net)
    play((net, sgd(net), Holder(trained)), lambda *_: train(net, trained))
    assert count(caplog, _IDLE) == 0


def test_a_run_that_begins_slowly_is_no_reason_for_a_warning(caplog):
    """Gradients of eight rounds are one step; a discriminator is trained alone for five rounds."""
    module = network()
    optimizer = sgd(module)
    rounds = []

    def accumulated(decision, session):
        (module(torch.rand(8, 2)) - 1).square().mean().backward()
        rounds.append(decision)
        if len(rounds) % 8 == 0:
            optimizer.step()
            optimizer.zero_grad()

    play((module, optimizer), accumulated, rounds=60)
    generator, discriminator = network(), network()
    own, other = sgd(generator), sgd(discriminator)

    def adversarial(decision, session):
        train(discriminator, other, 5)
        if decision.round >= 5:
            train(generator, own, 5)

    play((generator, own), adversarial, rounds=60)
    assert _IDLE not in caplog.text


def test_steps_of_one_thread_do_not_disturb_watches_of_another():
    module = network()
    optimizer = sgd(module)
    raised, before, stop = [], sys.getswitchinterval(), threading.Event()

    def steps():
        try:
            while not stop.is_set():
                optimizer.step()
        except Exception as error:
            raised.append(error)

    sys.setswitchinterval(1e-6)
    try:
        thread = threading.Thread(target=steps)
        thread.start()
        for _ in range(30):
            watches = [IdleRounds((module, optimizer)) for _ in range(20)]
            for one in watches:
                one.end()
        stop.set()
        thread.join()
    finally:
        sys.setswitchinterval(before)
    assert raised == []
