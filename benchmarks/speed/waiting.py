"""A waiting round: one decision of a whole tuner when nothing was learnt since the last one.

The tuner is set as published. It is told the reward of each of its first rounds and then of none, under
a rule that is always sure. Beside it runs the time of one small operation: how busy the machine is.
"""

from statistics import median, quantiles

import torch

from benchmarks.harness.clock import small_operation_us, timed
from benchmarks.harness.record import Row
from benchmarks.harness.tuners import PRIOR_UNITS, as_published
from benchmarks.priced.continuous import cube
from benchmarks.speed.problems import FAMILY, FORGETTING, NOISE
from botorch_costly import ConfidenceQuery, OnlineTuner, Prior
from botorch_costly.problems import DriftingSample

SURE = ConfidenceQuery(1e-9)  # never queries
RATIO = 0.5  # of the lengthscale to the root of the dimension


def fed_tuner(queries: int, dim: int, seed: int, device: str) -> OnlineTuner:
    """Return a tuner that was told the rewards of its first rounds."""
    lengthscale = RATIO * dim**0.5
    tuner = as_published(
        cube(dim),
        None,
        SURE,
        seed,
        prior=Prior(forgetting=FORGETTING, lengthscale=lengthscale, noise=NOISE),
        rewards=PRIOR_UNITS,
        device=device,
    )
    generator = torch.Generator().manual_seed(seed)
    path = DriftingSample(dim, lengthscale, FORGETTING, FAMILY).path(queries, generator)
    noise = NOISE**0.5 * torch.randn(queries, generator=generator, dtype=torch.float64)
    for now in range(queries):
        decision = tuner.ask()
        x = tuner.space.encode(decision.config).unsqueeze(0)
        tuner.tell(decision, float(path.value(now, x) + noise[now]))
    return tuner


def waiting(queries: int, dim: int, rounds: int, seed: int, device: str) -> Row:
    """Return how long ``rounds`` waiting rounds took after ``queries`` queries."""
    tuner = fed_tuner(queries, dim, seed, device)
    tuner.ask()  # knows the last query: this one searches
    spent, small = [], []
    for _ in range(rounds):
        milliseconds, decision = timed(tuner.ask, device)
        assert not decision.query, "a rule that is always sure queries at nothing"
        spent.append(milliseconds)
        small.append(small_operation_us(device))
    hundredths = quantiles(spent, n=100, method="inclusive")
    return {
        "part": "waiting",
        "device": device,
        "observations": queries,
        "dim": dim,
        "rounds": rounds,
        "median_ms": median(spent),
        "ms_90": hundredths[89],
        "ms_99": hundredths[98],
        "most_ms": max(spent),
        "small_operation_us": median(small),
    }


def describe(row: Row) -> str:
    """Return the row in words."""
    return (
        f"waiting round after {row['observations']} queries, d = {row['dim']}:"
        f" median {row['median_ms']:.3f} ms, 90 % {row['ms_90']:.3f}, 99 % {row['ms_99']:.2f},"
        f" most {row['most_ms']:.2f}; one small operation {row['small_operation_us']:.2f} us"
    )
