"""What each constant of the twins is worth: one is halved or doubled, and a run ends as it does."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from statistics import fmean
from typing import NamedTuple

from benchmarks.harness.record import Row, part_of
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.suite.compute_bound.problems import PROBLEMS
from benchmarks.suite.compute_bound.rivals import by_session
from benchmarks.suite.compute_bound.schedules import STARTS
from benchmarks.suite.data import available
from botorch_costly.tuners.twins.constants import CONSTANTS

NAME = "short-constants"
UNCHANGED = "unchanged"
NAMES = [field.name for field in fields(CONSTANTS)]
FACTORS = (0.5, 2.0)
_WORTH = 0.005  # nats; smaller differences mean that a constant does not matter


class Task(NamedTuple):
    """A run with one constant changed."""

    problem: str
    start: str
    constant: str
    factor: float
    seed: int


@contextmanager
def changed(name: str, factor: float) -> Iterator[None]:
    """Multiply a constant within the block; whole numbers stay whole."""
    before = getattr(CONSTANTS, name)
    # The object is frozen because only this benchmark has a reason to change it.
    object.__setattr__(CONSTANTS, name, type(before)(before * factor))
    try:
        yield
    finally:
        object.__setattr__(CONSTANTS, name, before)


def play(task: Task) -> Row:
    """Return how a session ended."""
    problem = PROBLEMS[task.problem]()
    start = STARTS[task.start](problem)
    if task.constant == UNCHANGED:
        result = by_session(problem, start, task.seed)
    else:
        with changed(task.constant, task.factor):
            result = by_session(problem, start, task.seed)
    return {**task._asdict(), "loss": result.loss, "given_back": result.given_back}


def text(rows: Sequence[Row]) -> str:
    """Return by how much the logarithm of the loss changes in the mean, and rounds given back.

    ``equal`` counts the runs that end as without the change.
    """
    found = {part_of(row, Task): row for row in rows}
    head = f"{'constant':<16}{'factor':>7}{'change':>9}{'largest':>9}{'equal':>10}{'back':>7}"
    lines = [f"{head}{'matters':>9}"]
    for name in NAMES:
        for factor in FACTORS:
            pairs = [
                (row, found[base])
                for key, row in found.items()
                if (key.constant, key.factor) == (name, factor)
                and (base := key._replace(constant=UNCHANGED, factor=1.0)) in found
            ]
            if pairs:
                lines.append(f"{name:<16}{factor:>7g}" + _line(pairs))
    return "\n".join(lines)


def _line(pairs: Sequence[tuple[Row, Row]]) -> str:
    changes = [
        math.log(row["loss"] / base["loss"])
        for row, base in pairs
        if row["loss"] is not None and base["loss"] is not None
    ]
    lost = len(pairs) - len(changes)
    equal = sum(change == 0 for change in changes)
    mean, largest = fmean(changes), max(changes, key=abs)
    back = fmean(row["given_back"] - base["given_back"] for row, base in pairs)
    matters = "lost" if lost else "yes" if abs(mean) >= _WORTH else "no"
    return f"{mean:>+9.4f}{largest:>+9.4f}{equal:>4} of {len(pairs):<2}{back:>+7.1f}{matters:>9}"


def main(arguments: list[str]) -> None:
    """Measure what is missing, and print the table."""
    about = "what each constant of the twins is worth"
    parser = sweep_parser(NAME, about, seeds=1, problems=PROBLEMS, starts=STARTS, constants=NAMES)
    options = parser.parse_args(arguments)
    problems = available(PROBLEMS, options.problems)
    bases = tasks_of(Task, options, problems, options.starts, [UNCHANGED], [1.0])
    tasks = tasks_of(Task, options, problems, options.starts, options.constants, FACTORS)
    print(text(measured(NAME, [*bases, *tasks], play, options)), flush=True)
