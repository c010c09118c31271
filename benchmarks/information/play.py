"""A run of a method on a problem: what it regrets after each evaluation, and how long it takes."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from benchmarks.information.methods import Method, Player, mean_of
from benchmarks.information.problems import Problem

INITIAL = 3  # random evaluations that all methods share
_LOOKED_AT, _AROUND = 2000, 200  # points among which the maximizer of a mean is looked for
_RADII = (0.05, 0.01, 0.002)


class Run(NamedTuple):
    """What came of a run; regrets after each evaluation from the last of the first ones on."""

    simple: list[float]  # maximum less the best value of an evaluated point
    inference: list[float]  # maximum less the value where the posterior mean is largest
    fit: list[float]  # seconds of the processor, by decision
    acquisition: list[float]


def play(problem: Problem, method: Method, seed: int, evaluations: int) -> Run:
    """Return the regrets and seconds of a method. First points and noise are the seed's, not its own.

    Args:
        problem: What is played.
        method: What plays.
        seed: Of first points, noise and the method's draws.
        evaluations: In all.
    """
    generator = torch.Generator().manual_seed(1000 + seed)
    X = torch.rand(INITIAL, problem.dim, generator=generator, dtype=torch.float64)
    noise = problem.noise * torch.randn(evaluations, generator=generator, dtype=torch.float64)
    run, player = Run([], [], [], []), Player(method, problem, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        while True:
            values = problem.value(X)
            y = values + noise[: len(X)]
            fit, model = seconds_of(player.believe, X, y)
            found = problem.value(maximizer(model, X).unsqueeze(0))
            run.simple.append(problem.best - float(values.max()))
            run.inference.append(problem.best - float(found))
            if len(X) == evaluations:
                return run
            taken, x = seconds_of(player.choose, model, X)
            run.fit.append(fit)
            run.acquisition.append(taken)
            X = torch.cat([X, x.unsqueeze(0)])


def seconds_of(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Return the seconds of the processor that a call takes, and what it returns."""
    began = time.process_time()
    result = call(*arguments)
    return time.process_time() - began, result


def maximizer(model: Any, X: Tensor) -> Tensor:
    """Return where the posterior mean is largest, ``(d,)``: of many points, and closer and closer."""
    engine = SobolEngine(X.shape[-1], scramble=True, seed=0)
    points = torch.cat([engine.draw(_LOOKED_AT, dtype=X.dtype), X])
    best = points[mean_of(model, points).argmax()]
    unit = SobolEngine(X.shape[-1], scramble=True, seed=1).draw(_AROUND, dtype=X.dtype)
    for radius in _RADII:
        near = (best + radius * (2 * unit - 1)).clamp(0, 1)
        points = torch.cat([best.unsqueeze(0), near])
        best = points[mean_of(model, points).argmax()]
    return best
