"""Does a budget of queries get spent, and well, whatever the forgetting rate?"""

from collections.abc import Iterator

from benchmarks.harness.command_line import size_parser
from benchmarks.harness.record import Row
from benchmarks.harness.tuners import with_budget
from benchmarks.priced.frontier import FRESH_SEED, Rows, mean, measure, sweep
from benchmarks.tables.world import World
from botorch_costly.simulation import GridPolicy

BUDGETS = (40, 120, 250)


def report(rows: Rows) -> str:
    """Return what was spent of each budget, and the regret."""
    lines = ["budget: queries spent on average (least, most), regret"]
    for row in rows:
        queries = row["queries"]
        lines.append(
            f"  forgetting {row['forgetting']:<6g} {row['parameter']:4.0f}: {mean(queries):6.1f}"
            f" ({min(queries)}, {max(queries)})  {mean(row['regret']):.3f}"
        )
    return "\n".join(lines)


def play(world: World) -> Iterator[Row]:
    """Yield what was spent of every budget."""
    for queries in BUDGETS:
        policy = GridPolicy("budget", with_budget(queries))
        yield measure(world, "budget", float(queries), policy)


def main(arguments: list[str]) -> None:
    """Play every budget at every forgetting rate and store what was spent."""
    parser = size_parser("priced-budget", "queries spent of a budget, and regret")
    parser.set_defaults(seed=FRESH_SEED)
    sweep(parser, arguments, "priced-budget", play, report)
