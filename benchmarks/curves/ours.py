"""Our optimizer on recorded curves: told what a training shows and costs, and nothing else."""

import math
from collections.abc import Callable
from typing import Any

from benchmarks.curves.play import LEAST_COST, Ask, Policy, Steps
from botorch_costly import Compression, CurveOptimizer, Real, SearchSpace
from botorch_costly.errors import HorizonExceededError
from botorch_costly.parameters import Plain
from botorch_costly.problems import CurveProblem

SHORTEST = 3 / 8  # of a whole training: 300 of 800 episodes in the paper
_UNIT = 100.0


def curve_optimizer(make: Callable[..., CurveOptimizer] = CurveOptimizer, **options: Any) -> Policy:
    """Return the policy of ``CurveOptimizer``, as it comes but for some options."""

    def policy(problem: CurveProblem, seed: int, budget: float) -> Steps:
        yield from steps(begun(problem, seed, make, **options), problem)

    return policy


def from_share(
    share: float, make: Callable[..., CurveOptimizer] = CurveOptimizer, **options: Any
) -> Policy:
    """Return the policy whose trainings have at least a share of the longest one, in the paper's units.

    The softplus of a cost depends on its unit. The paper's are the seconds of trainings that take
    minutes: here a whole training costs a hundred.
    """

    def policy(problem: CurveProblem, seed: int, budget: float) -> Steps:
        shortest = math.ceil(share * int(problem.lengths.max()))
        optimizer = begun(problem, seed, make, shortest=shortest, **options)
        yield from steps(optimizer, problem, _UNIT)

    return policy


def begun(
    problem: CurveProblem,
    seed: int,
    make: Callable[..., CurveOptimizer] = CurveOptimizer,
    **options: Any,
) -> CurveOptimizer:
    """Return an optimizer over the configurations of a problem."""
    configs, space = configs_of(problem), space_of(problem)
    lengths = problem.lengths.tolist()
    return make(space, candidates=configs, lengths=lengths, seed=seed, **options)


def steps(optimizer: CurveOptimizer, problem: CurveProblem, unit: float = 1.0) -> Steps:
    """Yield what an optimizer asks for, until all are trained, and tell it what came of it.

    The mean of the costs of a whole training is told as ``unit``.
    """
    number = numbers_of(problem)
    while True:
        try:
            segment = optimizer.ask()
        except HorizonExceededError:
            return
        config, anew = number[tuple(segment.config.values())], segment.since == 0
        told = yield Ask(config, segment.until, anew=anew)
        shown = told.curve[segment.since :].tolist() or [math.nan]
        cost = unit * max(told.cost, LEAST_COST)
        optimizer.tell(segment, shown, cost=cost, broken=told.broken)


def configs_of(problem: CurveProblem) -> list[dict[str, float]]:
    """Return the configurations of a problem, whose columns are named ``x0, x1, ..``."""
    return [{f"x{i}": value for i, value in enumerate(row)} for row in problem.inputs.tolist()]


def numbers_of(problem: CurveProblem) -> dict[tuple[Plain, ...], int]:
    """Return the number of each different configuration, by its values."""
    number: dict[tuple[Plain, ...], int] = {}
    for i, candidate in enumerate(configs_of(problem)):
        number.setdefault(tuple(candidate.values()), i)
    return number


def space_of(problem: CurveProblem) -> SearchSpace:
    """Return the space of the configurations of a problem."""
    return SearchSpace({f"x{i}": Real(0.0, 1.0) for i in range(problem.inputs.shape[-1])})


OURS: dict[str, Policy] = {
    "curve optimizer": curve_optimizer(),
    "begun anew": curve_optimizer(resumes=False),
    "scores": curve_optimizer(compression=Compression()),
    "scores, anew": curve_optimizer(compression=Compression(), resumes=False),
    "scores, log": curve_optimizer(compression=Compression("log")),
    "scores, average": curve_optimizer(compression=Compression("average")),
    "no compression": curve_optimizer(compression=Compression("last")),
    "no augmentation": curve_optimizer(compression=Compression(augments=False)),
    "neither": curve_optimizer(compression=Compression("last", augments=False)),
    "as published": curve_optimizer(CurveOptimizer.as_published),
    "as published, from 3/8": from_share(SHORTEST, CurveOptimizer.as_published),
    "scores, anew, from 3/8": from_share(SHORTEST, compression=Compression(), resumes=False),
}
