"""Quotes on ``Validation``: on recorded trainings, on replayed programs, and on the real clock."""

from statistics import fmean, median

from benchmarks.harness.record import Row
from benchmarks.quotes.quote import Quote, Value
from benchmarks.quotes.rows import column, row, rows, stored

GUIDE = "docs/guide/validation.md"
_HALVES = ("choosing", "confirming")
_OURS, _STOPS = "Validation 3 %", "Validation 3 %, false stop 0.02"


def _reading(half: str, protocol: str, policy: str) -> Row:
    where = {"kind": "readings", "half": half, "protocol": protocol, "policy": policy, "stride": 8}
    return row("validation", **where)


def _both(protocol: str, policy: str, name: str, factor: float = 1.0) -> list[float]:
    return [factor * _reading(half, protocol, policy)[name] for half in _HALVES]


def _recorded() -> list[Value]:
    ours, eighth = "Validation", "every 8"
    return [
        *(sum(_both("planned", ours, "runs")), 0.02, *_both("planned", ours, "missed_ok", 100)),
        *_both("planned", eighth, "missed_ok", 100),
        *(1, *_both("planned", ours, "late_ok", 100)),
        *(*_both("planned", ours, "ratio"), *_both("planned", eighth, "ratio")),
        *(*_both("open", ours, "late_ok", 100), *_both("open", eighth, "late_ok", 100)),
    ]


def _replayed(half: str, name: str) -> float:
    return fmean(float(r["policies"][_OURS][name]) for r in rows("validation-live", half=half))


def _live() -> list[Value]:
    halves = ("choice", "confirmation")
    results = [r["policies"][_OURS] for r in stored("validation-live")]
    if any(result["wrong"] for result in results):
        raise LookupError("a verdict was wrong")
    within, regret, examples = (
        [100 * _replayed(half, name) for half in halves]
        for name in ("within", "regret", "examples")
    )
    clock = [r["policies"][_OURS]["share"] <= 0.03 for r in rows("validation-live", half=halves[1])]
    return [
        *(3, sum(result["decided"] for result in results), *within, *regret, *examples),
        100 * fmean(clock),
    ]


def _false_stops() -> list[Value]:
    """Return the rate of false stops that is asked for; there were none."""
    if any(r["stops"][_STOPS]["false"] for r in stored("validation-live")):
        raise LookupError("a stop was false")
    return [2]


def _clock() -> list[Value]:
    name = "validation-live-clock"
    microseconds = [1000 * median(column(name, "median_ms")), 1000 * fmean(column(name, "mean_ms"))]
    return [*(round(us, -1) for us in microseconds), 100 * fmean(column(name, "deciding"))]


QUOTES = (
    Quote(
        GUIDE,
        "On # recorded trainings of eleven workloads (table), with a reading for one candidate in"
        " nine, the best value is missed by at most # of the improvement in # and # % of the runs"
        " of two halves of the workloads, as with every eighth candidate (# and # %), which reads"
        " a fifth more. If the end of the run is known, the target is seen within # % of the run"
        " in # and # % of the runs, as by every eighth, and the clock until then is # and # times"
        " that of an oracle (# and #). If it is not, # and # % of the runs see it so soon (# and #"
        " %)",
        _recorded,
    ),
    Quote(
        GUIDE,
        "On ten programs replayed with # % of the clock (table), none of # verdicts was wrong. The"
        " checkpoint was within noise of the best of all epochs in # % of the runs of the five"
        " programs on which constants were chosen, and in # % of those of five others; its regret"
        " was # and # % of the improvement. Reading took # and # % of the examples of reading each"
        " epoch: where validation is cheap, 3 % of the clock buy more than one reading an epoch."
        " The share held in all of the first runs and # % of the others",
        _live,
    ),
    Quote(GUIDE, "no stop at # % was false", _false_stops),
    Quote(
        GUIDE,
        "A call of `due` takes # microseconds in the median and # in the mean, between steps of"
        " training; that is # % of the clock",
        _clock,
    ),
)
