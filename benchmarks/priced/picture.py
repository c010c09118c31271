"""One picture of the priced query: belief, the value of a query at each point, its price, the decision.

Left a round with a query, right one without.
"""

from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.harness.command_line import size_parser
from benchmarks.harness.figures import new_figure, save
from benchmarks.tables.world import World, draw_world
from botorch_costly.models import DriftingGrid
from botorch_costly.numerics.knowledge_gradient import knowledge_gradient
from botorch_costly.numerics.stationary import information_share
from botorch_costly.plotting import Marks, plot_belief, plot_query_value
from botorch_costly.query import Comparison, PricedQuery, Progress, Prospect

FORGETTING, PRICE = 0.03, 0.5
WINDOW = 60  # rounds of which the marks are shown
FAR = 0.3  # of the domain, from the best known


class Scene(NamedTuple):
    """A round as the rule saw it."""

    round: int
    mean: Tensor  # shape: (n,)
    std: Tensor  # shape: (n,)
    value: Tensor  # shape: (n,)
    queries: bool
    plays: int


def play(world: World) -> list[Scene]:
    """Run the rule on the first trial, weighing a query at every point."""
    truth, path = world.truth, world.paths[0]
    # One query deep: what is drawn is then all that the rule decides by.
    rule = PricedQuery(price=PRICE, horizon=len(path), lookahead_weight=0.0)
    belief = DriftingGrid(truth.prior_cov, FORGETTING, truth.noise)
    share = information_share(truth.prior_cov)
    live, queries, scenes = 0.0, 0, []
    everywhere = torch.arange(belief.num_points)
    for t in range(len(path)):
        if t:
            belief.wait()
        progress = Progress(t + 1, queries, None, FORGETTING, live, share)
        mean, variance = belief.mean, belief.variance
        cov = belief.covariance_on_sublattice(everywhere, 1).to(mean)
        gain = knowledge_gradient(mean, cov, variance, truth.noise, tolerance=1e-5)
        value = mean + rule.effective_horizon(progress) * gain - mean.max()
        at, best = int(value.argmax()), int(mean.argmax())
        query = bool(rule(_comparison(mean, gain, at, best), progress, torch.Generator()).query)
        played = at if query else best
        scenes.append(Scene(t, mean, variance.sqrt(), value, query, played))
        if query:
            belief.observe(torch.tensor(played), path[t, played] + world.noise[0, t])
        live, queries = (1 - FORGETTING) * (live + query), queries + query
    return scenes


def _comparison(mean: Tensor, gain: Tensor, at: int, best: int) -> Comparison:
    no_rival = mean[:0]
    prospect = Prospect(mean[at], gain[at])
    return Comparison(
        mean[best], mean[best], no_rival, no_rival, None, no_rival.bool(), mean[0], prospect
    )


def pick(scenes: list[Scene]) -> list[Scene]:
    """Return a round with a valuable query far from the best known, and the round of least value."""
    middle = [s for s in scenes if WINDOW <= s.round < 3 * len(scenes) // 4]
    far = [
        s for s in middle if s.queries and abs(s.plays - int(s.mean.argmax())) > FAR * len(s.mean)
    ]
    return [
        max(far, key=lambda s: float(s.value.max())),
        min(middle, key=lambda s: float(s.value.max())),
    ]


def marks(scenes: list[Scene], now: Scene, path: Tensor, x: Tensor, *, queried: bool) -> Marks:
    """Return the recent rounds with, or without, a query, on the function as it is now."""
    recent = [s for s in scenes[max(now.round - WINDOW, 0) : now.round] if s.queries == queried]
    plays = torch.tensor([s.plays for s in recent], dtype=torch.long)
    ages = torch.tensor([now.round - s.round for s in recent])
    return Marks(x[plays], path[now.round, plays], ages)


def draw(world: World, scenes: list[Scene], path: Path) -> None:
    """Draw the two rounds."""
    figure = new_figure(11, 6.2)
    axes = figure.subplots(2, 2, sharex=True, sharey="row", height_ratios=[3, 2])
    x = world.truth.points[:, 0]
    for column, scene in enumerate(pick(scenes)):
        top, below = axes[0][column], axes[1][column]
        truth = world.paths[0, scene.round]
        queries, skips = (
            marks(scenes, scene, world.paths[0], x, queried=queried) for queried in (True, False)
        )
        plot_belief(x, scene.mean, scene.std, truth, queries, skips, ax=top)
        plot_query_value(x, scene.value, PRICE, ax=below)
        word = "queries at" if scene.queries else "does not query; plays the best known,"
        top.set_title(f"round {scene.round}: {word} x = {float(x[scene.plays]):.2f}")
        top.axvline(float(x[scene.plays]), color="#999999", linewidth=0.8, zorder=0)
        below.axvline(float(x[scene.plays]), color="#999999", linewidth=0.8, zorder=0)
        top.set_xlabel("")
        below.set_ylim(-1.5, None)
    axes[0][1].get_legend().remove()
    for ax in axes[:, 1]:
        ax.set_ylabel("")
    save(figure, path)


def main(arguments: list[str]) -> None:
    """Play one run and draw two of its rounds."""
    parser = size_parser("priced-picture", "belief, value of a query, price and decision")
    parser.set_defaults(trials=1, points=301, horizon=240)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    world = draw_world(FORGETTING, options)
    draw(world, play(world), options.results / "priced-query.png")
