"""Runs that are trained once: validation losses of each example, and what steps and readings take."""

import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.validation.live.programs import PROGRAMS
from benchmarks.validation.live.run import Run

FOLDER = ".validation-live"  # beside the results, and not in the repository
_SHARD = 64
_REPEATS = 9


class Record(NamedTuple):
    """What a run showed, at each of its recorded points."""

    losses: Tensor  # of the validation examples, shape: (points, examples)
    training: list[float]  # mean loss of the training steps since the point before
    seconds: float  # of training between two points
    fixed: float  # seconds of a reading of no example,
    unit: float  # and of each further example
    points: int  # of an epoch
    digest: str  # of the end of the run

    @property
    def means(self) -> Tensor:
        """Mean losses of the whole set, shape: (points,)."""
        return self.losses.double().mean(-1)

    @property
    def epochs(self) -> range:
        """The points at which epochs end."""
        return range(self.points - 1, len(self.losses), self.points)

    def price(self, examples: int) -> float:
        """Return the seconds of a reading of so many examples."""
        return self.fixed + examples * self.unit


def recorded(name: str, seed: int, folder: Path, epochs: int | None = None) -> Record:
    """Return the record of a run; it is trained unless a file holds it.

    Args:
        name: Name of the program.
        seed: Seed of data, weights and order.
        folder: Where records are kept.
        epochs: Length of the run, if it is to be shorter; such a record is not kept.
    """
    if epochs is not None:
        return record(Run(PROGRAMS[name], seed), epochs)
    path = folder / f"{name.replace(' ', '-')}-{seed}.npz"
    if not path.exists():
        fresh = record(Run(PROGRAMS[name], seed), PROGRAMS[name].epochs)
        folder.mkdir(parents=True, exist_ok=True)
        fields = fresh._asdict() | {"losses": fresh.losses.numpy()}
        temporary = path.with_suffix(".tmp.npz")
        np.savez(temporary, **fields)
        temporary.replace(path)
    with np.load(path) as file:
        values = {field: file[field].tolist() for field in Record._fields if field != "losses"}
        return Record(losses=torch.from_numpy(file["losses"]), **values)


def record(run: Run, epochs: int) -> Record:
    """Train a run to its end and read everything at each point.

    Seconds are those of the processor, which a busy machine does not change much.
    """
    points = run.program.points
    stride = run.epoch // points
    losses, training, seconds = [], [], []
    for _ in range(epochs * points):
        began = time.process_time()
        steps = [run.step() for _ in range(stride)]
        seconds.append(time.process_time() - began)
        training.append(float(torch.stack(steps).mean()))
        losses.append(run.losses())
    digest = run.digest()
    whole, shard = _seconds(run, run.examples), _seconds(run, _SHARD)
    unit = max((whole - shard) / (run.examples - _SHARD), 0.0)
    fixed = max(shard - _SHARD * unit, 0.0)
    table = torch.stack(losses).float()
    return Record(table, training, median(seconds), fixed, unit, points, digest)


def _seconds(run: Run, examples: int) -> float:
    rows = list(range(examples))
    spent = []
    for _ in range(_REPEATS):
        began = time.process_time()
        run.losses(rows)
        spent.append(time.process_time() - began)
    return median(spent)
