"""Augmentation tuned within one contrastive training: ``python -m benchmarks simclr``.

Eight probabilities change from round to round. The reward is the gain of a readout's accuracy on
validation pictures: the query that costs. Every method trains from the same split and the same first
weights, and draws the same batches and the same numbers for its views. A run that is killed continues
from its last checkpoint, and every run's schedule is exported, to be played again by ``--replay``.
Seconds are of training, queries and decisions; on a CPU they are its own time.

Started by ``torch.distributed.run``, several processes train each network together.

References:
    J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
    optimization. 2021, section 4.2 and table 1.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.harness.figures import new_figure, save
from benchmarks.harness.provenance import ROOT
from benchmarks.harness.record import Row, grouped, rows_of
from benchmarks.harness.statistics import Runs, by_method, mean_error, ratio_of_totals, shared
from benchmarks.harness.sweep import measured, missing_of, sweep_parser, tasks_of
from benchmarks.suite.runner import Record, run_online
from benchmarks.training.picture_run import Kept, add_training, changed
from benchmarks.training.simclr import ranks
from benchmarks.training.simclr.augmentation import AUGMENTATIONS
from benchmarks.training.simclr.methods import (
    COINS,
    EXPERT,
    FIXED,
    FULL,
    METHODS,
    ReplayPolicy,
    policy_of,
)
from benchmarks.training.simclr.recipes import CPU, PUBLISHED, Recipe, tiny
from benchmarks.training.simclr.run import SPACE, ContrastiveProblem
from botorch_costly import Schedule, plotting
from botorch_costly.device import check_device

NAME = "simclr"
_CHECKPOINTS = 20  # of a run
_STRETCHES = 20  # of a run, whose mean probabilities are stored


class Task(NamedTuple):
    """A run, and the key of its row."""

    recipe: str
    method: str
    seed: int

    @property
    def file(self) -> str:
        """The name of its files."""
        return "-".join(map(str, self)).replace(" ", "_").replace(",", "")


def measure(
    task: Task, recipe: Recipe, folder: Path, coins: Mapping[tuple[str, int], float]
) -> Row:
    """Train once under a method, from the last checkpoint if there is one; return how it went."""
    problem = ContrastiveProblem(recipe)
    kept = Kept(problem)
    policy = policy_of(task.method, problem, task.seed, coins.get((task.method, task.seed)))
    path = folder / f"{task.file}.pt"
    record = run_online(
        kept,
        policy,
        task.seed,
        checkpoint=path,
        report_every=problem.horizon,
        save_every=max(problem.horizon // _CHECKPOINTS, 1),
        saves=ranks.rank() == 0,
    )
    ranks.wait()
    run = kept.run
    if ranks.rank() == 0:
        schedule_of(record).to_json(folder / f"{task.file}.json")
        path.unlink()
    return {
        **task._asdict(),
        "top_1": record.test_accuracy[-1][1],
        "validation": run.validate().accuracy,
        "loss": run.loss,
        "rounds": len(record.decisions),
        "queries": record.queries,
        "design": sum(d.reason.startswith("initial design") for d in record.decisions),
        "failed": run.failures,
        "seconds": round(run.training_seconds + run.query_seconds + policy.seconds, 3),
        "query_seconds": round(run.query_seconds, 3),
        "tuner_seconds": round(policy.seconds, 4),
        "processes": ranks.many(),
        "schedule": _stretches(record),
    }


def schedule_of(record: Record) -> Schedule:
    """Return what a run played, ready to be exported; probabilities keep their space."""
    first = record.decisions[0].config
    return Schedule.from_decisions(
        record.decisions, SPACE if set(first) == set(SPACE.names) else None
    )


def _stretches(record: Record) -> list[list[float]]:
    """Return the mean probabilities of stretches of the run; none of a sampler that has none."""
    configs: list[Mapping[str, Any]] = [
        d.config for d in record.decisions if set(d.config) == set(SPACE.names)
    ]
    many = min(_STRETCHES, len(configs))
    ends = [len(configs) * i // many for i in range(many + 1)] if many else [0]
    return [
        [round(mean(float(c[name]) for c in configs[a:b]), 3) for name in AUGMENTATIONS]
        for a, b in pairwise(ends)
    ]


def replay(path: Path, recipe: Recipe, seed: int) -> Record:
    """Train once by a schedule that was exported."""
    policy = ReplayPolicy(Schedule.from_json(path))
    problem = ContrastiveProblem(recipe)
    return run_online(problem, policy, seed, report_every=problem.horizon)


def coins_of(rows: Sequence[Row], recipe: str) -> dict[tuple[str, int], float]:
    """Return, by coin and seed, how often the rule beside it queried after the design."""
    shares = {
        (row["method"], row["seed"]): (row["queries"] - row["design"])
        / (row["rounds"] - row["design"])
        for row in rows
        if row["recipe"] == recipe and row["method"] in COINS.values()
    }
    return {
        (coin, seed): share
        for coin, rule in COINS.items()
        for (method, seed), share in shares.items()
        if method == rule
    }


def recipe_of(options: argparse.Namespace) -> Recipe:
    """Return the recipe that was asked for, on the device that was asked for.

    Raises:
        InvalidArgumentError: If there is no such device here.
    """
    recipe = PUBLISHED if options.published else CPU
    recipe = changed(
        recipe,
        device=options.device,
        precision=options.precision,
        epochs=options.epochs,
        compiled=options.compile or None,
    )
    if options.epochs is not None:
        recipe = replace(recipe, name=f"{recipe.name}, {options.epochs} epochs")
    recipe = tiny(recipe) if options.smoke else recipe
    recipe = replace(recipe, device=ranks.join(recipe.device))
    check_device(recipe.device)
    return recipe


# Table 1 of the paper: top-1 of a linear readout after 10 and after 100 epochs, and the time.
PAPER: dict[str, tuple[float, float, str]] = {
    "fixed 0.5": (70.91, 73.20, "1.00"),
    "full feedback": (75.14, 77.95, "1.97"),
    "coin 0.6": (72.15, 75.31, "1.64"),
    "confidence 0.9": (74.80, 77.56, "1.88"),
    "confidence 0.8": (74.77, 77.62, "1.71"),
    "confidence 0.7": (74.58, 77.27, "1.61"),
    "expert": (75.00, 77.99, "-"),
}


def text(rows: Sequence[Row]) -> str:
    """Return a line for each method of each recipe, with lines of the paper's table below."""
    lines = []
    for recipe, mine in grouped(rows, "recipe").items():
        lines += [*_table(recipe, by_method(mine)), *_coins(by_method(mine)), ""]
    lines.append(
        "ResNet-50 on ImageNet100 in the paper, one run: top-1 R10, R100, time by that of fixed"
    )
    for method, (brief, long, time) in PAPER.items():
        lines.append(f"{method:<26}{brief:>14.2f}{long:>8.2f}{time:>8}")
    return "\n".join(lines)


