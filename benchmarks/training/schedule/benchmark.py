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
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.harness.figures import new_figure, panels, save
from benchmarks.harness.provenance import ROOT
from benchmarks.harness.record import Row, grouped
from benchmarks.harness.statistics import Runs, by_method, mean_error, ratio_of_totals, shared
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.suite.runner import run_online
from benchmarks.training.picture_run import Kept, add_training, changed
from benchmarks.training.schedule.methods import (
    DENSE,
    GRID,
    GRIDDED,
    METHODS,
    NET_TUNERS,
    policy_of,
)
from benchmarks.training.schedule.recipes import (
    CPU,
    MIDDLE,
    PUBLISHED,
    TRAIN,
    TUNE,
    Recipe,
    tiny,
)
from benchmarks.training.schedule.run import ScheduleProblem
from botorch_costly import Decision, plotting
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
    recipe = PUBLISHED if options.published else MIDDLE if options.middle else CPU
    recipe = changed(recipe, device=options.device, precision=options.precision)
    recipe = tiny(recipe) if options.smoke else recipe
    check_device(recipe.device)
    return recipe


# Table A3 of the paper: validation loss and accuracy, test loss and accuracy, time by that of training.
PAPER: dict[str, tuple[float, float, float, float, str]] = {
    GRID: (0.421, 0.887, 0.444, 0.879, "11.69"),
    "confidence 0.7": (0.390, 0.888, 0.428, 0.881, "1.10"),
    "confidence 0.8": (0.373, 0.892, 0.404, 0.881, "1.21"),
}
_ENDS = ("validation_loss", "validation_accuracy", "test_loss", "test_accuracy")
_PAID = ("tunings", "queries", "seconds", "query_seconds", "tuner_seconds")


def with_grid(rows: Sequence[Row]) -> dict[str, dict[int, dict[str, Any]]]:
    """Return the rows by method and seed, with the static grid made of its schedules."""
    found = by_method(rows)
    grid = _grid(found)
    return {**found, GRID: grid} if grid else found


def _grid(found: Mapping[str, Runs]) -> dict[int, dict[str, Any]]:
    """Return, by seed, the schedule with the least validation loss, and what all of them paid."""
    if not set(GRIDDED) <= set(found):
        return {}
    seeds = set.intersection(*(set(found[arm]) for arm in GRIDDED))
    chosen = {}
    for seed in sorted(seeds):
        runs = [found[arm][seed] for arm in GRIDDED]
        best = min(runs, key=lambda run: run["validation_loss"])
        # The best one is chosen by a validation of each at its end.
        paid = {what: sum(run[what] for run in runs) for what in _PAID}
        chosen[seed] = {**best, **paid, "method": GRID, "queries": len(GRIDDED)}
    return chosen


def text(rows: Sequence[Row]) -> str:
    """Return a line for each method of each recipe, with lines of the paper's table below."""
    lines = []
    for recipe, mine in grouped(rows, "recipe").items():
        lines += [*_table(recipe, with_grid(mine)), ""]
    lines.append("VGG16 in the paper, one run, time by that of training without queries")
    for method, (*ends, time) in PAPER.items():
        lines.append(f"{method:<22}{1:>6}{_numbers(ends)}{time:>36}")
    return "\n".join(lines)


def _table(recipe: str, found: Mapping[str, Runs]) -> list[str]:
    dense = found.get(DENSE, {})
    lines = [
        f"{recipe:22}{'seeds':>6}{'val. loss':>11}{'acc.':>7}{'test loss':>11}{'acc.':>7}{'tunings':>9}"
        f"{'queries':>9}{'seconds':>9}{'x dense':>9}{'tuner':>8}  val. loss less dense"
    ]
    for method, runs in found.items():
        ends = [mean(run[name] for run in runs.values()) for name in _ENDS]
        paid = [mean(run[name] for run in runs.values()) for name in ("tunings", "queries")]
        seconds = mean(run["seconds"] for run in runs.values())
        share = mean(run["tuner_seconds"] / run["seconds"] for run in runs.values())
        lines.append(
            f"{method:<22}{len(runs):>6}{_numbers(ends)}{paid[0]:>9.0f}{paid[1]:>9.1f}{seconds:>9.1f}"
            f"{ratio_of_totals(runs, dense, 'seconds'):>9}{share:>8.2%}  {_difference(runs, dense)}"
        )
    return lines


def _numbers(ends: Sequence[float]) -> str:
    return "".join(f"{end:>{width}.3f}" for end, width in zip(ends, (11, 7, 11, 7), strict=True))


def _difference(runs: Runs, dense: Runs) -> str:
    """Return the mean difference of the validation loss, and its standard error, paired over seeds."""
    differences = [ours - theirs for ours, theirs in shared(runs, dense, "validation_loss")]
    if len(differences) < 2:
        return ""
    mean, error = mean_error(differences)
    return f"{mean:+.4f} ({error:.4f})"


