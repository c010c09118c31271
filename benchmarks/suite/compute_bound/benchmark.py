"""How methods end on runs that have no compute to waste, from a sensible start and from bad ones.

Every method trains with the same seeds: the same parts of the data, the same first weights, the same
batches. Each row is stored as it comes, and what is stored is not measured again unless ``--again`` says
so: a long measurement goes on where it was interrupted. ``--proof`` shows that compute binds.
"""

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.util import find_spec
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.harness.command_line import seeds_of
from benchmarks.harness.record import Row, part_of
from benchmarks.harness.statistics import Estimate, paired
from benchmarks.harness.sweep import measured, sweep_parser
from benchmarks.suite.compute_bound.problems import PROBLEMS
from benchmarks.suite.compute_bound.rivals import METHODS, NEEDS, methods_of
from benchmarks.suite.compute_bound.schedules import SENSIBLE, STARTS
from benchmarks.suite.compute_bound.training import LongProblem
from benchmarks.suite.data import available

NAME = "short"
SCALES = (1, 3, 10)


class Task(NamedTuple):
    """A run of a method, and the key of its row."""

    problem: str
    scale: int  # what the horizon is multiplied by
    start: str
    method: str
    seed: int


def problem_of(name: str, scale: int) -> LongProblem:
    """Return a problem with so many times its rounds."""
    problem = PROBLEMS[name]()
    return replace(problem, horizon=scale * problem.horizon)


def play(task: Task) -> Row:
    """Return how a run of a method ended."""
    problem = problem_of(task.problem, task.scale)
    start = STARTS[task.start](problem)
    result = METHODS[task.method](problem, start, task.seed)
    return {**task._asdict(), "horizon": problem.horizon, **asdict(result)}


def prove(task: Task) -> Row:
    """Return the test losses after four fifths of a run at the start's settings, and after all of it."""
    problem = problem_of(task.problem, task.scale)
    start, run = STARTS[task.start](problem), problem.setup(task.seed)
    losses = {}
    for share in (0.8, 1.0):
        while run.round < round(share * problem.horizon):
            run.train_round(start)
        losses[f"loss at {share:.0%}"] = run.test().loss
    return {**task._asdict(), **losses}


def key_of(row: Row) -> Task:
    """Return which run a row is of."""
    return part_of(row, Task)


def tasks(options: argparse.Namespace) -> list[Task]:
    """Return all runs asked for, start by start, of the methods that make sense and can be run."""
    found = []
    for problem in available(PROBLEMS, options.problems):
        sensible = methods_of(PROBLEMS[problem]())
        methods = [m for m in options.methods if m in sensible]
        found += [
            Task(problem, options.rounds_scale, start, method, seed)
            for start in options.starts
            for method in methods
            for seed in seeds_of(options)
        ]
    return found


def installed(methods: Sequence[str]) -> list[str]:
    """Return the methods whose packages are installed, and name the others."""
    found = []
    for method in methods:
        package = NEEDS.get(method)
        if package is None or find_spec(package) is not None:
            found.append(method)
        else:
            print(f"{method} is left out: pip install 'botorch_costly[benchmarks]' for {package}.")
    return found


def measure(options: argparse.Namespace, wanted: Sequence[Task]) -> list[dict[str, Any]]:
    """Measure what is not stored, or all again, and return what is stored."""
    work, store = (prove, f"{options.store}-proof") if options.proof else (play, options.store)
    return measured(store, wanted, work, options)


