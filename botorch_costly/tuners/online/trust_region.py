"""The trust region of a run that cannot go back: small steps around the start, widened by success.

A run plays a *home*: the start, until an excursion has succeeded, and then the best known configuration,
with the learning rates, weight decays and momenta of a *center*, first the start. While a network learns,
all configurations gain, so what looks best after a few of them is so by luck.

An interval of another configuration is an *excursion*. It succeeds if its reward exceeds all recent
rewards at home: if nothing is better than home, one in five does by chance. A success moves the center to
the learning rates of the excursion and widens the region by its first factor; a failure halves the number
of such steps. After the design each failure also doubles the number of intervals at home before the next
excursion, so a run on which nothing is better makes few excursions, and one on which something is makes
them at once.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import torch
from torch import Tensor

from botorch_costly.parameters import Plain, Real
from botorch_costly.plain import as_number
from botorch_costly.space import SearchSpace

_logger = logging.getLogger(__name__)
RECENT = 4  # rewards at home that an excursion has to exceed
_FREE = 0.5  # of its range that a free real may differ from home
_MOST_FAILURES = 5  # that lengthen the stay at home: 31 intervals
_MOST_SUCCESSES = 9  # that widen the region: a factor of 1.5 becomes 58


def log_limits(limits: Mapping[str, tuple[float, float]], space: SearchSpace) -> None:
    """Log in one line which ranges of a space a trust region cuts; nothing if it cuts none.

    Args:
        limits: Least and largest value by name, of the first region of a run.
        space: The space.
    """
    if cut := cut_by(limits, space):
        _logger.info(
            "The trust region around the start cuts the space at first: %s. It moves and widens with "
            "success; limits=Limits(rate_factor=) sets its first factor, math.inf none.",
            cut,
        )


def cut_by(limits: Mapping[str, tuple[float, float]], space: SearchSpace) -> str:
    """Return the ranges that limits cut as text; "" if they cut none.

    Example:
        >>> space = SearchSpace({"lr": Real(1e-4, 1e-1, log=True)})
        >>> cut_by({"lr": (0.01, 0.02)}, space), cut_by({"lr": (1e-4, 1e-1)}, space)
        ('lr 0.01 to 0.02 (of 0.0001 to 0.1)', '')
    """
    whole = {name: kind for name, kind in space.parameters if isinstance(kind, Real)}
    return ", ".join(
        f"{name} {low:.3g} to {high:.3g} (of {whole[name].low:.3g} to {whole[name].high:.3g})"
        for name, (low, high) in limits.items()
        if low > whole[name].low or high < whole[name].high
    )


class StepLimits:
    """The columns of a trust region, and how far it reaches around home.

    A learning rate or weight decay is multiplied or divided by at most a factor, as is one minus a
    momentum. A parameter that is 0 at the center stays 0. Other reals differ from home by at most half of
    their range: a design that reaches the far end of a range from a start at the other one costs most.

    Args:
        space: Search space.
        names: Reals that have to stay near the center; all others are free.
        factor: Factor before the first success, above 1.
    """

    def __init__(self, space: SearchSpace, names: tuple[str, ...], factor: float) -> None:
        self.space, self.names, self.factor = space, names, factor
        self._momenta = set(space.with_role("momentum"))
        slow = {*space.with_role("weight_decay"), *self._momenta}
        self.rates = tuple(name for name in names if name not in slow)
        self._reals = {n: p for n, p in space.parameters if n in names and isinstance(p, Real)}

    def limits(self, center: Mapping[str, Plain], successes: int) -> dict[str, tuple[float, float]]:
        """Return the least and the largest value of each column, within the space.

        Args:
            center: Configuration of the space.
            successes: Number of successes in a row that count.
        """
        factor, found = self.factor ** (1 + successes), {}
        for name, real in self._reals.items():
            value = as_number(name, center[name])
            if name in self._momenta:
                low, high = 1 - (1 - value) * factor, 1 - (1 - value) / factor
            else:
                low, high = value / factor, value * factor
            ends = (min(max(real.low, low), value), max(min(real.high, high), value))
            found[name] = ends if real.values is None else _on_steps(real.values, *ends)
        return found

    def box(self, home: Mapping[str, Plain], successes: int) -> Tensor:
        """Return the encoded bounds of all columns around home, float64 of shape ``(2, dim)``."""
        bounds = torch.zeros(2, self.space.dim, dtype=torch.float64)
        bounds[1] = 1.0
        reals = [(n, p) for n, p in self.space.parameters if isinstance(p, Real)]
        free = [self.space.columns[n] for n, p in reals if p.step is None]
        at = self.space.encode(home)
        for column in free:
            bounds[0, column] = (at[column] - _FREE).clamp_min(0)
            bounds[1, column] = (at[column] + _FREE).clamp_max(1)
        for name, ends in self.limits(home, successes).items():
            for row, value in zip(bounds, ends, strict=True):
                row[self.space.columns[name]] = self._reals[name].encode(value)
        return bounds


def _on_steps(steps: Sequence[float], low: float, high: float) -> tuple[float, float]:
    """Return the outermost steps of an interval, which holds one of them."""
    within = [step for step in steps if low <= step <= high]
    return within[0], within[-1]


@dataclass(frozen=True)
class TrustRegion:
    """Where a run is, and what its excursions have brought; each event returns a new one.

    Args:
        center: Configuration whose learning rates, weight decays and momenta are those of home.
        rates: Names of the learning rates.
        widened: Number of successes, less failures, that widen the region.
        failures: Failures in a row since the design.
        waits: Intervals at home before the next excursion.
        rewards: Latest rewards at home, at most ``RECENT``; larger is better.
        debt: Shortfall of the excursion before, which the next reward makes up for first: a network
            that recovers from one configuration owes nothing to the next.
        is_calmed: Whether the latest excursion gained more than home does; home may lose that again, so
            its next reward is no sign of what it gains.
        has_moved: Whether an excursion has succeeded.
        interval: Interval that was chosen last; None if its configuration is the user's.
        is_away: Whether it is an excursion.
        in_design: Whether it belongs to the design, whose failures do not count.
        is_past_design: Whether the design is over.
    """

    center: Mapping[str, Plain]
    rates: tuple[str, ...]
    widened: int = 0
    failures: int = 0
    waits: int = 0
    rewards: tuple[float, ...] = ()
    debt: float = 0.0
    is_calmed: bool = False
    has_moved: bool = False
    interval: int | None = None
    is_away: bool = False
    in_design: bool = False
    is_past_design: bool = False

    def chosen(self, interval: int, *, is_away: bool, in_design: bool) -> "TrustRegion":
        """Return the region after the choice of an interval."""
        waits = self.waits if is_away else max(self.waits - 1, 0)
        return replace(self, interval=interval, is_away=is_away, in_design=in_design, waits=waits)

    def past_design(self, *, has_design: bool) -> "TrustRegion":
        """Return the region when the design is over: a run goes home for new rewards to compare with."""
        past = replace(self, is_past_design=True)
        return replace(past, waits=RECENT, rewards=(), debt=0.0) if has_design else past

    def learned(
        self, interval: int, reward: float | None, config: Mapping[str, Plain]
    ) -> "TrustRegion":
        """Return the region after an interval was told.

        Args:
            interval: Number of the interval; only the one chosen last counts.
            reward: Its reward, larger is better; None if the query failed.
            config: Configuration that was played.
        """
        if interval != self.interval:
            return self
        known = replace(self, interval=None, debt=0.0, is_calmed=False)
        if reward is None:
            return known._failed() if self.is_away else known
        counted = reward - self.debt
        if not self.is_away:
            return known if self.is_calmed else replace(known, rewards=self._with(counted))
        if not self.rewards:
            return known._failed()
        if counted > max(self.rewards):
            return replace(known, is_calmed=True)._succeeded(config)
        usual = median(self.rewards)
        known = replace(known, debt=max(usual - reward, 0.0), is_calmed=counted > usual)
        return known._failed()

    def _succeeded(self, config: Mapping[str, Plain]) -> "TrustRegion":
        widened = min(self.widened + 1, _MOST_SUCCESSES)
        center = self._moved(config)
        return replace(self, center=center, has_moved=True, widened=widened, failures=0, waits=0)

    def _failed(self) -> "TrustRegion":
        known = replace(self, widened=self.widened // 2)
        if self.in_design:
            return known
        failures = min(self.failures + 1, _MOST_FAILURES)
        return replace(known, failures=failures, waits=2**failures - 1)

    def _moved(self, config: Mapping[str, Plain]) -> dict[str, Plain]:
        """Return the center after a success: a rate falls only where home gains nothing.

        Small rates look better at first, because the noise of training settles, even where a larger
        one ends better. What a weight decay or momentum does shows late, so none is moved.
        """
        gains = median(self.rewards) > 0
        center = dict(self.center)
        for name in self.rates:
            before, after = as_number(name, center[name]), as_number(name, config[name])
            center[name] = max(before, after) if gains else after
        return center

    def _with(self, reward: float) -> tuple[float, ...]:
        return (*self.rewards, reward)[-RECENT:]

    def state_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            **vars(self),
            "center": dict(self.center),
            "rates": list(self.rates),
            "rewards": list(self.rewards),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "TrustRegion":
        """Rebuild a region from ``state_dict``."""
        return cls(**{**state, "rates": tuple(state["rates"]), "rewards": tuple(state["rewards"])})
