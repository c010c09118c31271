"""What decides between training only and tuning as well: static schedules, and tuners that query."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.suite.policies import Policy, TunedPolicy
from benchmarks.suite.protocol import Metrics, TrainingRun
from benchmarks.training.schedule.net_gain import NetGainPolicy
from benchmarks.training.schedule.problem import ScheduleProblem
from benchmarks.training.schedule.recipes import TRAIN, TUNE, Recipe
from benchmarks.training.schedule.tuners import NET_TUNERS, TUNERS
from botorch_costly import Decision

DENSE, GRID = TUNE, "static grid"
_SWITCH = 1  # the decay of the learning rate after which tuning is rarer, counted from 0


class StaticPolicy:
    """An arm for each round, fixed beforehand; nothing is queried."""

    def __init__(self, arm_of: Callable[[int], str]) -> None:
        self._arm_of, self._round = arm_of, 0

    def start(self, run: TrainingRun) -> None:
        """Nothing about the run matters."""

    def decide(self) -> Decision:
        """Return the arm of the next round."""
        self._round += 1
        arm = {"arm": self._arm_of(self._round - 1)}
        return Decision(self._round - 1, arm, query=False, reason="a static schedule")

    def query(self, decision: Decision, metrics: Metrics) -> None:
        """Nothing is queried."""

    def state_dict(self) -> dict[str, Any]:
        """Return the round."""
        return {"round": self._round}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self._round = state["round"]


class TimedPolicy:
    """A policy whose decisions are timed, in seconds of the CPU."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.seconds = policy, 0.0

    def start(self, run: TrainingRun) -> None:
        """Let the policy meet the run."""
        self.policy.start(run)

    def decide(self) -> Decision:
        """Return the policy's decision."""
        began = time.process_time()
        decision = self.policy.decide()
        self.seconds += time.process_time() - began
        return decision

    def query(self, decision: Decision, metrics: Metrics) -> None:
        """Tell the policy what the validation said."""
        began = time.process_time()
        self.policy.query(decision, metrics)
        self.seconds += time.process_time() - began

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the policy, and the seconds."""
        return {"policy": self.policy.state_dict(), "seconds": self.seconds}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self.policy.load_state_dict(state["policy"])
        self.seconds = state["seconds"]


def _switching(recipe: Recipe) -> Callable[[int], str]:
    """Return dense tuning until a decay of the learning rate, and half as much after it."""
    at = recipe.decays[min(_SWITCH, len(recipe.decays) - 1)] * recipe.horizon
    return lambda round: TUNE if round < at else "2 to 1"


def _always(arm: str) -> Callable[[Recipe], Callable[[int], str]]:
    return lambda recipe: lambda round: arm


# The schedules of the static grid, and one that switches.
GRIDDED = (TRAIN, TUNE, "2 to 1", "5 to 1", "10 to 1")
STATIC: dict[str, Callable[[Recipe], Callable[[int], str]]] = {
    **{arm: _always(arm) for arm in GRIDDED},
    "switching": _switching,
}
METHODS = (*STATIC, *TUNERS, *NET_TUNERS)


def policy_of(method: str, problem: ScheduleProblem, seed: int) -> TimedPolicy:
    """Return what decides in a run."""
    if method in STATIC:
        return TimedPolicy(StaticPolicy(STATIC[method](problem.recipe)))
    make = {**TUNERS, **NET_TUNERS}[method]
    tuner = make(problem.space, problem.horizon, seed)
    if method in NET_TUNERS:
        return TimedPolicy(NetGainPolicy(tuner, problem.recipe.step_cost))
    return TimedPolicy(TunedPolicy(tuner, metric="accuracy"))
