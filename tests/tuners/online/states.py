"""States: stopped runs, spaces to stop them on, and whether two of them are the same."""

import torch

import botorch_costly as bc
from tests.tuners.online.playing import SPACES as EVERYDAY

HUGE = bc.SearchSpace({**{f"i{i}": bc.Integer(0, 2) for i in range(8)}, "j": bc.Integer(1, 2**40)})
SPACES = {**EVERYDAY, "huge": HUGE}


def leaves(state):
    if isinstance(state, dict):
        return [leaf for key in state for leaf in leaves(state[key])]
    if isinstance(state, list | tuple):
        return [leaf for part in state for leaf in leaves(part)]
    return [state]


def same(ours, theirs):
    pairs = zip(leaves(ours), leaves(theirs), strict=True)
    # A value that is not known is NaN, and equal to itself.
    return all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b or (a != a and b != b)
        for a, b in pairs
    )


def count_slowly(tuner):
    told = {o.round for o in tuner.observations}
    return sum(d.query or d.round in told for d in tuner.decisions)
