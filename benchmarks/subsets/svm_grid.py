"""Support vector machines on MNIST, a grid by six fractions: ``python -m benchmarks svm-grid``.

It is computed once, in about an hour of one processor; methods are played on what is stored.
"""

import math
import statistics
import time
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.harness.record import Row, part_of
from benchmarks.harness.sweep import measured, sweep_parser
from benchmarks.subsets.live.program import Outcome
from benchmarks.suite.data import arrays_of
from botorch_costly import Real, SearchSpace
from botorch_costly.plain import as_number

NAME = "svm-grid"
SPACE = SearchSpace(
    {
        "c": Real(math.exp(-10), math.exp(10), log=True),
        "gamma": Real(math.exp(-10), math.exp(10), log=True),
    }
)
"""The supplement's: penalty and width of the kernel, both from e^-10 to e^10."""
FRACTION = SearchSpace({"fraction": Real(1 / 512, 1.0, log=True)})
REPEATS = {1 / 512: 8, 1 / 128: 8, 1 / 64: 4, 1 / 16: 4, 1 / 4: 1, 1.0: 1}
"""How often each fraction is drawn: what it costs is in proportion to more than the fraction."""
_CELLS, _HIGHEST = 20, 10.0


class Size(NamedTuple):
    """How much of MNIST is used."""

    pictures: int = 8_192  # to train on, at most 50,000
    checked: int = 2_000  # to validate on, of the last 10,000 of the training pictures
    side: int = 14  # to which pictures of 28 x 28 are averaged; 7, 14 or 28


def evaluate(c: float, gamma: float, pictures: int, seed: int, size: Size) -> Outcome:
    """Train on so many pictures drawn at random, and validate."""
    from sklearn.svm import SVC  # an extra of the package, needed here alone

    inputs, classes = _mnist(size.side)
    drawn = np.random.default_rng(seed).choice(size.pictures, pictures, replace=False)
    held_out = slice(len(inputs) - 10_000, len(inputs) - 10_000 + size.checked)
    began = time.process_time()
    if len(np.unique(classes[drawn])) == 1:  # nothing to tell apart
        predicted = np.full(size.checked, classes[drawn][0])
    else:
        machine = SVC(C=c, gamma=gamma, cache_size=1_000).fit(inputs[drawn], classes[drawn])
        predicted = machine.predict(inputs[held_out])
    seconds = time.process_time() - began
    return Outcome(float((predicted != classes[held_out]).mean()), seconds)


def trained(config: Any, fraction: float, seed: int, size: Size) -> Outcome:
    """Evaluate a configuration of ``SPACE`` on a fraction of the pictures."""
    c, gamma = (as_number(name, config[name]) for name in ("c", "gamma"))
    return evaluate(c, gamma, max(2, round(fraction * size.pictures)), seed, size)


@cache
def _mnist(side: int) -> tuple[Any, Any]:
    """Return all training pictures, averaged to ``side x side`` in [0, 1], and their classes."""
    pool = arrays_of("mnist.npz", ("x_train", "y_train"))
    pictures = torch.from_numpy(pool["x_train"]).double()[:, None] / 255
    small = torch.nn.functional.avg_pool2d(pictures, 28 // side)
    return small.flatten(1).numpy(), pool["y_train"]


class Cell(NamedTuple):
    """A configuration, and the key of its row."""

    log_c: float
    log_gamma: float


def cells(per_axis: int = _CELLS) -> list[Cell]:
    """Return the grid over e^-10 .. e^10."""
    axis = [round(_HIGHEST * (2 * k / (per_axis - 1) - 1), 4) for k in range(per_axis)]
    return [Cell(a, b) for a in axis for b in axis]


def measure(cell: Cell, size: Size = Size()) -> Row:  # noqa: B008 (an immutable default)
    """Return errors and seconds of a configuration, by fraction and repeat."""
    row: dict[str, Any] = {**cell._asdict(), **size._asdict(), "errors": [], "seconds": []}
    for fraction, repeats in REPEATS.items():
        pictures = max(2, round(fraction * size.pictures))
        c, gamma = math.exp(cell.log_c), math.exp(cell.log_gamma)
        outcomes = [evaluate(c, gamma, pictures, seed, size) for seed in range(repeats)]
        row["errors"].append([round(outcome.error, 4) for outcome in outcomes])
        row["seconds"].append([round(outcome.seconds, 4) for outcome in outcomes])
    return row


def text(rows: Sequence[Row]) -> str:
    """Return the least error, its place, the rank correlation with the whole, and the seconds."""
    lines = [
        f"{'fraction':>9}{'least error':>13}{'median':>9}{'seconds':>9}{'best here, on all':>19}"
    ]
    whole = [row["errors"][-1][0] for row in rows]
    for place, fraction in enumerate(REPEATS):
        errors = [statistics.fmean(row["errors"][place]) for row in rows]
        seconds = statistics.fmean(statistics.fmean(row["seconds"][place]) for row in rows)
        found = whole[min(range(len(rows)), key=errors.__getitem__)]
        share = f"1/{round(1 / fraction)}"
        lines.append(
            f"{share:>9}{min(errors):>13.4f}{statistics.median(errors):>9.3f}{seconds:>9.2f}"
            f"{found:>19.4f}"
        )
    size = part_of(rows[0], Size)
    lines.append(
        f"{len(rows)} configurations on {size.pictures} pictures of {size.side} x {size.side}; "
        f"errors on {size.checked} others; seconds of one processor for one training."
    )
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    parser = sweep_parser(
        NAME, "support vector machines on MNIST, a grid by six fractions", seeds=1
    )
    parser.add_argument("--cells", type=int, default=_CELLS, help="configurations on each axis")
    options = parser.parse_args(arguments)
    print(text(measured(NAME, cells(options.cells), measure, options)))
