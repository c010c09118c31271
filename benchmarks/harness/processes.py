"""Work that is done side by side."""

from collections.abc import Callable, Iterable, Iterator
from multiprocessing import get_context
from typing import TypeVar

import torch

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