COLOURS = {
    TRAIN: "0.6",
    TUNE: plotting.BLUE,
    "2 to 1": plotting.SKY,
    "5 to 1": plotting.SKY,
    "10 to 1": plotting.SKY,
    "switching": plotting.PURPLE,
    "confidence 0.7": plotting.ORANGE,
    "confidence 0.8": plotting.VERMILION,
    "priced": plotting.GREEN,
    "as it comes": "black",
    "confidence 0.8, net": plotting.VERMILION,
    "priced, net": plotting.GREEN,
    "as it comes, net": "black",
}
_NET = dict.fromkeys(NET_TUNERS, "--")
_DASHES = {"2 to 1": "--", "5 to 1": "-.", "10 to 1": ":", **_NET}
_MARKS = {"2 to 1": "s", "5 to 1": "^", "10 to 1": "v", **dict.fromkeys(NET_TUNERS, "D")}
_COLUMNS = 4
_FIRST_SHOWN = 0.2  # share of the run: losses before it would leave no room for the others


def draw(rows: Sequence[Row], directory: Path, name: str) -> None:
    """Draw the three figures of the rows of a recipe."""
    runs: dict[str, list[Row]] = {}
    for row in rows:
        if row["method"] in COLOURS:  # the bandits with coins are in the table alone
            runs.setdefault(row["method"], []).append(row)
    # Means over other seeds are of other data: only methods with all the seeds are compared.
    most = max(map(len, runs.values()), default=0)
    runs = {method: mine for method, mine in runs.items() if len(mine) == most}
    if not runs:
        return
    save(validation_figure(runs), directory / f"{name}-validation.png", dpi=110)
    save(training_figure(runs), directory / f"{name}-training.png", dpi=110)
    save(hyperparameter_figure(runs), directory / f"{name}-hyperparameters.png", dpi=110)


def validation_figure(runs: Mapping[str, Sequence[Row]]) -> Any:
    """Return Figure A4: accuracy and loss of validation over the run, and the loss by tuning."""
    figure = new_figure(13, 4.4)
    accuracy, loss, cost = figure.subplots(1, 3)
    _curves(accuracy, runs, "validation", 1)
    _curves(loss, runs, "validation", 0)
    for method, mine in runs.items():
        # Steps rather than seconds, which differ by what else ran beside a measurement.
        spent, end = (mean(row[name] for row in mine) for name in ("tunings", "validation_loss"))
        cost.plot(spent, end, _MARKS.get(method, "o"), color=_colour(method), label=method)
    cost.set_xlabel("tuning steps")
    cost.set_ylabel("validation loss at the end")
    lines, labels = accuracy.get_legend_handles_labels()
    marks, _ = cost.get_legend_handles_labels()
    both = list(zip(lines, marks, strict=True))  # the line of a curve with its mark among the costs
    figure.legend(both, labels, loc="outside lower center", ncols=5, handlelength=3)
    return figure


def training_figure(runs: Mapping[str, Sequence[Row]]) -> Any:
    """Return Figure A5: accuracy and loss of training, its pictures altered and its units dropped."""
    figure = new_figure(9, 4.4)
    accuracy, loss = figure.subplots(1, 2)
    _curves(accuracy, runs, "training", 1)
    _curves(loss, runs, "training", 0)
    figure.legend(*accuracy.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure


def hyperparameter_figure(runs: Mapping[str, Sequence[Row]]) -> Any:
    """Return Figure A6: each hyperparameter over the run, the mean over seeds."""
    names = next(iter(runs.values()))[0]["names"]
    lines = -(-len(names) // _COLUMNS)
    size = 3 * _COLUMNS, 2.1 + 0.8 / lines
    figure, axes = panels(len(names), _COLUMNS, *size, sharex=True)
    for place, (ax, name) in enumerate(zip(axes.flat, names, strict=False)):
        for method, mine in runs.items():
            reports = zip(*(row["reports"] for row in mine), strict=True)
            rounds, values = [], []
            for at in reports:
                rounds.append(at[0]["round"])
                values.append(mean(report["hyperparameters"][place] for report in at))
            ax.plot(rounds, values, color=_colour(method), linestyle=_dash(method), label=method)
        ax.set_title(name.replace("_", " "), fontsize="medium")
    for ax in axes[-1]:
        ax.set_xlabel("round")
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=5)
    return figure


def _curves(ax: Any, runs: Mapping[str, Sequence[Row]], part: str, which: int) -> None:
    """Draw the mean over seeds of a part's loss (0) or accuracy (1)."""
    for method, mine in runs.items():
        reports = list(zip(*(row["reports"] for row in mine), strict=True))
        shown = [at for at in reports if at[0]["round"] >= _FIRST_SHOWN * reports[-1][0]["round"]]
        rounds = [at[0]["round"] for at in shown]
        values = [mean(report[part][which] for report in at) for at in shown]
        ax.plot(rounds, values, color=_colour(method), linestyle=_dash(method), label=method)
    ax.set_xlabel("round")
    ax.set_ylabel(f"{part} {('loss', 'accuracy')[which]}")
    ax.grid(alpha=0.3)


def _colour(method: str) -> str:
    return COLOURS[method]


def _dash(method: str) -> str:
    return _DASHES.get(method, "-")


def main(arguments: list[str]) -> None:
    """Train, store the rows, draw the figures and print the table."""
    about = "when to tune a self-tuning network on CIFAR-10"
    parser = sweep_parser(NAME, about, seeds=5, methods=METHODS)
    middle = "four convolutions, 20,000 pictures, ten epochs"
    add_training(parser, middle=middle, published="VGG16, 150 epochs, as the paper")
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
