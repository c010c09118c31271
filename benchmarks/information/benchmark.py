"""How soon the optimum is known, by acquisition functions: ``python -m benchmarks entropy-search``.

All methods of a seed meet the same function, first points and noise. Regrets are in standard deviations
of the function; seconds are those of the processor.

``entropy-search-time`` times an iteration on the same random evaluations of Branin's function. Walkers
start from where they were an evaluation before, as in a run.
"""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

import torch

from benchmarks.harness.record import Row, grouped
from benchmarks.harness.statistics import Estimate, paired
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.information.beliefs import PROBLEMS
from benchmarks.information.methods import (
    BY_DRAWS,
    EXACT,
    INITIAL,
    METHODS,
    OURS,
    TIMED,
    WAYS,
    Player,
    play,
    seconds_of,
)

NAME = "entropy-search"
EVALUATIONS = {"GP sample": 30, "branin": 20, "hartmann3": 30}
_DIGITS = 4
COUNTS = (5, 10, 15, 20, 25, 30)  # evaluations
THRESHOLDS = {"branin": 0.01, "hartmann3": 0.01}  # in standard deviations of the function
_THRESHOLD = 0.05
_HELD = (OURS, BY_DRAWS, EXACT)  # against all others
_NOTES = (
    "Regrets in standard deviations of the function: where the posterior mean is largest, mean and",
    "median after so many evaluations; of the best point evaluated, at the end. Needed: evaluations",
    "until the first of these is below the threshold for good, median, and seeds where it never is.",
    "Milliseconds of an iteration: belief + choice. Won and lost: seeds that needed fewer evaluations,",
    "and more; then how many more evaluations, and by how much the logarithm of the regret at the end",
    "is larger: mean, 95 % interval over paired seeds.",
)
_LEAST = 1e-6  # a regret beneath it is rounding


class Task(NamedTuple):
    """A run of a method, and the key of its row."""

    problem: str
    method: str
    seed: int


def measure(task: Task) -> Row:
    """Return the regrets and the seconds of a run."""
    method = {**METHODS, **WAYS}[task.method]
    problem = PROBLEMS[task.problem](task.seed)
    run = play(problem, method, task.seed, EVALUATIONS[task.problem])
    rounded = {
        name: [float(f"{x:.{_DIGITS}g}") for x in values] for name, values in run._asdict().items()
    }
    return {**task._asdict(), **rounded}


def text(rows: Sequence[Row]) -> str:
    """Return the tables, problem by problem."""
    parts = []
    for problem, mine in grouped(rows, "problem").items():
        parts.append("\n".join([problem, *_regrets(mine)]))
        parts += ["\n".join(_verdicts(mine, name)) for name in _methods(mine) if name in _HELD]
    return "\n\n".join([*parts, "\n".join(_NOTES)])


def _methods(rows: Sequence[Row]) -> list[str]:
    played = {row["method"] for row in rows}
    return [name for name in (*METHODS, *WAYS) if name in played]


def needed(inference: Sequence[float], threshold: float) -> int:
    """Return after how many evaluations a regret is below a threshold for good.

    One more than there were, if it is not at the end.
    """
    below = len(inference)
    while below and inference[below - 1] < threshold:
        below -= 1
    return below + INITIAL


def _threshold(row: Row) -> float:
    return THRESHOLDS.get(row["problem"], _THRESHOLD)


def _needed(row: Row) -> int:
    return needed(row["inference"], _threshold(row))


def _regrets(rows: Sequence[Row]) -> list[str]:
    counts = [c for c in COUNTS if c - INITIAL < len(rows[0]["inference"])]
    head = "".join(f"{f'after {c}':>14}" for c in counts)
    below = f"needed, < {_threshold(rows[0]):g}"
    lines = [f"  {'':<20}{'seeds':>6}{head}{'evaluated':>14}{below:>17}{'ms':>12}"]
    for method in _methods(rows):
        mine = [row for row in rows if row["method"] == method]
        cells = [_pair([row["inference"][c - INITIAL] for row in mine]) for c in counts]
        cells.append(_pair([row["simple"][-1] for row in mine]))
        needs = list(map(_needed, mine))
        last = len(rows[0]["inference"]) + INITIAL - 1
        never = sum(n > last for n in needs)
        need = f"{statistics.median(needs):g} ({never} never)"
        parts = ([x for row in mine for x in row[part]] for part in ("fit", "acquisition"))
        ms = " + ".join(f"{1e3 * statistics.fmean(times):.0f}" for times in parts)
        told = "".join(f"{cell:>14}" for cell in cells)
        lines.append(f"  {method:<20}{len(mine):>6}{told}{need:>17}{ms:>12}")
    return lines


