"""A population in training: members that copy each other's weights, with what decides on it."""

import copy
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch

from benchmarks.suite.protocol import OnlineProblem, TrainingRun

_ORDER = 1000  # seeds between two runs: the members of one see the examples in different orders


class Plan(NamedTuple):
    """What the members do until they are compared again."""

    configs: Sequence[Mapping[str, Any]]
    origins: Sequence[int]  # whose weights each goes on from
    queries: Sequence[bool]


class Decider(Protocol):
    """Says what members do, and hears which losses came of it."""

    def plan(self) -> Plan:
        """Return what the members do next."""

    def hear(self, losses: Sequence[float | None]) -> None:
        """Hear the loss of each member that was queried; infinite where it diverged."""


class Ended(NamedTuple):
    """How a population ended."""

    test_accuracy: float  # of the member that is handed over, the best by validation
    test_loss: float
    queries: int
    seconds: float  # of training, queries and decisions
    deciding: float  # of these, the seconds of decisions


class Size(NamedTuple):
    """What every method pays alike."""

    members: int
    decisions: int
    rounds: int  # of a member between two decisions


def play(problem: OnlineProblem, decider: Decider, seed: int, size: Size) -> Ended:
    """Train a population; all members are queried at the end, and the best is handed over."""
    runs = [_member(problem, seed, i) for i in range(size.members)]
    queries, deciding, began = 0, 0.0, time.perf_counter()
    losses: list[float | None] = []
    for number in range(size.decisions):
        asked = time.perf_counter()
        plan = decider.plan()
        deciding += time.perf_counter() - asked
        _go_on_from(runs, plan.origins)
        for run, config in zip(runs, plan.configs, strict=True):
            for _ in range(size.rounds):
                run.train_round(config)
        last = number == size.decisions - 1
        asked_of = [query or last for query in plan.queries]
        losses = [
            run.validate().loss if asked else None
            for run, asked in zip(runs, asked_of, strict=True)
        ]
        queries += sum(asked_of)
        told = time.perf_counter()
        decider.hear(losses)
        deciding += time.perf_counter() - told
    known = [math.inf if loss is None else loss for loss in losses]
    test = runs[known.index(min(known))].test()
    seconds = time.perf_counter() - began
    return Ended(test.accuracy, min(test.loss, 1e9), queries, seconds, deciding)


def _member(problem: OnlineProblem, seed: int, member: int) -> TrainingRun:
    """Return a member: data and first weights are those of the seed, the order of examples is its own."""
    run = problem.setup(seed)
    order = torch.Generator().manual_seed(_ORDER * (seed + 1) + member).get_state()
    run.load_state_dict({**run.state_dict(), "generator": order})
    return run


def _go_on_from(runs: Sequence[TrainingRun], origins: Sequence[int]) -> None:
    """Give members the weights that others have now."""
    moved = {m: origin for m, origin in enumerate(origins) if m != origin}
    saved = {origin: copy.deepcopy(runs[origin].save()) for origin in set(moved.values())}
    for member, origin in moved.items():
        runs[member].restore(saved[origin])
