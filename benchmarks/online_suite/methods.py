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
        return Outcome(record.test_accuracy[-1][1], record.queries, rounds, record.seconds)

    return method


def tuned(
    kind: Callable[..., OnlineTuner] = OnlineTuner,
    guarded: bool = True,
    rule: Callable[[int], QueryRule] | None = None,
    **options: Any,
) -> Method:
    """Return the method of training once under a tuner, started from the default.

    Args:
        kind: ``OnlineTuner`` or one of its constructors.
        guarded: Whether ruined networks are taken back.
        rule: From the horizon to the query rule; that of the tuner if omitted.
        options: Of the tuner.
    """

    def make(problem: OnlineProblem, seed: int) -> Policy:
        chosen: dict[str, Any] = {"horizon": problem.horizon, "start": problem.default, **options}
        if rule is not None:
            chosen["query"] = rule(problem.horizon)
        return TunedPolicy(kind(problem.space, seed=seed, **chosen), guarded)

    return one_run(make)


def middle(problem: OnlineProblem) -> dict[str, Any]:
    """Return the middle of the space, where nobody thought about it."""
    centre = torch.full((problem.space.dim,), 0.5, dtype=torch.float64)
    return problem.space.decode(problem.space.round(centre))


def _quarter(horizon: int) -> QueryRule:
    return PricedQuery(budget=horizon // 4)


PUBLISHED: dict[str, Any] = {
    "kind": OnlineTuner.as_published,
    "rule": lambda horizon: AlwaysQuery(),
}
METHODS: dict[str, Method] = {
    "default": one_run(lambda problem, seed: FixedPolicy(problem.default)),
    "middle": one_run(lambda problem, seed: FixedPolicy(middle(problem))),
    "random schedule": one_run(lambda problem, seed: RandomPolicy(problem.space, seed)),
    "cosine": one_run(lambda p, seed: AnnealedPolicy(p, cosine)),
    "one cycle": one_run(lambda p, seed: AnnealedPolicy(p, one_cycle)),
    "full feedback": tuned(**PUBLISHED, guarded=False),
    "tuned": tuned(),
    # The default without one of its parts, or with a budget on top.
    "tuned, every round": tuned(hold=0.0),
    "tuned, unguarded": tuned(guarded=False),
    "tuned, random design": tuned(initial_design="random"),
    "tuned, one start round": tuned(start_rounds=1),
    "tuned, no ranks": tuned(reward_scale=RewardScale()),
    "tuned, all ranks": tuned(reward_scale=RewardScale(ranks=True)),
    "tuned, priced": tuned(rule=_quarter),
    "population": PopulationTraining(),
    "halving": SuccessiveHalving(),
}


def methods_of(problem: OnlineProblem) -> dict[str, Method]:
    """Return the methods that make sense for a problem."""
    idle = {"middle"} if problem.space.is_arms else set()
    if "learning_rate" not in problem.space.names:
        idle |= {"cosine", "one cycle"}
    return {name: method for name, method in METHODS.items() if name not in idle}
