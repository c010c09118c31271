"""Pruners of Optuna on recorded learning curves: ``python -m benchmarks pruners``.

Trials take configurations of a table in random order, as of a random sampler, and report up to 25 times.
Budgets are in means of the cost of a whole training; the regret is that of the best complete trial, as a
share of what the best last reward is above the least reward of all. A pruned trial counts for nothing.

The constants of ``CurvePruner`` were chosen on ``CHOSEN_ON``; the other tables confirm.
"""

import math
import time
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import torch

from benchmarks.curves.tables import TABLES, problem_of
from benchmarks.curves.tabular import regrets, verdicts
from benchmarks.harness.record import Row, grouped
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from botorch_costly.integrations.optuna import CurvePruner
from botorch_costly.problems import CurveProblem

NAME = "pruners"
OURSELF = "CurvePruner"
CHOSEN = f"{OURSELF}, ratio 1"
BUDGETS = (5, 10, 20)
CHOSEN_ON = ("alexnet", "lcbench")
_REPORTS = 25
_SHOWN = (10, 20)  # budgets in the table of the hub's page


class Task(NamedTuple):
    """A study, and the key of its row."""

    table: str
    policy: str
    seed: int


def _rival(name: str) -> Callable[[int], Any]:
    def made(longest: int) -> Any:
        import optuna

        options = {"max_resource": longest} if name == "HyperbandPruner" else {}
        return getattr(optuna.pruners, name)(**options)

    return made


def _ours(ratio: float) -> Callable[[int], Any]:
    return lambda longest: CurvePruner("epochs", cost="paid", ratio=ratio)


PRUNERS: dict[str, Callable[[int], Any]] = {
    **{f"{OURSELF}, ratio {ratio:g}": _ours(ratio) for ratio in (0.25, 0.5, 1.0, 2.0)},
    "no pruner": _rival("NopPruner"),
    "median": _rival("MedianPruner"),
    "halving": _rival("SuccessiveHalvingPruner"),
    "hyperband": _rival("HyperbandPruner"),
}


def measure(task: Task) -> Row:
    """Return the regret of a study at each budget, and what became of its trials."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    problem, began = problem_of(task.table, task.seed), time.perf_counter()
    pruner = PRUNERS[task.policy](int(problem.lengths.max()))
    # The name decides on the brackets of Hyperband.
    study = optuna.create_study(
        direction="maximize",
        pruner=pruner,
        sampler=optuna.samplers.RandomSampler(seed=task.seed),
        study_name=f"{task.table} {task.seed}",
    )
    points = _played(study, problem, task.seed)
    spread = problem.best - problem.worst
    at = {
        f"at {budget}": (problem.best - max([problem.worst, *_until(points, budget)])) / spread
        for budget in BUDGETS
    }
    states = [trial.state.name for trial in study.trials]
    counts = {name.lower(): states.count(name) for name in ("COMPLETE", "PRUNED", "FAIL")}
    seconds = (time.perf_counter() - began) / len(states)
    return {**task._asdict(), **at, **counts, "seconds": seconds}


def _until(points: Sequence[tuple[float, float]], budget: float) -> list[float]:
    return [value for paid, value in points if paid <= budget]


def _played(study: Any, problem: CurveProblem, seed: int) -> list[tuple[float, float]]:
    """Play a study until its budget is spent; return what was paid at each complete trial's end."""
    order = torch.randperm(len(problem), generator=torch.Generator().manual_seed(seed)).tolist()
    paid, points = 0.0, []
    for config in order:
        value, cost = _trial(study, problem, config)
        paid += cost
        if paid > max(BUDGETS):
            break
        if value is not None:
            points.append((paid, value))
    return points


def _trial(study: Any, problem: CurveProblem, config: int) -> tuple[float | None, float]:
    """Play one trial; return its value, None unless it is complete, and its cost."""
    from optuna.trial import TrialState

    trial, length = _asked(study, problem, config), int(problem.lengths[config])
    stride, mean = math.ceil(int(problem.lengths.max()) / _REPORTS), float(problem.costs.mean())
    done, paid, value = 0, 0.0, None
    while done < length:
        until = min(done + stride, length)
        segment = problem.advance(config, done, until)
        done, paid = until, paid + segment.cost / mean
        trial.set_user_attr("paid", paid)
        if segment.broken:
            study.tell(trial, state=TrialState.FAIL)
            return None, paid
        value = float(segment.curve[-1])
        trial.report(value, done - 1)
        if done < length and trial.should_prune():
            study.tell(trial, state=TrialState.PRUNED)
            return None, paid
    study.tell(trial, value)
    return value, paid


def _asked(study: Any, problem: CurveProblem, config: int) -> Any:
    """Return a new trial with a configuration and its length as parameters."""
    longest = int(problem.lengths.max())
    params = {f"x{i}": value for i, value in enumerate(problem.inputs[config].tolist())}
    study.enqueue_trial({**params, "epochs": int(problem.lengths[config])})
    trial = study.ask()
    for name in params:
        trial.suggest_float(name, 0.0, 1.0)
    shortest = int(problem.lengths.min())
    trial.suggest_int("epochs", shortest, longest)
    return trial


def text(rows: Sequence[Row]) -> str:
    """Return each pruner's regrets at each budget, table by table, and how ours compares."""
    chosen = f"The ratio was chosen on {' and '.join(CHOSEN_ON)}; the other tables came after."
    parts = (regrets(rows, BUDGETS), verdicts(rows, BUDGETS, CHOSEN), chosen)
    return "\n\n".join(parts)


def table(rows: Sequence[Row]) -> str:
    """Return the mean regrets of ours and Optuna's pruners as a table of Markdown."""
    shown = (CHOSEN, *(name for name in PRUNERS if not name.startswith(OURSELF)))
    tables = grouped(rows, "table")
    heads = [f"{name}, {budget}" for name in tables for budget in _SHOWN]
    lines = ["| | " + " | ".join(heads) + " |", "|" + "---|" * (len(heads) + 1)]
    for policy in shown:
        of = [[row for row in mine if row["policy"] == policy] for mine in tables.values()]
        cells = [f"{fmean(row[f'at {k}'] for row in some):.3f}" for some in of for k in _SHOWN]
        name = f"**`{OURSELF}`**" if policy == CHOSEN else policy
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    about = "regret against what was paid, by Optuna's pruners on recorded learning curves"
    parser = sweep_parser(NAME, about, seeds=10, tables=TABLES, policies=PRUNERS)
    options = parser.parse_args(arguments)
    wanted = tasks_of(Task, options, options.tables, options.policies)
    print(text(measured(NAME, wanted, measure, options)))
