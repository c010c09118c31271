"""When to tune a self-tuning network: ``python -m benchmarks stn``.

Two arms, train only and train and tune, and a decision for each round of some batches. The reward is the
gain of accuracy on all validation pictures: the query that costs. Every method trains from the same split
and the same first weights. A run that is killed continues from its last checkpoint. Seconds are of
training, tuning, queries and decisions, not of reports; on a CPU they are its own time.

References:
    J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
    optimization. 2021, appendix E.2, table A3 and figures A4 to A6.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness.provenance import ROOT
from benchmarks.harness.record import Row, grouped
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.suite.runner import run_online
from benchmarks.training.picture_run import Kept, add_training, changed
from benchmarks.training.schedule.methods import METHODS, policy_of
from benchmarks.training.schedule.recipes import CPU, PUBLISHED, TRAIN, TUNE, Recipe, tiny
from benchmarks.training.schedule.run import ScheduleProblem
from benchmarks.training.schedule.table import draw, text
from botorch_costly import Decision
from botorch_costly.device import check_device

NAME = "stn"
_REPORTS = 15  # of a run, for tables and figures
_CHECKPOINTS = 75  # of a run


class Task(NamedTuple):
    """A run, and the key of its row."""

    recipe: str
    method: str
    seed: int


def measure(task: Task, recipe: Recipe, checkpoints: Path) -> Row:
    """Train once under a method, from the last checkpoint if there is one; return how it went."""
    problem = ScheduleProblem(recipe)
    policy, kept = policy_of(task.method, problem, task.seed), Kept(problem)
    path = checkpoints / f"{'-'.join(map(str, task))}.pt".replace(" ", "_")
    record = run_online(
        kept,
        policy,
        task.seed,
        checkpoint=path,
        report_every=max(problem.horizon // _REPORTS, 1),
        save_every=max(problem.horizon // _CHECKPOINTS, 1),
    )
    path.unlink()
    last = kept.run.reports[-1]
    ends = {
        f"{part}_{what}": last[part][place]
        for part in ("validation", "test")
        for place, what in enumerate(("loss", "accuracy"))
    }
    return {
        **task._asdict(),
        **ends,
        "rounds": len(record.decisions),
        "queries": record.queries,
        "tunings": kept.run.tunings,
        "seconds": round(kept.run.training_seconds + kept.run.query_seconds + policy.seconds, 3),
        "query_seconds": round(kept.run.query_seconds, 3),
        "tuner_seconds": round(policy.seconds, 4),
        "schedule": "".join(map(_letter, record.decisions)),
        "names": list(kept.run.hyperparameters.names),
        "reports": kept.run.reports,
    }


def _letter(decision: Decision) -> str:
    """Return a letter for a round: t or T, dot or Q, the second if queried; s for a rarer pace."""
    letters = {TUNE: "tT", TRAIN: ".Q"}.get(str(decision.config["arm"]), "ss")
    return letters[decision.query]


def recipe_of(options: argparse.Namespace) -> Recipe:
    """Return the recipe that was asked for, on the device that was asked for.

    Raises:
        InvalidArgumentError: If there is no such device here.
    """
    recipe = PUBLISHED if options.published else CPU
    recipe = changed(recipe, device=options.device, precision=options.precision)
    recipe = tiny(recipe) if options.smoke else recipe
    check_device(recipe.device)
    return recipe


def main(arguments: list[str]) -> None:
    """Train, store the rows, draw the figures and print the table."""
    about = "when to tune a self-tuning network on CIFAR-10"
    parser = sweep_parser(NAME, about, seeds=5, methods=METHODS)
    add_training(parser, published="VGG16, 150 epochs, as the paper")
    parser.add_argument(
        "--checkpoints", type=Path, default=ROOT / "out" / NAME, help="of unfinished runs"
    )
    options = parser.parse_args(arguments)
    recipe = recipe_of(options)
    wanted = tasks_of(Task, options, [recipe.name], options.methods)
    work = partial(measure, recipe=recipe, checkpoints=options.checkpoints)
    rows = grouped(measured(NAME, wanted, work, options), "recipe").get(recipe.name, [])
    # The figures of another setting have names of their own.
    draw(rows, options.results, NAME if recipe == CPU else f"{NAME}-{recipe.name}")
    print(text(rows))
