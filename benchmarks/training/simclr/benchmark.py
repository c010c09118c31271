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

from benchmarks.harness.provenance import ROOT
from benchmarks.harness.record import Row, rows_of
from benchmarks.harness.sweep import measured, missing_of, sweep_parser, tasks_of
from benchmarks.suite.runner import Record, run_online
from benchmarks.training.picture_run import Kept, add_training, changed
from benchmarks.training.simclr import ranks
from benchmarks.training.simclr.augmentation import AUGMENTATIONS
from benchmarks.training.simclr.methods import COIN, CONFIDENT, METHODS, ReplayPolicy, policy_of
from benchmarks.training.simclr.recipes import CPU, PUBLISHED, Recipe, tiny
from benchmarks.training.simclr.run import SPACE, ContrastiveProblem
from benchmarks.training.simclr.table import draw, text
from botorch_costly import Schedule
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


def measure(task: Task, recipe: Recipe, folder: Path, coins: Mapping[int, float]) -> Row:
    """Train once under a method, from the last checkpoint if there is one; return how it went."""
    problem = ContrastiveProblem(recipe)
    kept = Kept(problem)
    policy = policy_of(task.method, problem, task.seed, coins.get(task.seed))
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


def coins_of(rows: Sequence[Row], recipe: str) -> dict[int, float]:
    """Return, by seed, how often the confidence rule queried after the design: the budget of the coin."""
    return {
        row["seed"]: (row["queries"] - row["design"]) / (row["rounds"] - row["design"])
        for row in rows
        if row["recipe"] == recipe and row["method"] == CONFIDENT
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
    for group in ([t for t in wanted if t.method != COIN], [t for t in wanted if t.method == COIN]):
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
