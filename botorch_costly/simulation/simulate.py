"""Many trials of several policies on drifting functions, split into programs that fit the machine."""

from collections.abc import Iterator, Sequence

import torch

from botorch_costly.acquisition import BetaSchedule
from botorch_costly.calls import advised
from botorch_costly.device import check_device, check_dtype
from botorch_costly.errors import check_count
from botorch_costly.problems.drifting import DriftingFunction
from botorch_costly.simulation.draws import draw
from botorch_costly.simulation.policies import GridPolicy
from botorch_costly.simulation.run import Run, check_policies, play

_TRIALS_ON_CPU = 25  # more trials are slowed by memory access, fewer by the dispatch of operations
_MOST_NUMBERS = 2**31  # in the paths and terms of a program on a GPU: 16 GiB in double precision


@advised
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
    """Run policies on drifting functions; all policies meet the same functions, noise and coins.

    A trial depends on the seed and its number alone, not on the number of trials, the other policies, the
    split of the work, or the device. (Scores that differ by less than 1e-6 count as equal and the first
    such point is taken, so rounding errors rarely change a decision.)

    Args:
        problem: A function on a finite domain, its points in ascending order.
        policies: Policies, each of which decides where and whether to query.
        trials: Number of trials.
        horizon: Rounds of a trial.
        seed: Seed of functions, noise, coins and openings, at least 0.
        device: Device of the simulation. Draws are made on the CPU.
        dtype: Dtype of the posterior's terms, which take most of the memory and time; means,
            variances and scores are always in double precision. With terms in ``torch.float32`` the
            errors of the means under a unit prior are about 3e-6 at forgetting 0.05, 1e-5 at 0.01,
            5e-5 at 0.003, and occasionally 1e-3 without forgetting. On the same history, with 1,000
            points, choice and query agree in 99 to 100 % of rounds at 0.05, in 97 to 100 % at 0.01, in
            94 to 100 % at 0.003 and in 92 to 96 % without forgetting; queries alone in 99 to 100 %.
            Almost all choices that differ are equally good neighbours; see the benchmark
            ``single-precision``.
        beta: Beta of the confidence bounds by round; ``LogBeta()`` if omitted.
        bandwidth: Distance beyond which the rival of a lone optimum is sought.
        first_trial: Number of the first trial.
        policies_at_once: Number of policies that share a tensor program. By default one on a CPU, where
            policies with few queries would be slowed by those with many, and all on other devices.
        trials_at_once: Number of trials that share a tensor program and its memory: ``horizon x n``
            numbers each. By default as many as fit the cache of a CPU or the memory of a GPU.

    Returns:
        Regret, queries and choices, ``policies x trials x horizon``, and mean and variance after the last
        round, ``policies x trials x n``.

    Raises:
        InvalidArgumentError: If there is no policy, an option is outside its range, or this machine
            does not have the device.
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
    if policies_at_once is None:
        policies_at_once = 1 if on_cpu else len(policies)
    policies_at_once = check_count("policies_at_once", policies_at_once, minimum=1)
    if trials_at_once is None:
        numbers_of_trial = (policies_at_once + 1) * horizon * len(problem.points)
        trials_at_once = _TRIALS_ON_CPU if on_cpu else max(_MOST_NUMBERS // numbers_of_trial, 1)
    trials_at_once = check_count("trials_at_once", trials_at_once, minimum=1)
    blocks = []
    for numbers in _blocks(range(first_trial, first_trial + trials), trials_at_once):
        draws = draw(problem, numbers, horizon, seed).to(device)
        runs = [
            play(
                problem,
                policies[group.start : group.stop],
                draws,
                beta=beta,
                bandwidth=bandwidth,
                dtype=dtype,
            )
            for group in _blocks(range(len(policies)), policies_at_once)
        ]
        blocks.append(_joined(runs, 0))
    return _joined(blocks, 1)


def _blocks(numbers: range, size: int) -> Iterator[range]:
    """Yield consecutive ranges of ``size`` numbers; the last may be shorter."""
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]


def _joined(runs: Sequence[Run], dim: int) -> Run:
    if len(runs) == 1:
        return runs[0]
    return Run(*(torch.cat(tensors, dim) for tensors in zip(*runs, strict=True)))
