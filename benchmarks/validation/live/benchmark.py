"""When and on how much to validate, and when to stop: ``python -m benchmarks validation-live``.

Each program is trained once for each seed, with the losses of all validation examples recorded at each
point, four in an epoch. Policies are replayed on the records, whose clock is made of the measured
seconds of training and of reading. Programs of the choosing half set the constants of ``Validation``,
those of the other half, which are of other kinds, confirm them. ``--live`` trains with ``Validation`` in
the loop, too, on the real clock, and compares weights, generators and order of the data with the record.

Programs whose data are not here are left out (``BOTORCH_COSTLY_DATA`` names the folder, as in the suite).
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness.record import Row
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.suite.data import MissingDataError
from benchmarks.validation.live.clock import trained
from benchmarks.validation.live.policies import checkpoints
from benchmarks.validation.live.programs import PROGRAMS
from benchmarks.validation.live.record import FOLDER, recorded
from benchmarks.validation.live.stops import stops

NAME, LIVE = "validation-live", "validation-live-clock"
_SMOKE = 3  # epochs of a run


class Task(NamedTuple):
    """A run of a program."""

    program: str
    seed: int


def replay(task: Task, folder: Path, epochs: int | None = None) -> Row:
    """Return what all policies and stopping rules make of a run."""
    program = PROGRAMS[task.program]
    record = recorded(task.program, task.seed, folder, epochs)
    return {
        **task._asdict(),
        "half": program.half,
        "train_s": round(record.seconds * len(record.losses), 3),
        "points": len(record.losses),
        "policies": checkpoints(record, task.seed),
        "stops": stops(record, task.seed, program.min_delta),
    }


def live(task: Task, folder: Path, epochs: int | None = None) -> Row:
    """Return what ``Validation`` takes of the real clock, and whether it changes the run."""
    record = recorded(task.program, task.seed, folder, epochs)
    result: dict[str, Any] = trained(task.program, task.seed, epochs)
    is_identical = result.pop("digest") == record.digest
    half = PROGRAMS[task.program].half
    return {**task._asdict(), "half": half, **result, "identical": is_identical}


def main(arguments: Sequence[str]) -> None:
    """Record, replay, store the rows and print them."""
    from benchmarks.validation.live.report import clock_text, text

    about = "when to validate, on how much, and when to stop, on recorded trainings"
    parser = sweep_parser(NAME, about, seeds=10, programs=PROGRAMS)
    parser.add_argument("--live", action="store_true", help="train on the real clock instead")
    parser.add_argument("--smoke", action="store_true", help=f"runs of {_SMOKE} epochs")
    options = parser.parse_args(arguments)
    name, work = (LIVE, live) if options.live else (NAME, replay)
    folder, epochs = options.results / FOLDER, None
    if options.smoke:
        name, epochs = f"{name}-smoke", _SMOKE
    tasks = tasks_of(Task, options, _available(options.programs))
    rows = measured(name, tasks, partial(work, folder=folder, epochs=epochs), options)
    print(clock_text(rows) if options.live else text(rows))


def _available(names: Sequence[str]) -> list[str]:
    """Return the programs whose data are here, and print the others."""
    available = []
    for name in names:
        try:
            PROGRAMS[name].parts()
            available.append(name)
        except MissingDataError as missing:
            print(f"{name} is left out. {missing}")
    return available
