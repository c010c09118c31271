"""The priced query among three arms whose rewards change: a knowledge-gradient bandit with costs.

Wang et al. (2021), Figure A1, show such curves as a picture only, without numbers; these are ours, of
the same kinds, over ``T`` rounds with ``s = t / T``:

    sine    0.5 + 0.3 sin(4 pi s)
    bump    0.2 + 0.7 exp(-((s - 0.5) / 0.1)^2 / 2)
    steps   0.3, 0.8, 0.45, 0.65, each for a quarter of the run

and a query adds noise of variance 0.01. None of them is a sample of the model, which believes in arms
that forget, each for itself, at the same rate.
"""

import argparse
import math
from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks.harness.command_line import parser_for
from benchmarks.harness.record import Row, write_results
from benchmarks.harness.tuners import believing
from benchmarks.priced.continuous import against_the_best, confident, outcomes, priced
from benchmarks.priced.frontier import Rows
from botorch_costly import Choice, QueryRule, RewardScale, SearchSpace
from botorch_costly.acquisition import LogBeta

SPACE = SearchSpace({"arm": Choice(["sine", "bump", "steps"])})
STEPS = (0.3, 0.8, 0.45, 0.65)
NOISE = 0.01  # variance
LEVEL, SPREAD = 0.5, 0.25  # of the rewards, as the model is told
FORGETTING = 0.01
KAPPAS = (0.7, 0.8, 0.9, 0.95, 0.99)
PRICES = (0.1, 0.3, 1.0)


def curves(horizon: int) -> Tensor:
    """Return the reward of each arm in each round, shape ``(horizon, 3)``."""
    share = torch.arange(horizon, dtype=torch.float64) / horizon
    sine = 0.5 + 0.3 * torch.sin(4 * math.pi * share)
    bump = 0.2 + 0.7 * torch.exp(-0.5 * ((share - 0.5) / 0.1).square())
    steps = torch.tensor(STEPS, dtype=torch.float64)[(len(STEPS) * share).long()]
    return torch.stack([sine, bump, steps], -1)


def play(rule: QueryRule, horizon: int, seed: int) -> Row:
    """Return what one run paid."""
    truth, arms = curves(horizon), list(SPACE.configurations())
    generator = torch.Generator().manual_seed(seed)
    noise = NOISE**0.5 * torch.randn(horizon, generator=generator, dtype=torch.float64)
    tuner = believing(
        SPACE,
        horizon,
        rule,
        seed,
        forgetting=FORGETTING,
        noise=NOISE / SPREAD**2,
        beta=LogBeta(),
        rewards=RewardScale(center=LEVEL, scale=SPREAD, clip=math.inf),
    )
    regret = 0.0
    for t in range(horizon):
        decision = tuner.ask()
        value = float(truth[t, arms.index(dict(decision.config))])
        regret += float(truth[t].max()) - value
        if decision.query:
            tuner.tell(decision, value + float(noise[t]))
    return {"regret": regret / horizon, "queries": tuner.queries, "horizon": horizon, "seed": seed}


def rules() -> dict[str, QueryRule]:
    """Return the confidence rule along its thresholds and the priced query at each price, by name."""
    return {**confident(KAPPAS), **priced(PRICES)}


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for every policy and run."""
    for policy, rule in rules().items():
        for i in range(options.trials):
            yield {"policy": policy, **play(rule, options.horizon, options.seed + i)}


def text(rows: Rows) -> str:
    """Return regret and queries of every policy, and the priced query against the best threshold."""
    paid = outcomes(rows)
    lines = [f"  {'policy':<18}{'regret of a round':>18}{'queries':>8}"]
    for policy, outcome in paid.items():
        regret, queries = (
            float(outcome.regret.mean()) / outcome.horizon,
            float(outcome.queries.mean()),
        )
        lines.append(f"  {policy:<18}{regret:>18.4f}{queries:>8.1f}")
    return "\n".join([*lines, *against_the_best(paid, KAPPAS, PRICES)])


def main(arguments: list[str]) -> None:
    """Play every policy, store what it paid and print the comparison."""
    parser = parser_for("priced-arms", "both rules among three arms")
    parser.add_argument("--trials", type=int, default=10, help="runs of each policy")
    parser.add_argument("--horizon", type=int, default=2000, help="rounds of a run")
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    seeds = [options.seed + i for i in range(options.trials)]
    print(text(write_results("priced-arms", rows(options), seeds, directory=options.results)))
