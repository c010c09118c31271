"""Who may set the hyperparameters of a run: the user, chance, schedules, tuners and their rivals."""

from collections.abc import Callable
from typing import Any

from benchmarks.online_suite.policies import (
    AnnealedPolicy,
    FixedPolicy,
    Policy,
    RandomPolicy,
    TunedPolicy,
    cosine,
    one_cycle,
)
from benchmarks.online_suite.population import Outcome, PopulationTraining, SuccessiveHalving
from benchmarks.online_suite.protocol import OnlineProblem
from benchmarks.online_suite.runner import run_online
from botorch_costly import AlwaysQuery, OnlineTuner

Method = Callable[[OnlineProblem, int], Outcome]


def one_run(make: Callable[[OnlineProblem, int], Policy]) -> Method:
    """Return the method of training once under a policy."""

    def method(problem: OnlineProblem, seed: int) -> Outcome:
        record = run_online(problem, make(problem, seed), seed, report_every=problem.horizon)
        rounds = len(record.decisions)
        return Outcome(record.test_accuracy[-1][1], record.looks, rounds, record.seconds)

    return method


def tuned(guarded: bool = False, **options: Any) -> Method:
    """Return the method of training once under a tuner, started from the default."""

    def make(problem: OnlineProblem, seed: int) -> Policy:
        tuner = OnlineTuner(
            problem.space,
            **{
                "horizon": problem.horizon,
                "query": AlwaysQuery(),
                "start": problem.default,
                "seed": seed,
                **options,
            },
        )
        return TunedPolicy(tuner, guarded)

    return one_run(make)


def middle(problem: OnlineProblem) -> dict[str, Any]:
    """Return the middle of the space, where nobody thought about it."""
    centre = 0.5 + 0 * problem.space.encode(problem.default)
    return problem.space.decode(problem.space.round(centre))


METHODS: dict[str, Method] = {
    "default": one_run(lambda problem, seed: FixedPolicy(problem.default)),
    "middle": one_run(lambda problem, seed: FixedPolicy(middle(problem))),
    "random schedule": one_run(lambda problem, seed: RandomPolicy(problem.space, seed)),
    "cosine": one_run(lambda p, seed: AnnealedPolicy(p, cosine)),
    "one cycle": one_run(lambda p, seed: AnnealedPolicy(p, one_cycle)),
    "full feedback": tuned(),
    "guarded": tuned(guarded=True),
    "population": PopulationTraining(),
    "halving": SuccessiveHalving(),
}
ANNEALED = ("cosine", "one cycle")


def methods_of(problem: OnlineProblem) -> dict[str, Method]:
    """Return the methods that make sense for a problem."""
    rated = "learning_rate" in problem.space.names
    return {name: method for name, method in METHODS.items() if rated or name not in ANNEALED}
