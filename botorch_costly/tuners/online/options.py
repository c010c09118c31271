"""The options of the online tuner, in groups that check themselves."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, get_args

import torch
from torch import Tensor

from botorch_costly.acquisition import as_factory
from botorch_costly.ask_tell.design import DesignKind, check_kind
from botorch_costly.ask_tell.search import Search, is_listed
from botorch_costly.ask_tell.tariff import check_overhead
from botorch_costly.calls import advised
from botorch_costly.device import check_device, check_dtype
from botorch_costly.errors import (
    InvalidBudgetError,
    InvalidSpaceError,
    check,
    check_count,
    check_positive,
    check_rate,
)
from botorch_costly.numerics.radial import check_family
from botorch_costly.parameters import Real
from botorch_costly.query import QueryRule, UnqueriedPlay
from botorch_costly.query.rule import check_priced
from botorch_costly.randomness import check_seed
from botorch_costly.records import FrozenConfig
from botorch_costly.rewards.scale import RewardScale
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.online.trust_region import StepLimits

# Chosen on half of the problems of the online suite, see benchmarks/README.md.
_RANKS = RewardScale(ranks=True, winsorize_lower=0.4)


class ResolvedPrior(NamedTuple):
    """A prior without omitted values."""

    kernel: str
    lengthscale: float
    noise: float
    forgetting: float


@advised
@dataclass(frozen=True, kw_only=True)
class Prior:
    """The prior of a tuner, for scaled rewards of variance 1.

    Args:
        kernel: Kernel over the unit cube: ``"matern52"``, ``"matern32"``, ``"matern12"``, ``"rbf"``, or
            ``"arms"``. If omitted, ``"arms"`` for a space of choices alone, else ``"matern52"``.
        lengthscale: Lengthscale in the unit cube; ``0.5 sqrt(d)`` if omitted.
        noise: Noise variance of a reward, as a fraction of the variance of rewards.
        forgetting: Share of the reward function that is replaced in each interval, in [0, 1].

    Raises:
        InvalidArgumentError: If a number is outside its range, or the kernel is unknown.
    """

    kernel: str | None = None
    lengthscale: float | None = None
    noise: float = 0.5
    forgetting: float = 0.01

    def __post_init__(self) -> None:
        if self.kernel is not None:
            check_family(self.kernel)
        if self.lengthscale is not None:
            check_positive("lengthscale", self.lengthscale)
        check_positive("noise", self.noise)
        check_rate("forgetting", self.forgetting)

    def of(self, space: SearchSpace) -> ResolvedPrior:
        """Return the prior with omitted values derived from the space."""
        default = "arms" if space.is_arms and is_listed(space) else "matern52"
        length = 0.5 * math.sqrt(space.dim) if self.lengthscale is None else self.lengthscale
        return ResolvedPrior(self.kernel or default, length, self.noise, self.forgetting)


@advised
@dataclass(frozen=True, kw_only=True)
class Refit:
    """The schedule on which lengthscales, variance and noise are refitted.

    Args:
        every: Number of rewards between refits; no refits if ``None``.
        seconds: Time limit of one refit; if it binds, a run depends on the machine's speed.
        forgetting: Whether the forgetting rate is learnt too.

    Raises:
        InvalidArgumentError: If a number is outside its range, or the rate is to be learnt without
            refits.
    """

    every: int | None = None
    seconds: float = 2.0
    forgetting: bool = False

    def __post_init__(self) -> None:
        _count(self, "every", 1)
        check_positive("seconds", self.seconds)
        can_learn = self.every is not None or not self.forgetting
        check(can_learn, "forgetting", "False, or refits (every=...)", self.forgetting)


@advised
@dataclass(frozen=True, kw_only=True)
class Design:
    """The first intervals, which are queried regardless of the rule.

    Args:
        kind: ``"screening"``: each number is low (0.1 of the unit cube) or high (0.9), in about one half
            of the design each, so that few queries show which of many matter; ``"sobol"``; or
            ``"random"``.
        rounds: Number of configurations queried first. If omitted, twice the dimension, but at most a
            tenth of the horizon, a third of its intervals, ``max_queries`` and a fifth of the rule's
            budget, and none for a space of choices.
        start_rounds: Number of intervals that play the tuner's ``start`` before the others, because a
            network that has not begun to learn looks like one that has diverged. If omitted, 5, but at
            most half of a design of default size.

    Raises:
        InvalidArgumentError: If a number is not a valid count, or the kind is unknown.
    """

    kind: DesignKind = "screening"
    rounds: int | None = None
    start_rounds: int | None = None

    def __post_init__(self) -> None:
        check_kind(self.kind)
        _count(self, "rounds", 0)
        _count(self, "start_rounds", 1)


@advised
@dataclass(frozen=True, kw_only=True)
class Hold:
    """The length of the intervals for which a configuration is held; queries are made at their ends.

    Args:
        share: Length of an interval as a share of the rounds so far, in [0, 1]. At 0 each round is
            decided on its own, for rewards that do not depend on the rounds before.
        shortest: Fewest rounds of an interval, unless the share is 0.

    Raises:
        InvalidArgumentError: If a number is outside its range.
    """

    # Chosen on half of the problems of the online suite, see benchmarks/README.md.
    share: float = 0.05
    shortest: int = 2

    def __post_init__(self) -> None:
        check_rate("share", self.share)
        _count(self, "shortest", 1)


@advised
@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of a run.

    Args:
        max_queries: Largest number of queries, regardless of the rule.
        keep_rounds: Number of latest rounds whose decisions and queries are kept, for runs without end;
            all by default. Older decisions can no longer be told.
        max_rows: Largest number of rewards in the belief; the latest are kept. The cost of a decision
            grows with its square. Rewards with a weight below 1e-8 are dropped in any case.
        rate_factor: Factor by which learning rates, weight decays and one minus momenta
            (``SearchSpace.lasting``) may differ from those of the start before the first success of
            the trust region; ``math.inf`` for a run without a region, as without a start or without
            such parameters. One round at a far larger rate may do lasting damage, and this tuner does
            not go back.

    Raises:
        InvalidArgumentError: If a number is not a valid count.
    """

    max_queries: int | None = None
    keep_rounds: int | None = None
    max_rows: int = 1000
    rate_factor: float = 1.5

    def __post_init__(self) -> None:
        _count(self, "max_queries", 0)
        _count(self, "keep_rounds", 1)
        _count(self, "max_rows", 1)
        factor = self.rate_factor
        is_number = isinstance(factor, int | float) and not isinstance(factor, bool)
        check(is_number and factor > 1, "rate_factor", "a number > 1", factor)

    def within(self, horizon: int | None) -> "Limits":
        """Return the limits if they fit a horizon; raise InvalidBudgetError otherwise."""
        fits = horizon is None or self.max_queries is None or self.max_queries <= horizon
        expected = f"at most the horizon, {horizon}"
        check(fits, "max_queries", expected, self.max_queries, InvalidBudgetError)
        return self


