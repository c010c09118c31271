"""The options of the online tuner, in groups that check themselves."""

import math
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, get_args

import torch

from botorch_costly.acquisition import as_factory
from botorch_costly.ask_tell.design import DesignKind, check_kind
from botorch_costly.ask_tell.search import Search, is_listed
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
from botorch_costly.randomness import check_seed
from botorch_costly.records import FrozenConfig
from botorch_costly.rewards.scale import RewardScale
from botorch_costly.space import SearchSpace

# Chosen on half of the problems of the online suite, see benchmarks/README.md.
_RANKS = RewardScale(ranks=True, winsorize_lower=0.4)


class ResolvedPrior(NamedTuple):
    """A prior with everything known."""

    kernel: str
    lengthscale: float
    noise: float
    forgetting: float


@dataclass(frozen=True, kw_only=True)
class Prior:
    """What a tuner believes before its first query, in units of the scaled reward (variance 1).

    Args:
        kernel: Over the unit cube: ``"matern52"``, ``"matern32"``, ``"matern12"``, ``"rbf"``, or
            ``"arms"``. If omitted, ``"arms"`` for a space of choices alone, else ``"matern52"``.
        lengthscale: In the unit cube; ``0.5 sqrt(d)`` if omitted.
        noise: Noise variance of a reward, as a fraction of the variance of rewards.
        forgetting: How much of the reward function is replaced in each interval, in [0, 1].

    Raises:
        InvalidArgumentError: If a number is outside its range, or the kernel unknown.
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
        """Return the prior with what was omitted taken from the space."""
        usual = "arms" if space.is_arms and is_listed(space) else "matern52"
        length = 0.5 * math.sqrt(space.dim) if self.lengthscale is None else self.lengthscale
        return ResolvedPrior(self.kernel or usual, length, self.noise, self.forgetting)


@dataclass(frozen=True, kw_only=True)
class Refit:
    """When lengthscales, variance and noise are refitted, and for how long.

    Args:
        every: Refit after so many rewards; never if ``None``.
        seconds: Time cap of one refit; where it binds, a run depends on the machine's speed.
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
        ever = self.every is not None or not self.forgetting
        check(ever, "forgetting", "False, or refits (every=...)", self.forgetting)


@dataclass(frozen=True, kw_only=True)
class Design:
    """The first intervals, which are queried whatever the rule says.

    Args:
        kind: ``"screening"``: numbers are low (0.1 of the unit cube) or high (0.9), each in about one
            half of the design, so that few queries show which of many matter; ``"sobol"``; or
            ``"random"``.
        rounds: Configurations queried first. If omitted, twice the dimension, but at most a tenth of the
            horizon, a third of its intervals, ``max_queries`` and a fifth of the rule's budget, and none
            for a space of choices.
        start_rounds: How many intervals play the tuner's ``start``, before the others. A network that has
            not begun to learn cannot be told from one that has diverged. If omitted, 5, but at most
            half of what the design takes unasked.

    Raises:
        InvalidArgumentError: If a number is no such count, or the kind unknown.
    """

    kind: DesignKind = "screening"
    rounds: int | None = None
    start_rounds: int | None = None

    def __post_init__(self) -> None:
        check_kind(self.kind)
        _count(self, "rounds", 0)
        _count(self, "start_rounds", 1)