def _table(recipe: str, found: Mapping[str, Runs]) -> list[str]:
    lines = [
        "top-1 of a linear readout in per cent, its standard error over seeds, and paired differences",
        f"{recipe:<26}{'seeds':>6}{'top-1':>8}{'(se)':>8}{'worst':>8}{'less fixed':>16}{'less full':>16}"
        f"{'queries':>9}{'of full':>9}{'x fixed':>9}{'query':>8}{'tuner':>8}{'failed':>8}",
    ]
    for method, runs in found.items():
        ends = [100 * run["top_1"] for run in runs.values()]
        error = f"({mean_error(ends)[1]:.2f})" if len(ends) > 1 else ""
        queries = mean(run["queries"] for run in runs.values())
        lines.append(
            f"{method:<26}{len(runs):>6}{mean(ends):>8.2f}{error:>8}{min(ends):>8.2f}"
            f"{_less(runs, found.get(FIXED, {})):>16}{_less(runs, found.get(FULL, {})):>16}"
            f"{queries:>9.1f}{ratio_of_totals(runs, found.get(FULL, {}), 'queries'):>9}"
            f"{ratio_of_totals(runs, found.get(FIXED, {}), 'seconds'):>9}"
            f"{_share(runs, 'query_seconds'):>8}{_share(runs, 'tuner_seconds'):>8}"
            f"{sum(run['failed'] for run in runs.values()):>8}"
        )
    return lines


def _coins(found: Mapping[str, Runs]) -> list[str]:
    """Return for each rule what it is ahead of a coin that queries as often."""
    return [
        f"{rule} less a coin with as many queries: {_less(found[rule], found[coin])}"
        for coin, rule in COINS.items()
        if rule in found and coin in found
    ]


def _less(runs: Runs, others: Runs) -> str:
    """Return the mean difference of top-1, and its standard error, paired over seeds."""
    differences = [100 * (ours - theirs) for ours, theirs in shared(runs, others, "top_1")]
    if not differences or runs is others:
        return ""
    mean, error = mean_error(differences)
    return f"{mean:+.2f} ({error:.2f})" if len(differences) > 1 else f"{mean:+.2f}"


def _share(runs: Runs, name: str) -> str:
    """Return the share of a part of the time."""
    return f"{sum(r[name] for r in runs.values()) / sum(r['seconds'] for r in runs.values()):.1%}"


