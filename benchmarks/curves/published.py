"""The paper's figures that are no table of regrets: ``python -m benchmarks boil-figures``.

- the mean of the score with points of curves and with whole curves as data (Figure 2);
- rewards of what was found, by rule of choice (Figure 5) and by compression (Figure 9);
- regrets of the paper's rivals, with the kernel of freeze-thaw over time (Figures 6, 12 and 14);
- trainings that freeze-thaw leaves (Figure 13), and curves of actor-critic (Figure 15).
"""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from gpytorch.constraints import GreaterThan
from gpytorch.likelihoods import GaussianLikelihood
from torch import Tensor

from benchmarks.curves.live.benchmark import CURVES, recorded
from benchmarks.curves.live.pools import one_table_each
from benchmarks.curves.picture import LONGEST, grid, made_up, regrets, surface
from benchmarks.curves.play import Steps, play
from benchmarks.curves.tabular import FOUND, POLICIES
from benchmarks.harness.command_line import parser_for
from benchmarks.harness.figures import new_figure, panels, save
from benchmarks.harness.record import Row, rows_of
from botorch_costly import plotting
from botorch_costly.models import CurveGP, fit_curves
from botorch_costly.problems import CurveProblem
from botorch_costly.transforms import CurveCompression

RULES = {
    "whole, last tenth": plotting.BLUE,
    "whole, scores": plotting.ORANGE,
    "scores": plotting.GREEN,
    "as published, from 3/8": plotting.VERMILION,
}
COMPRESSIONS = {
    "scores": plotting.GREEN,
    "scores, log": plotting.PURPLE,
    "scores, average": plotting.SKY,
}
RIVALS = {
    "random": plotting.BLUE,
    "hyperband": plotting.PURPLE,
    "whole, last tenth": plotting.SKY,
    "whole, scores": plotting.ORANGE,
    "length": "0.35",
    "length, freeze-thaw": "0.65",
    "as published, from 3/8": plotting.VERMILION,
    "scores": plotting.GREEN,
    "curve optimizer": "black",
}
BENCHMARKS = {"cartpole": "boil-rl", "reacher": "boil-rl", "pictures": "boil-cnn"}
_SHORTER = ("pendulum",)  # than in the paper, which has been played at its length, too
_LEAST = 1e-10  # variance of the noise where a model is to pass through whole curves
_GOOD = 0.2  # the best share of the trainings by their ends
_PAID = 10  # means of a whole training, after which the search with freeze-thaw is drawn


def means() -> Any:
    """Return a figure of the mean of the score: points as data, whole curves, and these without noise.

    Kernel and compression are those fitted to the points.
    """
    figure = new_figure(11, 3.4)
    axes = figure.subplots(1, 3, sharey=True)
    few = CurveGP(*made_up(), compression=CurveCompression(LONGEST).double()).augmented()
    fit_curves(few, restarts=4, generator=torch.Generator().manual_seed(0))
    every = (~few.curves.isnan()).nonzero() + torch.tensor([0, 1])  # iterations count from 1
    whole = with_data(few, every, few.likelihood.noise.item())
    titles = ("points that join", "whole curves", "whole curves, almost no noise")
    models = (few, whole, with_data(few, every, _LEAST))
    for ax, title, model in zip(axes, titles, models, strict=True):
        with torch.no_grad():
            mean = model.posterior(grid()).mean.squeeze(-1)
        words = (
            f"{title}\nln cond {conditioned(model):.0f}, mean {mean.min():.3g} to {mean.max():.3g}"
        )
        surface(figure, ax, mean, words)
        data = model.train_inputs[0]
        ax.plot(data[:, 0], data[:, 1] * LONGEST, ".", color="white", markersize=3)
        ax.set_xlabel("hyperparameter")
    axes[0].set_ylabel("iterations")
    return figure


def with_data(model: CurveGP, marks: Tensor, noise: float) -> CurveGP:
    """Return a model with the same curves, kernel and compression, and other points of them as data."""
    likelihood = GaussianLikelihood(noise_constraint=GreaterThan(_LEAST / 10)).double()
    likelihood.noise = noise
    compression, kernel = copy.deepcopy(model.compression), copy.deepcopy(model.covar_module)
    return CurveGP(model.configs, model.curves, marks, compression, kernel, likelihood)


def conditioned(model: CurveGP) -> float:
    """Return the logarithm of the condition number of the covariance of the data with its noise."""
    with torch.no_grad():
        covariance = model.covar_module(model.train_inputs[0]).to_dense()
        noise = model.likelihood.noise * torch.eye(len(covariance)).to(covariance)
        values = torch.linalg.eigvalsh(covariance + noise)
    return float(values.max().log() - values.min().clamp_min(1e-300).log())


def found(
    rows: Sequence[Row], problems: Mapping[str, CurveProblem], shown: Mapping[str, str]
) -> Any:
    """Return a figure of the whole curves of what was found at the cost of ten trainings, table by table.

    A line is the mean over the seeds that all policies shown have, its shade a standard error; the first
    ones are wider, so that equal ones are seen. Tables with fewer than two such seeds are left out.
    """
    of = {table: _found_by_seed(rows, table, shown) for table in problems}
    of = {table: played for table, played in of.items() if len(played) > 1}
    columns = min(3, max(len(of), 1))
    figure, axes = panels(len(of), columns, 3.7 * columns, 3.6)
    for ax, (table, played) in zip(axes.flat, of.items(), strict=False):
        for number, (policy, color) in enumerate(shown.items()):
            configs = [configs[policy] for configs in played.values()]
            width = 1.2 + 1.1 * (len(shown) - 1 - number)
            _shade(ax, problems[table].rewards[configs], color, policy, width)
        ax.set_title(f"{table} ({len(played)} seeds)", fontsize="medium")
        ax.set_xlabel("iterations of the training")
    axes[0, 0].set_ylabel("reward")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", frameon=False, ncols=2 * columns)
    return figure


