"""Where each method ended, what it paid, and how far it is from full feedback and from fixed 0.5."""

from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from benchmarks.harness.record import Row
from benchmarks.training.simclr.methods import FIXED, FULL

# Table 1 of the paper: top-1 of a linear readout after 10 and after 100 epochs, and the time.
PAPER: dict[str, tuple[float, float, str]] = {
    "fixed 0.5": (70.91, 73.20, "1.00"),
    "full feedback": (75.14, 77.95, "1.97"),
    "coin 0.6": (72.15, 75.31, "1.64"),
    "confidence 0.9": (74.80, 77.56, "1.88"),
    "confidence 0.8": (74.77, 77.62, "1.71"),
    "confidence 0.7": (74.58, 77.27, "1.61"),
    "expert": (75.00, 77.99, "-"),
}
Runs = Mapping[int, Mapping[str, Any]]


def by_method(rows: Sequence[Row]) -> dict[str, dict[int, Row]]:
    """Return the rows by method and seed."""
    found: dict[str, dict[int, Row]] = {}
    for row in rows:
        found.setdefault(row["method"], {})[row["seed"]] = row
    return found


def text(rows: Sequence[Row]) -> str:
    """Return a line for each method of each recipe, with lines of the paper's table below."""
    lines = []
    for recipe in dict.fromkeys(row["recipe"] for row in rows):
        lines += [*_table(recipe, by_method([r for r in rows if r["recipe"] == recipe])), ""]
    lines.append(
        "ResNet-50 on ImageNet100 in the paper, one run: top-1 R10, R100, time by that of fixed"
    )
    for method, (brief, long, time) in PAPER.items():
        lines.append(f"{method:<18}{brief:>14.2f}{long:>8.2f}{time:>8}")
    return "\n".join(lines)


def _table(recipe: str, found: Mapping[str, Runs]) -> list[str]:
    lines = [
        "top-1 of a linear readout in per cent, its standard error over seeds, and paired differences",
        f"{recipe:<18}{'seeds':>6}{'top-1':>8}{'(se)':>8}{'worst':>8}{'less fixed':>16}{'less full':>16}"
        f"{'queries':>9}{'of full':>9}{'x fixed':>9}{'query':>8}{'tuner':>8}{'failed':>8}",
    ]
    for method, runs in found.items():
        ends = [100 * run["top_1"] for run in runs.values()]
        error = f"({_error(ends):.2f})" if len(ends) > 1 else ""
        queries = mean(run["queries"] for run in runs.values())
        lines.append(
            f"{method:<18}{len(runs):>6}{mean(ends):>8.2f}{error:>8}{min(ends):>8.2f}"
            f"{_less(runs, found.get(FIXED, {})):>16}{_less(runs, found.get(FULL, {})):>16}"
            f"{queries:>9.1f}{_ratio(runs, found.get(FULL, {}), 'queries'):>9}"
            f"{_ratio(runs, found.get(FIXED, {}), 'seconds'):>9}"
            f"{_share(runs, 'query_seconds'):>8}{_share(runs, 'tuner_seconds'):>8}"
            f"{sum(run['failed'] for run in runs.values()):>8}"
        )
    return lines


def _error(values: Sequence[float]) -> float:
    return stdev(values) / len(values) ** 0.5


def _shared(runs: Runs, others: Runs, name: str) -> list[tuple[float, float]]:
    return [(runs[seed][name], others[seed][name]) for seed in sorted(set(runs) & set(others))]


def _less(runs: Runs, others: Runs) -> str:
    """Return the mean difference of top-1, and its standard error, paired over seeds."""
    differences = [100 * (ours - theirs) for ours, theirs in _shared(runs, others, "top_1")]
    if not differences or runs is others:
        return ""
    error = f" ({_error(differences):.2f})" if len(differences) > 1 else ""
    return f"{mean(differences):+.2f}{error}"


def _ratio(runs: Runs, others: Runs, name: str) -> str:
    """Return a total by that of others, of the same seeds."""
    pairs = _shared(runs, others, name)
    theirs = sum(other for _, other in pairs)
    return f"{sum(own for own, _ in pairs) / theirs:.2f}" if theirs else ""


def _share(runs: Runs, name: str) -> str:
    """Return the share of a part of the time."""
    return f"{sum(r[name] for r in runs.values()) / sum(r['seconds'] for r in runs.values()):.1%}"
