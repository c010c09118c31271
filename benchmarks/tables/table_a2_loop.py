"""What a trial of Table A2 takes: all trials in one tensor program, or a loop over BoTorch models.

The loop is what one would write with BoTorch: in each round a model of the queries so far, its
hyperparameters given, and its posterior on all points. Both play the same functions with the same
noise, and have to decide the same.
"""

import argparse
import time
from collections.abc import Iterator, Sequence

import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from torch import Tensor

from benchmarks.harness.command_line import size_parser
from benchmarks.harness.record import Row, told, write_results
from benchmarks.tables.world import World
from botorch_costly.acquisition import LogBeta
from botorch_costly.models import TimeVaryingGP
from botorch_costly.optim import chain_local_maxima, far_rival_on_grid, highest
from botorch_costly.query import AlwaysQuery, Comparison, ConfidenceQuery, Progress, QueryRule
from botorch_costly.simulation import GridPolicy

FORGETTING, LENGTHSCALE, BANDWIDTH = 0.01, 0.2, 0.2
RULES: dict[str, QueryRule] = {"TV-GP-UCB": AlwaysQuery(), "CE-GP-UCB @0.90": ConfidenceQuery(0.9)}
TIE = 1e-6  # of scores, as in the simulation


def model_of(points: Tensor, rounds: Tensor, y: Tensor, noise: float) -> TimeVaryingGP:
    """Return BoTorch's model of the queries so far."""
    kernel = ScaleKernel(MaternKernel(1.5, ard_num_dims=1)).to(points)
    kernel.base_kernel.lengthscale, kernel.outputscale = LENGTHSCALE, 1.0
    X, Y = torch.cat([points, rounds[:, None]], -1), y[:, None]
    return TimeVaryingGP(
        X, Y, torch.full_like(Y, noise), FORGETTING, space_kernel=kernel, outcome_transform=None
    )


def believed(
    points: Tensor, queries: Sequence[tuple[int, int, float]], now: int, noise: float
) -> tuple[Tensor, Tensor]:
    """Return mean and variance on all points, after queries at (round, index, value)."""
    if not queries:
        return torch.zeros_like(points[:, 0]), torch.ones_like(points[:, 0])
    rounds, index, y = (points.new_tensor(part) for part in zip(*queries, strict=True))
    model = model_of(points[index.long()], rounds, y, noise)
    with torch.no_grad():
        posterior = model.posterior(torch.cat([points, torch.full_like(points, now)], -1))
        return posterior.mean.squeeze(-1), posterior.variance.squeeze(-1)


def loop(world: World, rule: QueryRule, trial: int) -> tuple[list[int], list[bool]]:
    """Return choices and queries of a trial."""
    truth, draws = world.truth, world.draws
    queries: list[tuple[int, int, float]] = []
    choices, queried = [], []
    for t in range(draws.paths.shape[1]):
        mean, variance = believed(truth.points, queries, t, truth.noise)
        beta = LogBeta()(t + 1)
        score = mean + beta**0.5 * variance.sqrt()
        maxima = chain_local_maxima(score)
        peak = highest(score.masked_fill(~maxima, -torch.inf), TIE)
        at = peak if queries else draws.opening[trial]
        maxima[at] = False
        far, exists = far_rival_on_grid(score, at, truth.points, BANDWIDTH)
        if not maxima.any() and exists:
            maxima[far] = True
        comparison = Comparison(
            mean[at], variance[at], mean, variance, None, maxima, mean.new_tensor(beta)
        )
        query = bool(rule(comparison, Progress(t + 1), torch.Generator()).query)
        if query:
            queries.append((t, int(at), float(draws.paths[trial, t, at] + draws.noise[trial, t])))
        choices.append(int(at))
        queried.append(query)
    return choices, queried


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Yield CPU seconds of a trial both ways, and the share of equal decisions."""
    size = options.trials, options.horizon, options.points
    world = World.draw(FORGETTING, *size, options.seed)
    for name, rule in RULES.items():
        start = time.process_time()  # others on the machine do not count
        run = world.play(GridPolicy(name, rule))
        ours = (time.process_time() - start) / options.trials
        start, same = time.process_time(), []
        for i in range(options.loop_trials):
            choice, query = loop(world, rule, i)
            same += [run.choice[i] == torch.tensor(choice), run.query[i] == torch.tensor(query)]
        theirs = (time.process_time() - start) / options.loop_trials
        yield {
            "policy": name,
            "forgetting": FORGETTING,
            "simulate_seconds": ours,
            "loop_seconds": theirs,
            "ratio": theirs / ours,
            "same_decisions": float(torch.stack(same).double().mean()),
            "trials": options.trials,
            "loop_trials": options.loop_trials,
            "horizon": options.horizon,
            "points": options.points,
        }


def describe(row: Row) -> str:
    """Return a row in words."""
    return (
        f"{row['policy']:<16} a trial of {row['horizon']} rounds on {row['points']} points:"
        f" loop over BoTorch models {row['loop_seconds']:.1f} s, one of {row['trials']} at once"
        f" {row['simulate_seconds']:.3f} s: {row['ratio']:.0f} times;"
        f" {100 * row['same_decisions']:.1f} % of choices and queries are the same"
    )


def main(arguments: list[str]) -> None:
    """Time both, store it and say how many times faster the program is."""
    parser = size_parser("table-a2-loop", "seconds of a trial, beside a loop over BoTorch models")
    parser.add_argument("--loop-trials", type=int, default=2, help="of them by the loop, too")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    found = told(rows(options), describe)
    write_results("table-a2-loop", found, [options.seed], "cpu", options.results)
