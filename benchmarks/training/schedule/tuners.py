"""Tuners that choose between training only and tuning as well, by name.

``TUNERS`` are rewarded by the gain of validation accuracy, as in the paper, ``NET_TUNERS`` by the net
gain of the validation loss. Both are the place for another tuner: a name, and a function of the space,
the number of rounds and the seed that returns something to be asked and told, like ``OnlineTuner``.
"""

from collections.abc import Callable
from typing import Any

from benchmarks.harness.tuners import as_published, with_budget
from benchmarks.suite.policies import Tuner
from botorch_costly import BanditTuner, ConfidenceQuery, OnlineTuner, SearchSpace
from botorch_costly.bandits import EXP3R, GPUCB, UCB1, EpsilonGreedy, RewardRange, Softmax, Strategy
from botorch_costly.query import BernoulliQuery, QueryRule

MakeTuner = Callable[[SearchSpace, int, int], Tuner]
# Gains of accuracy in a round, in percentage points, are clipped there.
_GAINS = RewardRange(-2.0, 2.0)


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
    """Return a bandit that queries in a share of the rounds, by chance."""
    return lambda space, horizon, seed: BanditTuner(
        space, horizon, strategy=strategy, query=BernoulliQuery(rate), rewards=_GAINS, seed=seed
    )


# The bandits of Table A3, as they come: none is adapted to the problem.
BANDITS: dict[str, Strategy[Any]] = {
    "EXP3.R": EXP3R(),
    "epsilon-greedy": EpsilonGreedy(),
    "softmax": Softmax(),
    "UCB1": UCB1(),
    "GP-UCB": GPUCB(),
}
TUNERS: dict[str, MakeTuner] = {
    "confidence 0.7": _confident(0.7),
    "confidence 0.8": _confident(0.8),
    "priced": _priced,
    "as it comes": _as_it_comes,
    **{
        f"{name} Ber({rate:g})": _by_chance(strategy, rate)
        for name, strategy in BANDITS.items()
        for rate in (0.1, 0.2)
    },
}
NET_TUNERS: dict[str, MakeTuner] = {
    "confidence 0.8, net": _ranked(lambda horizon: ConfidenceQuery(0.8)),
    "priced, net": _ranked(lambda horizon: with_budget(max(horizon // 5, 1))),
    "as it comes, net": _as_it_comes,
}
