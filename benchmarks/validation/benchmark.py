"""When validation pays, on recorded trainings: ``python -m benchmarks validation``.

Readings: what is missed of the best value, how late the target is seen and what that costs, by policies
that pick from the readings of the logs. Stopping: how many stops are false, and what they save.
"""

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks.harness.command_line import parser_for
from benchmarks.harness.record import Row, grouped, part_of, rows_of, write_results
from benchmarks.harness.sweep import in_processes
from benchmarks.suite.data import MissingDataError
from benchmarks.validation.policies import (
    ABLATIONS,
    BASELINE,
    HINDSIGHT,
    OURS,
    POLICIES,
    every,
)
from benchmarks.validation.problem import (
    HALVES,
    PROTOCOLS,
    Log,
    Protocol,
    Score,
    logs_of,
    score,
)
from benchmarks.validation.stopping import SCHEDULES, Stop, stops_of

NAME = "validation"
MISSED, LATE, RATIO, SHARE = 0.02, 0.01, 1.02, 0.125  # bars: in 95 % of the runs, in the mean
BEST_INTERVAL = "best interval of each workload"
FALSE_STOPS = 0.02
_SMOKE = 64  # one of so many logs is played
_COLUMNS = ("share", "missed_95", "missed_ok", "late_50", "late_95", "late_ok", "clock", "ratio")
_WIDTHS = (7, 8, 7, 8, 7, 7, 8, 7)
_LEGEND = (
    "planned: every policy reads the last candidate, the planned end; open: the end is unknown, except",
    "to 'last' and the oracle. share: of the candidates, which are read; missed: of the best value, as a",
    f"share of the improvement: 95 % quantile, and the runs with at most {MISSED} (bar: .95); late:",
    f"median, 95 % quantile, and the runs with at most {LATE} of the run (bar: .95); clock until the",
    f"target is seen, in units of reading every candidate, and its ratio to the oracle's (bar: {RATIO}).",
)


class Task(NamedTuple):
    """The runs of a half of the workloads under a policy or a schedule, and the key of its rows."""

    kind: str  # "readings" or "stopping"
    half: str
    protocol: Protocol
    policy: str
    stride: int  # one of so many logs is played


def measure(task: Task, logs_of: Callable[[Sequence[str]], list[Log]] = logs_of) -> list[Row]:
    """Return the rows of a task."""
    logs = logs_of(HALVES[task.half])[:: task.stride]
    key = {**task._asdict(), "runs": len(logs)}
    if task.kind == "stopping":
        stops = [stops_of(log, task.policy) for log in logs]
        return [{**key, **_stopped(rule, [stop[rule] for stop in stops])} for rule in stops[0]]
    return [{**key, **_summary(_scores(task, logs))}]


def _scores(task: Task, logs: Sequence[Log]) -> list[Score]:
    if task.policy == BEST_INTERVAL:
        return _in_hindsight(logs, task.protocol)
    policy = {**POLICIES, **ABLATIONS}[task.policy]
    return [score(log, policy(log, task.protocol), task.protocol) for log in logs]


def _in_hindsight(logs: Sequence[Log], protocol: Protocol) -> list[Score]:
    """Return the scores of the interval that costs each workload least until the target is seen."""
    scores: list[Score] = []
    for runs in _by_workload(logs):
        by_interval = [
            [score(log, every(interval)(log, protocol), protocol) for log in runs]
            for interval in HINDSIGHT
        ]
        scores += min(by_interval, key=lambda runs: _cost(list(runs)))
    return scores


def _by_workload(logs: Sequence[Log]) -> list[list[Log]]:
    """Return the logs of each workload."""
    workloads: dict[str, list[Log]] = {}
    for log in logs:
        workloads.setdefault(log.workload, []).append(log)
    return list(workloads.values())


def _cost(scores: list[Score]) -> float:
    """Return the mean clock until the target is seen; without one, how much of the best is missed."""
    clocks = [run.clock for run in scores if not math.isnan(run.clock)]
    return float(np.mean(clocks)) if clocks else _quantile([run.missed for run in scores], 0.95)


def _summary(scores: Sequence[Score]) -> Row:
    missed, share = [run.missed for run in scores], [run.share for run in scores]
    reached = [run for run in scores if not math.isnan(run.late)]
    late = [run.late for run in reached] or [0.0]
    clock, oracle = (
        float(np.mean([getattr(r, n) for r in reached] or [1.0])) for n in ("clock", "oracle")
    )
    return {
        "share": float(np.mean(share)),
        "missed_95": _quantile(missed, 0.95),
        "missed_ok": float(np.mean(np.array(missed) <= MISSED)),
        "reached": len(reached),
        "late_50": _quantile(late, 0.5),
        "late_95": _quantile(late, 0.95),
        "late_ok": float(np.mean(np.array(late) <= LATE)),
        "clock": clock,
        "ratio": clock / oracle,
    }


