"""How often terms in single precision decide the same: rounds of Table A2, replayed.

Once a decision differs the runs go different ways, so the history of double precision is played to
single precision, which says in each round what it would have done. On a fine grid neighbours nearly
tie. So decisions next door are counted as well as equal ones: an equal query, at a point within a
fiftieth of the lengthscale whose score is within 1e-5 of the best.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

import botorch_costly as bc
from benchmarks.harness.command_line import size_parser
from benchmarks.harness.record import Row, told, write_results
from benchmarks.tables.table_a2 import restarting
from benchmarks.tables.world import World
from botorch_costly.simulation import (
    GridPolicy,
    expected_improvement,
    play,
    probability_of_improvement,
)

FORGETTING_RATES = (0.003, 0.01, 0.05)
NEAR, CLOSE = 0.2 / 50, 1e-5  # distance of points, difference of scores


def policies(forgetting: float, horizon: int) -> list[GridPolicy]:
    """Return one policy of each kind."""
    return [
        GridPolicy("TV-GP-UCB", bc.AlwaysQuery()),
        GridPolicy("TV-GP-UCB Ber(0.3)", bc.BernoulliQuery(0.3)),
        GridPolicy("CE-GP-UCB @0.70", bc.ConfidenceQuery(0.7)),
        GridPolicy("CE-GP-UCB @0.90", bc.ConfidenceQuery(0.9)),
        GridPolicy("CE-GP-UCB @*", bc.ConfidenceBoundQuery()),
        GridPolicy("TV-EI", bc.AlwaysQuery(), expected_improvement),
        GridPolicy("TV-PI", bc.AlwaysQuery(), probability_of_improvement),
        restarting(forgetting, horizon),
        GridPolicy("priced 0.3", bc.PricedQuery(price=0.3)),
    ]


def measure(world: World, policy: GridPolicy) -> Row:
    """Return in what share of rounds the decisions are the same."""
    scores: list[Tensor] = []

    def score(mean: Tensor, std: Tensor, beta: float) -> Tensor:
        scores.append(policy.score(mean, std, beta))
        return scores[-1]

    double = play(world.truth, [replace(policy, score=score)], world.draws)
    single = play(world.truth, [policy], world.draws, dtype=torch.float32, history=double)
    ours, theirs = single.of(0), double.of(0)
    x, known = world.truth.points[:, 0], torch.stack(scores, 1)
    chosen, best = (known.gather(-1, run.choice[..., None])[..., 0] for run in (ours, theirs))
    # Priced queries go by what they promise, not by the score: there only places count.
    close = (best - chosen <= CLOSE) | isinstance(policy.rule, bc.PricedQuery)
    query, choice = ours.query == theirs.query, ours.choice == theirs.choice
    near = query & close & ((x[ours.choice] - x[theirs.choice]).abs() <= NEAR)
    shares = {
        "same_queries": query,
        "same_choices": choice,
        "same_decisions": query & choice,
        "next_door": near,
    }
    return {
        "forgetting": world.truth.forgetting,
        "policy": policy.name,
        **{name: float(part.double().mean()) for name, part in shares.items()},
        "mean_error": float((ours.mean - theirs.mean).abs().max()),
        "rounds": query.numel(),
        "points": len(x),
    }


def describe(row: Row) -> str:
    """Return a row in words."""
    return (
        f"forgetting {row['forgetting']:<6g} {row['policy']:<20}"
        f" query {100 * row['same_queries']:6.2f} %, choice {100 * row['same_choices']:6.2f} %,"
        f" both {100 * row['same_decisions']:6.2f} %, next door {100 * row['next_door']:6.2f} %,"
        f" error of the last mean {row['mean_error']:.0e}"
    )


def text(rows: Sequence[Row]) -> str:
    """Return all rows in words."""
    good = sum(row["same_decisions"] >= 0.99 for row in rows)
    last = f"at least 99 % of decisions equal: {good} of {len(rows)} cells"
    return "\n".join([*map(describe, rows), last])


def main(arguments: list[str]) -> None:
    """Replay every policy, store the shares and print them."""
    parser = size_parser("single-precision", "decisions that single precision shares with double")
    parser.set_defaults(trials=4, horizon=300)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)

    size = options.trials, options.horizon, options.points
    worlds = ((rate, World.draw(rate, *size, options.seed)) for rate in FORGETTING_RATES)
    rows = (measure(w, policy) for rate, w in worlds for policy in policies(rate, options.horizon))
    found = told(rows, describe)
    write_results("single-precision", found, [options.seed], "cpu", options.results)
