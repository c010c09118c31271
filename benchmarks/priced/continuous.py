"""The priced query in four and eight dimensions: ``OnlineTuner`` on drifting functions known everywhere.

What a run of ``T`` rounds costs at a price is ``L_T = R_T + price * C_T``: its regret, summed over the
rounds, and its queries. The rule that is told the price is held against the confidence rule at the
threshold that turns out best for that price, on the same functions, the same noise and the same seeds.

Rewards are in units of the prior, whose variance is 1, and the tuner is told so. Of samples of a GP it
knows lengthscale and forgetting, too. The Hartmann-like function is none; for it the lengthscale is the
likeliest one on other paths (of 0.3 to 0.6 times the root of the dimension, the same in d = 4 and 8).
"""

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from benchmarks.harness.command_line import parser_for
from benchmarks.harness.record import Row, grouped, replacing, rows_of, write_results
from benchmarks.harness.sweep import in_processes
from benchmarks.harness.tuners import believing
from benchmarks.priced.comparison import Outcome, compare
from botorch_costly import ConfidenceQuery, OnlineTuner, PricedQuery, QueryRule, Real, SearchSpace
from botorch_costly.problems import DriftingHartmann, DriftingPath, DriftingSample
from botorch_costly.query import UnqueriedPlay

LENGTHSCALES = {"sample": 0.35, "hartmann": 0.45}  # by function, times sqrt(d)
NAME = "priced-continuous"
KAPPAS = (0.6, 0.7, 0.8, 0.9)
PRICES = (0.1, 0.3, 1.0, 2.0)
FORGETTING = 0.01
NOISE = 0.01  # variance, as a share of that of the function


class Truth(Protocol):
    """A function whose value and maximum are known in every round, counted from 0."""

    def value(self, t: int, X: Tensor) -> Tensor:
        """Return ``f_t`` at points of the unit cube, ``(m, d) -> (m,)``."""

    def maximum(self, t: int) -> float:
        """Return ``max f_t``."""


class Task(NamedTuple):
    """One truth, which every policy meets."""

    function: str
    dim: int
    horizon: int
    seed: int
    unqueried_play: UnqueriedPlay  # of the confidence rule

    @property
    def lengthscale(self) -> float:
        """What the model assumes."""
        return LENGTHSCALES[self.function] * self.dim**0.5


def policies() -> dict[str, QueryRule]:
    """Return the confidence rule along its thresholds, and the priced query."""
    return {**confident(KAPPAS), **priced(PRICES)}


def confident(kappas: Sequence[float]) -> dict[str, QueryRule]:
    """Return the confidence rule at each threshold, by name."""
    return {f"confidence @{kappa:.2f}": ConfidenceQuery(kappa) for kappa in kappas}


def priced(prices: Sequence[float]) -> dict[str, QueryRule]:
    """Return the priced query at each price, by name."""
    return {f"priced {price:g}": PricedQuery(price=price) for price in prices}


def draw(task: Task) -> tuple[DriftingPath, Tensor]:
    """Return a run of the function, and what a query in each round adds to its value."""
    generator = torch.Generator().manual_seed(task.seed)
    truth: DriftingSample | DriftingHartmann
    if task.function == "sample":
        truth = DriftingSample(task.dim, task.lengthscale, FORGETTING)
    else:
        truth = DriftingHartmann(task.dim, FORGETTING)
    path = truth.path(task.horizon, generator)
    return path, NOISE**0.5 * torch.randn(task.horizon, generator=generator, dtype=torch.float64)


def cube(dim: int) -> SearchSpace:
    """Return a space of ``dim`` real numbers."""
    return SearchSpace({f"x{i}": Real(0.0, 1.0) for i in range(dim)})


def tuner_for(task: Task, rule: QueryRule) -> OnlineTuner:
    """Return a tuner that believes what is true of the function, or likely."""
    return believing(
        cube(task.dim),
        task.horizon,
        rule,
        task.seed,
        forgetting=FORGETTING,
        noise=NOISE,
        lengthscale=task.lengthscale,
        unqueried_play=task.unqueried_play,
    )