@dataclass(frozen=True, kw_only=True)
class Hold:
    """For how long a configuration is held once it is chosen; only the end of an interval is queried.

    Args:
        share: Of the rounds so far, in [0, 1]. At 0 each round is decided on its own: for functions that
            are seen anew in every round, and know nothing of the rounds before.
        shortest: The fewest rounds of an interval, unless the share is 0.

    Raises:
        InvalidArgumentError: If a number is outside its range.
    """

    # Chosen on half of the problems of the online suite, see benchmarks/README.md.
    share: float = 0.05
    shortest: int = 2

    def __post_init__(self) -> None:
        check_rate("share", self.share)
        _count(self, "shortest", 1)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a run may cost.

    Args:
        max_queries: The most queries this run may pay for, whatever the rule says.
        keep_rounds: How many of the latest rounds are kept with their decisions and queries, for runs
            without end; all by default. What is older can no longer be told.
        max_rows: The most rewards that the belief holds, the latest ones: what a decision may cost grows
            with their square. Those older than forgetting remembers (a weight of 1e-8) go anyway.
        rate_factor: The factor by which a learning rate (``SearchSpace.rates``) may differ from that of
            the start; ``math.inf`` for the whole range. What a far larger one damages in a round is not
            mended by the rounds after it, and this tuner does not go back. Without a start no limit.
            In a space without a known learning rate the limit holds for each logarithmic real of
            unknown role, which may be one.

    Raises:
        InvalidArgumentError: If a number is no such count.
    """

    max_queries: int | None = None
    keep_rounds: int | None = None
    max_rows: int = 1000
    rate_factor: float = math.sqrt(10)

    def __post_init__(self) -> None:
        _count(self, "max_queries", 0)
        _count(self, "keep_rounds", 1)
        _count(self, "max_rows", 1)
        factor = self.rate_factor
        number = isinstance(factor, int | float) and not isinstance(factor, bool)
        check(number and factor > 1, "rate_factor", "a number > 1", factor)

    def within(self, horizon: int | None) -> "Limits":
        """Return the limits if they fit a horizon; raise InvalidBudgetError otherwise."""
        most = self.max_queries
        fits = horizon is None or most is None or most <= horizon
        expected = f"at most the horizon, {horizon}"
        check(fits, "max_queries", expected, most, InvalidBudgetError)
        return self


@dataclass(frozen=True, kw_only=True)
class Options:
    """All options of a tuner, checked; what each means is said in ``OnlineTuner``.

    Raises:
        InvalidArgumentError: If one is of the wrong kind or outside its range.
        InvalidBudgetError: If ``max_queries`` exceeds the horizon.
        InvalidConfigError: If ``start`` does not belong to the space.
        InvalidSpaceError: If the space holds a single configuration.
    """

    space: SearchSpace
    horizon: int | None
    query: QueryRule
    start: Any  # a FrozenConfig once it is checked, or None
    prior: Prior
    refit: Refit
    acquisition: Any  # an AcquisitionFactory once it is checked
    unqueried_play: UnqueriedPlay
    rewards: RewardScale | None
    design: Design
    hold: Hold
    search: Search
    limits: Limits
    maximize: bool
    seed: int
    dtype: torch.dtype
    device: Any  # a torch.device once it is checked

    def __post_init__(self) -> None:
        tunable = isinstance(self.space, SearchSpace) and self.space.dim > 0
        wanted = "a SearchSpace with something to tune"
        check(tunable, "space", wanted, self.space, InvalidSpaceError)
        plain = "logarithmic Reals: a Scheduled learning rate is played by TwinTuner alone"
        check(not self.space.is_scheduled, "space", plain, self.space, InvalidSpaceError)
        for name, kind in _GROUPS.items():
            given = getattr(self, name)
            check(isinstance(given, kind), name, f"a {kind.__name__}", given)
        check(isinstance(self.maximize, bool), "maximize", "a bool", self.maximize)
        _count(self, "horizon", 1)
        object.__setattr__(self, "seed", check_seed(self.seed))
        known = self.unqueried_play in get_args(UnqueriedPlay)
        check(known, "unqueried_play", "'acquisition' or 'mean'", self.unqueried_play)
        self.query.check_run(self.horizon)
        self.limits.within(self.horizon)
        scaled = self.rewards is None or isinstance(self.rewards, RewardScale)
        check(scaled, "rewards", "a RewardScale", self.rewards)
        ranked = self.scale.ranks and self.query.reads_rewards
        check(not ranked, "rewards", "values, not ranks, for a price in rewards", self.rewards)
        start = None if self.start is None else FrozenConfig(self.space.canonical(self.start))
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "acquisition", as_factory(self.acquisition))
        check_dtype(self.dtype)
        object.__setattr__(self, "device", check_device(self.device))

    @property
    def scale(self) -> RewardScale:
        """How rewards become values of the model: as given, or what suits the query rule."""
        if self.rewards is not None:
            return self.rewards
        return RewardScale() if self.query.reads_rewards else _RANKS

    @property
    def near_start(self) -> tuple[str, ...]:
        """Names of the parameters that stay near the start: learning rates, or else possible ones."""
        if self.start is None or self.limits.rate_factor == math.inf:
            return ()
        return self.space.rates or self.space.possible_rates

    @property
    def note_on_rates(self) -> str | None:
        """A warning where no learning rate is known, so that possible ones stay near the start."""
        if self.space.rates or not self.near_start:
            return None
        return (
            "No parameter is known as a learning rate. Those that may be one stay within a factor of "
            f"{self.limits.rate_factor:.3g} of the start: {', '.join(self.near_start)}. Declare "
            "Real(.., role='learning_rate'), or role='other' where any value of the range is safe."
        )

    @property
    def reachable(self) -> SearchSpace:
        """The part of the space that is searched: learning rates stay near the start's."""
        if self.start is None or not self.near_start:
            return self.space
        parameters = dict(self.space.parameters)
        for name in self.near_start:
            rate, value = parameters[name], self.start[name]
            assert isinstance(rate, Real)
            low = max(rate.low, value / self.limits.rate_factor)
            high = min(rate.high, value * self.limits.rate_factor)
            parameters[name] = replace(rate, low=low, high=high)
        return SearchSpace(parameters)

    @property
    def lasting(self) -> dict[str, Any]:
        """The options that a saved state does not survive a change of: all but space and device."""
        names = [f.name for f in fields(self) if f.name not in ("space", "device")]
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
    """Check a count that may be omitted, and keep it as an int."""
    value = getattr(group, name)
    if value is not None:
        object.__setattr__(group, name, check_count(name, value, minimum))
