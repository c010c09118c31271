"""Figure 1: regret against queries, for the cost-efficient rule and for rivals thinned by coin.

The rivals are those of Wang et al. (2021): TV-GP-UCB, R-GP-UCB, and expected and probability of
improvement on the same time-varying model, each querying with a fixed probability.
"""

from pathlib import Path

import torch

from benchmarks.record import Row, read, recording
from benchmarks.table_a2 import KAPPAS, draw_world, measure, restarting, size_parser
from botorch_costly.plotting import plot_regret_against_cost
from botorch_costly.query import AlwaysQuery, BernoulliQuery, ConfidenceQuery, QueryRule
from botorch_costly.simulation import (
    GridPolicy,
    expected_improvement,
    probability_of_improvement,
)

FORGETTING_RATES = (0.01, 0.05)
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


def draw(panels: dict[float, Curves], results: Path) -> None:
    """Draw one panel for each forgetting rate."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5 * len(panels), 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, (forgetting, curves) in zip(axes, panels.items(), strict=True):
        plot_regret_against_cost(curves, ax=ax)
        ax.set_title(f"forgetting rate {forgetting:g}")
        ax.set_ylim(bottom=0)
        ax.set_xlim(left=0)
    for ax in axes[:-1]:  # fast drift leaves room above the curves
        ax.get_legend().remove()
    path = results / "figure-1.png"
    figure.savefig(path, dpi=150)
    print(f"Wrote {path}")


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
    cells: dict[float, dict[str, list[Row]]] = {}
    for line in read("figure-1", results):
        row = line["row"]
        cells.setdefault(row["forgetting"], {}).setdefault(row["curve"], []).append(row)
    return {
        forgetting: {
            name: (
                [row["queries"] for row in rows],
                [row["regret"] for row in rows],
                [row["regret_std"] / row["trials"] ** 0.5 for row in rows],
            )
            for name, rows in curves.items()
        }
        for forgetting, curves in cells.items()
    }
