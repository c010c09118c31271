"""The rows of Table A1: every strategy under the query rules it is compared under.

Rivals with a free number come in a few variants, of which the best on each problem is shown: chosen in
hindsight, which our own methods are not. The variants that forget are not the paper's; they are there
because rewards drift. All Gaussian processes have equal priors, and know the noise within a tenth; in the
fitted rows, as in the paper, variances and lengthscale may well be ten times as large or small.
"""

from typing import Any

import botorch_costly as bc
from botorch_costly.acquisition import BetaSchedule, ConstantBeta, LogBeta
from botorch_costly.bandits import (
    EXP3R,
    EXP3S,
    GPUCB,
    UCB1,
    ArmPrior,
    BanditPolicy,
    EpsilonGreedy,
    FitSchedule,
    Softmax,
    Strategy,
)

KAPPA, LOWER_KAPPA, RATE, PRICES = 0.95, 0.8, 0.1, (0.1, 1.0)
CE, FULL = "CE-GP-UCB", "full feedback"
# The forgetting kernel instead of the paper's RBF kernel.
FORGETTING = "forgetting"
FITTED = "fitted"
_NARROW = {"lengthscale_spread": 0.5, "std_spread": 0.3, "noise_spread": 0.1}
_WIDE = {"lengthscale_spread": 2.3, "std_spread": 1.15, "noise_spread": 1.15}
_FORGETTING = (0.0, 0.003)

Rows = dict[str, dict[str, BanditPolicy]]


def gaussian(family: str, beta: BetaSchedule | None = None, *, fitted: bool = False) -> GPUCB:
    """Return the Gaussian process of all rows that have one, of a time kernel."""
    prior = ArmPrior(family, 100.0, **(_WIDE if fitted else _NARROW))
    return GPUCB(prior, beta=LogBeta() if beta is None else beta, fit=FitSchedule(6, 1.15, 10))


def _of(rule: bc.QueryRule, strategies: dict[str, Strategy[Any]]) -> dict[str, BanditPolicy]:
    return {name: BanditPolicy(name, strategy, rule) for name, strategy in strategies.items()}


def rows() -> Rows:
    """Return, for each row of the table, its variants by name."""
    coin = bc.BernoulliQuery(RATE)
    found: Rows = {
        "EXP3.S": _of(coin, {f"mixing {g:g}": EXP3S(g, 0.005) for g in (0.1, 0.3)}),
        "EXP3.R": _of(coin, {f"mixing {g:g}": EXP3R(g, interval=60.0) for g in (0.1, 0.3)}),
        "epsilon-greedy": _of(
            coin,
            {
                f"exploration {e:g}, forgetting {f:g}": EpsilonGreedy(e, f)
                for e in (0.1, 0.3)
                for f in _FORGETTING
            },
        ),
        "softmax": _of(
            coin,
            {
                f"temperature {c:g}, forgetting {f:g}": Softmax(c, f)
                for c in (0.1, 0.2)
                for f in _FORGETTING
            },
        ),
        "UCB1": _of(
            coin,
            {f"scale {c:g}, forgetting {f:g}": UCB1(c, f) for c in (1.0, 0.3) for f in _FORGETTING},
        ),
        "GP-UCB": _of(
            coin,
            {"beta 1": gaussian("rbf", ConstantBeta(1.0)), "beta of the round": gaussian("rbf")},
        ),
        "TV-GP-UCB": _of(coin, {"beta 1": gaussian("matern12", ConstantBeta(1.0))}),
    }
    for suffix, family in (("", "rbf"), (f", {FORGETTING}", "matern12")):
        ours: dict[str, Strategy[Any]] = {"": gaussian(family)}
        found[f"{CE}{suffix}"] = _of(bc.ConfidenceQuery(KAPPA), ours)
        found[f"{CE}, {LOWER_KAPPA}{suffix}"] = _of(bc.ConfidenceQuery(LOWER_KAPPA), ours)
        for price in PRICES:
            found[f"{priced(price)}{suffix}"] = _of(bc.PricedQuery(price), ours)
    fitted: dict[str, Strategy[Any]] = {"": gaussian("rbf", fitted=True)}
    found[f"{CE}, {FITTED}"] = _of(bc.ConfidenceQuery(KAPPA), fitted)
    found[f"GP-UCB, {FITTED}"] = _of(coin, fitted)
    found[FULL] = _of(bc.AlwaysQuery(), {"": gaussian("rbf", ConstantBeta(1.0))})
    return found


def priced(price: float) -> str:
    """Return the name of the priced row."""
    return f"priced, {price:g}"
