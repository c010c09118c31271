"""Table A2: what regret and how many queries each policy pays on drifting functions.

Setting of Wang et al. (2021), section 4.1: 1,000 points on [0, 1], Matérn-3/2 with lengthscale 0.2,
noise variance 0.01, 500 rounds, 50 trials. The paper leaves the schedule of ``beta`` and the period
of R-GP-UCB open: ``0.8 log(4 t)`` and ``12 forgetting^(-2/3)`` come close to what it prints.

Every policy of one forgetting rate meets the same functions, the same noise and the same coins.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.harness.command_line import size_parser
from benchmarks.harness.record import Row, recording, replacing
from benchmarks.harness.sweep import in_processes
from benchmarks.tables.paper import FORGETTING_RATES
from benchmarks.tables.world import AT_ONCE, World
from botorch_costly.query import AlwaysQuery, BernoulliQuery, ConfidenceBoundQuery, ConfidenceQuery
from botorch_costly.simulation import GridPolicy

RATES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
KAPPAS = (0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
EXTRA_KAPPAS = (0.7, 0.9)
# Rounds between restarts, beside those of ``restart_period``.
PERIODS = (8, 12, 16, 20, 25, 50, 100, 150, 200, 300)
MERGED = " merged"  # behind the name of a row whose rivals are beyond the bandwidth


def restart_period(forgetting: float, horizon: int) -> int:
    """Return ``N = 12 forgetting^(-2/3)`` rounds, at most the horizon."""
    return min(horizon, int(12 * forgetting ** (-2 / 3)))


def restarting(forgetting: float, horizon: int, rate: float = 1.0) -> GridPolicy:
    """Return R-GP-UCB: a model without drift that starts afresh every period, thinned by coin."""
    period = restart_period(forgetting, horizon)
    if rate == 1:
        return GridPolicy("R-GP-UCB", AlwaysQuery(), forgetting=0.0, restart_every=period)
    name = f"R-GP-UCB Ber({rate:.1f})"
    return GridPolicy(name, BernoulliQuery(rate), forgetting=0.0, restart_every=period)


def policies(forgetting: float, horizon: int) -> list[GridPolicy]:
    """Return the rows of the table, named as printed, and the coins with a clock that stands still.

    The paper's model ages in every round, but line 10 of its Algorithm 1 leaves the belief as it was
    in a round without a query. Its Bernoulli rows come out that way only; its confidence rows come out
    only if the belief ages, for an unchanged belief never asks again.
    """
    coin = [GridPolicy(f"TV-GP-UCB Ber({p:.1f})", BernoulliQuery(p)) for p in RATES]
    still = [
        GridPolicy(f"TV-GP-UCB Ber({p:.1f}) as printed", BernoulliQuery(p), ages=False)
        for p in RATES
    ]
    return [
        restarting(forgetting, horizon),
        GridPolicy("TV-GP-UCB", AlwaysQuery()),
        *coin,
        *still,
        *confident(),
    ]


def confident(*, merges: bool = False) -> list[GridPolicy]:
    """Return the rows of the confidence rules, perhaps without rivals within the bandwidth."""
    rules = {f"{k:.2f}": ConfidenceQuery(k) for k in KAPPAS} | {"*": ConfidenceBoundQuery()}
    end = MERGED if merges else ""
    return [
        GridPolicy(f"CE-GP-UCB @{name}{end}", rule, merges=merges) for name, rule in rules.items()
    ]


def extra_policies() -> list[GridPolicy]:
    """Return rows that the paper lacks.

    They are the rule with covariances, the rule without a rival of a lone optimum, rivals merged as by
    the mean shift that the paper describes for networks, and other periods of R-GP-UCB.
    """
    joint = [
        GridPolicy(f"CE-GP-UCB joint @{k:.2f}", ConfidenceQuery(k, joint=True), joint=True)
        for k in EXTRA_KAPPAS
    ]
    literal = [
        GridPolicy(f"CE-GP-UCB literal @{k:.2f}", ConfidenceQuery(k), lone_rival=False)
        for k in EXTRA_KAPPAS
    ]
    restarts = [
        GridPolicy(f"R-GP-UCB N={period}", AlwaysQuery(), forgetting=0.0, restart_every=period)
        for period in PERIODS
    ]
    return [*joint, *literal, *confident(merges=True), *restarts]


class Paid(NamedTuple):
    """What a policy paid in some trials."""

    regret: Tensor  # mean over rounds, shape: (trials,)
    queries: Tensor  # shape: (trials,)
    seconds: float
    cpu_seconds: float


def paid(world: World, policy: GridPolicy) -> Paid:
    """Return what a policy pays."""
    start, busy = time.perf_counter(), time.process_time()
    run = world.play(policy)
    regret, queries = run.regret.mean(-1).cpu(), run.query.sum(-1).double().cpu()
    return Paid(regret, queries, time.perf_counter() - start, time.process_time() - busy)


def summary(regret: Tensor, queries: Tensor) -> dict[str, float]:
    """Return means over trials and their sample standard deviations, as the table prints them."""
    several = len(regret) > 1
    return {
        "regret": regret.mean().item(),
        "regret_std": regret.std().item() if several else 0.0,
        "queries": queries.mean().item(),
        "queries_std": queries.std().item() if several else 0.0,
    }


def cell(forgetting: float, policy: GridPolicy, parts: Sequence[Paid]) -> Row:
    """Return one cell of the table, from what was paid in parts of the trials, and print it."""
    regret = torch.cat([part.regret for part in parts])
    queries = torch.cat([part.queries for part in parts])
    found, seconds = summary(regret, queries), sum(part.seconds for part in parts)
    print(
        f"forgetting {forgetting:<6g} {policy.name:<29}"
        f" regret {found['regret']:.3f} ± {found['regret_std']:.3f}"
        f"  queries {found['queries']:5.0f} ± {found['queries_std']:<3.0f}  {seconds:5.1f} s",
        flush=True,
    )
    row = {"forgetting": forgetting, "policy": policy.name, **found, "trials": len(regret)}
    cpu_seconds = sum(part.cpu_seconds for part in parts)
    return {**row, "seconds": round(seconds, 2), "cpu_seconds": round(cpu_seconds, 2)}


def measure(world: World, policy: GridPolicy) -> Row:
    """Return one cell of the table, and print it."""
    _, horizon, points = world.paths.shape
    row = cell(world.truth.forgetting, policy, [paid(world, policy)])
    return {**row, "horizon": horizon, "points": points}


class Task(NamedTuple):
    """Some trials at one forgetting rate: what a process does at a time."""

    forgetting: float
    trials: range


def policies_at(forgetting: float, options: argparse.Namespace) -> list[GridPolicy]:
    """Return the rows that the options ask for."""
    found = policies(forgetting, options.horizon)
    if options.published:
        found = [policy for policy in found if "as printed" not in policy.name]
    found += extra_policies() if options.extras else []
    return [policy for policy in found if options.match in policy.name]


def play_all(options: argparse.Namespace, task: Task) -> list[Paid]:
    """Return what every policy pays in some trials."""
    size = task.trials, options.horizon, options.points
    world = World.draw(task.forgetting, *size, options.seed, options.device)
    return [paid(world, policy) for policy in policies_at(task.forgetting, options)]


def cells(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the cells of the table, forgetting rate by forgetting rate."""
    trials = range(options.trials)
    blocks = [trials[i : i + AT_ONCE] for i in range(0, options.trials, AT_ONCE)]
    tasks = [Task(rate, block) for rate in options.forgetting for block in blocks]
    played = in_processes(partial(play_all, options), tasks, options.processes)
    for rate in options.forgetting:
        parts = [next(played) for _ in blocks]
        for policy, *some in zip(policies_at(rate, options), *parts, strict=True):
            yield {**cell(rate, policy, some), "horizon": options.horizon, "points": options.points}


