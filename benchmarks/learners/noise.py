"""Whether noise falls with the size of the training set: ``python -m benchmarks subset-noise``.

The supplement of Fabolas prints a noise that grows with the share of the data, ``alpha s^beta``; its
text says that noise falls. Here the spread of accuracies over the splits of each curve of ``lcdb`` is
fitted by a power of the size.
"""

import statistics
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.harness.command_line import parser_for
from benchmarks.harness.record import Row, write_results
from benchmarks.learners.curves import Curves, learning_curves

NAME = "subset-noise"
MEASURED = {"validation": "validation_spread", "test": "test_spread"}
_SIZES = 5  # of a curve, at least
_SPLITS = 5  # of a size, at least


def rows_of_curves(curves: Curves) -> Iterator[Row]:
    """Yield, for each learner, the slope of log spread on log size on each data set.

    Sizes with fewer than five splits, or without any spread, and curves with fewer than five sizes do
    not count.
    """
    for place, learner in enumerate(curves.learners):
        of_learner = curves.learner == place
        slopes: dict[int, list[float | None]] = {}
        for data_set in np.unique(curves.data_set[of_learner]).tolist():
            mine = of_learner & (curves.data_set == data_set)
            slopes[data_set] = [
                slope_of(curves.size[mine], getattr(curves, name)[mine], curves.splits[mine])
                for name in MEASURED.values()
            ]
        kept = {data_set: pair for data_set, pair in slopes.items() if None not in pair}
        pairs = list(kept.values())
        parts = {part: [pair[k] for pair in pairs] for k, part in enumerate(MEASURED)}
        yield {"learner": learner, "data_sets": list(kept), **parts}


def slope_of(
    sizes: Sequence[float], spreads: Sequence[float], splits: Sequence[int]
) -> float | None:
    """Return the slope of log spread on log size; None of a curve that does not count."""
    table = np.array([sizes, spreads, splits], dtype=float)
    size, spread, _ = table[:, (table[2] >= _SPLITS) & (table[1] > 0)]
    if len(size) < _SIZES:
        return None
    slope, _ = np.polyfit(np.log(size), np.log(spread), 1)
    return round(float(slope), 4)


def text(rows: Sequence[Row]) -> str:
    """Return the share of curves in which the spread falls, and slopes, for all and by learner."""
    lines = [
        f"{'':<32}{'curves':>7}{'validation falls':>18}{'slope':>8}{'10 %':>8}{'90 %':>8}"
        f"{'test falls':>13}{'slope':>8}",
        _line("all", rows),
    ]
    lines += [_line(row["learner"].rpartition(".")[2], [row]) for row in rows]
    sets = len({data_set for row in rows for data_set in row["data_sets"]})
    lines.append(
        f"Slope of log standard deviation over splits on log size, median; {sets} data sets."
    )
    return "\n".join(lines)


def _line(name: str, rows: Sequence[Row]) -> str:
    slopes = {part: [slope for row in rows for slope in row[part]] for part in MEASURED}
    falls = {part: statistics.fmean(s < 0 for s in slopes[part]) for part in MEASURED}
    middle = {part: statistics.median(slopes[part]) for part in MEASURED}
    low, high = np.quantile(slopes["validation"], (0.1, 0.9))
    count = len(slopes["validation"])
    return (
        f"{name:<32}{count:>7}{falls['validation']:>17.1%} {middle['validation']:>8.3f}"
        f"{low:>8.3f}{high:>8.3f}{falls['test']:>12.1%} {middle['test']:>8.3f}"
    )


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    options = parser_for(NAME, "whether noise falls with the training size").parse_args(arguments)
    rows = rows_of_curves(learning_curves())
    print(text(write_results(NAME, rows, [], directory=options.results)))
