"""Spaces, a drifting reward, and a run: what the tests of the tuner share."""

import io
import math

import torch

import botorch_costly as bc
from tests.tuners.online.grouped import grouped

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "dropout": bc.Real(0.0, 0.6)})
MIXED = bc.SearchSpace(
    {
        "lr": bc.Real(1e-4, 1e-1, log=True),
        "depth": bc.Integer(1, 4),
        "policy": bc.Choice(["a", "b"]),
    }
)
LATTICE = bc.SearchSpace({"depth": bc.Integer(1, 6), "width": bc.Integer(1, 5)})
ARMS = bc.SearchSpace({"arm": bc.Choice(["left", "middle", "right"])})
FORGETTING = 0.05
SPACES = {"cube": SPACE, "mixed": MIXED, "lattice": LATTICE, "arms": ARMS}


def reward_of(config, round):
    """Smooth in numbers, uneven in choices, drifting over the rounds."""
    value = math.sin(round / 15)
    for number in config.values():
        value += math.sin(3 * number) if isinstance(number, float | int) else 0.1 * len(number)
    return value


def play(tuner, rounds, reward=reward_of):
    decisions = []
    for _ in range(rounds):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, reward(decision.config, decision.round))
        decisions.append(decision)
    return decisions


def make(space=SPACE, **options):
    """A tuner that decides every round anew, on rewards as they are."""
    options = {"horizon": 60, "num_restarts": 8, "seed": 3, **options}
    return bc.OnlineTuner.as_published(space, **grouped(options, published=True))


def priced(space=SPACE, price=0.05, query=None, **options):
    """A tuner whose queries have a price."""
    query = query or bc.PricedQuery(price=price)
    return make(space, query=query, **{"forgetting": FORGETTING, "num_restarts": 4, **options})


def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)
