"""What ``OnlineTuner.diagnose`` says of the problems of the suite, and when."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from typing import NamedTuple

from benchmarks.online_suite.benchmark import available, suite_parser
from benchmarks.online_suite.policies import TunedPolicy
from benchmarks.online_suite.problems import PROBLEMS
from benchmarks.online_suite.runner import Record, run_online
from benchmarks.processes import in_processes
from benchmarks.record import Row, read, write_results
from botorch_costly import OnlineTuner

NAME = "online-suite-verdicts"
SHARES = (0.25, 0.5, 0.75)  # of the run, after which it is asked


class Task(NamedTuple):
    """A run."""

    problem: str
    seed: int


def ask(task: Task) -> list[Row]:
    """Return what is said after each share of a run."""
    problem = PROBLEMS[task.problem]()
    tuner = OnlineTuner(problem.space, problem.horizon, start=problem.default, seed=task.seed)
    due = {math.ceil(share * problem.horizon) for share in SHARES}
    rows: list[Row] = []

    def after_round(record: Record) -> None:
        if (now := len(record.decisions)) in due:
            found = tuner.diagnose()
            said = {name: None if _unknown(v) else v for name, v in asdict(found).items()}
            rows.append({**task._asdict(), "round": now, "pays": found.pays, **said})

    policy, last = TunedPolicy(tuner, guarded=True), max(due)
    run_online(problem, policy, task.seed, after_round=after_round, rounds=last, report_every=last)
    return rows


def _unknown(value: float) -> bool:
    return isinstance(value, float) and math.isnan(value)


def table(rows: Sequence[Row]) -> str:
    """Return in how many runs tuning was said to pay, by problem and round."""
    lines = []
    rounds = sorted({row["round"] for row in rows})
    lines.append(f"{'said to pay, after round':<28}" + "".join(f"{r:>10}" for r in rounds))
    for problem in dict.fromkeys(row["problem"] for row in rows):
        cells = []
        for round in rounds:
            said = [r["pays"] for r in rows if r["problem"] == problem and r["round"] == round]
            cells.append(f"{sum(p is True for p in said)} of {len(said)}")
        lines.append(f"  {problem:<26}" + "".join(f"{cell:>10}" for cell in cells))
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Run the tuner on the problems, ask it on the way, store and print what it says."""
    parser = suite_parser(NAME, "what the diagnosis says of small real problems")
    options = parser.parse_args(arguments)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    tasks = [Task(problem, seed) for problem in available(options.problems) for seed in seeds]
    rows = chain.from_iterable(in_processes(ask, tasks, options.processes))
    write_results(NAME, rows, list(seeds), directory=options.results)
    print(table([line["row"] for line in read(NAME, options.results)]))
