"""What ``OnlineTuner.diagnose`` says of the problems of the suite, and when."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from typing import NamedTuple

from benchmarks.harness.command_line import seeds_of
from benchmarks.harness.record import Row, grouped, rows_of, write_results
from benchmarks.harness.sweep import in_processes
from benchmarks.harness.tuners import as_it_comes
from benchmarks.suite.benchmark import suite_parser
from benchmarks.suite.data import available
from benchmarks.suite.policies import TunedPolicy
from benchmarks.suite.problems import PROBLEMS
from benchmarks.suite.runner import Record, run_online

NAME = "online-suite-verdicts"
SHARES = (0.25, 0.5, 0.75)  # of the run, after which it is asked


class Task(NamedTuple):
    """A run."""

    problem: str
    seed: int


def ask(task: Task) -> list[Row]:
    """Return what is said after each share of a run."""
    problem = PROBLEMS[task.problem]()
    tuner = as_it_comes(problem.space, problem.horizon, problem.default, task.seed)
    due = {math.ceil(share * problem.horizon) for share in SHARES}
    rows: list[Row] = []

    def after_round(record: Record) -> None:
        if (now := len(record.decisions)) in due:
            found = tuner.diagnose()
            said = {
                name: None if (isinstance(v, float) and math.isnan(v)) else v
                for name, v in asdict(found).items()
            }
            rows.append({**task._asdict(), "round": now, "pays": found.pays, **said})

    policy, last = TunedPolicy(tuner, guarded=True), max(due)
    run_online(problem, policy, task.seed, after_round=after_round, rounds=last, report_every=last)
    return rows


def text(rows: Sequence[Row]) -> str:
    """Return in how many runs tuning was said to pay, by problem and round."""
    lines = []
    rounds = sorted({row["round"] for row in rows})
    lines.append(f"{'said to pay, after round':<28}" + "".join(f"{r:>10}" for r in rounds))
    for problem, mine in grouped(rows, "problem").items():
        cells = []
        for round in rounds:
            said = [row["pays"] for row in mine if row["round"] == round]
            cells.append(f"{sum(p is True for p in said)} of {len(said)}")
        lines.append(f"  {problem:<26}" + "".join(f"{cell:>10}" for cell in cells))
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Run the tuner on the problems, ask it on the way, store and print what it says."""
    parser = suite_parser(NAME, "what the diagnosis says of small real problems")
    options = parser.parse_args(arguments)
    seeds = seeds_of(options)
    tasks = [
        Task(problem, seed) for problem in available(PROBLEMS, options.problems) for seed in seeds
    ]
    rows = chain.from_iterable(in_processes(ask, tasks, options.processes))
    write_results(NAME, rows, list(seeds), directory=options.results)
    print(text(rows_of(NAME, options.results)))
