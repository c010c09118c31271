"""Trainings with curves that are known, for the optimizer to play."""

import math
from functools import cache

import botorch_costly as bc

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "width": bc.Integer(1, 8)})
LENGTH = 32


def reward(config, iteration):
    """Rise to a value that is best at a rate of 0.01 and a width of 5."""
    end = -((math.log10(config["lr"]) + 2) ** 2) - 0.1 * (config["width"] - 5) ** 2
    return end - 4 * (1 - end) / (3 + iteration)


def curve_of(segment):
    return [reward(segment.config, at) for at in range(segment.since + 1, segment.until + 1)]


def play(optimizer, segments, *, change=lambda value: value, unit=1.0):
    """Ask and tell; return what was asked for."""
    asked = []
    for _ in range(segments):
        segment = optimizer.ask()
        curve = [change(value) for value in curve_of(segment)]
        optimizer.tell(segment, curve, cost=unit * segment.iterations * segment.config["width"])
        asked.append(segment)
    return asked


def made(seed=0, **options):
    options = {"search": bc.Search(num_restarts=4), **options}
    return bc.CurveOptimizer(SPACE, LENGTH, seed=seed, **options)


@cache
def run_of(seed, rounds=40):
    """Return a run that tests read, and copy to go on with: the optimizer, and what it asked for."""
    optimizer = made(seed)
    return optimizer, play(optimizer, rounds)
