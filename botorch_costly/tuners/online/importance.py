"""Which hyperparameters mattered when: shares of the variance of what is believed, round by round."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from botorch_costly.errors import check_count
from botorch_costly.models import StreamingGP
from botorch_costly.numerics.sensitivity import sensitivity
from botorch_costly.randomness import check_seed
from botorch_costly.tuners.online.lines import check_believing, intervals_of
from botorch_costly.tuners.online.tuner import OnlineTuner


@dataclass(frozen=True)
class Importance:
    """How much of the variance of the believed reward each hyperparameter explains, by round.

    Attributes:
        names: Of the hyperparameters.
        rounds: Ascending.
        alone: Share that each explains alone, a row a round; in [0, 1].
        total: Share that it explains with its interactions, likewise.
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
    """Return which hyperparameters the believed reward depends on, in some rounds of a run.

    These are Sobol indices of the posterior mean over ``tuner.reachable``, all of whose points count
    alike, those of ``log`` parameters in the logarithm. It is what is believed now about the rounds, so
    that later queries count for earlier rounds, too. What little was learnt of varies little: a share
    says what the belief depends on, not how much. Where nothing is known all shares are 0.

    Args:
        tuner: Of the run.
        rounds: Decided on and kept; about 30 of them at even distances if omitted.
        points: Of a design; the error of a share is about one over the root of it.
        seed: Of the design; the global generators are never touched.

    Raises:
        InvalidArgumentError: If the tuner is no ``OnlineTuner``, there is no round, one was not decided
            on or is not kept any more, or ``points`` is no integer of at least 2.
    """
    check_believing(tuner)
    points, seed = check_count("points", points, minimum=2), check_seed(seed)
    intervals = intervals_of(tuner.decisions, rounds)
    space, belief = tuner.reachable, tuner.belief
    engine = torch.quasirandom.SobolEngine(2 * space.dim, scramble=True, seed=seed)
    drawn = engine.draw(points, dtype=torch.float64).to(belief.kernel.outputscale)
    first, second = space.round(drawn[:, : space.dim]), space.round(drawn[:, space.dim :])
    tunable = [name for name, parameter in space.parameters if parameter.width]
    groups = [space.columns[name] for name in tunable]
    found = {}
    for interval in set(intervals.values()):
        mean = partial(_mean, belief, float(interval))
        found[interval] = sensitivity(mean, first, second, groups)
    rows = [found[interval] for interval in intervals.values()]
    return Importance(
        tuple(tunable),
        tuple(intervals),
        tuple(tuple(row.first_order.tolist()) for row in rows),
        tuple(tuple(row.total.tolist()) for row in rows),
    )


def _mean(belief: StreamingGP, interval: float, points: Tensor) -> Tensor:
    return belief.in_round(points, interval)[0]