def play(truth: Truth, noise: Tensor, tuner: OnlineTuner) -> dict[str, float]:
    """Run a tuner; return mean regret, queries and milliseconds of a decision.

    A least regret below zero says by how much the search for the maximum was beaten.
    """
    regret, seconds = [], 0.0
    for t, disturbance in enumerate(noise.tolist()):
        began = time.perf_counter()
        decision = tuner.ask()
        seconds += time.perf_counter() - began
        x = tuner.space.encode(decision.config)
        value = float(truth.value(t, x.unsqueeze(0)))
        regret.append(truth.maximum(t) - value)
        if decision.query:
            began = time.perf_counter()
            tuner.tell(decision, value + disturbance)
            seconds += time.perf_counter() - began
    return {
        "regret": sum(regret) / len(regret),
        "least_regret": min(regret),
        "queries": tuner.queries,
        "ms": round(1000 * seconds / len(regret), 2),
    }


def trial(task: Task) -> list[Row]:
    """Play every policy on one truth."""
    path, noise = draw(task)
    return [
        {**task._asdict(), "policy": name, **play(path, noise, tuner_for(task, rule))}
        for name, rule in policies().items()
    ]


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for every function, dimension, trial and policy."""
    tasks = [
        Task(function, dim, options.horizon, options.seed + i, options.unqueried_play)
        for function in LENGTHSCALES
        for dim in options.dims
        for i in range(options.trials)
    ]
    for played in in_processes(trial, tasks, options.processes):
        yield from played


def outcomes(rows: Iterable[Row]) -> dict[str, Outcome]:
    """Return what each policy paid, its trials ordered by seed."""
    found = grouped(sorted(rows, key=lambda row: row["seed"]), "policy")
    return {
        name: Outcome.of(
            [r["regret"] for r in mine], [r["queries"] for r in mine], mine[0]["horizon"]
        )
        for name, mine in found.items()
    }


def text(rows: Sequence[Row]) -> str:
    """Return the tables: what every policy pays, and the priced query against the best threshold."""
    lines = []
    for (function, dim), mine in grouped(rows, "function", "dim").items():
        paid, least = outcomes(mine), min(row["least_regret"] for row in mine)
        trials, horizon = len(mine) // len(paid), mine[0]["horizon"]
        lines.append(
            f"{function}, d = {dim}: {trials} trials of {horizon} rounds (least regret {least:.2g})"
        )
        heads = "".join(f"{f'L_T at {price:g}':>12}" for price in PRICES)
        lines.append(f"  {'policy':<18}{'regret':>8}{'queries':>8}{'ms':>7}{heads}")
        for name, outcome in paid.items():
            ms = sum(row["ms"] for row in mine if row["policy"] == name) / trials
            regret, queries = float(outcome.regret.mean()) / horizon, float(outcome.queries.mean())
            costs = "".join(f"{float(outcome.cost(price).mean()):>12.1f}" for price in PRICES)
            lines.append(f"  {name:<18}{regret:>8.3f}{queries:>8.1f}{ms:>7.1f}{costs}")
        lines += [*against_the_best(paid, KAPPAS, PRICES), ""]
    return "\n".join(lines)


def against_the_best(
    paid: Mapping[str, Outcome], kappas: Sequence[float], prices: Sequence[float]
) -> list[str]:
    """Say of each price how the priced query does against the threshold that is best for it."""
    rivals = {name: paid[name] for name in confident(kappas)}
    found = {price: compare(paid[f"priced {price:g}"], rivals, price) for price in prices}
    return [f"  price {price:g}: {result} of {result.best}" for price, result in found.items()]


def main(arguments: list[str]) -> None:
    """Measure every policy on every function, store the rows and print the tables."""
    parser = parser_for(NAME, "the priced query in four and eight dimensions")
    add: Callable[..., object] = parser.add_argument
    add("--trials", type=int, default=20, help="truths of each kind")
    add("--horizon", type=int, default=100, help="rounds of a run")
    add("--dims", type=int, nargs="+", default=[4, 8], help="dimensions")
    add("--processes", type=int, default=2, help="trials side by side")
    add("--seed", type=int, default=3000, help="of the first trial")
    unqueried = "what the confidence rule plays without a query"
    add("--unqueried-play", choices=["acquisition", "mean"], default="acquisition", help=unqueried)
    options = parser.parse_args(arguments)
    seeds = [options.seed + i for i in range(options.trials)]
    alike = {"horizon": options.horizon, "unqueried_play": options.unqueried_play}
    stays = replacing(alike, dim=options.dims, seed=seeds)
    write_results(NAME, rows(options), seeds, directory=options.results, keep=stays)
    print(text(rows_of(NAME, options.results)))
