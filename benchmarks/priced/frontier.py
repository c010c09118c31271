"""Regret against queries of the priced rule and of the confidence rule, on fresh drifting functions.

The setting of Table A2. Of the confidence rule the best ``kappa`` is chosen in hindsight, for each
forgetting rate and price anew; the priced rule is told the price and nothing else.

``priced-budget`` asks whether a budget of queries is spent, and well, whatever the forgetting rate.
``priced-effective-horizon`` holds the effective horizon that the rule derives (gains fade with the
forgetting, and later queries supersede this one) against plain guesses, ``c / forgetting`` rounds, by the
total of regret and price, on the seed on which the rule's two constants were chosen.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from statistics import median
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.harness.command_line import size_parser
from benchmarks.harness.record import Row, grouped, replacing, rows_of, write_results
from benchmarks.harness.tuners import with_budget
from benchmarks.priced.comparison import Comparison, Outcome, compare
from benchmarks.tables.paper import FORGETTING_RATES
from benchmarks.tables.world import World, draw_world
from botorch_costly.query import AlwaysQuery, ConfidenceQuery, PricedQuery, Progress, QueryRule
from botorch_costly.simulation import GridPolicy

PRICES = (0.1, 0.3, 1.0, 2.0)  # at which the total of regret and price is compared
CURVE = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 4.0)
KAPPAS = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
EQUAL_REGRET_KAPPAS = (0.8, 0.9, 0.95)
FRESH_SEED = 2100  # nothing was ever chosen on it

Rows = Sequence[Mapping[str, Any]]


class Total(NamedTuple):
    """``R_T + price C_T`` of both rules."""

    forgetting: float
    price: float
    ours: float
    theirs: float  # at the best kappa in hindsight
    found: Comparison


class EqualRegret(NamedTuple):
    """Queries of both rules at the regret that the confidence rule reaches."""

    forgetting: float
    kappa: float
    regret: float
    ours: float | None  # None if no price reaches that regret
    theirs: float


def policies() -> list[tuple[str, float, GridPolicy]]:
    """Return family, parameter and policy of every row."""
    found: list[tuple[str, float, GridPolicy]] = []

    def add(family: str, parameter: float, rule: QueryRule, **options: Any) -> None:
        found.append((family, parameter, GridPolicy(family, rule, **options)))

    add("full feedback", 1.0, AlwaysQuery())
    for kappa in KAPPAS:
        add("confidence", kappa, ConfidenceQuery(kappa))
    for kappa in KAPPAS:
        add(
            "confidence, unqueried rounds play the mean",
            kappa,
            ConfidenceQuery(kappa),
            unqueried_play="mean",
        )
    for price in CURVE:
        add("priced", price, PricedQuery(price=price))
    return found


def measure(world: World, family: str, parameter: float, policy: GridPolicy) -> Row:
    """Return what a policy paid, in every trial."""
    start = time.perf_counter()
    run = world.play(replace(policy, name=f"{family} {parameter:g}"))
    seconds = time.perf_counter() - start
    regret, queries = run.regret.mean(-1), run.query.sum(-1).double()
    print(
        f"forgetting {world.truth.forgetting:<6g} {family:<40} {parameter:<6g}"
        f" regret {regret.mean():.3f}  queries {queries.mean():5.1f}  {seconds:5.1f} s",
        flush=True,
    )
    trials, horizon, points = world.paths.shape
    return {
        "forgetting": world.truth.forgetting,
        "family": family,
        "parameter": parameter,
        "regret": [round(r, 5) for r in regret.tolist()],
        "queries": [int(c) for c in queries.tolist()],
        "trials": trials,
        "horizon": horizon,
        "points": points,
        "seconds": round(seconds, 2),
    }


def totals(rows: Rows) -> list[Total]:
    """Return the totals of both rules for every forgetting rate and price."""
    found = []
    for forgetting, some in _by_forgetting(rows):
        paid = {(row["family"], row["parameter"]): Outcome.of_row(row) for row in some}
        rivals = {f"{kappa:g}": paid[f, kappa] for f, kappa in paid if f == "confidence"}
        for price in PRICES:
            ours = paid["priced", price]
            result = compare(ours, rivals, price)
            best = rivals[result.best]
            costs = float(ours.cost(price).mean()), float(best.cost(price).mean())
            found.append(Total(forgetting, price, *costs, result))
    return found


def equal_regrets(rows: Rows) -> list[EqualRegret]:
    """Return the queries that the priced rule needs for the regret of the confidence rule."""
    found = []
    for forgetting, some in _by_forgetting(rows):
        curve = sorted(
            (mean(row["regret"]), mean(row["queries"])) for row in some if row["family"] == "priced"
        )
        for row in some:
            if row["family"] == "confidence" and row["parameter"] in EQUAL_REGRET_KAPPAS:
                regret = mean(row["regret"])
                queries = queries_at(curve, regret)
                theirs = mean(row["queries"])
                found.append(EqualRegret(forgetting, row["parameter"], regret, queries, theirs))
    return found


def queries_at(curve: Sequence[tuple[float, float]], regret: float) -> float | None:
    """Return the fewest queries at which a curve of (regret, queries) has come down to a regret.

    Between two points of the curve their mixture is meant: a coin thrown once between two prices.
    """
    reached = [queries for r, queries in curve if r <= regret]
    for (r1, c1), (r2, c2) in pairwise(curve):
        if r1 < regret <= r2:
            share = (r2 - regret) / (r2 - r1)
            reached.append(share * c1 + (1 - share) * c2)
    return min(reached) if reached else None


def mean(values: Sequence[float]) -> float:
    """Return the average."""
    return sum(values) / len(values)


def text(rows: Rows) -> str:
    """Return the comparison as text."""
    sums, equal = totals(rows), equal_regrets(rows)
    lines = ["R_T + price C_T: priced / confidence with the best kappa in hindsight"]
    lines += [_text_total(cell) for cell in sums]
    good = sum(cell.found.ratio <= 0.85 for cell in sums)
    worst, middle = max(c.found.ratio for c in sums), median(c.found.ratio for c in sums)
    lines.append(f"at most 0.85: {good} of {len(sums)}; median {middle:.3f}, worst {worst:.3f}")
    lines.append("\nqueries at equal regret: priced / confidence")
    lines += [_text_equal(cell) for cell in equal]
    shares = [cell.ours / cell.theirs for cell in equal if cell.ours is not None]
    lines.append(f"median {median(shares):.2f}, worst {max(shares):.2f} of {len(shares)}")
    return "\n".join(lines)


def _text_total(cell: Total) -> str:
    return (
        f"  forgetting {cell.forgetting:<6g} price {cell.price:<4g} {cell.ours:6.1f} /"
        f" {cell.theirs:6.1f} = {cell.found} of kappa {cell.found.best}"
    )


def _text_equal(cell: EqualRegret) -> str:
    left = f"  forgetting {cell.forgetting:<6g} kappa {cell.kappa:<4g} regret {cell.regret:.3f}: "
    if cell.ours is None:
        return f"{left}not reached / {cell.theirs:.0f}"
    return f"{left}{cell.ours:.0f} / {cell.theirs:.0f} = {cell.ours / cell.theirs:.2f}"


def _by_forgetting(rows: Rows) -> Iterable[tuple[float, list[Mapping[str, Any]]]]:
    key = lambda row: row["forgetting"]  # noqa: E731
    return [(f, list(group)) for f, group in groupby(sorted(rows, key=key), key)]


def sweep(
    parser: argparse.ArgumentParser,
    arguments: list[str],
    name: str,
    play: Callable[[World], Iterable[Row]],
    text: Callable[[Rows], str],
) -> None:
    """Play on the functions of every forgetting rate, store the rows and print the report."""
    parser.add_argument("--forgetting", type=float, nargs="+", default=FORGETTING_RATES)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    rows = (row for rate in options.forgetting for row in play(draw_world(rate, options)))
    size = {what: getattr(options, what) for what in ("trials", "horizon", "points")}
    stays = replacing(size, forgetting=options.forgetting)
    write_results(name, rows, [options.seed], options.device, options.results, stays)
    print("\n" + text(rows_of(name, options.results)))


BUDGETS = (40, 120, 250)


def budget_text(rows: Rows) -> str:
    """Return what was spent of each budget, and the regret."""
    lines = ["budget: queries spent on average (least, most), regret"]
    for row in rows:
        queries = row["queries"]
        lines.append(
            f"  forgetting {row['forgetting']:<6g} {row['parameter']:4.0f}: {mean(queries):6.1f}"
            f" ({min(queries)}, {max(queries)})  {mean(row['regret']):.3f}"
        )
    return "\n".join(lines)


def spend_budgets(world: World) -> Iterator[Row]:
    """Yield what was spent of every budget."""
    for queries in BUDGETS:
        policy = GridPolicy("budget", with_budget(queries))
        yield measure(world, "budget", float(queries), policy)


def budget(arguments: list[str]) -> None:
    """Play every budget at every forgetting rate and store what was spent."""
    parser = size_parser("priced-budget", "queries spent of a budget, and regret")
    parser.set_defaults(seed=FRESH_SEED)
    sweep(parser, arguments, "priced-budget", spend_budgets, budget_text)


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


def effective_horizon_text(rows: Rows) -> str:
    """Return the totals, added up over the forgetting rates: a line for each effective horizon."""
    prices = "".join(f"{price:9g}" for price in PRICES)
    lines = [f"R_T + price C_T summed over forgetting rates; price:{prices}"]
    for (family, parameter), mine in grouped(rows, "family", "parameter").items():
        costs = {p: [Outcome.of_row(r).cost(p) for r in mine if r["price"] == p] for p in PRICES}
        sums = [sum(float(cost.mean()) for cost in costs[p]) for p in PRICES]
        name = f"  {family} = {parameter:g}"
        lines.append(f"{name:<52}" + "".join(f"{value:9.1f}" for value in sums))
    return "\n".join(lines)


def guess_horizons(world: World) -> Iterator[Row]:
    """Yield what every effective horizon paid at every price."""
    for family, parameter, rule in candidates():
        for price in PRICES:
            policy = GridPolicy(family, replace(rule, price=price))
            yield {**measure(world, family, parameter, policy), "price": price}


def effective_horizon(arguments: list[str]) -> None:
    """Play every effective horizon at every price, store what it paid, and print the totals."""
    parser = size_parser(
        "priced-effective-horizon",
        "for how many rounds the gain of a query counts, and the next query",
    )
    parser.set_defaults(seed=CHOSEN_ON_SEED, points=250)
    sweep(parser, arguments, "priced-effective-horizon", guess_horizons, effective_horizon_text)


def main(arguments: list[str]) -> None:
    """Play both rules on the same functions, store what they paid and compare."""
    parser = size_parser("priced", "regret and queries of the priced and the confidence rule")
    parser.set_defaults(seed=FRESH_SEED)

    def play(world: World) -> Iterator[Row]:
        return (measure(world, *policy) for policy in policies())

    sweep(parser, arguments, "priced", play, text)
