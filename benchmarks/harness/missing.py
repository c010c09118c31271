"""Rows that are measured where they are missing, each stored as it comes."""

import argparse
from collections.abc import Callable, Sequence

from benchmarks.harness.command_line import seeds_of
from benchmarks.harness.processes import in_processes
from benchmarks.harness.record import Named, Row, part_of, rows_of, write_results


def measure_missing(
    name: str,
    wanted: Sequence[Named],
    work: Callable[[Named], Row],
    kind: type[Named],
    options: argparse.Namespace,
) -> None:
    """Measure what is not stored, or all again; each row takes the place of the stored one at once.

    Args:
        name: Of the stored rows.
        wanted: The tasks whose rows are to be there.
        work: Makes the row of a task.
        kind: Of the tasks; each row has their fields.
        options: With ``results``, ``again``, ``processes`` and the seeds.
    """
    missing = missing_of(name, wanted, kind, options)
    seeds = list(seeds_of(options))
    for row in in_processes(work, missing, options.processes) if missing else ():
        done = part_of(row, kind)

        def stays(other: Row, done: Named = done) -> bool:
            return part_of(other, kind) != done

        write_results(name, [row], seeds, directory=options.results, keep=stays)


def missing_of(
    name: str, wanted: Sequence[Named], kind: type[Named], options: argparse.Namespace
) -> list[Named]:
    """Return the tasks that ``measure_missing`` would measure."""
    stored = {part_of(row, kind) for row in rows_of(name, options.results)}
    return [task for task in wanted if options.again or task not in stored]