COLOURS = {
    "full feedback": plotting.BLUE,
    "confidence 0.8": plotting.ORANGE,
    "priced": plotting.GREEN,
    "coin": plotting.PURPLE,
    "as it comes": "black",
}
_COLUMNS = 4


def draw(rows: Sequence[Row], directory: Path, name: str) -> None:
    """Draw both figures of the rows of a recipe."""
    runs = by_method(rows)
    if not runs:
        return
    save(ends_figure(runs), directory / f"{name}.png", dpi=110)
    save(schedule_figure(runs), directory / f"{name}-schedules.png", dpi=110)


def ends_figure(runs: Mapping[str, Mapping[int, Row]]) -> Any:
    """Return top-1 of each run, methods by their mean."""
    ranked = sorted(runs, key=lambda m: mean(run["top_1"] for run in runs[m].values()))
    figure = new_figure(7, 0.3 * len(ranked) + 1)
    ax = figure.subplots()
    for place, method in enumerate(ranked):
        ends = [100 * run["top_1"] for run in runs[method].values()]
        colour = COLOURS.get(method, "0.6")
        ax.plot(ends, [place] * len(ends), "o", color=colour, alpha=0.6, markersize=4)
        ax.plot(mean(ends), place, "|", color=colour, markersize=16)
    ax.set_yticks(range(len(ranked)), ranked)
    ax.set_xlabel("top-1 of a linear readout in per cent; line: mean over seeds")
    ax.grid(axis="x", alpha=0.3)
    return figure


def schedule_figure(runs: Mapping[str, Mapping[int, Row]]) -> Any:
    """Return each probability over the run, under methods that change it: the mean over seeds."""
    lines = -(-len(AUGMENTATIONS) // _COLUMNS)
    figure = new_figure(3 * _COLUMNS, 2.2 * lines + 0.8)
    axes = figure.subplots(lines, _COLUMNS, squeeze=False, sharex=True, sharey=True)
    for place, (ax, augmentation) in enumerate(zip(axes.flat, AUGMENTATIONS, strict=True)):
        for method, colour in COLOURS.items():
            stretches = [run["schedule"] for run in runs.get(method, {}).values()]
            if stretches:
                values = [mean(s[place] for s in at) for at in zip(*stretches, strict=True)]
                shares = [(i + 0.5) / len(values) for i in range(len(values))]
                ax.plot(shares, values, color=colour, label=method)
        ax.axhline(EXPERT[augmentation], color="0.5", linewidth=0.8, linestyle="--", label="expert")
        ax.set_title(augmentation.replace("_", " "), fontsize="medium")
        ax.set_ylim(-0.03, 1.03)
    for ax in axes[-1]:
        ax.set_xlabel("share of the run")
    handles = axes[0, 0].get_legend_handles_labels()
    if handles[0]:
        figure.legend(*handles, loc="outside lower center", ncols=6)
    return figure


def main(arguments: list[str]) -> None:
    """Train, store the rows, draw the figures and print the table."""
    about = "augmentation tuned within one contrastive training on CIFAR-10"
    parser = sweep_parser(NAME, about, seeds=3, methods=METHODS)
    add_training(parser, published="ResNet-18 on all of CIFAR-10")
    parser.add_argument("--epochs", type=int, help="of a run; those of the setting if omitted")
    parser.add_argument("--compile", action="store_true", help="compile views and network first")
    parser.add_argument(
        "--runs", type=Path, default=ROOT / "out" / NAME, help="of checkpoints and schedules"
    )
    parser.add_argument("--replay", type=Path, help="a schedule to play again, once, and no more")
    options = parser.parse_args(arguments)
    recipe = recipe_of(options)
    if ranks.many() > 1:
        options.processes = 1  # each network is trained by all of them
    if options.replay is not None:
        record = replay(options.replay, recipe, options.first_seed)
        print(f"top-1 of a linear readout: {100 * record.test_accuracy[-1][1]:.2f} %")
        return
    wanted = tasks_of(Task, options, [recipe.name], options.methods)
    rules, coined = ([t for t in wanted if (t.method in COINS) == late] for late in (False, True))
    for group in (rules, coined):
        coins = coins_of(rows_of(NAME, options.results), recipe.name)
        work = partial(measure, recipe=recipe, folder=options.runs, coins=coins)
        if ranks.rank() == 0:
            measured(NAME, group, work, options)
        else:
            for task in missing_of(NAME, group, options):
                work(task)
        ranks.wait()
    if ranks.rank() == 0:
        rows = [row for row in rows_of(NAME, options.results) if row["recipe"] == recipe.name]
        # The figures of another setting have names of their own.
        own = NAME if recipe.name == CPU.name else f"{NAME}-{recipe.name.replace(', ', '-')}"
        draw(rows, options.results, own.replace(" ", "-"))
        print(text(rows))
    ranks.leave()
