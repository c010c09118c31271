"""Milliseconds of one decision under the confidence rule and under the priced rule.

Both decide on the same beliefs, by turns, so that a busy machine is busy for both; the least processor
time of many counts. A tuner decides again on the same belief (``again``), as in a round without news, or
on a belief without caches (``after a query``). In the simulator a step is a decision and the update of
the belief after it.
"""

import math
from collections.abc import Callable, Iterator
from itertools import product

import torch
from torch import Tensor

from benchmarks.harness.clock import by_turns
from benchmarks.harness.command_line import parser_for
from benchmarks.harness.decisions import decide_on_grid, decider
from benchmarks.harness.record import Row, told, write_results
from benchmarks.priced.continuous import cube
from benchmarks.tables.world import World
from botorch_costly import Choice, Integer, SearchSpace
from botorch_costly.acquisition import LogBeta
from botorch_costly.models import DriftingGrid, StreamingGP
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.query import ConfidenceQuery, PricedQuery, Progress, QueryRule
from botorch_costly.simulation import GridPolicy, Ground

RULES: dict[str, QueryRule] = {"confidence": ConfidenceQuery(0.9), "priced": PricedQuery(price=0.3)}
FORGETTING, NOISE, HORIZON = 0.01, 0.01, 500


CUBES = {f"d = {dim}": cube(dim) for dim in (1, 2, 8)}
FINITE = {
    "3 arms": SearchSpace({"arm": Choice(["a", "b", "c"])}),
    "20 points": SearchSpace({"a": Integer(1, 20)}),
    "100 points": SearchSpace({name: Integer(1, 10) for name in "ab"}),
    "1000 points": SearchSpace({"a": Integer(1, 40), "b": Integer(1, 25)}),
}
ROWS = {
    **dict.fromkeys(CUBES, (50, 200, 1000)),
    **dict.fromkeys(FINITE, (50, 200)),
}
TRIALS, POINTS = (8, 50), (100, 1000)  # of the simulator


def tuner_decisions(
    space: SearchSpace, rows: int, seed: int, *, anew: bool = False
) -> dict[str, Callable[[], object]]:
    """Return one decision of a tuner under each rule, on the same ``rows`` rewards.

    Args:
        space: Search space.
        rows: Number of rewards, at most 1,000.
        seed: Seed of the rewards.
        anew: Whether each decision is on a belief without caches.
    """
    generator = torch.Generator().manual_seed(seed)
    dim, like = space.dim, torch.ones((), dtype=torch.float64)
    family = "arms" if space.is_arms else "matern52"
    kernel = Stationary(family, (0.5 * math.sqrt(dim) * like).reshape(1), like)
    belief = StreamingGP(kernel, FORGETTING, NOISE)
    centre = torch.rand(dim, generator=generator, dtype=torch.float64)
    for now in range(rows):
        x = space.round(torch.rand(dim, generator=generator, dtype=torch.float64))
        noise = NOISE**0.5 * torch.randn((), generator=generator, dtype=torch.float64)
        reward = float(1 - 2 * (x - centre).square().mean().sqrt() + noise)
        belief.observe(torch.cat([x, like.new_tensor([now])]), reward)
    progress = Progress(rows + 1, rows, HORIZON, FORGETTING)

    def decision(rule: QueryRule) -> Callable[[], object]:
        strategy = decider(space, rule).strategy
        draws = torch.Generator().manual_seed(seed)

        def decide() -> object:
            if anew:
                belief.rescale(belief.center, belief.scale)  # replaces the factor
            return strategy.decide(belief, progress, True, draws)

        return decide

    return {name: decision(rule) for name, rule in RULES.items()}


def grid_decisions(
    trials: int, points: int, rows: int, seed: int, *, whole_step: bool = False
) -> dict[str, Callable[[], object]]:
    """Return one round's decisions on a grid, of many trials at once, under each rule.

    Args:
        trials: Number of trials.
        points: Number of points of the grid.
        rows: Queries of each trial so far.
        seed: Seed of functions and queries.
        whole_step: Whether the belief is updated after a decision, by a query in each trial.
    """
    world = World.draw(FORGETTING, trials, 2, points, seed)
    beta, ground = LogBeta()(rows), Ground.from_points(world.truth.points, bandwidth=0.2)
    progress = Progress(
        rows + 1, torch.full((trials,), rows), HORIZON, FORGETTING, information_share=0.3
    )

    def decision(name: str, rule: QueryRule) -> Callable[[], object]:
        generator = torch.Generator().manual_seed(seed)
        belief = DriftingGrid(world.truth.prior_cov, FORGETTING, NOISE, torch.Size([trials]))
        policy, every = GridPolicy(name, rule), torch.ones(trials, dtype=torch.bool)

        def query(at: Tensor) -> None:
            reward = world.paths[:, 0].gather(-1, at[:, None]).squeeze(-1)
            belief.take_in(at, reward, every)
            belief.wait()

        for _ in range(rows):
            query(torch.randint(points, (trials,), generator=generator))

        def decide() -> object:
            decided = decide_on_grid(policy, belief, ground, progress, beta, generator)
            if whole_step:
                query(decided.at)
            return decided

        return decide

    return {name: decision(name, rule) for name, rule in RULES.items()}


def settings(seed: int) -> Iterator[tuple[str, dict[str, Callable[[], object]]]]:
    """Yield the name of each setting, and a decision under each rule in it."""
    for name, space in {**CUBES, **FINITE}.items():
        for rows in ROWS[name]:
            yield f"{name}, n = {rows}, again", tuner_decisions(space, rows, seed)
            anew = tuner_decisions(space, rows, seed, anew=True)
            yield f"{name}, n = {rows}, after a query", anew
    for trials, points in product(TRIALS, POINTS):
        name = f"{trials} trials of {points} points"
        yield f"{name}, decision", grid_decisions(trials, points, 100, seed)
        yield f"{name}, step", grid_decisions(trials, points, 100, seed, whole_step=True)


def measure(repeats: int, seed: int) -> Iterator[Row]:
    """Yield milliseconds and their ratio in every setting."""
    for setting, decisions in settings(seed):
        spent = by_turns(decisions, repeats, least=True)
        yield {"setting": setting, **spent, "ratio": spent["priced"] / spent["confidence"]}


def describe(row: Row) -> str:
    """Return a setting in a line."""
    return (
        f"{row['setting']:<36} confidence {row['confidence']:6.2f} ms,"
        f" priced {row['priced']:6.2f} ms: {row['ratio']:.2f} times"
    )


def main(arguments: list[str]) -> None:
    """Time both rules and store it."""
    parser = parser_for("priced-time", "milliseconds of a decision under either rule")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows = told(measure(options.repeats, options.seed), describe)
    write_results("priced-time", rows, [options.seed], directory=options.results)
