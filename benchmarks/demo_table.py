"""The table of the demo: every seed, the median, the worst, and a paired comparison."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.paired import paired

Rows = Sequence[Mapping[str, Any]]


def format_table(rows: Rows) -> str:
    """Return the table, and how rules that save queries compare with full feedback seed by seed."""
    lines = [
        f"{'method':<16}{'test accuracy (%), one number a seed':<38}median  worst  queries  seconds"
    ]
    for method, mine in _by_method(rows).items():
        accuracies = [100 * row["test_accuracy"] for row in mine]
        each = " ".join(f"{a:.1f}" for a in accuracies)
        queries = statistics.mean(row["queries"] for row in mine)
        seconds = statistics.mean(row["seconds"] for row in mine)
        lines.append(
            f"{method:<16}{each:<38}{statistics.median(accuracies):>6.1f}{min(accuracies):>7.1f}"
            f"{queries:>7.0f}{seconds:>9.1f}"
        )
    return "\n".join([*lines, "", *_comparison(rows)])


def _by_method(rows: Rows) -> dict[str, Rows]:
    methods = dict.fromkeys(row["method"] for row in rows)  # in the order they were run
    return {method: [row for row in rows if row["method"] == method] for method in methods}


def _comparison(rows: Rows) -> list[str]:
    """Compare with full feedback, paired over seeds."""
    table = _by_method(rows)
    full = [100 * row["test_accuracy"] for row in table["full feedback"]]
    lines = []
    for method in ("priced", "CE-GP-UCB", "Bernoulli"):
        if method not in table:
            continue
        ours = [100 * row["test_accuracy"] for row in table[method]]
        differences = [a - b for a, b in zip(ours, full, strict=True)]
        queries = sum(r["queries"] for r in table[method]) / sum(
            r["queries"] for r in table["full feedback"]
        )
        line = f"{method} less full feedback: {statistics.mean(differences):+.1f} points on average"
        test = paired(ours, full)
        if test and not math.isnan(test.p):
            line += f" (95 % interval {test.low:+.1f} to {test.high:+.1f}"
            line += f", paired t-test over {len(differences)} seeds: p = {test.p:.2f})"
        lines.append(f"{line}, at {queries:.0%} of its queries")
    return lines
