"""Stored rows of ``validation-live`` as tables, and which goals hold."""

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median
from typing import Any

from benchmarks.harness.record import Row, grouped
from benchmarks.validation.live.policies import INTERVALS, REFERENCE
from benchmarks.validation.live.stops import PATIENCES

_HALVES = ("choice", "confirmation")
_WITHIN = 0.95  # share of runs within noise that an interval chosen in hindsight keeps
_FALSE = 0.02  # share of false stops that a patience chosen in hindsight keeps
_EXAMPLES, _WRONG, _CLOCK, _RUNS, _MS = 0.2, 0.01, 0.03, 0.95, 1.0  # goals
_OURS = "Validation 3 %"
_STOPS = "Validation 3 %, false stop 0.02"
_HINDSIGHT = "best interval of each program"
_PATIENT = "best patience of each program"

Results = Sequence[dict[str, Any]]


def text(rows: Sequence[Row]) -> str:
    """Return the tables of checkpoints and of stops for each half, those of programs, and the goals."""
    lines = []
    for half in _HALVES:
        mine = [row for row in rows if row["half"] == half]
        if mine:
            names = ", ".join(grouped(mine, "program"))
            lines += [f"{half}: {names}; {len(mine)} runs", "", *_checkpoint_table(mine), ""]
            lines += [*_stop_table(mine), "", *_goals(mine), ""]
    lines += [*_program_table(rows), ""]
    return "\n".join([*lines, *_LEGEND])


def _checkpoint_table(rows: Sequence[Row]) -> list[str]:
    heads = ("same", "in noise", "regret", "worst 5 %", "examples", "clock")
    lines = [f"{'checkpoint kept':<30}" + "".join(f"{head:>11}" for head in heads)]
    policies: dict[str, Results] = {
        name: [row["policies"][name] for row in rows] for name in rows[0]["policies"]
    }
    policies[_HINDSIGHT] = _of_each_program(rows, "policies", _best_interval)
    for name, results in policies.items():
        regrets = sorted(result["regret"] for result in results)
        numbers = (
            100 * _share(results, "same"),
            100 * _share(results, "within"),
            100 * fmean(regrets),
            100 * regrets[min(int(0.95 * len(regrets)), len(regrets) - 1)],
            100 * _share(results, "examples"),
            100 * _share(results, "share"),
        )
        lines.append(f"{name:<30}" + "".join(f"{number:>11.1f}" for number in numbers))
    return [*lines, "", *_verdict_table(policies)]


def _verdict_table(policies: dict[str, Results]) -> list[str]:
    heads = ("decided", "wrong", "wrong, %", "undecided", "median, ms", "mean, ms")
    lines = [f"{'verdicts, decisions':<30}" + "".join(f"{head:>11}" for head in heads)]
    for name, results in policies.items():
        if "decided" in results[0]:
            decided, wrong, undecided = (
                sum(result[key] for result in results) for key in ("decided", "wrong", "undecided")
            )
            lines.append(
                f"{name:<30}{decided:>11}{wrong:>11}{100 * wrong / max(decided, 1):>11.2f}"
                f"{undecided:>11}{median(result['median_ms'] for result in results):>11.2f}"
                f"{_share(results, 'mean_ms'):>11.2f}"
            )
    return lines


def _stop_table(rows: Sequence[Row]) -> list[str]:
    heads = ("stopped", "false", "saved", "of clock")
    lines = [f"{'stops':<36}" + "".join(f"{head:>10}" for head in heads)]
    rules: dict[str, Results] = {
        name: [row["stops"][name] for row in rows] for name in rows[0]["stops"]
    }
    rules[_PATIENT] = _of_each_program(rows, "stops", _best_patience)
    return lines + [_stop_line(name, results) for name, results in rules.items()]


def _stop_line(name: str, results: Results) -> str:
    keys = ("stopped", "false", "saved", "saved_clock")
    return f"{name:<36}" + "".join(f"{100 * _share(results, key):>10.1f}" for key in keys)


def _program_table(rows: Sequence[Row]) -> list[str]:
    heads = ["interval", "examples", "ours: noise", "examples", "regret", "patience", "saved"]
    heads += ["ours: false", "saved"]
    lines = [f"{'program':<18}" + "".join(f"{head:>12}" for head in heads)]
    for program, mine in grouped(rows, "program").items():
        interval, patience = _best_interval(mine), _best_patience(mine)
        theirs = [row["policies"][interval] for row in mine]
        ours = [row["policies"][_OURS] for row in mine]
        patient = [row["stops"][patience] for row in mine]
        stops = [row["stops"][_STOPS] for row in mine]
        numbers = (
            100 * _share(theirs, "examples"), 100 * _share(ours, "within"),
            100 * _share(ours, "examples"), 100 * _share(ours, "regret"),
        )  # fmt: skip
        saved = [100 * _share(patient, "saved")]
        saved += [100 * _share(stops, key) for key in ("false", "saved")]
        k = _number(interval) if interval != REFERENCE else "1"
        lines.append(
            f"{program:<18}{k:>12}"
            + "".join(f"{number:>12.1f}" for number in numbers)
            + f"{_number(patience):>12}"
            + "".join(f"{number:>12.1f}" for number in saved)
        )
    return lines


