"""What the demo compares: a user's tuner, the published one, and runs without any."""

from collections.abc import Callable
from typing import Any

import botorch_costly as bc
from benchmarks.harness.tuners import as_it_comes, as_published, with_budget
from benchmarks.suite.policies import FixedPolicy, Policy, RandomPolicy, TunedPolicy
from benchmarks.suite.problems import digits_augmentation

PROBLEM = digits_augmentation()
# Of the published tuner; chosen on seeds 100 to 107, with them ranks, which no diverged round distorts.
CONFIDENCE, MOST_QUERIES, COIN = bc.ConfidenceQuery(kappa=0.95), 116, 0.5
BUDGET = PROBLEM.horizon // 4

Make = Callable[[int], Policy]  # from a seed


def default(**options: Any) -> Make:
    """Return the tuner as a user gets it, with its guard."""

    def make(seed: int) -> Policy:
        tuner = as_it_comes(PROBLEM.space, PROBLEM.horizon, PROBLEM.default, seed, **options)
        return TunedPolicy(tuner, guarded=True)

    return make


def published(rule: bc.QueryRule, max_queries: int | None = None) -> Make:
    """Return the tuner of the paper under a query rule, without a guard."""

    def make(seed: int) -> Policy:
        tuner = as_published(
            PROBLEM.space,
            PROBLEM.horizon,
            rule,
            seed,
            limits=bc.Limits(max_queries=max_queries),
            prior=bc.Prior(lengthscale=1.5, noise=0.5),
            design=bc.Design(kind="random", rounds=20, start_rounds=1),
            start=PROBLEM.default,
            rewards=bc.RewardScale(ranks=True),
        )
        return TunedPolicy(tuner)

    return make


def fixed(**probabilities: float) -> Make:
    """Return one configuration for all rounds; what is not named is off."""
    config = {name: probabilities.get(name, 0.0) for name in PROBLEM.default}
    return lambda seed: FixedPolicy(config)


SHOWN = "OnlineTuner"  # first in the table, and in the picture
METHODS: dict[str, Make] = {
    SHOWN: default(),
    f"OnlineTuner, {BUDGET} queries": default(query=with_budget(BUDGET)),
    "as published": published(CONFIDENCE, MOST_QUERIES),
    "full feedback": published(bc.AlwaysQuery()),
    "coin": published(bc.BernoulliQuery(COIN)),
    "random schedule": lambda seed: RandomPolicy(PROBLEM.space, seed),
    "fixed 0.5": lambda seed: FixedPolicy(PROBLEM.default),
    "all off": fixed(),
    "good fixed": fixed(rotation=0.5, shift=0.5, noise=0.5),
}
"""Name to what decides in a run of a seed."""

SAID = {
    SHOWN: "as it comes, with its guard",
    f"OnlineTuner, {BUDGET} queries": "the same with a budget, spent where a query earns most",
    "as published": f"CE-GP-UCB, kappa = {CONFIDENCE.kappa:g}, at most {MOST_QUERIES} queries, no guard",
    "full feedback": "the published tuner with a query in every round",
    "coin": "the published tuner with a query by a fair coin",
    "random schedule": "new probabilities in every round, uniformly at random",
    "fixed 0.5": "what the tuners start from",
    "all off": "no augmentation",
    "good fixed": "rotation, shift and noise at 0.5, which a user would have to know",
}
"""Name to what it is."""
