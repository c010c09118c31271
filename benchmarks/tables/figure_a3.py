"""Figure A3: what three policies believe at the end of one and the same run, and where they queried.

Every mark is a round: it sits on the function as it is *now*, at the point played then, and fades
with the rounds passed since.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.harness.command_line import size_parser
from benchmarks.harness.figures import panels, save
from benchmarks.harness.record import Row, recording
from benchmarks.tables.table_a2 import summary
from benchmarks.tables.world import World, draw_world
from botorch_costly.plotting import Marks, plot_belief
from botorch_costly.query import AlwaysQuery, BernoulliQuery, ConfidenceQuery
from botorch_costly.simulation import GridPolicy, Run

FORGETTING = 0.03
KAPPAS = (0.95, 0.9)  # the first one is the paper's
RATE = 0.8  # of the paper's coin
WINDOW = 100  # rounds shown: older queries keep less than 5 % of their weight


def play(world: World) -> dict[str, Run]:
    """Run full feedback, the paper's coin, the rule, and coins that cost about as much as the rule."""
    runs = {
        "TV-GP-UCB, every round": world.play(GridPolicy("TV-GP-UCB", AlwaysQuery())),
        f"TV-GP-UCB, Ber({RATE:g})": _by_coin(world, RATE),
    }
    for kappa in KAPPAS:
        run = world.play(GridPolicy("CE-GP-UCB", ConfidenceQuery(kappa)))
        rate = round(run.query.double().mean().item(), 2)
        runs[f"CE-GP-UCB, κ = {kappa:g}"] = run
        runs[f"TV-GP-UCB, Ber({rate:g})"] = _by_coin(world, rate)
    return runs


def _by_coin(world: World, rate: float) -> Run:
    return world.play(GridPolicy("Ber", BernoulliQuery(rate)))


def marks(world: World, run: Run, *, queried: bool) -> Marks:
    """Return the rounds of the first trial that were queried, or those that were not."""
    horizon = run.query.shape[-1]
    now = world.paths[0, -1]
    rounds = torch.arange(max(horizon - WINDOW, 0), horizon, device=run.query.device)
    rounds = rounds[run.query[0, rounds] == queried]
    choice = run.choice[0, rounds]
    x = world.truth.points.to(now)[choice, 0]
    return Marks(x.cpu(), now[choice].cpu(), (horizon - 1 - rounds).cpu())


def draw(world: World, runs: dict[str, Run], results: Path) -> None:
    """Draw one panel for each policy."""
    figure, axes = panels(len(runs), 3, 12, 4.2, sharey=True)
    x = world.truth.points[:, 0].cpu()
    for ax, (name, run) in zip(axes.flat, runs.items(), strict=False):
        mean, std = run.mean[0].cpu(), run.variance[0].sqrt().cpu()
        queries, skips = (marks(world, run, queried=q) for q in (True, False))
        plot_belief(x, mean, std, world.paths[0, -1].cpu(), queries=queries, skips=skips, ax=ax)
        cost, regret = int(run.query[0].sum()), run.regret[0].mean().item()
        ax.set_title(f"{name}\n{cost} queries in {run.query.shape[-1]} rounds, regret {regret:.2f}")
    for number, ax in enumerate(axes.flat):
        if number % 3:
            ax.set_ylabel("")
        if number != 2:  # the first run has no skips, and one legend is enough
            ax.get_legend().remove()
    save(figure, results / "figure-a3.png")


def main(arguments: list[str]) -> None:
    """Play one run three times, store what it cost and draw the beliefs at its end."""
    parser = size_parser("figure-a3", "belief, queries and skips in one run")
    parser.set_defaults(trials=1)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    world = draw_world(FORGETTING, options)
    runs = play(world)
    with recording("figure-a3", [options.seed], options.device, options.results) as write:
        for name, run in runs.items():
            found = summary(run.regret.mean(-1), run.query.sum(-1).double())
            write({"forgetting": FORGETTING, "policy": name, **found})
    draw(world, runs, options.results)


def text(rows: Sequence[Row]) -> str:
    """Return a line for each policy."""
    return "\n".join(
        f"{row['policy']:<24} regret {row['regret']:.3f}  queries {row['queries']:.0f}"
        for row in rows
    )
