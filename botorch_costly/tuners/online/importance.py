"""Importance of hyperparameters by round: shares of the variance of the posterior mean."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_costly.errors import check_count
from botorch_costly.numerics.sensitivity import sensitivity
from botorch_costly.randomness import check_seed
from botorch_costly.tuners.online.slices import check_believing, intervals_of
from botorch_costly.tuners.online.tuner import OnlineTuner


@dataclass(frozen=True)
class Importance:
    """Share of the variance of the posterior mean that each hyperparameter explains, by round.

    Attributes:
        names: Names of the hyperparameters.
        rounds: Rounds, ascending.
        alone: Share that each explains alone, in [0, 1], one row per round.
        total: Share that each explains with its interactions, one row per round.
    """

    names: tuple[str, ...]
    rounds: tuple[int, ...]
    alone: tuple[tuple[float, ...], ...]
    total: tuple[tuple[float, ...], ...]


@torch.inference_mode(mode=False)
def importance(
    tuner: OnlineTuner,
    rounds: Sequence[int] | None = None,
    *,
    points: int = 1024,
    seed: int = 0,
) -> Importance:
    """Return which hyperparameters the posterior mean depends on, in some rounds of a run.

    The shares are Sobol indices of the posterior mean under a uniform distribution over
    ``tuner.space``, with ``log`` parameters in the logarithm. The present belief is used for all
    rounds, so that later queries count for earlier rounds, too. A hyperparameter of which little was
    learnt varies little: a share measures relative dependence only. Without data all shares
    are 0.

    Args:
        tuner: Tuner of the run.
        rounds: Rounds that were decided on and are kept; about 30 evenly spaced ones if omitted.
        points: Number of design points; the error of a share is about ``1 / sqrt(points)``.
        seed: Seed of the design; the global generators are never touched.

    Raises:
        InvalidArgumentError: If the tuner is not an ``OnlineTuner``, there is no round, a round was not
            decided on or is not kept any more, or ``points`` is not an integer of at least 2.
    """
    check_believing(tuner)
    points, seed = check_count("points", points, minimum=2), check_seed(seed)
    intervals = intervals_of(tuner.decisions, rounds)
    space, belief = tuner.space, tuner.belief
    engine = torch.quasirandom.SobolEngine(2 * space.dim, scramble=True, seed=seed)
    drawn = engine.draw(points, dtype=torch.float64).to(belief.kernel.outputscale)
    first, second = space.round(drawn[:, : space.dim]), space.round(drawn[:, space.dim :])
    tunable = [name for name, parameter in space.parameters if parameter.width]
    groups = [space.columns[name] for name in tunable]
    indices = {}
    for interval in set(intervals.values()):

        def mean(points: Tensor, now: float = float(interval)) -> Tensor:
            return belief.in_round(points, now)[0]

        indices[interval] = sensitivity(mean, first, second, groups)
    rows = [indices[interval] for interval in intervals.values()]
    return Importance(
        tuple(tunable),
        tuple(intervals),
        tuple(tuple(row.first_order.tolist()) for row in rows),
        tuple(tuple(row.total.tolist()) for row in rows),
    )
