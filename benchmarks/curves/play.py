"""Policies on recorded curves: what each pays for, and the best network it has in its hands."""

import math
from collections.abc import Callable, Generator
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.problems import CurveProblem
from botorch_costly.problems.curves import Segment

SHARES = 16  # at which curve models see a training
LEAST_COST = 1e-6  # of what a model of costs is told: clocks were not always read


class Ask(NamedTuple):
    """A configuration, and the iterations that it is to be trained for."""

    config: int
    until: int
    anew: bool = False  # from scratch, whatever it has been trained for


class Point(NamedTuple):
    """Where a policy stands after a segment."""

    paid: float  # in means of the costs of a whole training
    regret: float
    found: int | None = None  # the configuration with the best latest reward


Steps = Generator[Ask, Segment, None]
Policy = Callable[[CurveProblem, int, float], Steps]
"""Yields what it asks for and is sent what came of it; told the problem, a seed and a budget.

Costs and budgets are in means of the cost of a whole training.
"""


def play(problem: CurveProblem, policy: Policy, seed: int, budget: float) -> list[Point]:
    """Play a policy until it has spent its budget or asks for nothing more.

    The regret of a moment is that of the best latest reward of all trainings: a network that is at hand.
    A segment that goes beyond the budget counts for nothing. The budget is in mean costs of a whole
    training. A policy may read the inputs and lengths of the problem, and nothing else.
    """
    mean = float(problem.costs.mean())
    steps = policy(problem, seed, budget)
    trained: dict[int, int] = {}
    found: int | None = None
    paid, best, points = 0.0, problem.worst, [Point(0.0, problem.best - problem.worst)]
    ask: Ask | None = next(steps, None)
    while ask is not None:
        since = 0 if ask.anew else trained.get(ask.config, 0)
        segment = problem.advance(ask.config, since, ask.until)
        told = segment._replace(cost=segment.cost / mean)
        paid += told.cost
        if paid > budget:
            break
        trained[ask.config] = ask.until
        if len(told.curve) and (found is None or float(told.curve[-1]) > best):
            best, found = max(best, float(told.curve[-1])), ask.config
        points.append(Point(paid, problem.best - best, found))
        try:
            ask = steps.send(told)
        except StopIteration:
            break
    return points


def regret_at(points: list[Point], paid: float) -> float:
    """Return the regret when so many means of the cost of a whole training were paid."""
    return point_at(points, paid).regret


def point_at(points: list[Point], paid: float) -> Point:
    """Return where a policy stands when so many means of the cost of a whole training were paid."""
    return next(point for point in reversed(points) if point.paid <= paid)


def on_grid(problem: CurveProblem, config: int, curve: Tensor, shares: int = SHARES) -> Tensor:
    """Return a curve at equally spaced shares of its training, NaN beyond its present end."""
    length = int(problem.lengths[config])
    at = torch.tensor([math.ceil(step * length / shares) for step in range(1, shares + 1)])
    seen = torch.full((shares,), math.nan, dtype=torch.float64)
    known = at <= len(curve)
    seen[known] = curve[at[known] - 1].double()
    return seen
