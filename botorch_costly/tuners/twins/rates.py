"""A line search for the learning rate from one state of training.

All trials start from one state and see the same batches. At the beginning of a run, tenfold and then half
steps find the rate that is fastest over a few rounds. If it is larger than the present rate and clearly
faster, half of it is taken, because few rounds favour steps that are too large in the end. Rates that are
close are extended: a network that was trained before learns slowly at first, and the better rate gains
with time. If no rate is faster, the present one stays. A run that stalls tries smaller and larger rates
again.

References:
    Y. Wu, M. Ren, R. Liao, R. Grosse. Understanding short-horizon bias in stochastic meta-optimization.
    2018: late in a run, the loss a few steps later favours small rates, so the search comes early.
"""

import math
from dataclasses import dataclass

from torch import Tensor

from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.curve import Slope, lasting
from botorch_costly.tuners.twins.run_budget import RunBudget, Steps

_ROUNDING = 1e-9  # encoded rates closer than this are equal
_REASON = "a trial of the learning rate"


@dataclass(frozen=True)
class Start:
    """The state that trials start from, and the result of the present configuration."""

    state: int
    end: int  # state of the present configuration after the rounds
    point: Tensor  # present configuration, encoded, shape: (d,)
    rounds: int
    level: float  # level of the present configuration after the rounds
    learns: Slope
    trained: int
    began: int  # rounds of compute spent when the state was kept

    @property
    def slope(self) -> float:
        """The slope that prices rounds."""
        return self.learns.upper

    @property
    def unit(self) -> float:
        """Log loss of one unit of advantage."""
        return max(self.slope, CONSTANTS.typical_slope)

    def advantage(
        self, level: float, horizon: int, *, than: float | None = None, rounds: int | None = None
    ) -> float:
        """Return the trial's advantage in units of the slope, extrapolated to the end of the run.

        Args:
            level: Level of the trial.
            horizon: Rounds of the run.
            than: Level of the present configuration after as many rounds; ``self.level`` if omitted.
            rounds: Rounds of the trial; ``self.rounds`` if omitted.
        """
        than = self.level if than is None else than
        if not math.isfinite(level):
            return CONSTANTS.diverged_advantage
        if not math.isfinite(than):
            return CONSTANTS.rescuing_advantage
        growth = lasting(self.trained, self.rounds if rounds is None else rounds, horizon)
        return (level - than) / self.unit * growth


@dataclass
class Tried:
    """A rate after its first rounds, and after further ones."""

    first: float  # level after the first rounds
    level: float
    state: int | None
    rounds: int


