"""Does a budget of looks get spent, and well, whatever the forgetting rate?"""

import torch

from benchmarks.grid_simulation import GridPolicy
from benchmarks.paper import FORGETTING_RATES
from benchmarks.priced.frontier import FRESH_SEED, Rows, mean, measure
from benchmarks.record import Row, recording
from benchmarks.table_a2 import draw_world, size_parser
from botorch_costly.query import PricedQuery

BUDGETS = (40, 120, 250)


def main(arguments: list[str]) -> None:
    """Play every budget at every forgetting rate and store what was spent."""
    parser = size_parser("priced-budget", "looks spent of a budget, and regret")
    parser.set_defaults(seed=FRESH_SEED)
    parser.add_argument("--forgetting", type=float, nargs="+", default=FORGETTING_RATES)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    rows: list[Row] = []
    with recording("priced-budget", [options.seed], options.device, options.results) as write:
        for forgetting in options.forgetting:
            world = draw_world(forgetting, options)
            for looks in BUDGETS:
                policy = GridPolicy("budget", PricedQuery(looks=looks))
                rows.append(measure(world, "budget", float(looks), policy))
                write(rows[-1])
    print("\n" + report(rows))


def report(rows: Rows) -> str:
    """Return what was spent of each budget, and the regret."""
    lines = ["budget: looks spent on average (least, most), regret"]
    for row in rows:
        looks = row["looks"]
        lines.append(
            f"  forgetting {row['forgetting']:<6g} {row['parameter']:4.0f}: {mean(looks):6.1f}"
            f" ({min(looks)}, {max(looks)})  {mean(row['regret']):.3f}"
        )
    return "\n".join(lines)
