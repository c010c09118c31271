"""The tuners that benchmarks play: as a user gets them, as published, and told what is true."""

import math
from collections.abc import Mapping
from typing import Any

import botorch_costly as bc
from botorch_costly.acquisition import BetaSchedule
from botorch_costly.query import UnqueriedPlay

# Prior mean 0 and prior variance 1, and nothing is impossible.
PRIOR_UNITS = bc.RewardScale(center=0.0, scale=1.0, clip=math.inf)
_REFIT_SECONDS = 60.0  # never to bind: what is learned would depend on the machine


def as_it_comes(
    space: bc.SearchSpace, horizon: int, start: Mapping[str, Any], seed: int, **options: Any
) -> bc.OnlineTuner:
    """Return what a user gets from the space, the number of rounds and today's default."""
    return bc.OnlineTuner(space, horizon, start=start, seed=seed, **options)


def as_published(
    space: bc.SearchSpace, horizon: int | None, rule: bc.QueryRule, seed: int, **options: Any
) -> bc.OnlineTuner:
    """Return the tuner of the paper, which decides on every round anew."""
    return bc.OnlineTuner.as_published(space, horizon, query=rule, seed=seed, **options)


def with_budget(queries: int) -> bc.QueryRule:
    """Return the rule that spends so many queries where their value is highest."""
    return bc.PricedQuery(budget=queries)


def believing(
    space: bc.SearchSpace,
    horizon: int,
    rule: bc.QueryRule,
    seed: int,
    *,
    forgetting: float,
    noise: float,
    lengthscale: float | None = None,
    kernel: str | None = None,
    beta: float | BetaSchedule = 1.0,
    rewards: bc.RewardScale = PRIOR_UNITS,
    unqueried_play: UnqueriedPlay = "acquisition",
    refit_every: int | None = None,
) -> bc.OnlineTuner:
    """Return a tuner that is told what to believe, and decides on every round anew, without a design.

    Forgetting rate and noise are those that are believed at first, the noise as a share of the prior
    variance; the lengthscale is that in the unit cube. Every ``refit_every`` queries all beliefs are
    learnt anew, the forgetting rate included. The rule decides on the last round as on any other.
    """
    tuner = bc.OnlineTuner(
        space,
        horizon=horizon,
        query=rule,
        prior=bc.Prior(kernel=kernel, lengthscale=lengthscale, noise=noise, forgetting=forgetting),
        refit=bc.Refit(
            every=refit_every, seconds=_REFIT_SECONDS, forgetting=refit_every is not None
        ),
        rewards=rewards,
        design=bc.Design(rounds=0),
        unqueried_play=unqueried_play,
        seed=seed,
        acquisition=bc.UCB(beta=beta),
        hold=bc.Hold(share=0.0),
    )
    tuner.queries_last = False
    return tuner
