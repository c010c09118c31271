"""A run of a million rounds: what a round costs early and late, and how much memory it took.

Two runs without an end: one on a grid of 1,000 points, one of a tuner in four dimensions that decides
on every round anew. Both follow an optimum that wanders. What is timed is the decision and, with a
query, the update; the truth is not. Time is that of the processor, since a million rounds meet every
kind of neighbour on a shared machine; the clock's is kept beside it.
"""

import math
import resource
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.harness.command_line import parser_for
from benchmarks.harness.decisions import decide_on_grid
from benchmarks.harness.record import Row, told, write_results
from benchmarks.harness.tuners import as_published
from benchmarks.priced.continuous import cube
from botorch_costly import ConfidenceQuery, Design, Limits, Prior, Search
from botorch_costly.acquisition import LogBeta
from botorch_costly.models import DriftingGrid
from botorch_costly.problems import DriftingFunction
from botorch_costly.query import Progress
from botorch_costly.simulation import GridPolicy, Ground

ROUNDS = 1_000_000
WINDOW = 1000  # rounds from which the early cost is taken, and as many of them
LATE = 0.1  # share of the rounds, at the end
FLAT = 1.2  # most that a late round may cost, in early ones
POINTS, DIM, FORGETTING, NOISE = 1000, 4, 0.003, 0.1
FEATURES = 30  # of the truth on the grid


class Cost(NamedTuple):
    """Of one round, in milliseconds."""

    cpu: float
    clock: float
    queried: bool


def rounds_on_a_grid(points: int, seed: int) -> Iterator[Cost]:
    """Yield what each round costs under the confidence rule on a grid, without end."""
    truth = DriftingFunction.on_unit_interval(points, 0.03)
    belief = DriftingGrid(truth.prior_cov, truth.forgetting, truth.noise, torch.Size([1, 1]))
    policy, ground = (
        GridPolicy("CE-GP-UCB @0.90", ConfidenceQuery(0.9)),
        Ground.from_points(truth.points, 0.2),
    )
    generator, beta = torch.Generator().manual_seed(seed), LogBeta()
    values = wandering(truth.points, 0.03, generator)
    t = 0
    while True:
        t, y = t + 1, next(values)

        def play(t: int = t, y: Tensor = y) -> bool:
            belief.wait()
            at, query = decide_on_grid(policy, belief, ground, Progress(t), beta(t), generator)
            if query:
                belief.observe(at, y[at])
            return bool(query)

        yield cost_of(play)


def wandering(points: Tensor, forgetting: float, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield noisy values of a smooth function that forgets, by random features of some frequencies."""

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=points.dtype)

    waves = 8 * normal(1, FEATURES)
    phases = 2 * math.pi * torch.rand(FEATURES, generator=generator, dtype=points.dtype)
    features = math.sqrt(2 / FEATURES) * torch.cos(points @ waves + phases)
    keep = math.sqrt(1 - forgetting)
    weights = normal(FEATURES)
    while True:
        noise = 0.1 * normal(len(points))
        yield features @ weights + noise
        weights = keep * weights + math.sqrt(1 - keep**2) * normal(FEATURES)


def rounds_of_a_tuner(dim: int, seed: int) -> Iterator[Cost]:
    """Yield what each round of a tuner costs that decides on every round anew, without end."""
    tuner = as_published(
        cube(dim),
        None,
        ConfidenceQuery(0.7),
        seed,
        prior=Prior(forgetting=FORGETTING, noise=NOISE),
        search=Search(num_restarts=20),
        limits=Limits(keep_rounds=WINDOW),
        design=Design(kind="random", rounds=2 * dim, start_rounds=1),
    )
    generator = torch.Generator().manual_seed(seed)
    t = 0
    while True:
        target = [0.5 + 0.3 * math.sin(t / 300 + k) for k in range(dim)]
        noise = 0.1 * float(torch.randn((), generator=generator))
        t += 1

        def play(target: list[float] = target, noise: float = noise) -> bool:
            decision = tuner.ask()
            if decision.query:
                x = torch.tensor(list(decision.config.values()), dtype=torch.float64)
                distance = (x - torch.tensor(target, dtype=torch.float64)).square().sum()
                tuner.tell(decision, noise - float(distance))
            return decision.query

        yield cost_of(play)


def cost_of(play: Callable[[], bool]) -> Cost:
    """Play a round and return what it cost."""
    cpu, clock = time.thread_time(), time.perf_counter()
    queried = play()
    return Cost(1e3 * (time.thread_time() - cpu), 1e3 * (time.perf_counter() - clock), queried)


def measure(case: str, costs: Iterator[Cost], rounds: int) -> Row:
    """Return early and late medians of a run, by what a round was, and the peak memory at both."""
    early, late, queries = [], [], 0
    start, peak = rounds - int(LATE * rounds), 0.0
    for t, cost in zip(range(rounds), costs, strict=False):
        queries += cost.queried
        if WINDOW <= t < 2 * WINDOW:
            early.append(cost)
        if t == 2 * WINDOW:
            peak = peak_memory()
        if t >= start:
            late.append(cost)
    return {
        "case": case,
        "rounds": rounds,
        "queries": queries,
        "early": summary(early),
        "late": summary(late),
        "ratio": summary(late)["cpu_ms"] / summary(early)["cpu_ms"],
        "peak_mb_early": peak,
        "peak_mb_late": peak_memory(),
    }


def summary(costs: list[Cost]) -> dict[str, float]:
    """Return medians over all rounds, and over those with and without a query."""
    found = {
        "cpu_ms": median(cost.cpu for cost in costs),
        "clock_ms": median(cost.clock for cost in costs),
        "mean_cpu_ms": sum(cost.cpu for cost in costs) / len(costs),
    }
    for name, queried in (("query_cpu_ms", True), ("wait_cpu_ms", False)):
        some = [cost.cpu for cost in costs if cost.queried == queried]
        found[name] = median(some) if some else 0.0
    return found


def peak_memory() -> float:
    """Return the most memory this process has held, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


CASES: dict[str, Callable[[int], Iterator[Cost]]] = {
    f"grid of {POINTS} points": lambda seed: rounds_on_a_grid(POINTS, seed),
    f"tuner, d = {DIM}": lambda seed: rounds_of_a_tuner(DIM, seed),
}


def describe(row: Row) -> str:
    """Return a run in a line, with its verdict."""
    flat = "flat" if row["ratio"] <= FLAT else "NOT FLAT"
    return (
        f"{row['case']}: {row['early']['cpu_ms']:.3f} ms early, {row['late']['cpu_ms']:.3f} ms over the"
        f" last {LATE:.0%} of {row['rounds']:,} rounds, {row['ratio']:.2f} times ({flat});"
        f" {row['queries']:,} queries; peak {row['peak_mb_early']:.0f} and {row['peak_mb_late']:.0f} MB"
    )


def main(arguments: list[str]) -> None:
    """Run each case and store its row; run one case a process, or memory tells of both."""
    parser = parser_for("horizon", "cost of a round early and late in a very long run")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--match", default="", help="only cases whose name contains this")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    cases = [case for case in CASES if options.match in case]
    rows = (measure(case, CASES[case](options.seed), options.rounds) for case in cases)
    stored = {"directory": options.results, "keep": lambda row: row["case"] not in cases}
    write_results("horizon", told(rows, describe), [options.seed], **stored)
