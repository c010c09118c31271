"""Many trials of some policies on drifting functions, split by what the machine holds."""

from collections.abc import Iterator, Sequence

import torch

from botorch_costly.acquisition import BetaSchedule
from botorch_costly.device import check_device, check_dtype
from botorch_costly.errors import check_count
from botorch_costly.problems.drifting import DriftingFunction
from botorch_costly.simulation.draws import draw
from botorch_costly.simulation.policies import GridPolicy
from botorch_costly.simulation.run import Run, check_policies, play

_TRIALS_ON_CPU = 25  # more of them wait for memory, fewer for the dispatch of operations
_MOST_NUMBERS = 2**31  # in the paths and terms of a program elsewhere: 16 GiB in double precision


def simulate(
    problem: DriftingFunction,
    policies: Sequence[GridPolicy],
    trials: int = 50,
    horizon: int = 500,
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float64,
    beta: BetaSchedule | None = None,
    bandwidth: float = 0.2,
    first_trial: int = 0,
    policies_at_once: int | None = None,
    trials_at_once: int | None = None,
) -> Run:
    """Run policies on drifting functions: all meet the same functions, noise and coins.

    What happens in a trial depends on the seed and the number of the trial alone: not on the number of
    trials, on the other policies, on how the work is split, or on the device. (Scores that differ by
    less than 1e-6 are equal, and the first point is taken, so rounding rarely decides.)

    Args:
        problem: A function on a finite domain, its points in ascending order.
        policies: Where and whether to query.
        trials: Number of trials.
        horizon: Rounds of a trial.
        seed: Of functions, noise, coins and openings, at least 0.
        device: Where to compute. Draws are made on the CPU.
        dtype: Of the terms of the beliefs, which are most of the memory and of the work; means,
            variances and scores are always in double precision. Terms in ``torch.float32`` make errors
            in the means of a unit prior of about 3e-6 at forgetting 0.05, 1e-5 at 0.01, 5e-5 at 0.003,
            and now and then 1e-3 without forgetting. On one history, on 1,000 points, choice and query
            agree in 99 to 100 % of rounds at 0.05, in 97 to 100 % at 0.01, in 94 to 100 % at 0.003
            and in 92 to 96 % without forgetting; queries alone in 99 to 100 %. Where choices differ,
            almost all are neighbours that are equally good; see the benchmark ``single-precision``.
        beta: Exploration by round; ``LogBeta()`` if omitted.
        bandwidth: Distance beyond which the rival of a lone optimum is sought.
        first_trial: Number of the first of the trials.
        policies_at_once: Number of policies that share a tensor program. By default one on a CPU, where
            policies with few queries would pay for those with many, and all elsewhere.
        trials_at_once: Number of trials that share a tensor program, and are in memory: ``horizon x n``
            numbers each. By default as many as stay in the cache of a CPU, or in the memory of a GPU.

    Returns:
        Regret, queries and choices, ``policies x trials x horizon``, and mean and variance of the last
        belief, ``policies x trials x n``.

    Raises:
        InvalidArgumentError: If there is no policy, an option is outside its range, or this machine has
            no such device.
        CostlyError: If a rule cannot serve a run of that horizon.

    Example:
        >>> from botorch_costly.query import AlwaysQuery, BernoulliQuery
        >>> problem = DriftingFunction.on_unit_interval(50, forgetting=0.03)
        >>> policies = [GridPolicy("always", AlwaysQuery()), GridPolicy("coin", BernoulliQuery(0.3))]
        >>> run = simulate(problem, policies, trials=4, horizon=20)
        >>> run.regret.shape, run.query.sum(-1)[0].tolist()
        (torch.Size([2, 4, 20]), [20, 20, 20, 20])
    """
    trials, horizon = check_count("trials", trials, 1), check_count("horizon", horizon, 1)
    first_trial = check_count("first_trial", first_trial)
    check_dtype(dtype)
    check_policies(policies, horizon)
    device = check_device(device)
    on_cpu = device.type == "cpu"
    together = _policies_at_once(policies_at_once, len(policies), on_cpu)
    most = _trials_at_once(trials_at_once, together, horizon, len(problem.points), on_cpu)
    parts = []
    for numbers in _blocks(range(first_trial, first_trial + trials), most):
        draws = draw(problem, numbers, horizon, seed).to(device)
        groups = (
            policies[some.start : some.stop] for some in _blocks(range(len(policies)), together)
        )
        runs = [
            play(problem, group, draws, beta=beta, bandwidth=bandwidth, dtype=dtype)
            for group in groups
        ]
        parts.append(_joined(runs, 0))
    return _joined(parts, 1)


def _policies_at_once(given: int | None, policies: int, on_cpu: bool) -> int:
    if given is not None:
        return check_count("policies_at_once", given, minimum=1)
    return 1 if on_cpu else policies


def _trials_at_once(given: int | None, policies: int, horizon: int, n: int, on_cpu: bool) -> int:
    if given is not None:
        return check_count("trials_at_once", given, minimum=1)
    if on_cpu:
        return _TRIALS_ON_CPU
    return max(_MOST_NUMBERS // ((policies + 1) * horizon * n), 1)


def _blocks(numbers: range, most: int) -> Iterator[range]:
    """Yield the numbers in ranges of equal size, but for the last."""
    for start in range(0, len(numbers), most):
        yield numbers[start : start + most]


def _joined(runs: Sequence[Run], dim: int) -> Run:
    return (
        runs[0]
        if len(runs) == 1
        else Run(*(torch.cat(part, dim) for part in zip(*runs, strict=True)))
    )
