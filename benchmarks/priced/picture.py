"""One picture of the priced look: belief, what a look at each point is worth, its price, the decision.

Left a round that was worth a look, right one that was not.
"""

from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.table_a2 import World, draw_world, size_parser
from botorch_costly.models import DriftingGrid
from botorch_costly.numerics.knowledge_gradient import knowledge_gradient
from botorch_costly.numerics.stationary import coverage
from botorch_costly.plotting import Marks, plot_belief, plot_worth
from botorch_costly.query import Contest, PricedQuery, Progress, Prospect

FORGETTING, PRICE = 0.03, 0.5
WINDOW = 60  # rounds of which the marks are shown
FAR = 0.3  # of the domain, from the best known


class Scene(NamedTuple):
    """A round as the rule saw it."""

    round: int
    mean: Tensor  # shape: (n,)
    std: Tensor  # shape: (n,)
    worth: Tensor  # shape: (n,)
    looks: bool
    plays: int


def play(world: World) -> list[Scene]:
    """Run the rule on the first trial, weighing a look at every point."""
    truth, path = world.truth, world.paths[0]
    # One look deep: what is drawn is then all that the rule decides by.
    rule = PricedQuery(price=PRICE, horizon=len(path), foresight=0.0)
    belief = DriftingGrid(truth.prior_cov, FORGETTING, truth.noise)
    share = coverage(truth.prior_cov)
    live, looks, scenes = 0.0, 0, []
    everywhere = torch.arange(belief.num_points)
    for t in range(len(path)):
        if t:
            belief.wait()
        progress = Progress(t + 1, looks, None, FORGETTING, live, share)
        mean, variance = belief.mean, belief.variance
        cov = belief.covariance_between(everywhere, everywhere)
        gain = knowledge_gradient(mean, cov, variance, truth.noise, tolerance=1e-5)
        worth = mean + rule.reach(progress) * gain - mean.max()
        at, best = int(worth.argmax()), int(mean.argmax())
        look = bool(rule(_contest(mean, gain, at, best), progress, torch.Generator()).look)
        played = at if look else best
        scenes.append(Scene(t, mean, variance.sqrt(), worth, look, played))
        if look:
            belief.observe(torch.tensor(played), path[t, played] + world.noise[0, t])
        live, looks = (1 - FORGETTING) * (live + look), looks + look
    return scenes


def _contest(mean: Tensor, gain: Tensor, at: int, best: int) -> Contest:
    nobody = mean[:0]
    prospect = Prospect(mean[at], gain[at])
    return Contest(mean[best], mean[best], nobody, nobody, None, nobody.bool(), mean[0], prospect)


def pick(scenes: list[Scene]) -> list[Scene]:
    """Return the round in which a look far from the best known was worth most, and one worth least."""
    middle = [s for s in scenes if WINDOW <= s.round < 3 * len(scenes) // 4]
    far = [s for s in middle if s.looks and abs(s.plays - int(s.mean.argmax())) > FAR * len(s.mean)]
    return [
        max(far, key=lambda s: float(s.worth.max())),
        min(middle, key=lambda s: float(s.worth.max())),
    ]


def marks(scenes: list[Scene], now: Scene, path: Tensor, x: Tensor, looked: bool) -> Marks:
    """Return the recent rounds with, or without, a look, on the function as it is now."""
    recent = [s for s in scenes[max(now.round - WINDOW, 0) : now.round] if s.looks == looked]
    plays = torch.tensor([s.plays for s in recent], dtype=torch.long)
    ages = torch.tensor([now.round - s.round for s in recent])
    return Marks(x[plays], path[now.round, plays], ages)


def draw(world: World, scenes: list[Scene], path: Path) -> None:
    """Draw the two rounds."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 2, sharex=True, sharey="row", height_ratios=[3, 2])
    x = world.truth.points[:, 0]
    for column, scene in enumerate(pick(scenes)):
        top, below = axes[0][column], axes[1][column]
        truth = world.paths[0, scene.round]
        looks, skips = (marks(scenes, scene, world.paths[0], x, looked) for looked in (True, False))
        plot_belief(x, scene.mean, scene.std, truth, looks, skips, ax=top)
        plot_worth(x, scene.worth, PRICE, ax=below)
        word = "looks at" if scene.looks else "does not look; plays the best known,"
        top.set_title(f"round {scene.round}: {word} x = {float(x[scene.plays]):.2f}")
        top.axvline(float(x[scene.plays]), color="#999999", linewidth=0.8, zorder=0)
        below.axvline(float(x[scene.plays]), color="#999999", linewidth=0.8, zorder=0)
        top.set_xlabel("")
        below.set_ylim(-1.5, None)
    axes[0][1].get_legend().remove()
    for ax in axes[:, 1]:
        ax.set_ylabel("")
    figure.savefig(path, dpi=150)
    print(f"Wrote {path}")


def main(arguments: list[str]) -> None:
    """Play one run and draw two of its rounds."""
    parser = size_parser("priced-picture", "belief, worth of a look, price and decision")
    parser.set_defaults(trials=1, points=301, horizon=240)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    world = draw_world(FORGETTING, options)
    draw(world, play(world), options.results / "priced-look.png")