def _pair(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.3f} {statistics.median(values):.4f}"


def _verdicts(rows: Sequence[Row], name: str) -> list[str]:
    """Return lines that hold a method against each other one, on the seeds of both."""
    lines = [
        f"  {name}",
        f"  {'against':<20}{'won':>6}{'lost':>6}{'evaluations':>34}{'log10 regret':>34}",
    ]
    ours = {row["seed"]: row for row in rows if row["method"] == name}
    for method in _methods(rows):
        theirs = {row["seed"]: row for row in rows if row["method"] == method}
        seeds = sorted(set(ours) & set(theirs))
        if not seeds or method == name:
            continue
        pairs = [(ours[seed], theirs[seed]) for seed in seeds]
        needs = [(_needed(a), _needed(b)) for a, b in pairs]
        won, lost = sum(a < b for a, b in needs), sum(a > b for a, b in needs)
        logs = [(_log(a), _log(b)) for a, b in pairs]
        cells = (_verdict(paired(*zip(*values, strict=True))) for values in (needs, logs))
        lines.append(f"  {method:<20}{won:>6}{lost:>6}" + "".join(f"{c:>34}" for c in cells))
    return lines


def _log(row: Row) -> float:
    return math.log10(max(row["inference"][-1], _LEAST))


def _verdict(found: Estimate | None) -> str:
    if found is None:
        return "one seed"
    word = "better" if found.high < 0 else "WORSE" if found.low > 0 else "even"
    return f"{found.value:+.2f} ({found.low:+.2f} to {found.high:+.2f}) {word}"


TIMING = "entropy-search-time"
TIMED_AT = (5, 10, 20, 30)


class Iteration(NamedTuple):
    """An iteration, and the key of its row."""

    evaluations: int
    method: str
    seed: int


def time_iteration(task: Iteration) -> Row:
    """Return the milliseconds of belief and choice after so many evaluations."""
    problem = PROBLEMS["branin"](task.seed)
    generator = torch.Generator().manual_seed(task.seed)
    X = torch.rand(task.evaluations, problem.dim, generator=generator, dtype=torch.float64)
    y = problem.value(X)
    player = Player({**METHODS, **TIMED}[task.method], problem, task.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(task.seed)
        player.believe(X[:-1], y[:-1])
        fit, model = seconds_of(player.believe, X, y)
        acquisition, _ = seconds_of(player.choose, model, X)
    return {**task._asdict(), "belief, ms": 1e3 * fit, "choice, ms": 1e3 * acquisition}


def timing_text(rows: Sequence[Row]) -> str:
    """Return the median milliseconds of belief, choice and both, and how many times ours they are."""
    head = "".join(f"{f'{count} evaluations':>28}" for count in TIMED_AT)
    lines = [f"{'':<28}{head}"]
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = [_cell(rows, method, count) for count in TIMED_AT]
        lines.append(f"{method:<28}" + "".join(f"{cell:>28}" for cell in cells))
    lines.append("Median milliseconds of the processor, belief + choice, and both by those of ES.")
    return "\n".join(lines)


def _cell(rows: Sequence[Row], method: str, count: int) -> str:
    theirs, ours = (_medians(rows, name, count) for name in (method, OURS))
    if theirs is None:
        return ""
    ratio = "" if ours is None else f" ({sum(theirs) / sum(ours):.1f})"
    return f"{theirs[0]:.0f} + {theirs[1]:.0f}{ratio}"


def _medians(rows: Sequence[Row], method: str, count: int) -> tuple[float, float] | None:
    mine = [row for row in rows if (row["method"], row["evaluations"]) == (method, count)]
    if not mine:
        return None
    belief, choice = (statistics.median(r[part] for r in mine) for part in _PARTS)
    return belief, choice


_PARTS = ("belief, ms", "choice, ms")


def timing(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    about = "milliseconds of an iteration on the same evaluations"
    parser = sweep_parser(TIMING, about, seeds=3, methods=[*METHODS, *TIMED])
    options = parser.parse_args(arguments)
    print(
        timing_text(
            measured(
                TIMING,
                tasks_of(Iteration, options, TIMED_AT, options.methods),
                time_iteration,
                options,
            )
        )
    )


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the tables."""
    about = "how soon the optimum is known, by acquisition functions"
    parser = sweep_parser(NAME, about, seeds=20, problems=PROBLEMS, methods=[*METHODS, *WAYS])
    parser.set_defaults(methods=list(METHODS))
    options = parser.parse_args(arguments)
    wanted = tasks_of(Task, options, options.problems, options.methods)
    print(text(measured(NAME, wanted, measure, options)))