def _found_by_seed(
    rows: Sequence[Row], table: str, shown: Mapping[str, str]
) -> dict[int, dict[str, int]]:
    """Return what each policy found, for the seeds of all of them; older rows do not say it."""
    found: dict[int, dict[str, int]] = {}
    for row in rows:
        if row["table"] == table and row["policy"] in shown and row.get(FOUND) is not None:
            found.setdefault(row["seed"], {})[row["policy"]] = row[FOUND]
    return {seed: by_policy for seed, by_policy in found.items() if len(by_policy) == len(shown)}


def _shade(ax: Any, curves: Tensor, color: str, label: str, width: float) -> None:
    at = torch.arange(1, curves.shape[1] + 1)
    mean, error = curves.mean(0), curves.std(0) / math.sqrt(len(curves))
    ax.plot(at, mean, color=color, label=label, linewidth=width)
    ax.fill_between(at, mean - error, mean + error, color=color, alpha=0.2, linewidth=0)


def left(problem: CurveProblem, policy: str = "freeze-thaw") -> Any:
    """Return a figure of the trainings that a search has begun: what it saw, and what it left."""
    stopped, longest = stops(problem, policy), problem.rewards.shape[1]
    figure = new_figure(8, 4.4)
    ax = figure.subplots()
    good = float(problem.ends.quantile(1 - _GOOD))
    of = {
        "left": (plotting.SKY, [c for c, at in stopped.items() if at < longest]),
        "trained to the end": (plotting.BLUE, [c for c, at in stopped.items() if at == longest]),
    }
    lost = [config for config in of["left"][1] if float(problem.ends[config]) >= good]
    of["left, and among the best fifth at the end"] = (plotting.VERMILION, lost)
    for label, (color, configs) in of.items():
        for number, config in enumerate(configs):
            curve, until = problem.rewards[config], stopped[config]
            name = f"{label} ({len(configs)})" if not number else None
            ax.plot(range(1, until + 1), curve[:until], color=color, linewidth=1.4, label=name)
            if until < longest:
                color_after = color if config in lost else "0.75"
                rest = range(until, longest + 1)
                ax.plot(rest, curve[until - 1 :], ":", color=color_after, linewidth=1)
                ax.plot(until, float(curve[until - 1]), "o", color=color, markersize=4)
    ax.legend(frameon=False, fontsize="small")
    ax.set_title("dotted: what it would have seen after it left", fontsize="medium")
    ax.set_xlabel("iterations")
    ax.set_ylabel("reward")
    return figure


def stops(problem: CurveProblem, policy: str) -> dict[int, int]:
    """Return where each training stands that a policy has begun and left, or trained to its end; seed 0.

    The last one is left out where the search ended in the middle of it.
    """
    stopped: dict[int, int] = {}
    last = -1

    def watching(problem: CurveProblem, seed: int, budget: float) -> Steps:
        nonlocal last
        steps = POLICIES[policy](problem, seed, budget)
        ask = next(steps)
        while True:
            last = ask.config
            told = yield ask
            stopped[ask.config] = ask.until
            try:
                ask = steps.send(told)
            except StopIteration:
                return

    play(problem, watching, 0, _PAID)
    if stopped.get(last, 0) < int(problem.lengths[last]):
        stopped.pop(last, None)
    return stopped


def actor_critic(rows: Sequence[Row]) -> Any:
    """Return a figure of the six trainings with the best peaks of each program of actor-critic."""
    programs = ("reacher", "pendulum, published")
    figure = new_figure(11, 4.6)
    axes = figure.subplots(2, 6, sharey="row")
    for line, program in zip(axes, programs, strict=True):
        mine = [row for row in rows if row["program"] == program]
        best = sorted(mine, key=lambda row: -max(row["curve"]))[: len(line)]
        episodes = 5 if program == "reacher" else 15
        for ax, row in zip(line, best, strict=False):
            at = [episodes * (i + 1) for i in range(len(row["curve"]))]
            ax.plot(at, row["curve"], color=plotting.BLUE, linewidth=1)
            ax.set_title(f"training {row['number']}", fontsize="small")
        line[0].set_ylabel(f"{program.partition(',')[0]}\nmean return of 100")
    for ax in axes[-1]:
        ax.set_xlabel("episodes")
    return figure


def main(arguments: list[str]) -> None:
    """Draw what is stored, and what is computed in a moment."""
    options = parser_for("boil-figures", "figures of the paper").parse_args(arguments)
    directory = options.results
    played = [
        row for name in dict.fromkeys(BENCHMARKS.values()) for row in rows_of(name, directory)
    ]
    rows = [row for row in played if row["table"] in BENCHMARKS]
    by_length = [row for row in one_table_each(played) if row["table"] not in _SHORTER]
    problems = {
        table: recorded(table, name + CURVES, directory) for table, name in BENCHMARKS.items()
    }
    save(means(), directory / "boil-mean.png")
    save(found(rows, problems, RULES), directory / "boil-found.png")
    save(found(rows, problems, COMPRESSIONS), directory / "boil-compressions.png")
    save(regrets(by_length, RIVALS, "scores"), directory / "boil-rivals.png")
    save(left(problems["cartpole"]), directory / "boil-freeze-thaw.png")
    save(actor_critic(rows_of("boil-rl" + CURVES, directory)), directory / "boil-actor-critic.png")