def _quantile(values: Sequence[float], level: float) -> float:
    return float(np.quantile(values, level))


def _stopped(rule: str, stops: Sequence[Stop | None]) -> Row:
    happened = [stop for stop in stops if stop is not None]
    return {
        "rule": rule,
        "stopped": len(happened) / len(stops),
        "false": sum(stop.is_false for stop in happened) / len(stops),
        "saved": sum(stop.saved for stop in happened) / len(stops),
    }


def text(rows: Sequence[Row]) -> str:
    """Return what each policy misses and costs, whether the bars are met, and the stops."""
    return "\n".join([*_readings_text(rows), "", *_stopping_text(rows)])


def _readings_text(rows: Sequence[Row]) -> Iterator[str]:
    readings = [row for row in rows if row["kind"] == "readings"]
    for (half, protocol, stride), group in grouped(readings, "half", "protocol", "stride").items():
        runs, reached = group[0]["runs"], group[0]["reached"]
        part = "" if stride == 1 else f" (one log of {stride})"
        yield f"{half}, {protocol}: {runs} runs{part}, of which {reached} reach the target"
        yield f"  {'':<32}{'share':>7}{'missed':>15}{'late':>22}{'clock':>8}{'ratio':>7}"
        for row in group:
            cells = zip(_COLUMNS, _WIDTHS, strict=True)
            yield f"  {row['policy']:<32}" + "".join(
                f"{row[name]:>{width}.3f}" for name, width in cells
            )
    yield from _LEGEND


def _stopping_text(rows: Sequence[Row]) -> Iterator[str]:
    stopping = [row for row in rows if row["kind"] == "stopping"]
    for (half, schedule), group in grouped(stopping, "half", "policy").items():
        yield f"stopping, {half}, reading {schedule}: {group[0]['runs']} runs"
        head = f"{'stopped':>8}{'false':>7}{'saved':>7}"
        yield f"  {'':<24}{head}    best patience with no more false stops"
        patient = [row for row in group if row["rule"].startswith("patience")]
        for row in group:
            if row not in patient:
                yield f"  {_stop_line(row)}    {_best_patience(patient, row['false'])}"
        yield f"  {'at most 2 % false':<46}    {_best_patience(patient, FALSE_STOPS)}"
    yield "Shares of all runs; patience is chosen in hindsight."


def _best_patience(patient: Sequence[Row], false: float) -> str:
    """Return the patience that saves most with at most so many false stops."""
    allowed = [row for row in patient if row["false"] <= false]
    return _stop_line(max(allowed, key=lambda row: row["saved"])) if allowed else "none"


def _stop_line(row: Row) -> str:
    return f"{row['rule']:<24}{row['stopped']:>8.3f}{row['false']:>7.3f}{row['saved']:>7.3f}"


def tasks(options: argparse.Namespace) -> list[Task]:
    """Return the tasks that were asked for."""
    policies = [*POLICIES, BEST_INTERVAL]
    every_task = [
        *(Task("readings", *cell, options.stride) for cell in product(HALVES, PROTOCOLS, policies)),
        *(
            Task("readings", "choosing", protocol, name, options.stride_of_ablations)
            for protocol, name in product(PROTOCOLS, [BASELINE, OURS, *ABLATIONS])
        ),
        *(
            Task("stopping", half, "planned", schedule, options.stride_of_stopping)
            for half, schedule in product(HALVES, SCHEDULES)
        ),
    ]
    chosen = dict.fromkeys(task for task in every_task if task.kind in options.kinds)
    return [task for task in chosen if not options.policies or task.policy in options.policies]


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print them; without the logs, say why not."""
    parser = parser_for(NAME, "when validation pays, on recorded trainings")
    parser.add_argument(
        "--kinds", nargs="+", choices=["readings", "stopping"], default=["readings", "stopping"]
    )
    parser.add_argument("--policies", nargs="+", default=[], help="all if none is named")
    parser.add_argument("--stride", type=int, default=1, help="one log of so many is played,")
    parser.add_argument("--stride-of-ablations", type=int, default=4, help="for ablations, and")
    parser.add_argument("--stride-of-stopping", type=int, default=4, help="for stopping")
    parser.add_argument("--processes", type=int, default=2, help="tasks side by side")
    parser.add_argument("--smoke", action="store_true", help=f"one log of {_SMOKE}")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.stride = options.stride_of_ablations = options.stride_of_stopping = _SMOKE
    try:
        logs_of(HALVES["choosing"])
    except MissingDataError as missing:
        print(f"{NAME} is left out. {missing}")
        return
    for rows in in_processes(measure, tasks(options), options.processes):
        replaced = {part_of(row, Task) for row in rows}
        keep = partial(_stays, replaced)
        write_results(NAME, rows, [0], directory=options.results, keep=keep)
    print(text(rows_of(NAME, options.results)))


def _stays(replaced: set[Task], row: Row) -> bool:
    return part_of(row, Task) not in replaced
