"""How near the belief of a new process is to the posterior: ``python -m benchmarks cold-belief``.

A search plays so many evaluations. Then its belief, and that of a new search which is told the same
evaluations, predict configurations at the target, beside references whose walkers take ten times the
steps. Errors of means and standard deviations are in standard deviations of the references. The predicted
cost of a whole evaluation is compared with the true one, among the best tenth of the configurations.
"""

import math
import statistics
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.harness.record import Row, grouped
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.subsets.base import encoded
from benchmarks.subsets.tables import TABLES
from botorch_costly import SubsetDecision, SubsetOptimizer
from botorch_costly.acquisition.cost_weighted import predicted_cost
from botorch_costly.models.fidelity_cost import FidelityCost
from botorch_costly.problems import SubsetProblem
from botorch_costly.tuners.subsets.belief import Sampling, log_shares

NAME = "cold-belief"
EVALUATIONS = (10, 30, 60)
PRECISIONS = ("float64", "float32")
# All walkers are draws. As predictions draw the same numbers in every search, references differ in steps.
_LONG = Sampling(draws=500, first_steps=1500), Sampling(draws=500, first_steps=1400)
_CONFIGS = 200
_ERRORS = "mean", "mean at 90 %", "sd", "sd at 90 %"


class Task(NamedTuple):
    """A search, and the key of its row."""

    table: str
    evaluations: int
    precision: str
    seed: int


class Prediction(NamedTuple):
    """Means and standard deviations at the target."""

    mean: Tensor
    sd: Tensor


def measure(task: Task) -> Row:
    """Return the errors of the belief that went on and of a new one, and of the predicted cost."""
    problem = TABLES[task.table].make(task.seed)
    played = _search(problem, task)
    history: list[int] = []
    for _ in range(task.evaluations):
        decision = played.ask()
        wanted = dict(decision.config), dict(decision.fidelities)
        history.append(problem.candidates.index(wanted))
        _tell(played, problem, decision, history[-1])
    configs = [problem.candidates[target][0] for target in problem.targets[:_CONFIGS]]
    began = time.process_time()
    new = _predicted(_told(problem, task, history), configs)
    seconds = time.process_time() - began
    long = [_predicted(_told(problem, task, history, sampling), configs) for sampling in _LONG]
    reference = _mixture(long)
    row: dict[str, Any] = {"seconds": seconds, "cost": _cost_error(problem, history)}
    for kind, prediction in {
        "went on": _predicted(played, configs),
        "new": new,
        "reference": long[0],
    }.items():
        errors = _errors(prediction, reference)
        row |= {f"{kind}: {name}": value for name, value in zip(_ERRORS, errors, strict=True)}
    return {**task._asdict(), **row}


def _search(
    problem: SubsetProblem, task: Task, sampling: Sampling | None = None
) -> SubsetOptimizer:
    return SubsetOptimizer(
        problem.space,
        problem.fidelities,
        candidates=problem.candidates,
        sampling=sampling or Sampling(),
        seed=task.seed,
        dtype=getattr(torch, task.precision),
    )


def _told(
    problem: SubsetProblem,
    task: Task,
    history: Sequence[int],
    sampling: Sampling | None = None,
) -> SubsetOptimizer:
    """Return a new search that is told evaluations of another one."""
    search = _search(problem, task, sampling)
    for number in history:
        config, fidelities = problem.candidates[number]
        decision = search.enqueue(config, fidelities=fidelities)
        _tell(search, problem, decision, number)
    return search


def _tell(
    search: SubsetOptimizer, problem: SubsetProblem, decision: SubsetDecision, number: int
) -> None:
    search.tell(decision, float(problem.told[number]), cost=float(problem.costs[number]))


def _predicted(search: SubsetOptimizer, configs: Sequence[Any]) -> Prediction:
    posterior = search.predict(configs)
    assert posterior is not None
    return Prediction(*posterior)


def _mixture(predictions: Sequence[Prediction]) -> Prediction:
    means = torch.stack([prediction.mean for prediction in predictions])
    squares = torch.stack([p.sd.square() + p.mean.square() for p in predictions])
    mean = means.mean(0)
    return Prediction(mean, (squares.mean(0) - mean.square()).clamp_min(0).sqrt())


def _errors(prediction: Prediction, reference: Prediction) -> list[float]:
    """Return median and 90 % quantile of the errors of means and of standard deviations."""
    numbers = []
    for ours, theirs in zip(prediction, reference, strict=True):
        error = (ours - theirs).abs() / reference.sd
        numbers += [float(error.median()), float(error.quantile(0.9))]
    return numbers


def _cost_error(problem: SubsetProblem, history: Sequence[int]) -> float:
    """Return the median factor by which the cost of good configurations at the target is wrong."""
    targets = torch.tensor(problem.targets)
    good = problem.values[targets].topk(max(1, len(targets) // 10)).indices
    best = targets[good].tolist()
    told = list(history)
    model = FidelityCost(
        encoded(problem, told),
        problem.costs[told].unsqueeze(-1),
        log_shares(problem.fidelities),
        problem.fidelities.dim,
    )
    predicted = predicted_cost(model, encoded(problem, best).unsqueeze(-2), 0.0)
    return math.exp(float((predicted / problem.costs[best]).log().abs().median()))


def text(rows: Sequence[Row]) -> str:
    """Return the errors of each table, number of evaluations and precision."""
    kinds = "went on", "new", "reference"
    lines = [
        f"{'':<26}{'seeds':>6}" + "".join(f"{kind:>24}" for kind in kinds) + f"{'cost':>7}{'s':>6}"
    ]
    for key, mine in grouped(rows, "table", "evaluations", "precision").items():
        cells = "".join(_cells(mine, kind) for kind in kinds)
        cost, seconds = (
            statistics.median(row[name] for row in mine) for name in ("cost", "seconds")
        )
        name = " ".join(map(str, key))
        lines.append(f"{name:<26}{len(mine):>6}{cells}{cost:>7.2f}{seconds:>6.1f}")
    lines.append(
        "Errors of means, median and 90 %, and of standard deviations, in standard deviations; the "
        "reference beside all references; the factor by which costs are wrong; processor seconds of a "
        "new belief."
    )
    return "\n".join(lines)


def _cells(rows: Sequence[Row], kind: str) -> str:
    means = [statistics.fmean(row[f"{kind}: {error}"] for row in rows) for error in _ERRORS]
    return "".join(f"{mean:>6.2f}" for mean in means)


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    about = "how near the belief of a new process is to the posterior"
    parser = sweep_parser(NAME, about, seeds=2, tables=TABLES)
    parser.add_argument("--evaluations", nargs="+", type=int, default=list(EVALUATIONS))
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    options = parser.parse_args(arguments)
    tasks = tasks_of(Task, options, options.tables, options.evaluations, options.precisions)
    print(text(measured(NAME, tasks, measure, options)))
