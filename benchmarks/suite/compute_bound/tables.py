"""Tables of the compute-bound suite: losses with their intervals, paired differences, what was paid."""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from benchmarks.harness.record import Row
from benchmarks.harness.statistics import Estimate, paired

Ends = Mapping[int, Row]  # by seed
_WIDTH = 32


def table(
    title: str,
    methods: Mapping[str, Ends],
    sensible: Mapping[str, Ends],
    bad: Ends,
    *,
    in_nats: bool,
) -> str:
    """Return a line a method: loss, what it differs by, and what it paid.

    Differences are in nats, those of squares differences of the logarithm; below zero is better. They
    are means over the seeds that both have and neither diverged on, as is the way back. The interval and
    the mean of the loss are of runs that have not diverged; how many others there are is ``lost``.

    Args:
        title: First words of the first line.
        methods: The rows of each method, by seed.
        sensible: Rows of ``constant`` and ``wsd`` from the sensible start.
        bad: Rows of ``constant`` from this start, none if it is the sensible one: the way back leads
            from there to ``constant`` of the sensible start, and is given as its mean and its least.
        in_nats: Whether losses are logarithms already.
    """
    against = [f"to {name}, sensible" for name in sensible]
    way = f"{'way':>6}{'least':>7}" if bad else ""
    head = f"{'seeds':>5}{'lost':>5}{'loss':>9}{'95 % interval':>18}{'worst':>9}{'right':>7}"
    head += "".join(f"{words:>30}" for words in against) + way
    head += f"{'compute':>8}{'back':>6}{'queries':>8}{'s':>7}{'training':>9}"
    lines = [f"{title + ' ':<{_WIDTH}}{head}"]
    for name, rows in methods.items():
        if rows:
            lines.append(f"  {name:<{_WIDTH - 2}}" + _line(rows, sensible, bad, in_nats))
    return "\n".join(lines)


def _line(rows: Ends, sensible: Mapping[str, Ends], bad: Ends, in_nats: bool) -> str:
    losses = [row["loss"] for row in rows.values() if row["loss"] is not None]
    lost = len(rows) - len(losses)
    line = f"{len(rows):>5}{lost:>5}"
    if losses:
        estimate = paired(losses, [0.0] * len(losses))
        span = f"{estimate.low:.4f} to {estimate.high:.4f}" if estimate else ""
        worst = "lost" if lost else f"{max(losses):.4f}"
        line += f"{fmean(losses):>9.4f}{span:>18}{worst:>9}"
    else:
        line += f"{'lost':>9}{'':>18}{'lost':>9}"
    line += f"{fmean(row['accuracy'] for row in rows.values()):>7.1%}"
    for theirs in sensible.values():
        line += f"{_said(difference(rows, theirs, in_nats=in_nats)):>30}"
    if bad:
        line += _way(way_back(rows, bad, sensible["constant"], in_nats=in_nats))
    return line + _paid(list(rows.values()))


def _paid(rows: Sequence[Row]) -> str:
    """Return rounds as runs of full length, rounds given back, share of queries and seconds."""
    compute = fmean(row["rounds"] / row["horizon"] for row in rows)
    back = fmean(row["given_back"] for row in rows)
    queries = fmean(row["queries"] / row["rounds"] for row in rows)
    parts = [[row[n] for n in ("training", "querying", "copying", "deciding")] for row in rows]
    seconds, training = fmean(map(sum, parts)), fmean(part[0] for part in parts)
    return f"{compute:>8.2f}{back:>6.0f}{queries:>8.1%}{seconds:>7.1f}{training:>9.1f}"


def difference(ours: Ends, theirs: Ends, *, in_nats: bool) -> Estimate | None:
    """Return by how many nats one method ends above another on average, paired over seeds.

    Seeds on which either diverged are left out; None of fewer than two seeds.
    """
    levels = [_levels(rows, in_nats) for rows in (ours, theirs)]
    seeds = sorted(set(levels[0]) & set(levels[1]))
    return paired(*([level[seed] for seed in seeds] for level in levels))


def way_back(ours: Ends, bad: Ends, good: Ends, *, in_nats: bool) -> list[float]:
    """Return by seed which share of the way from bad to good a method went, in nats.

    A run that has diverged went none of it. Seeds are left out where bad has diverged or is not worse
    than good.
    """
    own, low, high = (_levels(rows, in_nats) for rows in (ours, bad, good))
    seeds = [seed for seed in sorted(set(ours) & set(low) & set(high)) if low[seed] > high[seed]]
    return [(low[s] - own[s]) / (low[s] - high[s]) if s in own else 0.0 for s in seeds]


def _levels(rows: Ends, in_nats: bool) -> dict[int, float]:
    """Return losses in nats by seed, of runs that have not diverged."""
    level: Callable[[float], float] = float if in_nats else math.log
    return {s: level(row["loss"]) for s, row in rows.items() if row["loss"] is not None}


def _said(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    return f"{estimate.value:+.4f} ({estimate.low:+.4f} to {estimate.high:+.4f})"


def _way(shares: Sequence[float]) -> str:
    return f"{fmean(shares):>6.0%}{min(shares):>7.0%}" if shares else f"{'':>13}"


def proof_table(title: str, rows: Sequence[Row], *, in_nats: bool) -> str:
    """Return by how much the test loss still falls in the last fifth of a run."""
    both = [[row[f"loss at {share}"] for row in rows] for share in ("80%", "100%")]
    early, late = (
        {row["seed"]: {"loss": loss} for row, loss in zip(rows, losses, strict=True)}
        for losses in both
    )
    fall = _said(difference(late, early, in_nats=in_nats))
    means = "  ".join(
        f"{share} {fmean(losses):.4f}"
        for share, losses in zip(("80 %", "100 %"), both, strict=True)
    )
    return f"{title:<{_WIDTH}}test loss after {means} of the rounds, in nats {fall}"