def _number(name: str) -> str:
    return next(word for word in name.split() if word.isdigit())


def _of_each_program(
    rows: Sequence[Row], part: str, best: Callable[[Sequence[Row]], str]
) -> Results:
    """Return the results under the name that is best in hindsight, for each program its own."""
    return [row[part][best(mine)] for mine in grouped(rows, "program").values() for row in mine]


def _best_interval(rows: Sequence[Row]) -> str:
    """Return the longest interval that keeps a checkpoint within noise in most runs."""
    names = [REFERENCE, *(f"every {k} epochs" for k in INTERVALS[1:])]
    good = [n for n in names if _share([row["policies"][n] for row in rows], "within") >= _WITHIN]
    return good[-1]


def _best_patience(rows: Sequence[Row]) -> str:
    """Return the patience that saves the most at a small share of false stops."""
    names = [f"patience {epochs}" for epochs in PATIENCES]
    stops = {name: [row["stops"][name] for row in rows] for name in names}
    good = [name for name in names if _share(stops[name], "false") <= _FALSE] or names[-1:]
    return max(good, key=lambda name: _share(stops[name], "saved"))


def _goals(rows: Sequence[Row]) -> list[str]:
    """Return the goals, and whether they hold."""
    ours = [row["policies"][_OURS] for row in rows]
    stops = [row["stops"][_STOPS] for row in rows]
    patient = _of_each_program(rows, "stops", _best_patience)
    wrong = sum(result["wrong"] for result in ours) / max(sum(r["decided"] for r in ours), 1)
    clock = fmean(result["share"] <= _CLOCK for result in ours)
    ms = median(result["median_ms"] for result in ours)
    saved, theirs = _share(stops, "saved"), _share(patient, "saved")
    return [
        _goal("checkpoint within noise", _share(ours, "within"), _WITHIN, is_least=True),
        _goal("share of the examples", _share(ours, "examples"), _EXAMPLES),
        _goal("wrong verdicts", wrong, _WRONG),
        _goal("runs within 3 % of the simulated clock", clock, _RUNS, is_least=True),
        _goal("median milliseconds of a decision", ms, _MS),
        _goal("false stops at a stated 2 %", _share(stops, "false"), _FALSE),
        _goal("saved by stops, beside the best patience", saved, theirs, is_least=True),
    ]


def _goal(name: str, value: float, limit: float, *, is_least: bool = False) -> str:
    holds = value >= limit if is_least else value <= limit
    word = "least" if is_least else "most"
    return f"{'holds' if holds else 'MISSED':<8}{name}: {value:.3f}, at {word} {limit:.3f}"


def _share(results: Iterable[dict[str, Any]], key: str) -> float:
    return fmean(float(result[key]) for result in results)


def clock_text(rows: Sequence[Row]) -> str:
    """Return what ``Validation`` takes of the real clock in each program."""
    heads = ["seconds", "reading, %", "deciding, %", "both, %", "worst, %", "in 3 %", "median, ms"]
    heads += ["mean, ms", "identical"]
    lines = [f"{'program':<18}{'runs':>6}" + "".join(f"{head:>12}" for head in heads)]
    for program, mine in grouped(rows, "program").items():
        lines.append(f"{program:<18}{_clock_line(mine)}")
    if rows:
        lines.append(f"{'all':<18}{_clock_line(rows)}")
    return "\n".join([*lines, *_CLOCK_LEGEND])


def _clock_line(rows: Sequence[Row]) -> str:
    both = [row["reading"] + row["deciding"] for row in rows]
    numbers = (
        fmean(row["seconds"] for row in rows),
        100 * fmean(row["reading"] for row in rows),
        100 * fmean(row["deciding"] for row in rows),
        100 * fmean(both),
        100 * max(both),
        100 * fmean(share <= _CLOCK for share in both),
        median(row["median_ms"] for row in rows),
        fmean(row["mean_ms"] for row in rows),
        100 * fmean(row["identical"] for row in rows),
    )
    return f"{len(rows):>6}" + "".join(f"{number:>12.2f}" for number in numbers)


_LEGEND = (
    "All numbers but milliseconds in per cent. same, in noise: runs that keep the checkpoint of reading",
    "everything at each epoch, or one whose mean on the whole set is at most two paired standard errors",
    "higher. regret: the difference by the improvement of the run; examples: read, by those of reading",
    "everything at each epoch; clock: share of validation. Every k-th epoch: the last one is read, too.",
    "Best interval of each program: the longest one in hindsight with 95 % of the runs in noise.",
    "Verdicts: readings of part of the examples at level .01, against the means of the whole set.",
    "stopped: runs that end early; false: runs in which a later point is better by more than min_delta",
    "than the checkpoint kept; saved: steps; of clock: against a whole run that reads everything.",
    "Lightning's and Keras's patience are the same rule. Best patience of each program: the one that",
    "saves the most in hindsight with at most 2 % of false stops.",
)
_CLOCK_LEGEND = (
    "Means over runs, shares of the clock of the whole run (time.perf_counter): reading the validation",
    "set, deciding (calls of due), and both; the largest share of both; runs with both within 3 %;",
    "milliseconds of due. identical: runs whose weights, modes, global generators and order of the data",
    "are those of the run without Validation.",
)
