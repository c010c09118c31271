"""Does a budget of looks get spent, and well, whatever the forgetting rate?"""

import torch

from benchmarks.grid_simulation import GridPolicy
from benchmarks.paper import FORGETTING_RATES
from benchmarks.priced.frontier import FRESH_SEED, measure
from benchmarks.record import recording
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
    with recording("priced-budget", [options.seed], options.device, options.results) as write:
        for forgetting in options.forgetting:
            world = draw_world(forgetting, options)
            for looks in BUDGETS:
                policy = GridPolicy("budget", PricedQuery(looks=looks))
                row = measure(world, "budget", float(looks), policy)
                print(f"    spent {min(row['looks'])} to {max(row['looks'])} of {looks}")
                write(row)
