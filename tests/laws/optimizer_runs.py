"""Runs of the optimizers of the registry, played once, from any of whose rounds a law goes on."""

import copy
import io
import math
from functools import cache

import torch

ROUNDS, MOST = 14, 7
WENT_ON = 9  # the round before which the run itself is kept
SAVED = (0, 1, 3, 5, 7, 9, 13)  # rounds before which the state of a run is kept


def step(case, optimizer):
    """Ask once, and tell what is to be told."""
    suggestion = optimizer.ask()
    if suggestion.query:
        case.tell(optimizer, suggestion, math.sin(suggestion.id))
    return suggestion


@cache
def saved_run(case):
    """Return the suggestions of a run, states of it before some of its rounds, and itself before one."""
    optimizer, whole, states, went_on = case.make(0), [], {}, None
    for number in range(ROUNDS):
        if number in SAVED:
            states[number] = copy.deepcopy(optimizer.state_dict())
        if number == WENT_ON:  # by what it holds itself, which no state has been loaded into
            optimizer, went_on = copy.deepcopy(optimizer), optimizer
        whole.append(step(case, optimizer))
    return whole, states, went_on


def after(case, rounds):
    """Return an optimizer after some of the rounds of ``saved_run``, one of ``SAVED``."""
    optimizer = case.make(0)
    optimizer.load_state_dict(saved_run(case)[1][rounds])
    return optimizer


def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)