class RateSearch:
    """One line search; ``settled`` says whether it was conclusive.

    Args:
        budget: Budget of the run.
        start: State and configuration that the trials start from.
        column: Column of the learning rate.
        step: Step in that column that multiplies the rate by ten.
        until: Round of compute by which all trials end.
    """

    def __init__(
        self, budget: RunBudget, start: Start, column: int, step: float, until: int
    ) -> None:
        self._budget, self._start, self._column, self._step = budget, start, column, step
        self._until, self.settled = until, False
        self._present = float(start.point[column])
        self._tried = {self._present: Tried(start.level, start.level, start.end, start.rounds)}

    def at_first(self) -> Steps[tuple[Tensor, Tried]]:
        """Search at the beginning of a run; return the configuration to continue with."""
        yield from self._tenfold()
        fastest = self._fastest()
        if fastest == self._present:
            yield from self._downwards()
        else:
            yield from self._try(fastest - self._step / 2)
            yield from self._try(fastest + self._step / 2)
        if not self._is_conclusive():
            for rate in sorted(self._tried, key=self._level)[-CONSTANTS.extended_rates :]:
                yield from self._extend(rate)
        self.settled = self._is_conclusive()
        chosen = (yield from self._chosen()) if self.settled else self._present
        return self._accounted(chosen)

    def after_a_stall(self) -> Steps[tuple[Tensor, Tried]]:
        """Search around the rate of a run that stalls; return the configuration to continue with."""
        best = yield from self._half_steps(-1)
        if best == self._present:
            best = yield from self._half_steps(+1)
        return self._accounted(best)

    def _chosen(self) -> Steps[float]:
        """Return the rate to continue with, after extending rates that are close."""
        second, best = sorted(self._tried, key=self._level)[-2:]
        lead = self._level(best) - self._level(self._present)
        apart = CONSTANTS.conclusive_difference * self._start.unit
        near = self._near([tried.level for tried in self._tried.values()])
        slight = max(CONSTANTS.slight_lead, CONSTANTS.slight_share * (max(near) - min(near)))
        if not lead > slight:
            return self._present
        if lead > apart and best > self._present:
            return (yield from self._below_fastest())
        close = {best} if lead > apart else {best, self._present}
        if self._level(second) > self._level(best) - apart:
            close.add(second)
        if len(close) == 1:
            return best
        for rate in sorted(close):
            yield from self._extend(rate)
        return self._best_extended(close)

    def _best_extended(self, rates: set[float]) -> float:
        """Return the best extended rate; if the present one is among them, leads must have grown."""
        longest = max(self._tried[rate].rounds for rate in rates)

        def has_grown(rate: float) -> bool:
            first, latest = self._leads(rate)
            return self._present not in rates or latest > first

        good = [r for r in rates if self._tried[r].rounds == longest and has_grown(r)]
        return max(good, key=self._level, default=self._present)

    def _leads(self, rate: float) -> tuple[float, float]:
        """Return the lead of a rate over the present one: after the first and after all rounds."""
        tried, present = self._tried[rate], self._tried[self._present]
        return tried.first - present.first, tried.level - present.level

    def _half_steps(self, sign: int) -> Steps[float]:
        """Take half steps in one direction while each is better than the last; return the best rate."""
        best, edge = self._present, CONSTANTS.bound_margin * self._step
        while edge <= (best if sign < 0 else 1 - best) and self._has_room(
            self._start.rounds + 2 * CONSTANTS.extension, queries=3
        ):
            rate = min(max(best + sign * self._step / 2, 0.0), 1.0)
            yield from self._try(rate)
            lag = CONSTANTS.larger_lag if sign > 0 else 0.0
            if not self._level(rate) > self._tried[best].first - lag:
                break
            for extended in (self._present, rate):
                yield from self._extend(extended)
            before, best = best, self._lastingly_better()
            if best == before:
                break
        return best

    def _is_conclusive(self) -> bool:
        """Return whether rates that did not diverge differ clearly."""
        longest = max(tried.rounds for tried in self._tried.values())
        levels = [tried.level for tried in self._tried.values() if tried.rounds == longest]
        finite = [level for level in levels if math.isfinite(level)]
        if len(finite) < len(levels) and self._level(self._present) == -math.inf:
            return bool(finite)
        near = self._near(levels)
        apart = CONSTANTS.conclusive_difference * self._start.unit
        return len(near) > 1 and max(near) - min(near) > apart

    @staticmethod
    def _near(levels: list[float]) -> list[float]:
        """Return the levels near the best one; the other networks have diverged or are about to."""
        finite = [level for level in levels if math.isfinite(level)]
        return [level for level in finite if level > max(finite) - CONSTANTS.diverged_gap]

    def _tenfold(self) -> Steps[None]:
        """Try tenfold steps up while each is faster than the last."""
        rate = self._present
        while rate <= 1 - CONSTANTS.bound_margin * self._step:
            larger = min(rate + self._step, 1.0)
            yield from self._try(larger)
            if self._level(larger) <= self._level(rate):
                return
            rate = larger

    def _downwards(self) -> Steps[None]:
        """Try half steps down while they are not slower, or while all rates diverge."""
        rate, ties, tie = self._present, 0, CONSTANTS.tie_difference * self._start.unit
        while rate >= CONSTANTS.bound_margin * self._step and ties <= CONSTANTS.max_ties:
            smaller = max(rate - self._step / 2, 0.0)
            yield from self._try(smaller)
            has_diverged = self._level(rate) == -math.inf and smaller in self._tried
            gained = self._level(smaller) - self._level(rate)
            if not has_diverged and not gained >= -tie:
                return
            ties += not has_diverged and gained <= tie
            rate = smaller

    def _below_fastest(self) -> Steps[float]:
        """Try a rate somewhat below the fastest, but not below the present one; return it."""
        wanted = max(self._vertex() - CONSTANTS.below_fastest * self._step, self._present)
        near = min(self._tried, key=lambda rate: abs(rate - wanted))
        rate = near if abs(near - wanted) < CONSTANTS.same_rate * self._step else wanted
        yield from self._try(rate)
        is_usable = self._level(rate) > -math.inf and self._tried[rate].state is not None
        return rate if is_usable else self._fastest()

    def _vertex(self) -> float:
        """Return the maximizer of a parabola through the fastest rate and half a step to each side."""
        rate, half = self._fastest(), self._step / 2
        left, middle, right = (self._level(rate + side) for side in (-half, 0.0, half))
        if not (math.isfinite(left) and math.isfinite(right)):
            return rate
        bend = 2 * middle - left - right
        return rate + half * (right - left) / (2 * bend) if bend > 0 else rate

    def _try(self, rate: float) -> Steps[None]:
        """Play the first rounds of a rate, unless it was tried, is out of range or there is no room."""
        start = self._start
        was_tried = any(abs(tried - rate) < _ROUNDING for tried in self._tried)
        if was_tried or not 0 <= rate <= 1 or not self._has_room(start.rounds):
            return
        level = yield from self._budget.play(
            self._with(rate), start.rounds, _REASON, state=start.state, began=start.began
        )
        advantage = start.advantage(level, self._budget.horizon)
        state = self._budget.mark() if advantage > CONSTANTS.lost_advantage else None
        self._tried[rate] = Tried(level, level, state, start.rounds)

    def _extend(self, rate: float) -> Steps[None]:
        """Play further rounds of a rate, once."""
        tried, began = self._tried.get(rate), self._start.began + self._start.rounds
        if tried is None or tried.state is None or not math.isfinite(tried.level):
            return
        if tried.rounds > self._start.rounds or not self._has_room(CONSTANTS.extension):
            return
        level = yield from self._budget.play(
            self._with(rate), CONSTANTS.extension, _REASON, state=tried.state, began=began
        )
        if tried.state != self._start.end:  # a run that is stopped now continues from there
            self._budget.drop(tried.state)
        rounds = tried.rounds + CONSTANTS.extension
        self._tried[rate] = Tried(tried.first, level, self._budget.mark(), rounds)

    def _has_room(self, rounds: int, queries: int = 1) -> bool:
        return self._budget.has_room(rounds, self._until, queries)

    def _level(self, rate: float) -> float:
        """Return the level that a rate reached; -inf if it was not tried or diverged."""
        near = min(self._tried, key=lambda tried: abs(tried - rate))
        level = self._tried[near].level if abs(near - rate) < _ROUNDING else -math.inf
        return level if math.isfinite(level) else -math.inf

    def _fastest(self) -> float:
        """Return the rate of the highest level; the smallest of those that are tied with it."""
        best = max(self._level(rate) for rate in self._tried)
        if best == -math.inf:
            return self._present
        lowest = best - CONSTANTS.tie_difference * self._start.unit
        return min(rate for rate in self._tried if self._level(rate) >= lowest)

    def _lastingly_better(self) -> float:
        """Return the best of the rates whose lead has grown; the present one if there is none.

        A smaller step calms a network at once, even where a larger one ends better. So the first lead of
        a smaller rate says nothing, but its growth says much. A larger rate that leads after a few rounds
        leads all the more in the end.
        """
        good = [self._present]
        for rate, tried in self._tried.items():
            first, latest = self._leads(rate)
            is_smaller = rate < self._present
            least = CONSTANTS.least_growth if is_smaller else CONSTANTS.least_growth_larger
            has_grown = latest > max(first, least) or self._level(self._present) == -math.inf
            if has_grown and tried.state is not None and self._level(rate) > -math.inf:
                good.append(rate)
        return max(good, key=self._level)

    def _accounted(self, chosen: float) -> tuple[Tensor, Tried]:
        """Give back the rounds of all other rates; return the chosen configuration and its result."""
        if self._tried[chosen].state is None:
            # Its state was dropped because it looked lost after its first rounds, so the run cannot
            # continue from there. The present rate always has a state.
            kept = [rate for rate, tried in self._tried.items() if tried.state is not None]
            chosen = max(kept, key=self._level)
        for rate, tried in self._tried.items():
            if rate != chosen:
                self._budget.give_back(tried.rounds, self._start.slope)
        now, before = self._tried[chosen], self._tried[self._present]
        if now is not before:
            first, latest = self._leads(chosen)
            self._budget.change(latest if now.rounds == before.rounds else first)
        return self._with(chosen), now

    def _with(self, rate: float) -> Tensor:
        point = self._start.point.clone()
        point[self._column] = rate
        return point
