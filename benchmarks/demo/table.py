"""The table of the demo: every seed, the median, the worst, and a paired comparison."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.harness.statistics import paired

Rows = Sequence[Mapping[str, Any]]
REFERENCE = "full feedback"
_WIDTH = 24


def format_table(rows: Rows) -> str:
    """Return the table, and how the methods that save queries compare with full feedback."""
    table = _by_method(rows)
    seeds = max(len(mine) for mine in table.values())
    wide = max(5 * seeds, len(head := "test accuracy (%) by seed")) + 2
    lines = [f"{'method':<{_WIDTH}}{head:<{wide}}median  worst  queries  seconds"]
    for method, mine in table.items():
        accuracies = _accuracies(mine)
        each = " ".join(f"{a:.1f}" for a in accuracies)
        queries = statistics.mean(row["queries"] for row in mine)
        seconds = statistics.mean(row["seconds"] for row in mine)
        lines.append(
            f"{method:<{_WIDTH}}{each:<{wide}}{statistics.median(accuracies):>6.1f}"
            f"{min(accuracies):>7.1f}{queries:>9.0f}{seconds:>9.1f}"
        )
    return "\n".join([*lines, "", *_comparison(table)])


def _by_method(rows: Rows) -> dict[str, Rows]:
    methods = dict.fromkeys(row["method"] for row in rows)  # in the order they were run
    return {method: [row for row in rows if row["method"] == method] for method in methods}


def _accuracies(rows: Rows) -> list[float]:
    return [100 * row["test_accuracy"] for row in rows]


def _comparison(table: Mapping[str, Rows]) -> list[str]:
    """Compare every method that queries now and then with full feedback, paired over seeds."""
    if REFERENCE not in table:
        return []
    full, paid = _accuracies(table[REFERENCE]), sum(row["queries"] for row in table[REFERENCE])
    lines = []
    for method, mine in table.items():
        queries = sum(row["queries"] for row in mine)
        found = paired(_accuracies(mine), full) if 0 < queries < paid else None
        if found is not None:
            lines.append(
                f"{method} less {REFERENCE}: {found.value:+.1f} points on average (95 %"
                f" {found.low:+.1f} to {found.high:+.1f}, {len(full)} seeds)"
                f" at {queries / paid:.0%} of its queries"
            )
    return lines
