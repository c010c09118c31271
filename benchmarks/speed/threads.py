"""Asks with one thread and with two, by turns in one process, from the same state.

Each optimizer is told observations of random configurations, and is asked and told once, which fits its
model; then copies of it are asked. Medians of the clock are reported, and processor time of all threads.
"""

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import torch

import botorch_costly as bc
from benchmarks.harness.record import Row
from benchmarks.priced.continuous import cube
from benchmarks.speed.waits import reward

DIM, SIZES, THREADS = 4, (50, 1000), (1, 2)
_LONGEST = 50  # iterations of a training
_MEMBERS = 4  # of a population
_STUDIES, _OF_STUDY = 4, 50  # earlier studies, and observations of each


def _random(space: bc.SearchSpace, count: int, seed: int) -> list[Mapping[str, Any]]:
    points = space.sample(count, torch.Generator().manual_seed(seed))
    return [space.decode(point) for point in points]


def _tell(optimizer: Any, asked: Any) -> None:
    """Tell the outcome of what was asked."""
    match optimizer.tells:
        case "curve":
            at = range(asked.since + 1, asked.until + 1)
            optimizer.tell(asked, [reward(asked.config) - 2 / (3 + k) for k in at])
        case "metric":
            optimizer.tell(asked, [2 - reward(config) for config in asked.configs])
        case _:
            optimizer.tell(asked, reward(asked.config))


def _curves(count: int, seed: int) -> bc.CurveOptimizer:
    """Return an optimizer that was told so many values, of trainings of all lengths."""
    optimizer, left = bc.CurveOptimizer(cube(DIM), _LONGEST, seed=seed), count
    for number, config in enumerate(_random(cube(DIM), count, seed)):
        until = min((4, 7, 13, 25, 50)[number % 5], left)
        if until:
            _tell(optimizer, optimizer.enqueue(config, until))
            left -= until
    return optimizer


def _subsets(count: int, seed: int) -> bc.SubsetOptimizer:
    fidelities = bc.SearchSpace({"fraction": bc.Real(1 / 64, 1.0, log=True)})
    optimizer = bc.SubsetOptimizer(cube(DIM), fidelities, seed=seed)
    for number, config in enumerate(_random(cube(DIM), count, seed)):
        _tell(optimizer, optimizer.enqueue(config, {"fraction": 2.0 ** -(number % 7)}))
    return optimizer


def _transfer(count: int, seed: int) -> bc.TransferOptimizer:
    studies = []
    for number in range(_STUDIES):
        configs = _random(cube(DIM), _OF_STUDY, 1000 + number)
        studies.append(bc.Task(configs, [reward(config) for config in configs]))
    optimizer = bc.TransferOptimizer(cube(DIM), studies, seed=seed)
    for config in _random(cube(DIM), count, seed):
        _tell(optimizer, optimizer.enqueue(config))
    return optimizer


def _online(count: int, seed: int) -> bc.OnlineTuner:
    optimizer = bc.OnlineTuner(cube(DIM), query=bc.AlwaysQuery(), seed=seed)
    for config in _random(cube(DIM), count, seed):
        _tell(optimizer, optimizer.enqueue(config))
    return optimizer


def _population(count: int, seed: int) -> bc.PopulationTuner:
    optimizer = bc.PopulationTuner(cube(DIM), members=_MEMBERS, seed=seed)
    for _ in range(count // _MEMBERS):
        _tell(optimizer, optimizer.ask())
    return optimizer


OPTIMIZERS: Mapping[str, Callable[[int, int], Any]] = {
    "CurveOptimizer": _curves,
    "SubsetOptimizer": _subsets,
    "TransferOptimizer": _transfer,
    "OnlineTuner": _online,
    "PopulationTuner": _population,
}


def threads(sizes: Sequence[int], names: Sequence[str], repeats: int, seed: int) -> Iterator[Row]:
    """Yield the time of an ask of each optimizer after some observations, by the number of threads."""
    before = torch.get_num_threads()
    try:
        for name in names:
            for size in sizes:
                yield _row(name, size, OPTIMIZERS[name](size, seed), repeats)
    finally:
        torch.set_num_threads(before)


def _row(name: str, size: int, optimizer: Any, repeats: int) -> Row:
    _tell(optimizer, optimizer.ask())
    clock: dict[int, list[float]] = {count: [] for count in THREADS}
    processor: dict[int, list[float]] = {count: [] for count in THREADS}
    for turn in range(repeats):
        for count in THREADS if turn % 2 == 0 else reversed(THREADS):
            again = copy.deepcopy(optimizer)
            torch.set_num_threads(count)
            began, worked = time.perf_counter(), time.process_time()
            again.ask()
            clock[count].append(1e3 * (time.perf_counter() - began))
            processor[count].append(1e3 * (time.process_time() - worked))
    row = {"part": "threads", "device": "cpu", "of": name, "observations": size, "repeats": repeats}
    milliseconds = {f"ms_{count}": median(clock[count]) for count in THREADS}
    return {**row, **milliseconds, **{f"processor_{n}": median(processor[n]) for n in THREADS}}


def describe(row: Row) -> str:
    """Return a row in words."""
    asked = f"an ask of {row['of']} after {row['observations']:4d} observations"
    clock = f"{row['ms_1']:8.1f} ms with one thread, {row['ms_2']:8.1f} with two"
    processor = f"{row['processor_1']:.1f} and {row['processor_2']:.1f} ms of processors"
    return f"{asked}: {clock}, {row['ms_2'] / row['ms_1']:.2f} times; {processor}"
