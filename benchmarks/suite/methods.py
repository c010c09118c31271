"""What may set the hyperparameters of a run: the user, chance, schedules, tuners and their rivals."""

import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.harness.tuners import as_it_comes, as_published, with_budget
from benchmarks.suite import policies
from benchmarks.suite.population import PopulationTraining, SuccessiveHalving
from benchmarks.suite.protocol import OnlineProblem, Outcome
from benchmarks.suite.runner import run_online
from botorch_costly import AlwaysQuery, Design, Hold, QueryRule, RewardScale, Session

Method = Callable[[OnlineProblem, int], Outcome]


def one_run(make: Callable[[OnlineProblem, int], policies.Policy]) -> Method:
    """Return the method of training once under a policy."""

    def method(problem: OnlineProblem, seed: int) -> Outcome:
        record = run_online(problem, make(problem, seed), seed, report_every=problem.horizon)
        rounds = len(record.decisions)
        return Outcome(record.test_accuracy[-1][1], record.queries, rounds, record.seconds)

    return method


def tuned(
    *,
    guarded: bool = True,
    memory: float = 0.0,
    rule: Callable[[int], QueryRule] | None = None,
    **options: Any,
) -> Method:
    """Return the method of training once under a tuner as it comes, started from the default.

    If guarded, diverged networks are rolled back; ``memory`` is that of the reference of gains; ``rule``
    maps the horizon to a query rule.
    """

    def make(problem: OnlineProblem, seed: int) -> policies.Policy:
        chosen = options if rule is None else {**options, "query": rule(problem.horizon)}
        tuner = as_it_comes(problem.space, problem.horizon, problem.default, seed, **chosen)
        return policies.TunedPolicy(tuner, guarded=guarded, memory=memory)

    return one_run(make)


def published(*, guarded: bool = False, **options: Any) -> Method:
    """Return the method of training once under the tuner of the paper, with full feedback."""

    def make(problem: OnlineProblem, seed: int) -> policies.Policy:
        chosen = {"start": problem.default, **options}
        tuner = as_published(problem.space, problem.horizon, AlwaysQuery(), seed, **chosen)
        return policies.TunedPolicy(tuner, guarded=guarded)

    return one_run(make)


def by_twins(problem: OnlineProblem, seed: int) -> Outcome:
    """Train once under the tuner that compares twins, started from the default."""
    began, run = time.perf_counter(), problem.setup(seed)
    session = Session(problem.space, problem.horizon, run, start=problem.default, seed=seed)
    for decision in session:
        run.train_round(decision.config)
        if decision.query:
            session.tell(decision, run.validate().loss)
    seconds = time.perf_counter() - began
    return Outcome(run.test().accuracy, session.tuner.queries, problem.horizon, seconds)


def middle(problem: OnlineProblem) -> dict[str, Any]:
    """Return the middle of the space: what a user without any experience might take."""
    centre = torch.full((problem.space.dim,), 0.5, dtype=torch.float64)
    return problem.space.decode(problem.space.round(centre))


def _quarter(horizon: int) -> QueryRule:
    return with_budget(horizon // 4)


METHODS: dict[str, Method] = {
    "default": one_run(lambda problem, seed: policies.FixedPolicy(problem.default)),
    "middle": one_run(lambda problem, seed: policies.FixedPolicy(middle(problem))),
    "random schedule": one_run(lambda problem, seed: policies.RandomPolicy(problem.space, seed)),
    "cosine": one_run(lambda p, seed: policies.AnnealedPolicy(p, policies.cosine)),
    "one cycle": one_run(lambda p, seed: policies.AnnealedPolicy(p, policies.one_cycle)),
    "full feedback": published(),
    "tuned": tuned(),
    "twins": by_twins,
    # The default without one of its parts, or with a budget on top.
    "tuned, every round": tuned(hold=Hold(share=0.0)),
    "tuned, unguarded": tuned(guarded=False),
    "tuned, random design": tuned(design=Design(kind="random")),
    "tuned, one start round": tuned(design=Design(start_rounds=1)),
    "tuned, no ranks": tuned(rewards=RewardScale()),
    "tuned, all ranks": tuned(rewards=RewardScale(ranks=True)),
    "tuned, priced": tuned(rule=_quarter),
    "tuned, memory": tuned(memory=0.8),
    "population": PopulationTraining(),
    "halving": SuccessiveHalving(),
}


def methods_of(problem: OnlineProblem) -> dict[str, Method]:
    """Return the methods that make sense for a problem."""
    idle = {"middle"} if problem.space.is_arms else set()
    if "learning_rate" not in problem.space.names:
        idle |= {"cosine", "one cycle"}
    return {name: method for name, method in METHODS.items() if name not in idle}