def printed(rows: Sequence[Row], wanted: Sequence[Task], *, proof: bool = False) -> str:
    """Return the tables of the wanted runs; the sensible start's are there to compare with."""
    mine = set(wanted)
    compared = {key._replace(start=SENSIBLE, method=m) for key in mine for m in ("constant", "wsd")}
    compared |= {key._replace(method="wsd") for key in mine}
    known = {key: row for row in rows if (key := key_of(row)) in mine | compared}
    found: list[str] = []
    for problem, scale in dict.fromkeys((key.problem, key.scale) for key in wanted):
        group = {k: row for k, row in known.items() if (k.problem, k.scale) == (problem, scale)}
        title = problem if scale == 1 else f"{problem}, {scale} times the rounds"
        in_nats = PROBLEMS[problem]().work.in_nats
        if proof:
            found.append(proof_table(title, list(group.values()), in_nats=in_nats))
            continue
        here = [key for key in wanted if (key.problem, key.scale) == (problem, scale)]
        for start in dict.fromkeys(key.start for key in here):
            shown = [key.method for key in here if key.start == start]
            by_method: dict[str, Mapping[int, Row]] = {
                method: _of(group, start, method) for method in dict.fromkeys(shown)
            }
            ends = {m: _of(group, SENSIBLE, m) for m in ("constant", "wsd")}
            bad = _of(group, start, "wsd") if start != SENSIBLE else {}
            found.append(table(f"{title}, {start}", by_method, ends, bad, in_nats=in_nats))
    return "\n\n".join(found)


def text(rows: Sequence[Row]) -> str:
    """Return the tables of all that is stored, methods and starts in the order of the code."""
    return printed(rows, _in_order(rows))


def proof_text(rows: Sequence[Row]) -> str:
    """Return by how much the stored test losses still fall in the last fifth of a run."""
    return printed(rows, _in_order(rows), proof=True)


def _in_order(rows: Sequence[Row]) -> list[Task]:
    orders = [list(names) for names in (PROBLEMS, STARTS, METHODS)]

    def place(key: Task) -> tuple[int, ...]:
        named = (key.problem, key.start, key.method)
        places = [order.index(name) for order, name in zip(orders, named, strict=True)]
        return places[0], key.scale, places[1], places[2], key.seed

    return sorted((key_of(row) for row in rows), key=place)


def _of(group: Mapping[Task, Row], start: str, method: str) -> dict[int, Row]:
    """Return the rows of a method by seed."""
    return {
        key.seed: row for key, row in group.items() if (key.start, key.method) == (start, method)
    }


Ends = Mapping[int, Row]  # by seed
_WIDTH = 32


def table(
    title: str,
    methods: Mapping[str, Ends],
    sensible: Mapping[str, Ends],
    bad: Ends,
    *,
    in_nats: bool,
) -> str:
    """Return a line a method: loss, what it differs by, and what it paid.

    Differences are in nats, those of squares differences of the logarithm; below zero is better. They are
    means over the seeds that both have and neither diverged on, as is the way back. The interval and the
    mean of the loss are of runs that have not diverged; how many others there are is ``lost``.

    ``sensible`` are the rows of ``constant`` and ``wsd`` from the sensible start, ``bad`` those of
    ``wsd`` from this one, none if it is the sensible one: the way back leads from there to ``wsd`` of the
    sensible start, and is given as its mean and its least.
    """
    against = [f"to {name}, sensible" for name in sensible]
    way = f"{'way':>6}{'least':>7}" if bad else ""
    head = f"{'seeds':>5}{'lost':>5}{'loss':>9}{'95 % interval':>18}{'worst':>9}{'right':>7}"
    head += "".join(f"{words:>30}" for words in against) + way
    head += f"{'compute':>8}{'back':>6}{'queries':>8}{'s':>7}{'training':>9}"
    lines = [f"{title + ' ':<{_WIDTH}}{head}"]
    for name, rows in methods.items():
        if rows:
            lines.append(f"  {name:<{_WIDTH - 2}}" + _line(rows, sensible, bad, in_nats))
    return "\n".join(lines)


def _line(rows: Ends, sensible: Mapping[str, Ends], bad: Ends, in_nats: bool) -> str:
    losses = [row["loss"] for row in rows.values() if row["loss"] is not None]
    lost = len(rows) - len(losses)
    line = f"{len(rows):>5}{lost:>5}"
    if losses:
        estimate = paired(losses, [0.0] * len(losses))
        span = f"{estimate.low:.4f} to {estimate.high:.4f}" if estimate else ""
        worst = "lost" if lost else f"{max(losses):.4f}"
        line += f"{fmean(losses):>9.4f}{span:>18}{worst:>9}"
    else:
        line += f"{'lost':>9}{'':>18}{'lost':>9}"
    line += f"{fmean(row['accuracy'] for row in rows.values()):>7.1%}"
    for theirs in sensible.values():
        line += f"{_said(difference(rows, theirs, in_nats=in_nats)):>30}"
    if bad:
        line += _way(way_back(rows, bad, sensible["wsd"], in_nats=in_nats))
    return line + _paid(list(rows.values()))


