"""Who may set the hyperparameters of a run: the user, chance, schedules, tuners and their rivals."""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.online_suite.policies import (
    AnnealedPolicy,
    FixedPolicy,
    Policy,
    RandomPolicy,
    TunedPolicy,
    cosine,
    one_cycle,
)
from benchmarks.online_suite.population import PopulationTraining, SuccessiveHalving
from benchmarks.online_suite.protocol import OnlineProblem, Outcome
from benchmarks.online_suite.runner import run_online
from botorch_costly import AlwaysQuery, OnlineTuner, PricedQuery, QueryRule, RewardScale

Method = Callable[[OnlineProblem, int], Outcome]


def one_run(make: Callable[[OnlineProblem, int], Policy]) -> Method:
    """Return the method of training once under a policy."""

    def method(problem: OnlineProblem, seed: int) -> Outcome:
        record = run_online(problem, make(problem, seed), seed, report_every=problem.horizon)
        rounds = len(record.decisions)
        return Outcome(record.test_accuracy[-1][1], record.looks, rounds, record.seconds)

    return method


def tuned(
    guarded: bool = False, rule: Callable[[int], QueryRule] | None = None, **options: Any
) -> Method:
    """Return the method of training once under a tuner, started from the default.

    Args:
        guarded: Whether ruined networks are taken back.
        rule: From the horizon to the query rule; every round is looked at if omitted.
        options: Of ``OnlineTuner``.
    """

    def make(problem: OnlineProblem, seed: int) -> Policy:
        query = AlwaysQuery() if rule is None else rule(problem.horizon)
        usual: dict[str, Any] = {"horizon": problem.horizon, "start": problem.default}
        tuner = OnlineTuner(problem.space, query=query, seed=seed, **usual, **options)
        return TunedPolicy(tuner, guarded)

    return one_run(make)


def middle(problem: OnlineProblem) -> dict[str, Any]:
    """Return the middle of the space, where nobody thought about it."""
    centre = torch.full((problem.space.dim,), 0.5, dtype=torch.float64)
    return problem.space.decode(problem.space.round(centre))


GUARDED: dict[str, Any] = {"guarded": True, "start_rounds": 10}
METHODS: dict[str, Method] = {
    "default": one_run(lambda problem, seed: FixedPolicy(problem.default)),
    "middle": one_run(lambda problem, seed: FixedPolicy(middle(problem))),
    "random schedule": one_run(lambda problem, seed: RandomPolicy(problem.space, seed)),
    "cosine": one_run(lambda p, seed: AnnealedPolicy(p, cosine)),
    "one cycle": one_run(lambda p, seed: AnnealedPolicy(p, one_cycle)),
    "full feedback": tuned(),
    "guarded": tuned(**GUARDED),
    "guarded, ranks": tuned(**GUARDED, reward_scale=RewardScale(ranks=True)),
    "guarded, priced": tuned(**GUARDED, rule=lambda horizon: PricedQuery(looks=2 * horizon // 5)),
    "population": PopulationTraining(),
    "halving": SuccessiveHalving(),
}


def methods_of(problem: OnlineProblem) -> dict[str, Method]:
    """Return the methods that make sense for a problem."""
    idle = {"middle"} if problem.space.is_arms else set()
    if "learning_rate" not in problem.space.names:
        idle |= {"cosine", "one cycle"}
    return {name: method for name, method in METHODS.items() if name not in idle}
