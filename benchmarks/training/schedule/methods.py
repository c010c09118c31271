"""What decides between training only and tuning as well: static schedules, and tuners that query."""

from collections.abc import Callable

from benchmarks.suite.policies import TimedPolicy, TunedPolicy, UnqueriedPolicy
from benchmarks.training.schedule.net_gain import NetGainPolicy
from benchmarks.training.schedule.problem import ScheduleProblem
from benchmarks.training.schedule.recipes import TRAIN, TUNE, Recipe
from benchmarks.training.schedule.tuners import NET_TUNERS, TUNERS
from botorch_costly import Decision

DENSE, GRID = TUNE, "static grid"
_SWITCH = 1  # the decay of the learning rate after which tuning is rarer, counted from 0


class StaticPolicy(UnqueriedPolicy):
    """An arm for each round, fixed beforehand."""

    def __init__(self, arm_of: Callable[[int], str]) -> None:
        super().__init__()
        self._arm_of = arm_of

    def decide(self) -> Decision:
        """Return the arm of the next round."""
        return self._play({"arm": self._arm_of(self._round)}, "a static schedule")


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
