"""Figure 1: regret against queries, for the cost-efficient rule and for rivals thinned by coin.

The rivals are those of Wang et al. (2021): TV-GP-UCB, R-GP-UCB, and expected and probability of
improvement on the same time-varying model, each querying with a fixed probability.
"""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import torch

from benchmarks.harness.command_line import size_parser
from benchmarks.harness.figures import panels, save
from benchmarks.harness.record import Row, grouped, recording, rows_of
from benchmarks.tables.paper import FORGETTING_RATES
from benchmarks.tables.table_a2 import KAPPAS, measure, restarting
from benchmarks.tables.world import draw_world
from botorch_costly.plotting import plot_regret_against_cost
from botorch_costly.query import AlwaysQuery, BernoulliQuery, ConfidenceQuery, QueryRule
from botorch_costly.simulation import GridPolicy, expected_improvement, probability_of_improvement

RATES = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)

Curves = dict[str, tuple[list[float], list[float], list[float]]]


def policies(forgetting: float, horizon: int) -> dict[str, list[GridPolicy]]:
    """Return, for each curve of the figure, the policies along it."""
    return {
        "CE-GP-UCB": [GridPolicy(f"CE-GP-UCB @{k:.2f}", ConfidenceQuery(k)) for k in KAPPAS],
        "TV-GP-UCB": [GridPolicy(f"TV-GP-UCB Ber({p:.1f})", _coin(p)) for p in RATES],
        "TV-EI": [GridPolicy(f"TV-EI Ber({p:.1f})", _coin(p), expected_improvement) for p in RATES],
        "TV-PI": [
            GridPolicy(f"TV-PI Ber({p:.1f})", _coin(p), probability_of_improvement) for p in RATES
        ],
        "R-GP-UCB": [restarting(forgetting, horizon, p) for p in RATES],
    }


def _coin(rate: float) -> QueryRule:
    return AlwaysQuery() if rate == 1 else BernoulliQuery(rate)


def draw(curves_by_rate: dict[float, Curves], results: Path) -> None:
    """Draw one panel for each forgetting rate."""
    figure, axes = panels(len(curves_by_rate), 3, 13, 4)
    for ax, (forgetting, curves) in zip(axes.flat, curves_by_rate.items(), strict=False):
        plot_regret_against_cost(curves, ax=ax)
        ax.set_title(f"forgetting rate {forgetting:g}")
        ax.set_ylim(bottom=0)
        ax.set_xlim(left=0)
    for ax in axes.flat[: len(curves_by_rate) - 1]:  # fast drift leaves room above the curves
        ax.get_legend().remove()
    save(figure, results / "figure-1.png")


def main(arguments: list[str]) -> None:
    """Measure every curve, store the rows and draw the figure."""
    options = size_parser("figure-1", "regret against queries").parse_args(arguments)
    torch.set_num_threads(options.threads)
    with recording("figure-1", [options.seed], options.device, options.results) as write:
        for forgetting in FORGETTING_RATES:
            world = draw_world(forgetting, options)
            for name, along in policies(forgetting, options.horizon).items():
                for policy in along:
                    write({"curve": name, **measure(world, policy)})
    draw(stored_panels(options.results), options.results)


def stored_panels(results: Path) -> dict[float, Curves]:
    """Return the stored curves of each forgetting rate, with standard errors."""
    cells = grouped(rows_of("figure-1", results), "forgetting")
    return {
        forgetting: {
            name: (
                [row["queries"] for row in rows],
                [row["regret"] for row in rows],
                [row["regret_std"] / row["trials"] ** 0.5 for row in rows],
            )
            for name, rows in grouped(curves, "curve").items()
        }
        for forgetting, curves in cells.items()
    }


def text(rows: Sequence[Row]) -> str:
    """Return a line for each point of each curve."""
    return "\n".join(
        f"forgetting {row['forgetting']:<6g} {row['policy']:<24} regret {row['regret']:.3f}"
        f"  queries {row['queries']:.0f}"
        for row in rows
    )


def markdown(rows: Sequence[Row]) -> str:
    """Return a table with a line for each curve."""
    table = ["| ε | method | regret / queries along the curve |", "|---|---|---|"]
    for (forgetting, curve), group in groupby(rows, lambda r: (r["forgetting"], r["curve"])):
        points = " · ".join(f"{row['regret']:.3f} / {row['queries']:.0f}" for row in group)
        table.append(f"| {forgetting:g} | {curve} | {points} |")
    return "\n".join(table)