def stays(options: argparse.Namespace) -> Callable[[Row], bool]:
    """Return which stored cells stay where these are measured."""
    size = {name: getattr(options, name) for name in ("trials", "horizon", "points")}
    names = {policy.name for rate in options.forgetting for policy in policies_at(rate, options)}
    return replacing(size, forgetting=options.forgetting, policy=names)


def main(arguments: list[str]) -> None:
    """Measure every policy at every forgetting rate, and the time that it takes."""
    parser = size_parser("table-a2", "regret and queries on drifting functions")
    parser.add_argument("--extras", action="store_true", help="add variants of the rule")
    parser.add_argument("--published", action="store_true", help="only rows that the paper has")
    parser.add_argument(
        "--forgetting", type=float, nargs="+", default=FORGETTING_RATES, help="rates to measure at"
    )
    parser.add_argument("--match", default="", help="only policies whose name contains this")
    parser.add_argument("--processes", type=int, default=2, help="of so many trials side by side")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    start = time.perf_counter()
    where = options.device, options.results
    with recording("table-a2", [options.seed], *where, keep=stays(options)) as write:
        rows = list(cells(options))
        wall = round(time.perf_counter() - start, 1)
        print(f"{len(rows)} cells in {wall / 60:.1f} minutes, {options.processes} processes")
        for row in rows:
            write({**row, "wall_seconds": wall, "processes": options.processes})