@dataclass(frozen=True, kw_only=True)
class Options:
    """All options of a tuner, checked; see ``OnlineTuner`` for their meaning.

    Raises:
        InvalidArgumentError: If an option has the wrong type or is outside its range.
        InvalidBudgetError: If ``max_queries`` exceeds the horizon.
        InvalidConfigError: If ``start`` does not belong to the space.
        InvalidSpaceError: If the space holds a single configuration.
    """

    space: SearchSpace
    horizon: int | None
    query: QueryRule
    start: Any  # None, or a FrozenConfig after the check
    prior: Prior
    refit: Refit
    acquisition: Any  # an AcquisitionFactory after the check
    unqueried_play: UnqueriedPlay
    rewards: RewardScale | None
    design: Design
    hold: Hold
    search: Search
    limits: Limits
    maximize: bool
    seed: int
    dtype: torch.dtype
    device: Any  # a torch.device after the check
    seconds: float | None = None
    overhead: float | None = None
    clock: Callable[[], float] = time.perf_counter

    def __post_init__(self) -> None:
        is_tunable = isinstance(self.space, SearchSpace) and self.space.dim > 0
        expected = "a SearchSpace with something to tune"
        check(is_tunable, "space", expected, self.space, InvalidSpaceError)
        expected = "logarithmic Reals: a Scheduled learning rate is played by TwinTuner alone"
        check(not self.space.is_scheduled, "space", expected, self.space, InvalidSpaceError)
        for name, kind in _GROUPS.items():
            value = getattr(self, name)
            check(isinstance(value, kind), name, f"a {kind.__name__}", value)
        check(isinstance(self.maximize, bool), "maximize", "a bool", self.maximize)
        _count(self, "horizon", 1)
        object.__setattr__(self, "seed", check_seed(self.seed))
        is_known = self.unqueried_play in get_args(UnqueriedPlay)
        check(is_known, "unqueried_play", "'acquisition' or 'mean'", self.unqueried_play)
        if self.overhead is not None:
            object.__setattr__(self, "overhead", check_overhead(self.overhead))
        check_priced(self.query, self.overhead)
        self.query.check_run(self.horizon)
        self.limits.within(self.horizon)
        is_scale = self.rewards is None or isinstance(self.rewards, RewardScale)
        check(is_scale, "rewards", "a RewardScale", self.rewards)
        needs_values = self.scale.ranks and self.query.reads_rewards
        check(
            not needs_values, "rewards", "values, not ranks, for a price in rewards", self.rewards
        )
        start = None if self.start is None else FrozenConfig(self.space.canonical(self.start))
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "acquisition", as_factory(self.acquisition))
        check_dtype(self.dtype)
        object.__setattr__(self, "device", check_device(self.device))

    @property
    def scale(self) -> RewardScale:
        """Scale of the rewards; if omitted, one that suits the query rule."""
        return self.scale_of(self.rewards, self.query)

    @staticmethod
    def scale_of(rewards: RewardScale | None, query: QueryRule) -> RewardScale:
        """Return the scale of the rewards under a query rule; ``rewards`` unless that is None."""
        if rewards is not None:
            return rewards
        return RewardScale() if query.reads_rewards else _RANKS

    @property
    def steps(self) -> StepLimits | None:
        """Steps of the trust region; None for a run without one.

        There is none without a start, with a factor of ``inf``, or without rates, weight decays and
        momenta: what other numbers do to a network passes, and a run that hardly leaves its home stays
        at a poor one.
        """
        factor, names = self.limits.rate_factor, self.space.lasting
        if self.start is None or factor == math.inf or not names:
            return None
        return StepLimits(self.space, names, factor)

    @property
    def units(self) -> Tensor | None:
        """Lengthscale of each column as a share of the prior's, shape ``(dim,)``; None if all are 1.

        In a trust region a decade of a learning rate counts as much as the range of another parameter.
        """
        if self.steps is None:
            return None
        units = torch.ones(self.space.dim, dtype=torch.float64)
        for name, parameter in self.space.parameters:
            if name in self.steps.names and isinstance(parameter, Real) and parameter.log:
                decades = math.log10(parameter.high / parameter.low)
                units[self.space.columns[name]] = min(1.0, 1.0 / decades)
        return units

    @property
    def lasting(self) -> dict[str, Any]:
        """Options that must not change between saving and loading."""
        names = [f.name for f in fields(self) if f.name not in ("space", "device", "clock")]
        return {name: getattr(self, name) for name in names}


_GROUPS: dict[str, type] = {
    "query": QueryRule,
    "prior": Prior,
    "refit": Refit,
    "design": Design,
    "hold": Hold,
    "search": Search,
    "limits": Limits,
}


def _count(group: object, name: str, minimum: int) -> None:
    """Check a count that may be omitted, and store it as an int."""
    value = getattr(group, name)
    if value is not None:
        object.__setattr__(group, name, check_count(name, value, minimum))
