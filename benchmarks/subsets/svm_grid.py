"""Support vector machines on MNIST, a grid by six fractions: ``python -m benchmarks svm-grid``.

It is computed once, in about an hour of one processor; methods are played on what is stored.
"""

import math
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.harness.command_line import add_seeds, parser_for
from benchmarks.harness.missing import measure_missing
from benchmarks.harness.record import Row, part_of, rows_of
from benchmarks.subsets.svm import Size, evaluate

NAME = "svm-grid"
REPEATS = {1 / 512: 8, 1 / 128: 8, 1 / 64: 4, 1 / 16: 4, 1 / 4: 1, 1.0: 1}
"""How often each fraction is drawn: what it costs is in proportion to more than the fraction."""
_CELLS, _HIGHEST = 20, 10.0


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
    parser = parser_for(NAME, "support vector machines on MNIST, a grid by six fractions")
    parser.add_argument("--cells", type=int, default=_CELLS, help="configurations on each axis")
    parser.add_argument("--again", action="store_true", help="measure what is stored, too")
    add_seeds(parser, seeds=1)
    options = parser.parse_args(arguments)
    measure_missing(NAME, cells(options.cells), measure, Cell, options)
    print(text(rows_of(NAME, options.results)))
