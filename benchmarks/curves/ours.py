"""Our optimizer on recorded curves: told what a training shows and costs, and nothing else."""

import math
from collections.abc import Callable
from typing import Any

from benchmarks.curves.play import LEAST_COST, Ask, Policy, Steps
from botorch_costly import Compression, CurveOptimizer, Real, SearchSpace
from botorch_costly.errors import HorizonExceededError
from botorch_costly.problems import CurveProblem


def curve_optimizer(make: Callable[..., CurveOptimizer] = CurveOptimizer, **options: Any) -> Policy:
    """Return the policy of ``CurveOptimizer``, as it comes but for some options."""

    def policy(problem: CurveProblem, seed: int, budget: float) -> Steps:
        names = [f"x{column}" for column in range(problem.inputs.shape[1])]
        configs = [dict(zip(names, row, strict=True)) for row in problem.inputs.tolist()]
        number = {tuple(config.values()): i for i, config in reversed(list(enumerate(configs)))}
        optimizer = make(
            SearchSpace({name: Real(0.0, 1.0) for name in names}),
            candidates=configs,
            lengths=problem.lengths.tolist(),
            seed=seed,
            **options,
        )
        while True:
            try:
                stretch = optimizer.ask()
            except HorizonExceededError:
                return  # all are trained
            config, anew = number[tuple(stretch.config.values())], stretch.since == 0
            told = yield Ask(config, stretch.until, anew=anew)
            shown = told.curve[stretch.since :].tolist() or [math.nan]
            cost = max(told.cost, LEAST_COST)
            optimizer.tell(stretch, shown, cost=cost, broken=told.broken)

    return policy


OURS: dict[str, Policy] = {
    "curve optimizer": curve_optimizer(),
    "begun anew": curve_optimizer(resumes=False),
    "scores": curve_optimizer(compression=Compression()),
    "scores, anew": curve_optimizer(compression=Compression(), resumes=False),
    "no compression": curve_optimizer(compression=Compression("last")),
    "no augmentation": curve_optimizer(compression=Compression(augments=False)),
    "neither": curve_optimizer(compression=Compression("last", augments=False)),
    "as published": curve_optimizer(CurveOptimizer.as_published),
}
