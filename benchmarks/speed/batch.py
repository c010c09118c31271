"""Many beliefs decided on at once: decisions a second against the size of the batch.

A decision is the belief seen from the round, the climb from 50 starts, the merging of where it ended and
the confidence rule. Learning the query comes before. Rewards differ from belief to belief, and so do the
configurations; the kernel is one. A lone optimum is not given a far rival, and counts as sure.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.harness.clock import timed
from benchmarks.harness.decisions import BANDWIDTH, BETA, RESTARTS
from benchmarks.harness.record import Row
from benchmarks.speed.decision import RULE
from benchmarks.speed.problems import FORGETTING, draw, kernel_of, noisy_covariance
from botorch_costly.models.snapshot import Snapshot
from botorch_costly.numerics.cholesky import Factor, factorize
from botorch_costly.numerics.closed_form import closed_form
from botorch_costly.numerics.drift import retention
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.optim.climb import climb
from botorch_costly.optim.starts import draw_starts
from botorch_costly.optim.suppression import Optima, suppress
from botorch_costly.query import Comparison, Progress, Verdict

SIZES = {"cpu": (1, 4, 16, 64), "cuda": (1, 4, 16, 64, 256, 1024, 4096)}
RATIO = 0.5  # of the lengthscale to the root of the dimension
FLOOR = 1e-10  # least variance
MAX_ITER = 100
_DISTINCT = 64  # problems drawn; larger batches hold them several times, with other rewards


class Batch(NamedTuple):
    """Beliefs that have learnt all there is to learn."""

    kernel: Stationary
    configurations: Tensor  # shape: (b, n, d)
    retentions: Tensor  # until now, shape: (b, n)
    factor: Factor  # of batch shape (b,)


class Choice(NamedTuple):
    """What is decided for each belief."""

    optima: Optima  # shapes: (b, m, d) and (b, m)
    verdict: Verdict  # shape: (b,)


def batch_of(size: int, n: int, dim: int, seed: int, device: torch.device | str) -> Batch:
    """Draw ``size`` beliefs about as many functions.

    From the 65th on the queries are those of earlier ones, the rewards mirrored or scaled: what
    counts here is that no two climbs are the same.
    """
    number = min(size, _DISTINCT)
    problems = [draw(n, dim, seed + i, device, RATIO) for i in range(number)]
    noisy = torch.stack([noisy_covariance(problem) for problem in problems])
    again = torch.arange(size, device=device)
    which, lap = again % number, again // number
    scale = torch.where(lap % 2 == 0, 1.0, -1.0) / (1 + 0.1 * (lap // 2)).double()
    rewards = torch.stack([problem.rewards[:-1] for problem in problems])[which] * scale[:, None]
    ages = n - torch.stack([problem.inputs[:-1, -1] for problem in problems])[which]
    return Batch(
        kernel_of(problems[0]),
        torch.stack([problem.inputs[:-1, :-1] for problem in problems])[which],
        retention(ages.new_tensor(FORGETTING), ages),
        _spread(factorize(noisy, noisy.new_zeros(number, n, 1)), which, rewards),
    )


def _spread(factor: Factor, which: Tensor, rewards: Tensor) -> Factor:
    """Return the factors with their own rewards, whitened."""
    inverse = factor.inverse[which]
    return Factor(factor.chol[which], inverse, inverse @ rewards.unsqueeze(-1))


def starts_of(dim: int, seed: int, device: torch.device | str) -> Tensor:
    """Return the starts that all beliefs share, ``50 x d``."""
    cube = torch.tensor([[0.0], [1.0]], dtype=torch.float64, device=device).expand(2, dim)
    generator = torch.Generator(device=device).manual_seed(seed)
    return draw_starts(RESTARTS, "sobol", cube, generator)


def decide(batch: Batch, starts: Tensor) -> Choice:
    """Decide for every belief."""
    form = closed_form(
        batch.kernel,
        batch.configurations,
        batch.retentions,
        batch.factor.inverse,
        batch.factor.whitened,
    )
    belief = Snapshot(form, least_variance=FLOOR)
    bound = belief.upper_bound(starts.new_full((), BETA**0.5))
    begin = starts.expand(len(batch.retentions), *starts.shape)
    ends = climb(bound, begin, BANDWIDTH, MAX_ITER)
    optima = suppress(ends.points, ends.values, BANDWIDTH)
    # Hold the best optimum of each belief against the others.
    there = optima.values > -torch.inf
    mean, variance = belief.mean_and_variance(optima.points.nan_to_num(0.0))
    rivals = mean[:, 1:], variance[:, 1:], None, there[:, 1:]
    comparison = Comparison(mean[:, 0], variance[:, 0], *rivals, mean.new_full((), BETA))
    return Choice(
        optima, RULE(comparison, Progress(batch.retentions.shape[-1] + 1), torch.Generator())
    )


def throughput(
    sizes: Sequence[int], n: int, dim: int, repeats: int, seed: int, device: str
) -> Iterator[Row]:
    """Yield decisions a second by size of the batch."""
    starts = starts_of(dim, seed, device)
    for size in sizes:
        call = partial(decide, batch_of(size, n, dim, seed, device), starts)
        first_ms, choice = timed(call, device)
        spent = median(timed(call, device)[0] for _ in range(repeats))
        yield {
            "part": "batch",
            "device": device,
            "beliefs": size,
            "observations": n,
            "dim": dim,
            "threads": torch.get_num_threads(),
            "repeats": repeats,
            "ms": spent,
            "first_ms": first_ms,
            "decisions_a_second": 1e3 * size / spent,
            "optima": float((choice.optima.values > -torch.inf).sum() / size),
            "queries": float(choice.verdict.query.double().mean()),
        }


def sizes_for(device: str) -> tuple[int, ...]:
    """Return what fits the memory of a device."""
    return SIZES[torch.device(device).type]


def one_of(batch: Batch, number: int) -> Batch:
    """Return one belief of a batch, as a batch."""
    rows = slice(number, number + 1)
    factor = Factor(*(part[rows] for part in batch.factor))
    return Batch(batch.kernel, batch.configurations[rows], batch.retentions[rows], factor)


def describe(row: Row) -> str:
    """Return a row in words."""
    return (
        f"{row['beliefs']:>5} beliefs at once: {row['ms']:8.1f} ms,"
        f" {row['decisions_a_second']:8.1f} decisions a second on {row['device']}"
        f" ({row['threads']} threads), {row['optima']:.2f} optima each"
    )