def _paid(rows: Sequence[Row]) -> str:
    """Return rounds as runs of full length, rounds given back, share of queries and seconds."""
    compute = fmean(row["rounds"] / row["horizon"] for row in rows)
    back = fmean(row["given_back"] for row in rows)
    queries = fmean(row["queries"] / row["rounds"] for row in rows)
    parts = [[row[n] for n in ("training", "querying", "copying", "deciding")] for row in rows]
    seconds, training = fmean(map(sum, parts)), fmean(part[0] for part in parts)
    return f"{compute:>8.2f}{back:>6.0f}{queries:>8.1%}{seconds:>7.1f}{training:>9.1f}"


def difference(ours: Ends, theirs: Ends, *, in_nats: bool) -> Estimate | None:
    """Return by how many nats one method ends above another on average, paired over seeds.

    Seeds on which either diverged are left out; None of fewer than two seeds.
    """
    levels = [_levels(rows, in_nats) for rows in (ours, theirs)]
    seeds = sorted(set(levels[0]) & set(levels[1]))
    return paired(*([level[seed] for seed in seeds] for level in levels))


def way_back(ours: Ends, bad: Ends, good: Ends, *, in_nats: bool) -> list[float]:
    """Return by seed which share of the way from bad to good a method went, in nats.

    A run that has diverged went none of it. Seeds are left out where bad has diverged or is not worse
    than good.
    """
    own, low, high = (_levels(rows, in_nats) for rows in (ours, bad, good))
    seeds = [seed for seed in sorted(set(ours) & set(low) & set(high)) if low[seed] > high[seed]]
    return [(low[s] - own[s]) / (low[s] - high[s]) if s in own else 0.0 for s in seeds]


def _levels(rows: Ends, in_nats: bool) -> dict[int, float]:
    """Return losses in nats by seed, of runs that have not diverged."""
    level: Callable[[float], float] = float if in_nats else math.log
    return {s: level(row["loss"]) for s, row in rows.items() if row["loss"] is not None}


def _said(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    return f"{estimate.value:+.4f} ({estimate.low:+.4f} to {estimate.high:+.4f})"


def _way(shares: Sequence[float]) -> str:
    return f"{fmean(shares):>6.0%}{min(shares):>7.0%}" if shares else f"{'':>13}"


def proof_table(title: str, rows: Sequence[Row], *, in_nats: bool) -> str:
    """Return by how much the test loss still falls in the last fifth of a run."""
    both = [[row[f"loss at {share}"] for row in rows] for share in ("80%", "100%")]
    early, late = (
        {row["seed"]: {"loss": loss} for row, loss in zip(rows, losses, strict=True)}
        for losses in both
    )
    fall = _said(difference(late, early, in_nats=in_nats))
    means = "  ".join(
        f"{share} {fmean(losses):.4f}"
        for share, losses in zip(("80 %", "100 %"), both, strict=True)
    )
    return f"{title:<{_WIDTH}}test loss after {means} of the rounds, in nats {fall}"


def main(arguments: list[str]) -> None:
    """Measure what is missing, and print the table of what was asked for."""
    about = "how methods end on runs that have no compute to waste"
    parser = sweep_parser(NAME, about, seeds=10, problems=PROBLEMS, starts=STARTS, methods=METHODS)
    add = parser.add_argument
    add("--rounds-scale", type=int, choices=SCALES, default=1, help="how many times the rounds")
    add("--store", default=NAME, help="name of the stored rows")
    add("--proof", action="store_true", help="test loss after 80 %% of the rounds and after all")
    options = parser.parse_args(arguments)
    if options.proof:
        options.starts, options.methods = [SENSIBLE], ["constant"]
    options.methods = installed(options.methods)
    wanted = tasks(options)
    print(printed(measure(options, wanted), wanted, proof=options.proof), flush=True)
