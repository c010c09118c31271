"""Where each method ended, what it paid, and how far it is from dense tuning, paired over seeds."""

from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from benchmarks.harness.record import Row
from benchmarks.training.schedule.methods import DENSE, GRID, GRIDDED

# Table A3 of the paper: validation loss and accuracy, test loss and accuracy, time by that of training.
PAPER: dict[str, tuple[float, float, float, float, str]] = {
    GRID: (0.421, 0.887, 0.444, 0.879, "11.69"),
    "confidence 0.7": (0.390, 0.888, 0.428, 0.881, "1.10"),
    "confidence 0.8": (0.373, 0.892, 0.404, 0.881, "1.21"),
}
_ENDS = ("validation_loss", "validation_accuracy", "test_loss", "test_accuracy")
_PAID = ("tunings", "queries", "seconds", "query_seconds", "tuner_seconds")


def by_method(rows: Sequence[Row]) -> dict[str, dict[int, dict[str, Any]]]:
    """Return the rows by method and seed, with the static grid made of its schedules."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["method"], {})[row["seed"]] = dict(row)
    grid = _grid(found)
    return {**found, GRID: grid} if grid else found


def _grid(found: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> dict[int, dict[str, Any]]:
    """Return, by seed, the schedule with the least validation loss, and what all of them paid."""
    if not set(GRIDDED) <= set(found):
        return {}
    seeds = set.intersection(*(set(found[arm]) for arm in GRIDDED))
    chosen = {}
    for seed in sorted(seeds):
        runs = [found[arm][seed] for arm in GRIDDED]
        best = min(runs, key=lambda run: run["validation_loss"])
        # The best one is chosen by a validation of each at its end.
        paid = {what: sum(run[what] for run in runs) for what in _PAID}
        chosen[seed] = {**best, **paid, "method": GRID, "queries": len(GRIDDED)}
    return chosen


def text(rows: Sequence[Row]) -> str:
    """Return a line for each method of each recipe, with lines of the paper's table below."""
    lines = []
    for recipe in dict.fromkeys(row["recipe"] for row in rows):
        lines += [*_table(recipe, by_method([r for r in rows if r["recipe"] == recipe])), ""]
    lines.append("VGG16 in the paper, one run, time by that of training without queries")
    for method, (*ends, time) in PAPER.items():
        lines.append(f"{method:<22}{1:>6}{_numbers(ends)}{time:>36}")
    return "\n".join(lines)


def _table(recipe: str, found: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> list[str]:
    dense = found.get(DENSE, {})
    lines = [
        f"{recipe:22}{'seeds':>6}{'val. loss':>11}{'acc.':>7}{'test loss':>11}{'acc.':>7}{'tunings':>9}"
        f"{'queries':>9}{'seconds':>9}{'x dense':>9}{'tuner':>8}  val. loss less dense"
    ]
    for method, runs in found.items():
        ends = [mean(run[name] for run in runs.values()) for name in _ENDS]
        paid = [mean(run[name] for run in runs.values()) for name in ("tunings", "queries")]
        seconds = mean(run["seconds"] for run in runs.values())
        share = mean(run["tuner_seconds"] / run["seconds"] for run in runs.values())
        lines.append(
            f"{method:<22}{len(runs):>6}{_numbers(ends)}{paid[0]:>9.0f}{paid[1]:>9.1f}{seconds:>9.1f}"
            f"{_relative(runs, dense):>9}{share:>8.2%}  {_difference(runs, dense)}"
        )
    return lines


def _numbers(ends: Sequence[float]) -> str:
    return "".join(f"{end:>{width}.3f}" for end, width in zip(ends, (11, 7, 11, 7), strict=True))


def _shared(
    runs: Mapping[int, Mapping[str, Any]], dense: Mapping[int, Mapping[str, Any]], name: str
) -> list[tuple[float, float]]:
    return [(runs[seed][name], dense[seed][name]) for seed in sorted(set(runs) & set(dense))]


def _relative(runs: Mapping[int, Mapping[str, Any]], dense: Mapping[int, Mapping[str, Any]]) -> str:
    """Return the total time by that of dense tuning, of the same seeds."""
    pairs = _shared(runs, dense, "seconds")
    if not pairs:
        return ""
    ours, theirs = zip(*pairs, strict=True)
    return f"{sum(ours) / sum(theirs):.2f}"


def _difference(
    runs: Mapping[int, Mapping[str, Any]], dense: Mapping[int, Mapping[str, Any]]
) -> str:
    """Return the mean difference of the validation loss, and its standard error, paired over seeds."""
    pairs = _shared(runs, dense, "validation_loss")
    differences = [ours - theirs for ours, theirs in pairs]
    if len(differences) < 2:
        return ""
    error = stdev(differences) / len(differences) ** 0.5
    return f"{mean(differences):+.4f} ({error:.4f})"
