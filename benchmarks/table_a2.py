"""Table A2: what regret and how many looks each policy pays on drifting functions.

Setting of Wang et al. (2021), section 4.1: 1,000 points on [0, 1], Matérn-3/2 with lengthscale 0.2,
noise variance 0.01, 500 rounds, 50 trials. The paper leaves the schedule of ``beta`` and the period
of R-GP-UCB open: ``0.8 log(4 t)`` and ``12 forgetting^(-2/3)`` come close to what it prints.

Every policy of one forgetting rate meets the same functions, the same noise and the same coins.
"""

import argparse
import time
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.grid_simulation import GridPolicy, Run, simulate
from benchmarks.paper import FORGETTING_RATES
from benchmarks.record import Row, add_results_argument, recording
from botorch_costly.acquisition import LogBeta
from botorch_costly.errors import check_count
from botorch_costly.problems import DriftingFunction
from botorch_costly.query import AlwaysQuery, BernoulliQuery, ConfidenceBoundQuery, ConfidenceQuery

RATES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
KAPPAS = (0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
EXTRA_KAPPAS = (0.7, 0.9)


@dataclass(frozen=True)
class World:
    """A truth, runs of it, and the noise every policy meets."""

    truth: DriftingFunction
    paths: Tensor  # shape: (trials, horizon, points)
    noise: Tensor  # shape: (trials, horizon)
    seed: int

    @classmethod
    def draw(
        cls,
        forgetting: float,
        trials: int = 50,
        horizon: int = 500,
        points: int = 1000,
        seed: int = 0,
        device: str = "cpu",
    ) -> "World":
        """Draw on the CPU, so that the seed means the same world on every device."""
        truth = DriftingFunction.on_unit_interval(points, forgetting)
        generator = torch.Generator().manual_seed(seed)
        paths = truth.paths(check_count("horizon", horizon, 1), trials, generator)
        normal = torch.randn(trials, horizon, generator=generator, dtype=paths.dtype)
        noise = truth.noise**0.5 * normal
        return cls(truth, paths.to(device), noise.to(device), seed)

    def play(self, policy: GridPolicy) -> Run:
        """Run a policy; its coins are those of every other policy."""
        coins = torch.Generator(device=self.paths.device).manual_seed(self.seed + 1)
        return simulate(self.truth, self.paths, self.noise, policy, LogBeta(), coins)


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
    in a round without a look. Its Bernoulli rows come out that way only; its confidence rows come out
    only if the belief ages, for an unchanged belief never asks again.
    """
    coin = [GridPolicy(f"TV-GP-UCB Ber({p:.1f})", BernoulliQuery(p)) for p in RATES]
    still = [
        GridPolicy(f"TV-GP-UCB Ber({p:.1f}) as printed", BernoulliQuery(p), ages=False)
        for p in RATES
    ]
    confident = [GridPolicy(f"CE-GP-UCB @{k:.2f}", ConfidenceQuery(k)) for k in KAPPAS]
    return [
        restarting(forgetting, horizon),
        GridPolicy("TV-GP-UCB", AlwaysQuery()),
        *coin,
        *still,
        *confident,
        GridPolicy("CE-GP-UCB @*", ConfidenceBoundQuery()),
    ]


def extra_policies() -> list[GridPolicy]:
    """Return rows the paper has not: the rule with covariances, and without a rival when alone."""
    joint = [
        GridPolicy(f"CE-GP-UCB joint @{k:.2f}", ConfidenceQuery(k, joint=True), joint=True)
        for k in EXTRA_KAPPAS
    ]
    literal = [
        GridPolicy(f"CE-GP-UCB literal @{k:.2f}", ConfidenceQuery(k), lone_rival=False)
        for k in EXTRA_KAPPAS
    ]
    return joint + literal


def summary(run: Run) -> dict[str, float]:
    """Return means over trials and their sample standard deviations, as the table prints them."""
    regret, queries = run.regret.mean(-1), run.look.sum(-1).double()
    several = len(regret) > 1
    return {
        "regret": regret.mean().item(),
        "regret_std": regret.std().item() if several else 0.0,
        "queries": queries.mean().item(),
        "queries_std": queries.std().item() if several else 0.0,
    }


def measure(world: World, policy: GridPolicy) -> Row:
    """Return one cell of the table, and print it."""
    start = time.perf_counter()
    cell = summary(world.play(policy))
    seconds = time.perf_counter() - start
    print(
        f"forgetting {world.truth.forgetting:<6g} {policy.name:<29}"
        f" regret {cell['regret']:.3f} ± {cell['regret_std']:.3f}"
        f"  queries {cell['queries']:5.0f} ± {cell['queries_std']:<3.0f}  {seconds:5.1f} s",
        flush=True,
    )
    trials, horizon, points = world.paths.shape
    size = {"trials": trials, "horizon": horizon, "points": points}
    row = {"forgetting": world.truth.forgetting, "policy": policy.name}
    return {**row, **cell, **size, "seconds": round(seconds, 2)}


def size_parser(name: str, description: str) -> argparse.ArgumentParser:
    """Return a parser with the options shared by the benchmarks on drifting functions."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=description,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--trials", type=int, default=50, help="independent runs")
    parser.add_argument("--horizon", type=int, default=500, help="rounds of a run")
    parser.add_argument("--points", type=int, default=1000, help="size of the domain")
    parser.add_argument("--seed", type=int, default=0, help="of functions, noise and coins")
    parser.add_argument("--device", default="cpu", help="where to compute")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    add_results_argument(parser)
    return parser


def draw_world(forgetting: float, options: argparse.Namespace) -> World:
    """Return the world the options describe."""
    size = options.trials, options.horizon, options.points
    return World.draw(forgetting, *size, options.seed, options.device)


def main(arguments: list[str]) -> None:
    """Measure every policy at every forgetting rate."""
    parser = size_parser("table-a2", "regret and queries on drifting functions")
    parser.add_argument("--extras", action="store_true", help="add variants of the rule")
    parser.add_argument(
        "--forgetting", type=float, nargs="+", default=FORGETTING_RATES, help="rates to measure at"
    )
    parser.add_argument("--match", default="", help="only policies whose name contains this")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    with recording("table-a2", [options.seed], options.device, options.results) as write:
        for forgetting in options.forgetting:
            world = draw_world(forgetting, options)
            rows = policies(forgetting, options.horizon)
            for policy in rows + (extra_policies() if options.extras else []):
                if options.match in policy.name:
                    write(measure(world, policy))
