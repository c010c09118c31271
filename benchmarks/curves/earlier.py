"""Earlier studies in a search over trainings: ``python -m benchmarks curves-earlier``.

A task of LCBench (the surrogate) is searched with the final values of 100 configurations of ten other
tasks; a game with those of the other game, or of itself with other seeds. Also with values negated and
shuffled, which mislead. Budgets are in means of the cost of a whole training; regrets are shares of the
range of all rewards.

Rivals: DyHPO and a latent Kronecker model with ifBO's acquisition function know no earlier study;
Quick-Tune knows the curves of the same trainings from their beginning, and their costs, where ours sees
final values alone.

The defaults were chosen on the tasks "lcbench, 0 to 9"; nothing was chosen on the others.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.curves.dyhpo import dyhpo
from benchmarks.curves.earlier_curves import Study, study_of
from benchmarks.curves.gaussian import kronecker, random_horizon
from benchmarks.curves.ours import curve_optimizer, numbers_of, space_of
from benchmarks.curves.play import Ask, Policy, Steps, play, regret_at
from benchmarks.curves.quick_tune import quick_tune
from benchmarks.curves.tables import TASKS, reinforcement, surrogate
from benchmarks.curves.tabular import Task as Key, regrets, verdicts
from benchmarks.harness.record import Row
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from botorch_costly import Task, TransferOptimizer
from botorch_costly.problems import CurveProblem

NAME = "curves-earlier"
BUDGETS = (1, 2, 3, 5, 7, 10)
OURSELF, ALONE = "with studies", "alone"
MISLED = ("negated", "shuffled", "quick-tune, negated")
_STUDIES, _CONFIGS = 10, 100
_CHOSEN_ON = 10  # tasks of LCBench on which defaults were chosen
_PORTFOLIO = 30
_SMOKE = (OURSELF, "dyhpo", "quick-tune")


class Case(NamedTuple):
    """A search, and the trainings of the earlier studies."""

    problem: CurveProblem
    earlier: list[CurveProblem]


def _of_tasks(tasks: range, seed: int) -> Case:
    target = tasks[seed % len(tasks)]
    others = [task for task in tasks if task != target]
    drawn = torch.randperm(len(others), generator=torch.Generator().manual_seed(seed))[:_STUDIES]
    return Case(surrogate(target), [surrogate(others[i]) for i in drawn.tolist()])


def _of_games(game: str, other: str, seed: int) -> Case:
    # The seeds of a game count modulo those that were measured: its other seeds are the next two.
    seeds = range(seed + 1, seed + 3)
    return Case(reinforcement(game, seed), [reinforcement(other, s) for s in seeds])


CASES: dict[str, Callable[[int], Case]] = {
    "lcbench, 0 to 9": lambda seed: _of_tasks(range(_CHOSEN_ON), seed),
    "lcbench, 10 to 33": lambda seed: _of_tasks(range(_CHOSEN_ON, TASKS), seed),
    "pong after pong": lambda seed: _of_games("pong", "pong", seed),
    "pong after enduro": lambda seed: _of_games("pong", "enduro", seed),
    "enduro after pong": lambda seed: _of_games("enduro", "pong", seed),
}


def studies_of(case: Case, seed: int, *, sign: float = 1.0, shuffled: bool = False) -> list[Task]:
    """Return the final values of some configurations of each earlier study."""
    studies = []
    for problem, drawn, order in _drawn(case, seed):
        values = problem.rewards[drawn, problem.lengths[drawn] - 1]
        values = sign * (values[order] if shuffled else values)
        names = space_of(problem).names
        studies.append(Task(problem.inputs[drawn], values, names=names))
    return studies


def curves_of(case: Case, seed: int, *, sign: float = 1.0) -> list[Study]:
    """Return the curves and costs of the configurations of ``studies_of``."""
    studies = [study_of(problem, drawn) for problem, drawn, _ in _drawn(case, seed)]
    return [study._replace(curves=sign * study.curves) for study in studies]


def _drawn(case: Case, seed: int) -> Iterator[tuple[CurveProblem, Tensor, Tensor]]:
    """Yield each earlier study, some of its configurations, and an order that shuffles these."""
    generator = torch.Generator().manual_seed(seed)
    for problem in case.earlier:
        drawn = torch.randperm(len(problem), generator=generator)[:_CONFIGS]
        yield problem, drawn, torch.randperm(len(drawn), generator=generator)


def whole(studies: Sequence[Task], warm_start: int, count: int | None = None) -> Policy:
    """Return the policy of ``TransferOptimizer`` on the final values of whole trainings."""

    def policy(problem: CurveProblem, seed: int, budget: float) -> Steps:
        space, number = space_of(problem), numbers_of(problem)
        listed = [dict(zip(space.names, values, strict=True)) for values in number]
        optimizer = TransferOptimizer(
            space, studies, candidates=listed, warm_start=warm_start, seed=seed
        )
        for _ in range(len(listed) if count is None else count):
            suggestion = optimizer.ask()
            chosen = number[tuple(suggestion.config.values())]
            told = yield Ask(chosen, int(problem.lengths[chosen]))
            optimizer.tell(suggestion, math.nan if told.broken else float(told.curve[-1]))

    return policy


POLICIES: dict[str, Callable[[Case, int], Policy]] = {
    ALONE: lambda case, seed: curve_optimizer(),
    OURSELF: lambda case, seed: curve_optimizer(tasks=studies_of(case, seed)),
    "negated": lambda case, seed: curve_optimizer(tasks=studies_of(case, seed, sign=-1.0)),
    "shuffled": lambda case, seed: curve_optimizer(tasks=studies_of(case, seed, shuffled=True)),
    "finals": lambda case, seed: whole(studies_of(case, seed), 0),
    "portfolio": lambda case, seed: whole(studies_of(case, seed), _PORTFOLIO, _PORTFOLIO),
    "dyhpo": lambda case, seed: dyhpo,
    "quick-tune": lambda case, seed: quick_tune(curves_of(case, seed)),
    "quick-tune, negated": lambda case, seed: quick_tune(curves_of(case, seed, sign=-1.0)),
    "kronecker": lambda case, seed: random_horizon(kronecker),
}


def measure(key: Key) -> Row:
    """Return the regret of a policy at each budget, as a share of the range of all rewards."""
    case, began = CASES[key.table](key.seed), time.perf_counter()
    problem, policy = case.problem, POLICIES[key.policy](case, key.seed)
    points = play(problem, policy, key.seed, max(BUDGETS))
    spread = problem.best - problem.worst
    found = {f"at {budget}": regret_at(points, budget) / spread for budget in BUDGETS}
    return {**key._asdict(), **found, "seconds": (time.perf_counter() - began) / len(points)}


def text(rows: Sequence[Row]) -> str:
    """Return the regrets at each budget, what studies gain, and what harm misleading ones do."""
    misled = [row for row in rows if row["policy"] in (ALONE, *MISLED)]
    honest = [row for row in rows if row["policy"] not in MISLED]
    compared = verdicts(honest, BUDGETS, OURSELF), verdicts(misled, BUDGETS, ALONE)
    return "\n\n".join((regrets(rows, BUDGETS), *compared))


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    about = "regret against what was paid, on recorded learning curves, after earlier studies"
    parser = sweep_parser(NAME, about, seeds=20, tables=CASES, policies=POLICIES)
    parser.add_argument("--smoke", action="store_true", help="three policies on a game and a seed")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.tables, options.policies, options.seeds = ["enduro after pong"], _SMOKE, 1
    wanted = tasks_of(Key, options, options.tables, options.policies)
    print(text(measured(NAME, wanted, measure, options)))
