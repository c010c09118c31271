"""What ``OnlineTuner.diagnose`` says of the problems of the suite, and when."""

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from typing import NamedTuple

from benchmarks.online_suite.benchmark import available
from benchmarks.online_suite.policies import TunedPolicy
from benchmarks.online_suite.problems import PROBLEMS
from benchmarks.processes import in_processes
from benchmarks.record import Row, add_results_argument, read, write_results
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
    policy, run = TunedPolicy(tuner, guarded=True), problem.setup(task.seed)
    rows: list[Row] = []
    policy.start(run)
    for share in SHARES:
        while run.round < share * problem.horizon:
            decision = policy.decide()
            run.train_round(decision.config)
            if decision.query:
                policy.look(decision, run.validate())
        found = tuner.diagnose()
        said = {name: None if _unknown(v) else v for name, v in asdict(found).items()}
        rows.append({**task._asdict(), "round": run.round, "pays": found.pays, **said})
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
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks online-suite-verdicts",
        description="what the diagnosis says of small real problems",
    )
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=10, help="how many")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2, help="runs side by side")
    add_results_argument(parser)
    options = parser.parse_args(arguments)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    tasks = [Task(problem, seed) for problem in available(options.problems) for seed in seeds]

    rows = chain.from_iterable(in_processes(ask, tasks, options.processes))
    write_results(NAME, rows, list(seeds), directory=options.results)
    print(table([line["row"] for line in read(NAME, options.results)]))
