"""What decides between training only and tuning as well: static schedules, and tuners that query."""

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.harness.tuners import as_published, with_budget
from benchmarks.suite.policies import TimedPolicy, TunedPolicy, Tuner, UnqueriedPolicy
from benchmarks.suite.protocol import Metrics
from benchmarks.training.schedule.recipes import PACES, TRAIN, TUNE, Recipe
from benchmarks.training.schedule.run import ScheduleProblem
from botorch_costly import BanditTuner, ConfidenceQuery, Decision, OnlineTuner, SearchSpace
from botorch_costly.bandits import EXP3R, GPUCB, UCB1, EpsilonGreedy, RewardRange, Softmax, Strategy
from botorch_costly.query import BernoulliQuery, QueryRule

MakeTuner = Callable[[SearchSpace, int, int], Tuner]
_MOST = 2.0  # percentage points of accuracy gained or lost in a round, where gains are clipped
_GAINS = RewardRange(-_MOST, _MOST)
_AS_THEY_ARE = RewardRange(0.0, 1.0)


def _confident(kappa: float) -> MakeTuner:
    return lambda space, horizon, seed: as_published(space, horizon, ConfidenceQuery(kappa), seed)


def _priced(space: SearchSpace, horizon: int, seed: int) -> Tuner:
    """Return a tuner that spends a query in every fifth round on average, where it earns most."""
    return as_published(space, horizon, with_budget(max(horizon // 5, 1)), seed)


def _as_it_comes(space: SearchSpace, horizon: int, seed: int) -> Tuner:
    return OnlineTuner(space, horizon, seed=seed)


def _ranked(rule_of: Callable[[int], QueryRule]) -> MakeTuner:
    """Return the tuner as it comes, with another query rule: it counts rewards by their ranks.

    Gains of the first rounds are many times as large as those of all later ones. By their size they
    decide the whole run; by their ranks they do not.
    """
    return lambda space, horizon, seed: OnlineTuner(
        space, horizon, query=rule_of(horizon), seed=seed
    )


def _by_chance(strategy: Strategy[Any], rate: float) -> MakeTuner:
    """Return a bandit that queries in a share of the rounds, by chance.

    Only strategies for rewards in [0, 1] learn mapped gains. To the others an arm without a query has the
    mean 0, which would be a loss of two points after the mapping and is no gain without it.
    """
    rewards = _GAINS if strategy.bounded else _AS_THEY_ARE
    return lambda space, horizon, seed: BanditTuner(
        space, horizon, strategy=strategy, query=BernoulliQuery(rate), rewards=rewards, seed=seed
    )


# The bandits of Table A3, as they come: none is adapted to the problem.
BANDITS: dict[str, Strategy[Any]] = {
    "EXP3.R": EXP3R(),
    "epsilon-greedy": EpsilonGreedy(),
    "softmax": Softmax(),
    "UCB1": UCB1(),
    "GP-UCB": GPUCB(),
}
BANDIT_TUNERS: dict[str, MakeTuner] = {
    f"{name} Ber({rate:g})": _by_chance(strategy, rate)
    for name, strategy in BANDITS.items()
    for rate in (0.1, 0.2)
}
TUNERS: dict[str, MakeTuner] = {
    "confidence 0.7": _confident(0.7),
    "confidence 0.8": _confident(0.8),
    "priced": _priced,
    "as it comes": _as_it_comes,
    **BANDIT_TUNERS,
}
NET_TUNERS: dict[str, MakeTuner] = {
    "confidence 0.8, net": _ranked(lambda horizon: ConfidenceQuery(0.8)),
    "priced, net": _ranked(lambda horizon: with_budget(max(horizon // 5, 1))),
    "as it comes, net": _as_it_comes,
}


def extra_cost(config: Mapping[str, Any], step_cost: float) -> float:
    """Return what a round costs beyond one that only trains, in rounds of training."""
    pace = PACES[str(config["arm"])]
    return 0.0 if pace is None else step_cost / pace


class ClippedGainPolicy(TunedPolicy):
    """A tuner, rewarded by the gain of accuracy in percentage points, clipped as in the paper."""

    def query(self, decision: Decision, metrics: Metrics) -> None:
        """Tell the tuner the clipped gain of a round; the first query gives a reference alone."""
        gain = self.reward(metrics.accuracy, decision)
        self.tuner.tell(decision, None if gain is None else min(max(gain, -_MOST), _MOST))


class NetGainPolicy(TunedPolicy):
    """A tuner, rewarded by the net gain of the validation loss in nats.

    A round that tunes takes longer than one that only trains; its net gain counts that. With ``g`` the
    gain of validation, ``pace`` the average gain so far in the time of a round of training, and ``c`` the
    cost of the round beyond one of training, in rounds of training,

        net gain = g - c * pace.

    An arm is worth its time if its net gain is the larger one, which is how a ratio of gain to time is
    maximized. Costs are counted in steps, not measured, so that decisions repeat.

    References:
        W. Dinkelbach. On nonlinear fractional programming. Management Science 13(7), 1967.
    """

    def __init__(self, tuner: Tuner, step_cost: float) -> None:
        super().__init__(tuner)
        self._step_cost = step_cost
        self._spent = 0.0  # in rounds of training
        self._first: list[float] = []  # level and time of the first query

    def decide(self) -> Decision:
        decision = super().decide()
        self._spent += 1 + extra_cost(decision.config, self._step_cost)
        return decision

    def query(self, decision: Decision, metrics: Metrics) -> None:
        """Tell the tuner the net gain of a round; the first query gives a reference alone."""
        gain, level = self.reward(metrics.loss, decision), self._gain.level(metrics.loss)
        if gain is None:
            self._first = [level, self._spent]
            self.tuner.tell(decision, None)
            return
        pace = (level - self._first[0]) / (self._spent - self._first[1])
        # While training only got worse, time is worth nothing.
        worth = max(pace, 0.0) * extra_cost(decision.config, self._step_cost)
        self.tuner.tell(decision, gain - worth)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "spent": self._spent, "first": self._first}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._spent, self._first = state["spent"], list(state["first"])


DENSE, GRID = TUNE, "static grid"
_SWITCH = 1  # the decay of the learning rate after which the pace changes, counted from 0


class StaticPolicy(UnqueriedPolicy):
    """An arm for each round, fixed beforehand."""

    def __init__(self, arm_of: Callable[[int], str]) -> None:
        super().__init__()
        self._arm_of = arm_of

    def decide(self) -> Decision:
        return self._play({"arm": self._arm_of(self._round)}, "a static schedule")


def _switching(before: str, after: str) -> Callable[[Recipe], Callable[[int], str]]:
    """Return an arm until a decay of the learning rate, and another one after it."""

    def arms(recipe: Recipe) -> Callable[[int], str]:
        at = recipe.decays[min(_SWITCH, len(recipe.decays) - 1)] * recipe.horizon
        return lambda round: before if round < at else after

    return arms


def _always(arm: str) -> Callable[[Recipe], Callable[[int], str]]:
    return lambda recipe: lambda round: arm


# The schedules of the static grid, and two that switch: that of Figure A3 and that of Figure A4.
GRIDDED = (TRAIN, TUNE, "2 to 1", "5 to 1", "10 to 1")
STATIC: dict[str, Callable[[Recipe], Callable[[int], str]]] = {
    **{arm: _always(arm) for arm in GRIDDED},
    "switching": _switching(TUNE, "2 to 1"),
    "10 to 1, then dense": _switching("10 to 1", TUNE),
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
    kind = ClippedGainPolicy if method in BANDIT_TUNERS else TunedPolicy
    return TimedPolicy(kind(tuner, metric="accuracy"))
