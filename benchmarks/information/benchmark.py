"""How soon the optimum is known, by acquisition functions: ``python -m benchmarks entropy-search``.

All methods of a seed meet the same function, first points and noise. Regrets are in standard deviations
of the function; seconds are those of the processor.
"""

from typing import NamedTuple

from benchmarks.harness.command_line import add_seeds, parser_for, seeds_of
from benchmarks.harness.missing import measure_missing
from benchmarks.harness.record import Row, rows_of
from benchmarks.information.methods import METHODS, WAYS
from benchmarks.information.play import play
from benchmarks.information.problems import PROBLEMS
from benchmarks.information.told import text

NAME = "entropy-search"
EVALUATIONS = {"GP sample": 30, "branin": 20, "hartmann3": 30}
_DIGITS = 4


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
    rounded = {name: [_rounded(x) for x in values] for name, values in run._asdict().items()}
    return {**task._asdict(), **rounded}


def _rounded(x: float) -> float:
    return float(f"{x:.{_DIGITS}g}")


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the tables."""
    every = [*METHODS, *WAYS]
    parser = parser_for(NAME, "how soon the optimum is known, by acquisition functions")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--methods", nargs="+", choices=every, default=list(METHODS))
    parser.add_argument("--again", action="store_true", help="measure what is stored, too")
    add_seeds(parser, seeds=20)
    options = parser.parse_args(arguments)
    wanted = [
        Task(p, m, s) for s in seeds_of(options) for p in options.problems for m in options.methods
    ]
    measure_missing(NAME, wanted, measure, Task, options)
    print(text(rows_of(NAME, options.results)))
