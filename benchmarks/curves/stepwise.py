"""Trainings that go on by steps of a grid, for rivals that choose the next step again and again."""

import math

import torch
from torch import Generator, Tensor

from benchmarks.curves.play import SHARES, on_grid
from botorch_costly.problems import CurveProblem
from botorch_costly.problems.curves import Segment

AT_FIRST = 3  # configurations that begin before a model is asked
GROWTH = 1.2  # factor in steps from which a curve model is made anew
MOST_STEPS = 30  # of a fit of a curve model


class Stepwise:
    """Trainings that go on by steps of a grid.

    Args:
        problem: The trainings.
        generator: Draws the order in which new configurations are offered.
    """

    def __init__(self, problem: CurveProblem, generator: Generator) -> None:
        self._problem = problem
        self._order = torch.randperm(len(problem), generator=generator).tolist()
        self.curves: dict[int, Tensor] = {}
        self.costs: dict[int, float] = {}  # so far, in means of the cost of a whole training
        self.done: dict[int, int] = {}  # steps of the grid
        self._broken: set[int] = set()

    @property
    def steps(self) -> int:
        """All steps that were made."""
        return sum(self.done.values())

    @property
    def best(self) -> float:
        """The best last reward, minus infinity before the first."""
        return max((float(c[-1]) for c in self.curves.values() if len(c)), default=-math.inf)

    def choice(self, most: int | None = None) -> list[int]:
        """Return what may be trained, at most so many new configurations first."""
        fresh = [config for config in self._order if config not in self.done][:most]
        going_on = [c for c, done in self.done.items() if c not in self._broken and done < SHARES]
        return fresh + going_on

    def seen(self) -> tuple[Tensor, Tensor]:
        """Return configurations ``c x d`` and curves ``c x grid``, NaN where nothing was seen.

        A training that broke has the lowest reward of all at its end.
        """
        curves = [on_grid(self._problem, c, v) for c, v in self.curves.items()]
        lowest = min(float(v.min()) for v in self.curves.values() if len(v))
        for config, curve in zip(self.curves, curves, strict=True):
            if config in self._broken:
                curve[-1] = lowest
        return self._problem.inputs[list(self.curves)], torch.stack(curves)

    def table(self) -> Tensor:
        """Return the curve of each configuration as in ``seen``, shape ``n x grid``."""
        table = torch.full((len(self._problem), SHARES), math.nan, dtype=torch.float64)
        if self.best > -math.inf:
            table[list(self.curves)] = self.seen()[1]
        return table

    def next_stop(self, config: int) -> int:
        """Return the iteration of the next step that is a further one."""
        length, before = int(self._problem.lengths[config]), len(self.curves.get(config, ()))
        done = self.done.get(config, 0) + 1
        while math.ceil(done * length / SHARES) <= before:
            done += 1
        until = math.ceil(done * length / SHARES)
        self.done[config] = done if until < length else SHARES
        return until

    def told(self, config: int, segment: Segment) -> None:
        """Enter what a step has shown."""
        self.curves[config] = segment.curve
        self.costs[config] = self.costs.get(config, 0.0) + segment.cost
        if segment.broken:
            self._broken.add(config)


def grid_shares() -> Tensor:
    """Return the shares of a training after each step of the grid, shape ``grid``."""
    return torch.arange(1, SHARES + 1, dtype=torch.float64) / SHARES
