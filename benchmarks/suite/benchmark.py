"""Small real problems, and how far each method gets in one run's compute.

Every method trains with the same seeds: the same parts of the data and the same first weights. Results
are stored problem by problem; what is not asked for stays as it was stored before. Problems whose
data are not here are left out (``BOTORCH_COSTLY_DATA`` names a folder with ``mnist.npz``,
``cifar10_jpeg93.npz`` and ``pima-indians-diabetes.csv``).
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean, mean, median
from typing import Any, NamedTuple

from torch import Generator

from benchmarks.harness.command_line import add_seeds, parser_for, seeds_of
from benchmarks.harness.figures import panels, save
from benchmarks.harness.record import Row, grouped, rows_of, write_results
from benchmarks.harness.statistics import paired
from benchmarks.harness.sweep import in_processes
from benchmarks.suite.data import available
from benchmarks.suite.methods import METHODS, Method, methods_of, one_run
from benchmarks.suite.policies import FixedPolicy
from benchmarks.suite.problems import CONFIRMATION, PROBLEMS
from benchmarks.suite.protocol import OnlineProblem
from botorch_costly import plotting

CANDIDATES = 50
# How many go on, and on how many runs each of them has then been judged.
STAGES = ((CANDIDATES, 1), (10, 3), (3, 7))
FIRST_SEED = 10_000  # of the search: no seed that anything is reported on


Losses = Callable[[Sequence[tuple[dict[str, Any], int]]], Sequence[float]]


def best_fixed(problem: OnlineProblem, losses: Losses) -> dict[str, Any]:
    """Return the best of fifty fixed configurations, the default among them, or of all if fewer.

    Each trains once and is judged by its last validation loss; the best ten train twice more, and the
    best three of these four times more. The least loss on average is the best: one that diverges now and
    then is not. ``losses`` returns the ``last_loss`` of each pair of a configuration and a seed.
    """
    found: list[tuple[dict[str, Any], list[float]]] = [(c, []) for c in _candidates(problem)]
    for many, runs in STAGES:
        found = found[:many]
        seeds = range(FIRST_SEED + len(found[0][1]), FIRST_SEED + runs)
        ends = iter(losses([(config, seed) for config, _ in found for seed in seeds]))
        found = [(config, [*seen, *(next(ends) for _ in seeds)]) for config, seen in found]
        found.sort(key=lambda pair: fmean(pair[1]))
    return found[0][0]


def last_loss(problem: OnlineProblem, config: Mapping[str, Any], seed: int) -> float:
    """Return the validation loss after a whole run under one configuration."""
    run = problem.setup(seed)
    for _ in range(problem.horizon):
        run.train_round(config)
    return run.validate().loss


def _candidates(problem: OnlineProblem) -> list[dict[str, Any]]:
    if (problem.space.size or CANDIDATES + 1) <= CANDIDATES:
        return [dict(config) for config in problem.space.configurations()]
    others = problem.space.sample(CANDIDATES - 1, Generator().manual_seed(FIRST_SEED))
    return [dict(problem.default), *(problem.space.decode(x) for x in others)]


NAME, CEILING = "online-suite", "best fixed"
OURS = ("tuned", "tuned, priced")
EVERY_ROUND = "tuned, every round"
RIVALS = ("default", "random schedule", "full feedback", EVERY_ROUND, "population", "halving")


class Task(NamedTuple):
    """A run."""

    problem: str
    method: str
    seed: int
    fixed: Mapping[str, Any] | None  # for the ceiling


def play(task: Task) -> Row:
    """Return how a run ended."""
    problem = PROBLEMS[task.problem]()
    outcome = _method(task)(problem, task.seed)
    fixed = {} if task.fixed is None else {"config": dict(task.fixed)}
    run = {"problem": task.problem, "method": task.method, "seed": task.seed}
    return {**run, **asdict(outcome), **fixed}


def _method(task: Task) -> Method:
    if task.fixed is None:
        return METHODS[task.method]
    config = dict(task.fixed)
    return one_run(lambda problem, seed: FixedPolicy(config))


def ceiling(problem: str, processes: int) -> dict[str, Any]:
    """Return the best fixed configuration of a problem."""

    def losses(pairs: Sequence[tuple[dict[str, Any], int]]) -> list[float]:
        return list(in_processes(_last_loss, [(problem, *pair) for pair in pairs], processes))

    return best_fixed(PROBLEMS[problem](), losses)


def _last_loss(run: tuple[str, dict[str, Any], int]) -> float:
    problem, config, seed = run
    return last_loss(PROBLEMS[problem](), config, seed)


def tasks(
    problem: str, methods: Sequence[str], seeds: Sequence[int], fixed: Mapping[str, Any] | None
) -> list[Task]:
    """Return all runs of a problem by the methods that make sense for it."""
    sensible = [*methods_of(PROBLEMS[problem]()), CEILING]
    return [
        Task(problem, method, seed, fixed if method == CEILING else None)
        for method in methods
        if method in sensible
        for seed in seeds
    ]


def text(rows: Sequence[Row]) -> str:
    """Return, for each problem, the mean, worst and cost of each method, and the gap it closed."""
    lines = []
    for problem, mine in grouped(rows, "problem").items():
        ends = {m: ends_of(mine, m) for m in dict.fromkeys(row["method"] for row in mine)}
        half = "confirmation" if problem in {make.__name__ for make in CONFIRMATION} else "choice"
        title = f"{problem} ({half})"
        lines.append(f"{title:<36}seeds   mean median  worst    gap  queries      s")
        for method, end in ends.items():
            paid = [row for row in mine if row["method"] == method]
            queries, seconds = mean(r["queries"] for r in paid), mean(r["seconds"] for r in paid)
            values = list(end.values())
            lines.append(
                f"  {method:<34}{len(values):>5}{mean(values):>7.1f}{median(values):>7.1f}"
                f"{min(values):>7.1f}{closed_gap(ends, method):>7}{queries:>7.0f}{seconds:>7.1f}"
            )
        lines += [*_comparisons(ends), ""]
    return "\n".join(lines)


def closed_gap(ends: Mapping[str, Mapping[int, float]], method: str) -> str:
    """Return which share of the way from the default to the best fixed setting a method went.

    It is of the seeds that all three were run on, and ``(<2)`` where the way is less than 2 points.
    """
    if not {"default", CEILING} <= set(ends):
        return ""
    seeds = set(ends[method]) & set(ends["default"]) & set(ends[CEILING])
    if not seeds:
        return ""
    low, end, high = (mean(ends[m][s] for s in seeds) for m in ("default", method, CEILING))
    return f"{(end - low) / (high - low):.0%}" if high - low >= 2 else "(<2)"


def _comparisons(ends: Mapping[str, Mapping[int, float]]) -> Iterator[str]:
    """Compare the tuner with those that a user might have instead, paired over seeds."""
    for ours in (m for m in OURS if m in ends):
        for rival in (m for m in RIVALS if m in ends):
            seeds = sorted(set(ends[ours]) & set(ends[rival]))
            test = paired([ends[ours][s] for s in seeds], [ends[rival][s] for s in seeds])
            if test:
                said = "better" if test.low > 0 else "WORSE" if test.high < 0 else "even"
                found = f"{test.value:+.1f} (95 % {test.low:+.1f} to {test.high:+.1f}, {said})"
                yield f"  {ours} less {rival}: {found}"


def ends_of(rows: Sequence[Row], method: str) -> dict[int, float]:
    """Return the test accuracies of a method in per cent, by seed."""
    return {r["seed"]: 100 * r["test_accuracy"] for r in rows if r["method"] == method}


def suite_parser(name: str, description: str) -> argparse.ArgumentParser:
    """Return a parser of problems, seeds, processes and the folder of results."""
    parser = parser_for(name, description)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    add_seeds(parser, seeds=10)
    return parser


# What is drawn, from below, and in which colour.
DRAWN = {
    CEILING: plotting.GREEN,
    "halving": plotting.SKY,
    "population": plotting.SKY,
    "full feedback": plotting.ORANGE,
    "tuned": plotting.VERMILION,
    "random schedule": plotting.PURPLE,
    "default": plotting.BLUE,
}
_NAMES = {"full feedback": "as published, full feedback", CEILING: "best fixed, offline"}
_COLUMNS = 3
_MARGIN = 6.0  # points below the default


def draw(rows: Sequence[Row]) -> Any:
    """Return a figure with a panel for each problem and a line of dots for each method."""
    problems = grouped(rows, "problem")
    figure, axes = panels(len(problems), _COLUMNS, 11, 2.6, sharey=True)
    for ax, (problem, mine) in zip(axes.flat, problems.items(), strict=False):
        _panel(ax, {method: ends_of(mine, method) for method in DRAWN})
        ax.set_title(problem.replace("_", " "), fontsize="medium")
    axes[0, 0].set_yticks(range(len(DRAWN)), [_NAMES.get(name, name) for name in DRAWN])
    figure.supxlabel(
        "test accuracy at the end of a run, in % (a dot a seed, a bar their mean, "
        "an arrow as many runs farther left)"
    )
    return figure


def _panel(ax: Any, ends: Mapping[str, Mapping[int, float]]) -> None:
    means = {method: mean(found.values()) for method, found in ends.items() if found}
    # Diverged runs would leave no room for the others: they are arrows at the edge.
    edge = min(means.get("default", 100.0), *sorted(means.values())[-2:]) - _MARGIN
    for height, (method, found) in enumerate(ends.items()):
        shown = [end for end in found.values() if end >= edge]
        ax.plot(shown, [height] * len(shown), "o", color=DRAWN[method], alpha=0.5, markersize=4)
        if len(shown) < len(found):
            ax.plot(edge, height, "<", color=DRAWN[method], markersize=6)
            text = f"{len(found) - len(shown)}"
            ax.annotate(
                text, (edge, height), (6, 5), textcoords="offset points", fontsize="x-small"
            )
        if means.get(method, edge) > edge:
            line = [means[method]] * 2
            ax.plot(line, [height - 0.35, height + 0.35], color=DRAWN[method], linewidth=2)
    if "default" in means:
        ax.axvline(means["default"], color="0.7", linewidth=1, zorder=0)
    ax.set_xlim(left=edge - 0.3)
    ax.grid(axis="x", alpha=0.3)


def picture(arguments: list[str]) -> None:
    """Draw what is stored."""
    parser = parser_for("online-suite-picture", "where each run of each method ended")
    options = parser.parse_args(arguments)
    save(draw(rows_of(NAME, options.results)), options.results / f"{NAME}.png", dpi=110)


def main(arguments: list[str]) -> None:
    """Measure the methods on the problems, store the rows and print the table."""
    everything = [*METHODS, CEILING]
    parser = suite_parser(NAME, "how far each method gets on small real problems")
    parser.add_argument("--methods", nargs="+", choices=everything, default=everything)
    parser.add_argument("--store", default=NAME, help="name of the stored rows")
    options = parser.parse_args(arguments)
    for problem in available(PROBLEMS, options.problems):
        print(text(measured(problem, options)), flush=True)


def measured(problem: str, options: argparse.Namespace) -> list[Row]:
    """Measure and store what is asked for of a problem; return all that is stored of it."""
    seeds = seeds_of(options)
    searched = CEILING in options.methods
    fixed = ceiling(problem, options.processes) if searched else None
    work = tasks(problem, options.methods, seeds, fixed)
    again = {task.method for task in work}

    def stays(row: Row) -> bool:
        return row["problem"] != problem or row["method"] not in again

    rows = in_processes(play, work, options.processes)
    write_results(options.store, rows, list(seeds), directory=options.results, keep=stays)
    return [row for row in rows_of(options.store, options.results) if row["problem"] == problem]
