"""For how many rounds does the gain of a query count, and how much does the query after it?

The effective horizon of the priced rule is derived: gains fade with the forgetting, and later queries
supersede this one. Here it competes with plain guesses, ``c / forgetting`` rounds for ``c``
from 0.1 to 3, by the total of regret and price, on the seed on which the rule's two constants were
chosen.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from benchmarks.harness.command_line import size_parser
from benchmarks.harness.record import Row, grouped
from benchmarks.priced.comparison import Outcome
from benchmarks.priced.frontier import PRICES, Rows, measure, sweep
from benchmarks.tables.world import World
from botorch_costly.query import PricedQuery, Progress
from botorch_costly.simulation import GridPolicy

PLAIN, SUPERSEDED, FORESEEN = (
    "c / forgetting, c",
    "derived, supersession",
    "derived, lookahead_weight",
)
CHOSEN_ON_SEED = 905
SHARES = (0.1, 0.3, 0.6, 1.0, 3.0)
SUPERSESSIONS = (0.0, 0.4, 0.8, 1.6)
LOOKAHEAD_WEIGHTS = (0.0, 0.25, 1.0)  # besides the one in use


@dataclass(frozen=True)
class GuessedHorizon(PricedQuery):
    """A priced rule that guesses: ``min(rounds left, share / forgetting)``."""

    share: float = 1.0

    def effective_horizon(self, progress: Progress) -> Tensor:
        """Return the guess."""
        rounds = self.share / progress.forgetting
        return torch.tensor(min(self._rounds_left(progress), rounds), dtype=torch.float64)


def candidates() -> list[tuple[str, float, PricedQuery]]:
    """Return family, parameter and rule, at no price yet."""
    guessed = [(PLAIN, c, GuessedHorizon(price=0.0, share=c)) for c in SHARES]
    derived = [(SUPERSEDED, s, PricedQuery(price=0.0, supersession=s)) for s in SUPERSESSIONS]
    foreseen = [
        (FORESEEN, w, PricedQuery(price=0.0, lookahead_weight=w)) for w in LOOKAHEAD_WEIGHTS
    ]
    return [*guessed, *derived, *foreseen]


def report(rows: Rows) -> str:
    """Return the totals, added up over the forgetting rates: a line for each effective horizon."""
    prices = "".join(f"{price:9g}" for price in PRICES)
    lines = [f"R_T + price C_T summed over forgetting rates; price:{prices}"]
    for (family, parameter), mine in grouped(rows, "family", "parameter").items():
        costs = {p: [Outcome.of_row(r).cost(p) for r in mine if r["price"] == p] for p in PRICES}
        sums = [sum(float(cost.mean()) for cost in costs[p]) for p in PRICES]
        name = f"  {family} = {parameter:g}"
        lines.append(f"{name:<52}" + "".join(f"{value:9.1f}" for value in sums))
    return "\n".join(lines)


def play(world: World) -> Iterator[Row]:
    """Yield what every effective horizon paid at every price."""
    for family, parameter, rule in candidates():
        for price in PRICES:
            policy = GridPolicy(family, replace(rule, price=price))
            yield {**measure(world, family, parameter, policy), "price": price}


def main(arguments: list[str]) -> None:
    """Play every effective horizon at every price, store what it paid, and print the totals."""
    parser = size_parser(
        "priced-effective-horizon",
        "for how many rounds the gain of a query counts, and the next query",
    )
    parser.set_defaults(seed=CHOSEN_ON_SEED, points=250)
    sweep(parser, arguments, "priced-effective-horizon", play, report)
