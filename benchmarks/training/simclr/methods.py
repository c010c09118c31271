"""What sets the eight probabilities: a constant, an expert, chance, and tuners that query.

Every tuner but two is rewarded by the gain of the loss of a readout on validation over an average of
its earlier values: probabilities go on acting for some rounds, and of a gain over the last value the
next ones get the credit. Others show what that changes: ``full, last loss`` counts from the last value,
and where it says ``accuracy``, the reward is the paper's, the gain of accuracy in percentage points since
the last value, clipped to [-2, 2]; ``printed`` has the paper's prior as well, of mean 0 and variance 1
in percentage points, and no design. A round whose loss is not finite is a failed query of that round,
whether it was one or not.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import botorch_costly as bc
from benchmarks.harness.tuners import PRIOR_UNITS, as_it_comes, as_published, with_budget
from benchmarks.suite import policies
from benchmarks.suite.protocol import Metrics, TrainingRun
from benchmarks.training.simclr.augmentation import AUGMENTATIONS
from benchmarks.training.simclr.run import ONE_OPERATION, START, ContrastiveProblem, ContrastiveRun
from botorch_costly.errors import check
from botorch_costly.rewards.metric_gain import Kind

FIXED, FULL, COIN, CONFIDENT = "fixed 0.5", "full feedback", "coin", "confidence 0.8"
_MEMORY = 0.5  # of earlier values of the readout, in the reference of the gain
_COIN_RATE = 0.6  # the paper's, where it is not known how often the confidence rule queried
_REFIT = bc.Refit(every=10, seconds=60.0, forgetting=True)  # the cap is never to bind
_EXPERT = {"crop": 1.0, "colour": 0.8, "flip_horizontal": 0.5, "grey": 0.2}
# What the authors of SimCLR train with on CIFAR-10: no blur there, nor any of the other three.
EXPERT = {**dict.fromkeys(AUGMENTATIONS, 0.0), **_EXPERT}
# The least there can be in the space.
OFF = {**dict.fromkeys(AUGMENTATIONS, 0.0), "crop": 0.5}

_KAPPAS = (0.9, 0.8, 0.7)
PRINTED = "confidence 0.7, printed"


def _confident(kappa: float) -> Callable[[int], bc.QueryRule]:
    return lambda horizon: bc.ConfidenceQuery(kappa)


CONSTANT: dict[str, Mapping[str, Any]] = {
    FIXED: START,
    "expert": EXPERT,
    "off": OFF,
    "one operation": ONE_OPERATION,
}
RULES: dict[str, Callable[[int], bc.QueryRule]] = {
    FULL: lambda horizon: bc.AlwaysQuery(),
    "full, learned": lambda horizon: bc.AlwaysQuery(),
    **{f"confidence {k:g}": _confident(k) for k in _KAPPAS},
    "priced": lambda horizon: _priced(0.5, horizon),
    "priced, 60 %": lambda horizon: _priced(0.6, horizon),
    **{f"confidence {k:g}, accuracy": _confident(k) for k in _KAPPAS},
    PRINTED: _confident(_KAPPAS[-1]),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "full, learned": {"refit": _REFIT},
    PRINTED: {"rewards": PRIOR_UNITS, "design": bc.Design(rounds=0)},
}
REWARDS: dict[str, tuple[Kind, float]] = {
    "full, last loss": ("loss", 0.0),
    "full, accuracy": ("accuracy", 0.0),
    **{f"confidence {k:g}, accuracy": ("accuracy", 0.0) for k in _KAPPAS},
    PRINTED: ("accuracy", 0.0),
}
# Coins, each beside a rule that it queries as often as, on the same seed and by the same reward.
COINS: dict[str, str] = {
    COIN: CONFIDENT,
    "coin for 0.9": "confidence 0.9",
    "coin for 0.7": "confidence 0.7",
    **{f"coin for {k:g}, accuracy": f"confidence {k:g}, accuracy" for k in _KAPPAS},
}
METHODS = (
    *(*CONSTANT, "random schedule", *RULES, *(name for name in REWARDS if name not in RULES)),
    *(*COINS, "as it comes"),
)


def _priced(share: float, horizon: int) -> bc.QueryRule:
    """Return the rule that may query a share of the rounds."""
    return with_budget(max(round(share * horizon), 1))


class ReadoutPolicy(policies.TunedPolicy):
    """A tuner that hears of rounds that failed, and what each query cost in seconds."""

    def __init__(
        self,
        tuner: policies.Tuner,
        *,
        guarded: bool = False,
        metric: Kind = "loss",
        memory: float = _MEMORY,
    ) -> None:
        super().__init__(tuner, guarded=guarded, metric=metric, memory=memory)
        self._played: bc.Decision | None = None

    def start(self, run: TrainingRun) -> None:
        """Meet the run, which knows what failed.

        Raises:
            InvalidArgumentError: If it is another kind of run.
        """
        super().start(run)
        contrastive = isinstance(run, ContrastiveRun)
        check(contrastive, "run", "a run of ContrastiveProblem", type(run).__name__)
        self._run: Any = run

    def decide(self) -> bc.Decision:
        """Report the round before if it failed unqueried; return the tuner's decision."""
        if self._played is not None and self._run.failed:
            self._tell(self._played, math.nan)
        decision = super().decide()
        self._played = None if decision.query else decision
        return decision

    def query(self, decision: bc.Decision, metrics: Metrics) -> None:
        """Tell the tuner the gain, or that the query failed, and its seconds."""
        self._tell(decision, math.nan if self._run.failed else self._metric(metrics))

    def _tell(self, decision: bc.Decision, metric: float) -> None:
        seconds = self._run.last_query_seconds if decision.query else 0.0
        tuner: Any = self.tuner
        tuner.tell(decision, self.reward(metric, decision), seconds=seconds)

    def state_dict(self) -> dict[str, Any]:
        played = None if self._played is None else self._played.to_dict()
        return {**super().state_dict(), "played": played}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        played = state["played"]
        self._played = None if played is None else bc.Decision.from_dict(played)


class ReplayPolicy(policies.UnqueriedPolicy):
    """A schedule that was exported, played again."""

    def __init__(self, schedule: bc.Schedule) -> None:
        super().__init__()
        self._schedule = schedule

    def decide(self) -> bc.Decision:
        return self._play(dict(self._schedule[self._round]), "replayed")


def policy_of(
    method: str, problem: ContrastiveProblem, seed: int, coin: float | None = None
) -> policies.TimedPolicy:
    """Return what decides in a run by one of ``METHODS``.

    ``coin`` is the probability of a query under one of ``COINS`` after the design, which is queried.
    """
    return policies.TimedPolicy(
        _policy_of(method, problem, seed, _COIN_RATE if coin is None else coin)
    )


def _policy_of(method: str, problem: ContrastiveProblem, seed: int, coin: float) -> policies.Policy:
    if method in CONSTANT:
        return policies.FixedPolicy(CONSTANT[method])
    space, horizon, start = problem.space, problem.horizon, problem.default
    if method == "random schedule":
        return policies.RandomPolicy(space, seed)
    if method == "as it comes":
        return ReadoutPolicy(as_it_comes(space, horizon, start, seed), guarded=True)
    rule = bc.BernoulliQuery(coin) if method in COINS else RULES.get(method, RULES[FULL])(horizon)
    beside = COINS.get(method, method)
    metric, memory = REWARDS.get(beside, ("loss", _MEMORY))
    tuner = as_published(space, horizon, rule, seed, start=start, **OPTIONS.get(beside, {}))
    return ReadoutPolicy(tuner, metric=metric, memory=memory)
