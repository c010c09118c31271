"""Two objects that bring one network back to earlier states in turn earn one warning."""

import copy
import gc
import itertools

import pytest
import torch

import botorch_costly as bc
from botorch_costly.rewards import GainReward, GoodState, GuardedReward

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)})


def parts():
    network = torch.nn.Linear(2, 1)
    return network, torch.optim.SGD(network.parameters(), lr=0.1)


class SessionPlayer:
    """Plays rounds of a session."""

    def __init__(self, *held):
        self.session = bc.Session.of(bc.TwinTuner(SPACE, 60, start={"lr": 1e-2}), *held)

    def act(self, number):
        decision = self.session.ask()
        if decision.query:
            self.session.tell(decision, 1.0 / (1 + number))


class GuardPlayer:
    """Tells metrics to a guard."""

    def __init__(self, *held):
        self.guard = GuardedReward.of(GainReward("loss"), *held)

    def act(self, number):
        self.guard(1.0 / (1 + number), number)


class StatePlayer:
    """Tells metrics to a good state."""

    def __init__(self, *held):
        self.good = GoodState(*held)

    def act(self, number):
        self.good.follow(1.0 / (1 + number), number)


PLAYERS = [SessionPlayer, GuardPlayer, StatePlayer]


def in_turn(caplog):
    return [text for text in caplog.messages if "to earlier states in turn" in text]


@pytest.mark.parametrize("kinds", [*itertools.product(PLAYERS, PLAYERS)])
def test_two_that_alternate_earn_one_warning(kinds, caplog):
    network, optimizer = parts()
    players = [kinds[0](network, optimizer), kinds[1](network)]
    players[0].act(0)
    players[1].act(0)
    assert not in_turn(caplog)
    for number in range(1, 6):
        for player in players:
            player.act(number)
    (message,) = in_turn(caplog)
    assert "the same Linear back" in message


@pytest.mark.parametrize("kind", PLAYERS)
def test_one_after_the_other_and_networks_of_their_own_earn_none(kind, caplog):
    held = parts()
    runs = [kind(*held) for _ in range(3)]
    for player in runs:
        for number in range(4):
            player.act(number)
    players = [kind(*parts()), kind(*parts()), runs[-1]]
    for number in range(4, 8):
        for each in players:
            each.act(number)
    assert not in_turn(caplog)


@pytest.mark.parametrize("kind", PLAYERS)
def test_one_that_is_gone_and_copies_of_all_earn_none(kind, caplog):
    held = parts()
    player, other = kind(*held), kind(*held)
    player.act(0)
    other.act(0)
    del other
    gc.collect()
    player.act(1)
    again = copy.deepcopy(player)  # with its parts
    for number in (2, 3):
        player.act(number)
        again.act(number)
    assert not in_turn(caplog)
