"""Three pictures of learning curves: ``python -m benchmarks boil-picture``.

- regret against what was paid, from the stored rows, table by table (the paper's Figure 6);
- the weights that the compression learns, from the stored rows of ``boil-signal`` (Figures 10 and 11);
- one decision by scores, over configuration and length, with the augmented points and without (Figures 7
  and 8): here on curves of one hyperparameter that are made up.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

import torch
from torch import Tensor

from benchmarks.curves import signal, tabular
from benchmarks.curves.live.pools import one_table_each
from benchmarks.harness.command_line import parser_for
from benchmarks.harness.figures import new_figure, panels, save
from benchmarks.harness.record import Row, grouped, rows_of
from botorch_costly import plotting
from botorch_costly.acquisition import LogEIPerCost, best_mean
from botorch_costly.models import CurveGP, LinearCost, fit_curves
from botorch_costly.transforms import CurveCompression

SHOWN = {
    "random": plotting.BLUE,
    "a quarter": plotting.SKY,
    "halving": plotting.GREEN,
    "hyperband": plotting.PURPLE,
    "whole, ends": plotting.ORANGE,
    "curve optimizer": plotting.VERMILION,
}
_COLUMNS = 4
LONGEST = 40  # iterations of the made-up curves
_BEGUN = (
    (0.05, 40),
    (0.2, 14),
    (0.35, 25),
    (0.5, 33),
    (0.78, 10),
    (0.95, 38),
)  # configuration, iterations
_NOISE = 0.1
_GRID = 60


def regrets(
    rows: Sequence[Row], shown: Mapping[str, str] = SHOWN, bold: str = "curve optimizer"
) -> Any:
    """Return a figure of mean regrets against what was paid, a panel for each table.

    ``shown`` are policies and their colours, of which one is drawn in bold.
    """
    tables = grouped(rows, "table")
    lines = math.ceil(len(tables) / _COLUMNS)
    figure, axes = panels(len(tables), math.ceil(len(tables) / lines), 11, 2.8)
    for ax, (table, played) in zip(axes.flat, tables.items(), strict=False):
        mine = _paired(played, shown)
        for policy, color in shown.items():
            width = 2.5 if policy == bold else 1.2
            _line(ax, [row for row in mine if row["policy"] == policy], policy, color, width)
        seeds = len({row["seed"] for row in mine})
        ax.set_title(f"{table}\n({seeds} seeds)", fontsize="medium")
        ax.set_xscale("log")
        ax.set_ylim(bottom=min(ax.get_ylim()[0], 0) if ax.dataLim.y0 < 0 else 0)
        ax.set_xticks(tabular.BUDGETS, [str(budget) for budget in tabular.BUDGETS])
        ax.minorticks_off()
    handles, names = axes[0, 0].get_legend_handles_labels()
    columns = min(len(names), 6)
    figure.legend(handles, names, loc="outside upper center", frameon=False, ncols=columns)
    figure.supxlabel("paid, in means of the cost of a whole training", fontsize="medium")
    figure.supylabel("regret, a share of the range", fontsize="medium")
    return figure


def _paired(rows: Sequence[Row], shown: Mapping[str, str]) -> list[Row]:
    """Return the rows of the seeds that every method shown has."""
    played = grouped((row for row in rows if row["policy"] in shown), "policy")
    shared = set.intersection(*({row["seed"] for row in mine} for mine in played.values()))
    return [row for row in rows if row["seed"] in shared]


def _line(ax: Any, rows: Sequence[Row], policy: str, color: str, width: float) -> None:
    if rows:
        means = [fmean(row[f"at {budget}"] for row in rows) for budget in tabular.BUDGETS]
        ax.plot(tabular.BUDGETS, means, "o-", color=color, linewidth=width, label=policy)


def weights(rows: Sequence[Row]) -> Any:
    """Return a figure of the compression with the median midpoint and growth of each table."""
    figure = new_figure(7, 4)
    learnt = {}
    for table, mine in grouped(rows, "table").items():
        middle, growth = (median(row[name] for row in mine) for name in ("midpoint", "growth"))
        learnt[table] = CurveCompression(_GRID, midpoint=middle, growth=growth)
    plotting.plot_curve_weights(learnt, ax=figure.subplots())
    return figure


def decision() -> Any:
    """Return a figure of one decision: belief, improvement and improvement by cost, by length."""
    figure = new_figure(11, 5.6)
    axes = figure.subplots(2, 4, sharex=True, sharey=True)
    for line, augments in zip(axes, (False, True), strict=True):
        _decide(figure, line, augments)
    for ax in axes[-1]:
        ax.set_xlabel("hyperparameter")
    for line, words in zip(axes, ("without augmentation", "with it"), strict=True):
        line[0].set_ylabel(f"{words}\n\niterations")
    return figure


def made_up() -> tuple[Tensor, Tensor]:
    """Return configurations ``c x 1``, and noisy curves ``c x LONGEST`` that are NaN after their ends."""
    points = torch.tensor([[x] for x, _ in _BEGUN], dtype=torch.float64)
    curves = torch.full((len(_BEGUN), LONGEST), math.nan, dtype=torch.float64)
    draws = torch.Generator().manual_seed(0)
    for curve, (x, until) in zip(curves, _BEGUN, strict=True):
        noise = _NOISE * torch.randn(until, generator=draws, dtype=torch.float64)
        curve[:until] = _curve(x)[:until] + noise
    return points, curves


def _decide(figure: Any, axes: Any, augments: bool) -> None:
    model = CurveGP(*made_up(), compression=CurveCompression(LONGEST).double())
    if augments:
        model = model.augmented()
    fit_curves(model, restarts=4, generator=torch.Generator().manual_seed(0))
    cost = LinearCost(model.train_inputs[0], model.train_inputs[0][:, -1:] * LONGEST)
    best = best_mean(model, model.train_inputs[0])
    X = grid().unsqueeze(-2)
    with torch.no_grad():
        posterior = model.posterior(grid())
        by_cost = LogEIPerCost(model, cost, best)(X)
        improvement = by_cost + cost(X).squeeze(-1).squeeze(-1).log()
    shown = {
        "mean of the score": posterior.mean.squeeze(-1),
        "its standard deviation": posterior.variance.squeeze(-1).sqrt(),
        "log improvement": improvement,
        "log improvement by cost": by_cost,
    }
    for ax, (title, values) in zip(axes, shown.items(), strict=True):
        surface(figure, ax, values, title)
        _marks(ax, model)
    at = grid()[by_cost.argmax()]
    axes[-1].plot(
        float(at[0]), float(at[1]) * LONGEST, "*", color=plotting.VERMILION, markersize=14
    )


def _curve(x: float) -> Tensor:
    """Return the rewards of a training with hyperparameter ``x``: the best ones begin slowly."""
    at = torch.arange(1, LONGEST + 1, dtype=torch.float64)
    quality = math.exp(-(((x - 0.65) / 0.22) ** 2)) + 0.3 * math.exp(-(((x - 0.15) / 0.1) ** 2))
    return quality * (1 - (-at / (6 + 14 * x)).exp())


def grid() -> Tensor:
    """Return configurations and shares, shape ``(grid * grid, 2)``, the shares fastest."""
    x = torch.linspace(0, 1, _GRID, dtype=torch.float64)
    return torch.cartesian_prod(x, torch.linspace(1 / LONGEST, 1, _GRID, dtype=torch.float64))


def surface(figure: Any, ax: Any, values: Tensor, title: str) -> None:
    """Draw values on the grid, configurations to the right and iterations upwards."""
    table = values.reshape(_GRID, _GRID).T.numpy()
    # What is far below the best tells nothing, and would take all of the colours.
    low = max(float(table.min()), float(table.max()) - 8) if title.startswith("log") else None
    extent = (0, 1, 1, LONGEST)
    image = ax.imshow(table, origin="lower", aspect="auto", extent=extent, cmap="cividis", vmin=low)
    figure.colorbar(image, ax=ax, pad=0.01)
    ax.set_title(title, fontsize="medium")


def _marks(ax: Any, model: CurveGP) -> None:
    """Draw the trainings as lines, their last points as dots and those added as crosses."""
    ax.set_ylim(0, LONGEST + 2)
    for x, until in _BEGUN:
        ax.plot([x, x], [1, until], color="white", linewidth=0.8)
    inputs = model.train_inputs[0]
    last, added = inputs[: len(_BEGUN)], inputs[len(_BEGUN) :]
    for rows, marker in ((last, "o"), (added, "x")):
        ax.plot(rows[:, 0], rows[:, 1] * LONGEST, marker, color="white", markersize=5)


def main(arguments: list[str]) -> None:
    """Draw what is stored."""
    options = parser_for("boil-picture", "pictures of learning curves").parse_args(arguments)
    names = (tabular.NAME, "boil-rl", "boil-cnn")
    rows = [row for name in names for row in rows_of(name, options.results)]
    save(regrets(one_table_each(rows)), options.results / "boil-regrets.png")
    save(weights(rows_of(signal.NAME, options.results)), options.results / "boil-weights.png")
    save(decision(), options.results / "boil-decision.png")
