"""Rows that are measured where they are missing, each stored as it comes."""

import argparse
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from benchmarks.harness.command_line import seeds_of
from benchmarks.harness.processes import in_processes
from benchmarks.harness.record import Row, rows_of, write_results

Task = TypeVar("Task", bound=Hashable)


def measure_missing(
    name: str,
    wanted: Sequence[Task],
    work: Callable[[Task], Row],
    task_of: Callable[[Row], Task],
    options: argparse.Namespace,
) -> None:
    """Measure what is not stored, or all again; each row takes the place of the stored one at once.

    Args:
        name: Of the stored rows.
        wanted: What is to be there.
        work: Makes the row of a task.
        task_of: Returns the task of a row.
        options: With ``results``, ``again``, ``processes`` and the seeds.
    """
    stored = {task_of(row) for row in rows_of(name, options.results)}
    missing = [task for task in wanted if options.again or task not in stored]
    seeds = list(seeds_of(options))
    for row in in_processes(work, missing, options.processes) if missing else ():
        done = task_of(row)

        def stays(other: Row, done: Task = done) -> bool:
            return task_of(other) != done

        write_results(name, [row], seeds, directory=options.results, keep=stays)
