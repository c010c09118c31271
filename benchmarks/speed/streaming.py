"""Milliseconds of the streaming core, on one CPU thread, against BoTorch in the same process.

Three things are timed, each as the median over repeats:

- *append*: one more observation and the posterior at one point, by the streaming factor and by
  ``condition_on_observations`` of the BoTorch model with the same hyperparameters. Both must give the
  same mean and variance.
- *round without a query*: on a grid, what a waiting round costs, confidence rule included.
- *round with a query*: the same, and the update.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from benchmarks.harness.clock import median_ms
from benchmarks.harness.command_line import parser_for
from benchmarks.harness.decisions import decide_on_grid
from benchmarks.harness.record import Row, told, write_results
from botorch_costly.acquisition import LogBeta
from botorch_costly.errors import NumericalError
from botorch_costly.models import DriftingGrid, StreamingGP, TimeVaryingGP
from botorch_costly.models.streaming import stationary_of
from botorch_costly.problems import DriftingFunction
from botorch_costly.query import ConfidenceQuery, Progress
from botorch_costly.simulation import GridPolicy, Ground

SIZES = (50, 200, 500)
DIM = 8
AGREEMENT = 1e-6  # how close both posteriors have to be
TARGET_SPEEDUP = 10.0
TARGET_ROUND_MS = 1.0

Posterior = tuple[float, float]  # mean and variance at one point


def time_append(n: int, repeats: int, seed: int) -> Row:
    """Time one more observation and a posterior, both ways, after ``n`` observations.

    Raises:
        NumericalError: If both ways do not agree.
    """
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n + 2, DIM + 1, generator=generator, dtype=torch.float64)
    X[:, -1] = torch.arange(n + 2)
    y = torch.sin(3 * X[:, :DIM].sum(-1))
    # A point near the new observation: far from all data both posteriors are the prior.
    target = X[n] + 0.05
    target[-1] = n + 1
    model, belief = _both_models(X[:n], y[:n])

    botorch_ms, expected = median_ms(lambda: _botorch_append(model, X[n], y[n], target), repeats)
    state = belief.get_extra_state()
    streaming_ms, received = median_ms(
        lambda: _streaming_append(belief, state, X[n], y[n], target), repeats
    )
    difference = max(abs(a - b) for a, b in zip(expected, received, strict=True))
    if difference > AGREEMENT:
        raise NumericalError("posterior", f"{expected} to {AGREEMENT}", received)
    return {
        "case": "append",
        "observations": n,
        "dim": DIM,
        "botorch_ms": botorch_ms,
        "streaming_ms": streaming_ms,
        "speedup": botorch_ms / streaming_ms,
        "difference": difference,
        "repeats": repeats,
    }


def time_rounds(points: int, rounds: int, seed: int) -> list[Row]:
    """Time the rounds of one run on a grid, those with and those without a query."""
    truth = DriftingFunction.on_unit_interval(points, forgetting=0.03)
    generator = torch.Generator().manual_seed(seed)
    values = truth.rounds(1, generator)
    belief = DriftingGrid(truth.prior_cov, truth.forgetting, truth.noise, torch.Size([1]))
    policy, beta = GridPolicy("CE-GP-UCB @0.90", ConfidenceQuery(0.9)), LogBeta()
    ground = Ground.from_points(truth.points, bandwidth=0.2)
    spent: dict[bool, list[float]] = {False: [], True: []}
    for t in range(1, rounds + 1):
        y = truth.observe(next(values), generator)
        start = time.perf_counter()
        queried = _round(belief, ground, policy, beta(t), t, y, generator)
        spent[queried].append(1e3 * (time.perf_counter() - start))
    return [
        {
            "case": f"round {'with' if queried else 'without'} a query",
            "points": points,
            "forgetting": truth.forgetting,
            "median_ms": statistics.median(times),
            "rounds": len(times),
        }
        for queried, times in spent.items()
        if times
    ]


def _both_models(X: Tensor, y: Tensor) -> tuple[TimeVaryingGP, StreamingGP]:
    """Return one belief as a BoTorch model, its caches warm, and as a streaming factor."""
    noise = torch.full_like(y, 0.01).unsqueeze(-1)
    model = TimeVaryingGP(X, y.unsqueeze(-1), noise, forgetting=0.01, outcome_transform=None)
    model.space_kernel.base_kernel.lengthscale = torch.full((DIM,), 0.8, dtype=X.dtype)
    model.space_kernel.outputscale = torch.tensor(1.3, dtype=X.dtype)
    with torch.no_grad():
        _moments(model, X[:1])  # BoTorch conditions only a model that has predicted
    belief = StreamingGP(stationary_of(model.space_kernel), forgetting=0.01, noise=0.01)
    for x, reward in zip(X, y.tolist(), strict=True):
        belief.observe(x, reward)
    return model, belief


def _botorch_append(model: TimeVaryingGP, x: Tensor, y: Tensor, target: Tensor) -> Posterior:
    with torch.no_grad():
        extended = model.condition_on_observations(
            x.unsqueeze(0), y.reshape(1, 1), noise=torch.full_like(y, 0.01).reshape(1, 1)
        )
        return _moments(extended, target.unsqueeze(0))


def _streaming_append(
    belief: StreamingGP, state: dict[str, Any], x: Tensor, y: Tensor, target: Tensor
) -> Posterior:
    belief.set_extra_state(state)  # back to before the observation; takes references, no copies
    with torch.no_grad():
        belief.observe(x, y.item())
        mean, variance = belief.mean_and_variance(target)
    return mean.item(), variance.item()


def _moments(model: TimeVaryingGP, X: Tensor) -> Posterior:
    posterior = model.posterior(X)
    return posterior.mean.item(), posterior.variance.item()


def _round(
    belief: DriftingGrid,
    ground: Ground,
    policy: GridPolicy,
    beta: float,
    t: int,
    y: Tensor,
    generator: torch.Generator,
) -> bool:
    """Wait, choose, decide, and query if that is the decision; return whether it was."""
    belief.wait()
    at, query = decide_on_grid(policy, belief, ground, Progress(t), beta, generator)
    if not query.item():
        return False
    belief.observe(at, y[0, at])
    return True


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each size, and those of the rounds."""
    for n in SIZES:
        yield time_append(n, options.repeats, options.seed)
    yield from time_rounds(options.points, options.rounds, options.seed)


def main(arguments: list[str]) -> None:
    """Time everything, store the rows and say whether the targets are met."""
    parser = parser_for("streaming", "milliseconds of an update and of a round")
    parser.add_argument("--repeats", type=int, default=50, help="of each update")
    parser.add_argument("--rounds", type=int, default=500, help="of the run on a grid")
    parser.add_argument("--points", type=int, default=1000, help="of the grid")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    write_results(
        "streaming", told(rows(options), describe), [options.seed], directory=options.results
    )


def describe(row: Row) -> str:
    """Return a row in words."""
    if row["case"] == "append":
        return (
            f"append to {row['observations']:>3} observations and predict:"
            f" BoTorch {row['botorch_ms']:.2f} ms, streaming {row['streaming_ms']:.2f} ms,"
            f" {row['speedup']:.0f} times faster (target {TARGET_SPEEDUP:g}),"
            f" difference {row['difference']:.0e}"
        )
    target = "" if "without" not in row["case"] else f" (target {TARGET_ROUND_MS:g})"
    return (
        f"{row['case']} on {row['points']} points: {row['median_ms']:.2f} ms{target},"
        f" {row['rounds']} rounds"
    )
