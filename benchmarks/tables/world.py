"""Drifting functions of Table A2 that every policy meets, with the same noise and the same coins."""

import argparse
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_costly.problems import DriftingFunction
from botorch_costly.simulation import Draws, GridPolicy, Run, draw, play

AT_ONCE = 50  # trials side by side in one process


@dataclass(frozen=True)
class World:
    """A truth, and what chance decides in some trials of it: the same for every policy."""

    truth: DriftingFunction
    draws: Draws

    @classmethod
    def draw(
        cls,
        forgetting: float,
        trials: range | int = 50,
        horizon: int = 500,
        points: int = 1000,
        seed: int = 0,
        device: str = "cpu",
    ) -> "World":
        """Draw trials by their numbers, or the first so many."""
        truth = DriftingFunction.on_unit_interval(points, forgetting)
        numbers = trials if isinstance(trials, range) else range(trials)
        return cls(truth, draw(truth, numbers, horizon, seed).to(device))

    @property
    def paths(self) -> Tensor:
        """The functions, shape ``(trials, horizon, points)``."""
        return self.draws.paths

    @property
    def noise(self) -> Tensor:
        """What a query adds to the value, shape ``(trials, horizon)``."""
        return self.draws.noise

    def play(self, policy: GridPolicy) -> Run:
        """Run a policy, some trials at once: arrays of what it did lead with the trials."""
        parts = (Draws(*part) for part in zip(*(p.split(AT_ONCE) for p in self.draws), strict=True))
        runs = [play(self.truth, [policy], part).of(0) for part in parts]
        return Run(*(torch.cat(part) for part in zip(*runs, strict=True)))


def draw_world(forgetting: float, options: argparse.Namespace) -> World:
    """Return the world that the options of ``size_parser`` describe."""
    size = options.trials, options.horizon, options.points
    return World.draw(forgetting, *size, options.seed, options.device)
