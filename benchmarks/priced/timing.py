"""Milliseconds of one decision under the confidence rule and under the priced rule.

Both decide on the same beliefs, by turns, so that a busy machine is busy for both.
"""

import math
from collections.abc import Callable, Iterator

import torch

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


SPACES = {
    **{f"d = {dim}": cube(dim) for dim in (1, 2, 4, 8)},
    "3 arms": SearchSpace({"arm": Choice(["a", "b", "c"])}),
    "900 points": SearchSpace({name: Integer(1, 30) for name in "ab"}),
}


def tuner_decisions(space: SearchSpace, rows: int, seed: int) -> dict[str, Callable[[], object]]:
    """Return one decision of a tuner under each rule, on the same ``rows`` rewards."""
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
        return lambda: strategy.decide(belief, progress, True, draws)

    return {name: decision(rule) for name, rule in RULES.items()}


def grid_decisions(trials: int, points: int, rows: int, seed: int) -> dict[str, Callable]:
    """Return one round's decisions on a grid, of many trials at once, under each rule."""
    world = World.draw(FORGETTING, trials, 2, points, seed)
    generator = torch.Generator().manual_seed(seed)
    belief = DriftingGrid(world.truth.prior_cov, FORGETTING, NOISE, torch.Size([trials]))
    for _ in range(rows):
        at = torch.randint(points, (trials,), generator=generator)
        belief.observe(at, world.paths[:, 0].gather(-1, at[:, None]).squeeze(-1))
        belief.wait()
    beta, ground = LogBeta()(rows), Ground.from_points(world.truth.points, bandwidth=0.2)
    progress = Progress(
        rows + 1, torch.full((trials,), rows), HORIZON, FORGETTING, information_share=0.3
    )

    def decision(name: str, rule: QueryRule) -> Callable[[], object]:
        policy = GridPolicy(name, rule)
        return lambda: decide_on_grid(policy, belief, ground, progress, beta, generator)

    return {name: decision(name, rule) for name, rule in RULES.items()}


def measure(repeats: int, seed: int) -> Iterator[Row]:
    """Yield milliseconds and their ratio in every setting."""
    settings: dict[str, dict[str, Callable[[], object]]] = {
        f"tuner, {name}, n = {rows}": tuner_decisions(space, rows, seed)
        for name, space in SPACES.items()
        for rows in (20, 200)
    }
    settings["grid of 1000 points, 50 trials"] = grid_decisions(50, 1000, 100, seed)
    for setting, decisions in settings.items():
        spent = by_turns(decisions, repeats)
        yield {"setting": setting, **spent, "ratio": spent["priced"] / spent["confidence"]}


def describe(row: Row) -> str:
    """Return a setting in a line."""
    return (
        f"{row['setting']:<32} confidence {row['confidence']:6.2f} ms,"
        f" priced {row['priced']:6.2f} ms: {row['ratio']:.2f} times"
    )


def main(arguments: list[str]) -> None:
    """Time both rules and store it."""
    parser = parser_for("priced-time", "milliseconds of a decision under either rule")
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows = told(measure(options.repeats, options.seed), describe)
    write_results("priced-time", rows, [options.seed], directory=options.results)
