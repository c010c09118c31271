"""The rows of the synthetic setting in words: regret, and what dissimilar tasks still weigh."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.harness.record import Row
from benchmarks.harness.statistics import paired
from benchmarks.meta.synthetic.cells import CELLS, METHODS
from benchmarks.meta.synthetic.world import dissimilar

AT = (3, 5, 10, 20, 50)  # evaluations
AFTER, LOST = 15, 0.9  # the goal: the dissimilar tasks have lost so much after so many


class Remaining(NamedTuple):
    """What the dissimilar tasks still weigh."""

    part: float  # after 15 evaluations, of what they weighed before the first
    lost_after: float  # evaluations after which 90 % is lost; infinite if never


def text(rows: Sequence[Row]) -> str:
    """Return what each method reached, cell by cell, and whether the goal is met."""
    lines = [_goal(rows), ""]
    for cell in CELLS:
        some = [row for row in rows if row["cell"] == cell]
        if some:
            lines += [cell, *_table(some), ""]
    lines.append(
        "Regret: the least so far, mean and standard error over seeds; the target's range is [0, 1]. "
        "Sum: of all regrets, and what it is more than GP-UCB's, with the 95 % interval over paired "
        f"seeds. Left: what dissimilar tasks weigh after {AFTER} evaluations, as a share of what they "
        "weighed before the first, median; seeds in which it is at most a tenth; after how many "
        "evaluations it was, median. Weights by evidence have any sign: their absolute values, as a "
        f"share of all. Share: of all tasks, after 5 and {AFTER} evaluations, mean."
    )
    return "\n".join(lines)


def _goal(rows: Sequence[Row]) -> str:
    found = [
        remaining(row)
        for row in rows
        if row["cell"] == next(iter(CELLS)) and row["method"] == "RM-GP-UCB"
    ]
    if not found:
        return "Goal: not measured."
    met = sum(one.part <= 1 - LOST for one in found)
    left = statistics.median(one.part for one in found)
    verdict = "met" if met == len(found) else "not met in all"
    return (
        f"Goal: under RM-GP-UCB the two dissimilar tasks lose at least {LOST:.0%} of their weight within "
        f"{AFTER} evaluations: in {met} of {len(found)} seeds ({verdict}); median left {left:.2g}, "
        f"largest {max(one.part for one in found):.2g}."
    )


def remaining(row: Row) -> Remaining:
    """Return what the dissimilar tasks still weigh in a run that knows both sorts."""
    setting = CELLS[row["cell"]].setting
    far = dissimilar(setting).tolist() if len(row["weights"][0]) == len(setting.gaps) else [0, 1]
    parts = []
    for weights in row["weights"]:
        total = sum(abs(weight) for weight in weights)
        theirs = sum(abs(weight) for weight, apart in zip(weights, far, strict=True) if apart)
        parts.append(theirs / total if total else 0.0)
    parts = [part / parts[0] for part in parts]
    least = [number for number, part in enumerate(parts) if part <= 1 - LOST]
    after = least[0] + setting.first if least else float("inf")
    return Remaining(parts[AFTER - setting.first], after)


def _table(rows: Sequence[Row]) -> list[str]:
    heads = "".join(f"{f'at {k}':>14}" for k in AT)
    lines = [
        f"  {'':<25}{'seeds':>5}{heads}{'sum':>7}{'more than GP-UCB':>22}{'left':>9}{'seeds':>7}"
        f"{'after':>7}{'share':>11}"
    ]
    plain = {row["seed"]: row for row in rows if row["method"] == "GP-UCB"}
    for method in METHODS:
        some = [row for row in rows if row["method"] == method]
        if some:
            cells = f"{_regrets(some)}{_sums(some, plain)}{_left(some)}{_shares(some)}"
            lines.append(f"  {method:<25}{len(some):>5}{cells}".rstrip())
    return lines


def _regrets(rows: Sequence[Row]) -> str:
    pairs = [mean_error([row["regret"][k - 1] for row in rows]) for k in AT]
    return "".join(f"{mean:>8.4f} ±{error:.3f}".rjust(14) for mean, error in pairs)


def mean_error(values: Sequence[float]) -> tuple[float, float]:
    """Return a mean and its standard error, 0 of one value."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return statistics.fmean(values), error


def _sums(rows: Sequence[Row], plain: dict[int, Row]) -> str:
    mean = statistics.fmean(row["sum"] for row in rows)
    pairs = [(row["sum"], plain[row["seed"]]["sum"]) for row in rows if row["seed"] in plain]
    ours, theirs = zip(*pairs, strict=True) if pairs else ((), ())
    apart = paired(ours, theirs) if rows[0]["method"] != "GP-UCB" else None
    said = f"{apart.value:+.1f} ({apart.low:+.1f}, {apart.high:+.1f})" if apart else ""
    return f"{mean:>7.1f}{said:>22}"


def _left(rows: Sequence[Row]) -> str:
    far = dissimilar(CELLS[rows[0]["cell"]].setting)
    if not rows[0]["weights"] or bool(far.all()) or not bool(far.any()):
        return f"{'':>23}"
    found = [remaining(row) for row in rows]
    met = sum(one.part <= 1 - LOST for one in found)
    after = statistics.median(one.lost_after for one in found)
    said = f"{after:.0f}" if after < float("inf") else "never"
    return f"{statistics.median(one.part for one in found):>9.2g}{met:>7}{said:>7}"


def _shares(rows: Sequence[Row]) -> str:
    first = CELLS[rows[0]["cell"]].setting.first
    if not rows[0]["share"]:
        return ""
    pairs = [statistics.fmean(row["share"][k - first] for row in rows) for k in (5, AFTER)]
    return f"{pairs[0]:>6.2f}{pairs[1]:>6.3f}"
