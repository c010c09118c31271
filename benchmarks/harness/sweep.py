"""Benchmarks of many tasks: the command line, and rows measured where they are missing, one by one."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from multiprocessing import get_context
from typing import Any, TypeVar

import torch

from benchmarks.harness.command_line import add_seeds, parser_for, seeds_of
from benchmarks.harness.record import Named, Row, part_of, rows_of, write_results

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_processes(
    work: Callable[[Item], Result], items: Iterable[Item], processes: int
) -> Iterator[Result]:
    """Return what work makes of the items, in their order, with one thread of torch in each process."""
    torch.set_num_threads(1)  # now, not with the first item: what is recorded of a run comes before
    return _results(work, items, processes)


def _results(
    work: Callable[[Item], Result], items: Iterable[Item], processes: int
) -> Iterator[Result]:
    if processes == 1:
        yield from map(work, items)
        return
    with get_context("spawn").Pool(processes, torch.set_num_threads, (1,)) as pool:
        yield from pool.imap(work, items)


def sweep_parser(
    name: str, about: str, seeds: int, **choices: Iterable[Any]
) -> argparse.ArgumentParser:
    """Return a parser with the options of a sweep.

    ``choices`` are names of options and their possible values, all of which are the default.
    """
    parser = parser_for(name, about)
    for option, values in choices.items():
        known = list(values)
        parser.add_argument(f"--{option}", nargs="+", choices=known, default=known)
    parser.add_argument("--again", action="store_true", help="measure what is stored, too")
    add_seeds(parser, seeds)
    return parser


def tasks_of(
    kind: Callable[..., Named], options: argparse.Namespace, *axes: Iterable[Any]
) -> list[Named]:
    """Return a task for each combination of the axes, the seed last; seed by seed."""
    cells = list(product(*axes))
    return [kind(*cell, seed) for seed in seeds_of(options) for cell in cells]


def measured(
    name: str, tasks: Sequence[Named], work: Callable[[Named], Row], options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Measure the tasks that are not stored, or all again, and return all stored rows.

    Each row has the fields of its task, and takes the place of the stored one as soon as it is measured.
    The options are those of ``sweep_parser``.
    """
    missing = missing_of(name, tasks, options)
    seeds = list(seeds_of(options))
    for row in in_processes(work, missing, options.processes) if missing else ():
        task = part_of(row, type(missing[0]))

        def stays(other: Row, task: Named = task) -> bool:
            return part_of(other, type(task)) != task

        write_results(name, [row], seeds, directory=options.results, keep=stays)
    return rows_of(name, options.results)


def missing_of(name: str, tasks: Sequence[Named], options: argparse.Namespace) -> list[Named]:
    """Return the tasks that ``measured`` would measure."""
    stored = (
        {part_of(row, type(tasks[0])) for row in rows_of(name, options.results)} if tasks else ()
    )
    return [task for task in tasks if options.again or task not in stored]
