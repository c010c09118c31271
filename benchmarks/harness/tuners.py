"""The tuners that benchmarks play: as a user gets them, as published, and told what is true."""

import math
from collections.abc import Mapping
from typing import Any

from botorch_costly import (
    UCB,
    Design,
    Hold,
    OnlineTuner,
    PricedQuery,
    Prior,
    QueryRule,
    Refit,
    RewardScale,
    SearchSpace,
    TwinTuner,
)
from botorch_costly.acquisition import BetaSchedule
from botorch_costly.query import UnqueriedPlay

# Prior mean 0 and prior variance 1, and nothing is impossible.
PRIOR_UNITS = RewardScale(center=0.0, scale=1.0, clip=math.inf)
_REFIT_SECONDS = 60.0  # never to bind: what is learned would depend on the machine


def as_it_comes(
    space: SearchSpace, horizon: int, start: Mapping[str, Any], seed: int, **options: Any
) -> OnlineTuner:
    """Return what a user gets from the space, the number of rounds and today's default."""
    return OnlineTuner(space, horizon, start=start, seed=seed, **options)


def twins(
    space: SearchSpace, horizon: int, start: Mapping[str, Any], seed: int, **options: Any
) -> TwinTuner:
    """Return the tuner that compares twins, as a user gets it."""
    return TwinTuner(space, horizon, start=start, seed=seed, **options)


def as_published(
    space: SearchSpace, horizon: int | None, rule: QueryRule, seed: int, **options: Any
) -> OnlineTuner:
    """Return the tuner of the paper, which decides on every round anew."""
    return OnlineTuner.as_published(space, horizon, query=rule, seed=seed, **options)


def with_budget(queries: int) -> QueryRule:
    """Return the rule that spends so many queries where their value is highest."""
    return PricedQuery(budget=queries)


def believing(
    space: SearchSpace,
    horizon: int,
    rule: QueryRule,
    seed: int,
    *,
    forgetting: float,
    noise: float,
    lengthscale: float | None = None,
    kernel: str | None = None,
    beta: float | BetaSchedule = 1.0,
    rewards: RewardScale = PRIOR_UNITS,
    unqueried_play: UnqueriedPlay = "acquisition",
    refit_every: int | None = None,
) -> OnlineTuner:
    """Return a tuner that is told what to believe, and decides on every round anew, without a design.

    Args:
        space: What is tuned.
        horizon: Rounds of the run.
        rule: Whether to query.
        seed: Of the tuner.
        forgetting: Rate that is believed at first.
        noise: Variance that is believed at first, in units of that of the prior.
        lengthscale: In the unit cube.
        kernel: Its name.
        beta: Exploration.
        rewards: How rewards become values of the model.
        unqueried_play: What a round without a query plays.
        refit_every: Learn what is believed after so many queries, the forgetting rate included.
    """
    return OnlineTuner(
        space,
        horizon=horizon,
        query=rule,
        prior=Prior(kernel=kernel, lengthscale=lengthscale, noise=noise, forgetting=forgetting),
        refit=Refit(every=refit_every, seconds=_REFIT_SECONDS, forgetting=refit_every is not None),
        rewards=rewards,
        design=Design(rounds=0),
        unqueried_play=unqueried_play,
        seed=seed,
        acquisition=UCB(beta=beta),
        hold=Hold(share=0.0),
    )
