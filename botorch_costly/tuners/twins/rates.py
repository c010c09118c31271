"""A line search for the learning rate from one state of training.

All trials begin in one state and see the same batches. At the beginning of a run, tenfold and then half
steps find the rate that is fastest over a few rounds. If it is larger than the present one, and clearly
faster, half of it is taken: few rounds favour steps that are too large in the end. Rates that are close
go on for longer: a network that was trained before learns slowly at first, and the better rate gains. The
present rate stays where none is faster. A run that stalls tries smaller and larger rates again.

References:
    Y. Wu, M. Ren, R. Liao, R. Grosse. Understanding short-horizon bias in stochastic meta-optimization.
    2018: late in a run, the loss a few steps later favours small rates, so the search comes early.
"""

import math
from dataclasses import dataclass

from torch import Tensor

from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.course import Course
from botorch_costly.tuners.twins.curve import Slope, lasting
from botorch_costly.tuners.twins.steps import Steps

_SAME = 1e-9  # columns that are equal but for rounding


@dataclass(frozen=True)
class Start:
    """The state that trials begin in, and what the present configuration made of it."""

    state: int
    end: int  # state of the present configuration after the rounds
    point: Tensor  # present configuration, encoded, shape: (d,)
    rounds: int
    level: float  # after them
    learns: Slope
    trained: int
    began: int  # rounds of compute spent when it was kept

    @property
    def slope(self) -> float:
        """The slope that costs are counted with."""
        return self.learns.upper

    @property
    def unit(self) -> float:
        """Log loss that advantages are measured in."""
        return max(self.slope, CONSTANTS.typical_slope)

    def advantage(
        self, level: float, horizon: int, *, than: float | None = None, rounds: int | None = None
    ) -> float:
        """Return by how much a trial is better, in units, as it is likely to stand at the end.

        Args:
            level: Of the trial.
            horizon: Rounds of the run.
            than: Level of the present configuration after as many rounds; ``self.level`` if omitted.
            rounds: Of the trial; ``self.rounds`` if omitted.
        """
        than = self.level if than is None else than
        if not math.isfinite(level):
            return CONSTANTS.diverged_advantage
        if not math.isfinite(than):
            return CONSTANTS.rescuing_advantage
        grows = lasting(self.trained, self.rounds if rounds is None else rounds, horizon)
        return (level - than) / self.unit * grows


@dataclass
class Tried:
    """A rate after its first rounds, and after further ones."""

    first: float  # level after the first rounds
    level: float
    state: int | None
    rounds: int


class RateSearch:
    """One line search; ``settled`` says whether it told rates apart.

    Args:
        course: Of the run.
        start: Where trials begin.
        column: Of the learning rate.
        step: In that column, of a factor of ten.
        until: Round of compute that no trial reaches.
    """

    def __init__(self, course: Course, start: Start, column: int, step: float, until: int) -> None:
        self._course, self._start, self._column, self._step = course, start, column, step
        self._until, self.settled = until, False
        self._present = float(start.point[column])
        self._tried = {self._present: Tried(start.level, start.level, start.end, start.rounds)}

    def at_first(self) -> Steps[tuple[Tensor, Tried]]:
        """Search the rates of a run that begins; return the configuration to go on with."""
        yield from self._tenfold()
        fastest = self._fastest()
        if fastest == self._present:
            yield from self._downwards()
        else:
            yield from self._first(fastest - self._step / 2)
            yield from self._first(fastest + self._step / 2)
        if not self._told_apart():
            for rate in sorted(self._tried, key=self._level)[-CONSTANTS.extended_rates :]:
                yield from self._longer(rate)
        self.settled = self._told_apart()
        chosen = (yield from self._chosen()) if self.settled else self._present
        return self._paid(chosen)

    def _chosen(self) -> Steps[float]:
        """Return the rate to go on with, after a longer comparison of those that are close."""
        second, best = sorted(self._tried, key=self._level)[-2:]
        lead = self._level(best) - self._level(self._present)
        apart = CONSTANTS.conclusive_difference * self._start.unit
        if not lead > self._slight():
            return self._present
        if lead > apart and best > self._present:
            return (yield from self._below_fastest())
        close = {best} if lead > apart else {best, self._present}
        if self._level(second) > self._level(best) - apart:
            close.add(second)
        if len(close) == 1:
            return best
        for rate in sorted(close):
            yield from self._longer(rate)
        return self._later_best(close)

    def _slight(self) -> float:
        """Return a lead that is not worth a change: a small part of what rates differ by."""
        near = self._near([tried.level for tried in self._tried.values()])
        return max(CONSTANTS.slight_lead, CONSTANTS.slight_share * (max(near) - min(near)))

    def _later_best(self, rates: set[float]) -> float:
        """Return the best of rates that went on: the present one, if among them, unless a lead grew."""
        longest = max(self._tried[rate].rounds for rate in rates)

        def is_good(rate: float) -> bool:
            first, later = self._advantages(rate)
            return self._present not in rates or later > first

        good = [r for r in rates if self._tried[r].rounds == longest and is_good(r)]
        return max(good, key=self._level, default=self._present)

    def _advantages(self, rate: float) -> tuple[float, float]:
        """Return by how much a rate is better than the present one: at first, and at the latest."""
        tried, present = self._tried[rate], self._tried[self._present]
        return tried.first - present.first, tried.level - present.level

    def after_a_stall(self) -> Steps[tuple[Tensor, Tried]]:
        """Search rates around that of a run that stalls; return the configuration to go on with."""
        best = yield from self._half_steps(-1)
        if best == self._present:
            best = yield from self._half_steps(+1)
        return self._paid(best)

    def _half_steps(self, sign: int) -> Steps[float]:
        """Go half steps one way for as long as each is better than the one before; return the last."""
        best, edge = self._present, CONSTANTS.bound_margin * self._step
        while edge <= (best if sign < 0 else 1 - best) and self._has_room(
            self._start.rounds + 2 * CONSTANTS.extension, queries=3
        ):
            rate = min(max(best + sign * self._step / 2, 0.0), 1.0)
            yield from self._first(rate)
            lag = CONSTANTS.larger_lag if sign > 0 else 0.0
            if not self._level(rate) > self._tried[best].first - lag:
                break
            for known in (self._present, rate):
                yield from self._longer(known)
            before, best = best, self._lastingly_better()
            if best == before:
                break
        return best

    def _told_apart(self) -> bool:
        """Whether rates that did not diverge were told apart."""
        longest = max(tried.rounds for tried in self._tried.values())
        alike = [tried.level for tried in self._tried.values() if tried.rounds == longest]
        finite = [level for level in alike if math.isfinite(level)]
        if len(finite) < len(alike) and self._level(self._present) == -math.inf:
            return bool(finite)
        near = self._near(alike)
        apart = CONSTANTS.conclusive_difference * self._start.unit
        return len(near) > 1 and max(near) - min(near) > apart

    @staticmethod
    def _near(levels: list[float]) -> list[float]:
        """Return levels near to the best; the others are of networks that diverged, or are about to."""
        finite = [level for level in levels if math.isfinite(level)]
        return [level for level in finite if level > max(finite) - CONSTANTS.diverged_gap]

    def _tenfold(self) -> Steps[None]:
        rate = self._present
        while rate <= 1 - CONSTANTS.bound_margin * self._step:
            following = min(rate + self._step, 1.0)
            yield from self._first(following)
            if self._level(following) <= self._level(rate):
                return
            rate = following

    def _downwards(self) -> Steps[None]:
        """Try half steps down for as long as they are not slower; where all diverge, on and on."""
        rate, ties, level = self._present, 0, CONSTANTS.tie_difference * self._start.unit
        while rate >= CONSTANTS.bound_margin * self._step and ties <= CONSTANTS.max_ties:
            following = max(rate - self._step / 2, 0.0)
            yield from self._first(following)
            broken = self._level(rate) == -math.inf and following in self._tried
            gained = self._level(following) - self._level(rate)
            if not broken and not gained >= -level:
                return
            ties += not broken and gained <= level
            rate = following

    def _below_fastest(self) -> Steps[float]:
        """Play a rate some way below the fastest, but not below the present one; return it."""
        wanted = max(self._vertex() - CONSTANTS.below_fastest * self._step, self._present)
        near = min(self._tried, key=lambda rate: abs(rate - wanted))
        rate = near if abs(near - wanted) < CONSTANTS.same_rate * self._step else wanted
        yield from self._first(rate)
        known = self._level(rate) > -math.inf and self._tried[rate].state is not None
        return rate if known else self._fastest()

    def _vertex(self) -> float:
        """Return where a parabola through the fastest rate and half a step to each side is highest."""
        rate, half = self._fastest(), self._step / 2
        left, middle, right = (self._level(rate + side) for side in (-half, 0.0, half))
        if not (math.isfinite(left) and math.isfinite(right)):
            return rate
        bend = 2 * middle - left - right
        return rate + half * (right - left) / (2 * bend) if bend > 0 else rate

    def _first(self, rate: float) -> Steps[None]:
        start = self._start
        known = any(abs(tried - rate) < _SAME for tried in self._tried)
        if known or not 0 <= rate <= 1 or not self._has_room(start.rounds):
            return
        level = yield from self._course.play(
            self._with(rate), start.rounds, _REASON, state=start.state, began=start.began
        )
        advantage = start.advantage(level, self._course.horizon)
        state = self._course.mark() if advantage > CONSTANTS.lost_advantage else None
        self._tried[rate] = Tried(level, level, state, start.rounds)

    def _longer(self, rate: float) -> Steps[None]:
        found, later = self._tried.get(rate), self._start.began + self._start.rounds
        if found is None or found.state is None or not math.isfinite(found.level):
            return
        if found.rounds > self._start.rounds or not self._has_room(CONSTANTS.extension):
            return
        level = yield from self._course.play(
            self._with(rate), CONSTANTS.extension, _REASON, state=found.state, began=later
        )
        if found.state != self._start.end:  # which the run goes on from if it is stopped now
            self._course.drop(found.state)
        self._tried[rate] = Tried(
            found.first, level, self._course.mark(), found.rounds + CONSTANTS.extension
        )

    def _has_room(self, rounds: int, queries: int = 1) -> bool:
        return self._course.has_room(rounds, self._until, queries)

    def _level(self, rate: float) -> float:
        """Return the level that was reached at a rate; -inf if it is not known or none."""
        near = min(self._tried, key=lambda known: abs(known - rate))
        level = self._tried[near].level if abs(near - rate) < _SAME else -math.inf
        return level if math.isfinite(level) else -math.inf

    def _fastest(self) -> float:
        """Return the rate of the highest level; of those that are level with it the smallest."""
        best = max(self._level(rate) for rate in self._tried)
        if best == -math.inf:
            return self._present
        level = best - CONSTANTS.tie_difference * self._start.unit
        return min(rate for rate in self._tried if self._level(rate) >= level)

    def _lastingly_better(self) -> float:
        """Return the best of the rates whose advantage has grown; the present one if there is none.

        A smaller step calms a network at once, even where a larger one ends better. So the first
        advantage of a smaller rate says nothing; its growth says much. A larger rate that is better
        after a few rounds is better in the end all the more.
        """
        good = [self._present]
        for rate, tried in self._tried.items():
            first, later = self._advantages(rate)
            least = (
                CONSTANTS.least_growth if rate < self._present else CONSTANTS.least_growth_larger
            )
            grew = later > max(first, least) or self._level(self._present) == -math.inf
            if grew and tried.state is not None and self._level(rate) > -math.inf:
                good.append(rate)
        return max(good, key=self._level)

    def _paid(self, chosen: float) -> tuple[Tensor, Tried]:
        if self._tried[chosen].state is None:
            # It looked lost after its first rounds, and its state was let go: the run cannot go on
            # from there, however the others did later. The present rate always has a state.
            kept = [rate for rate, tried in self._tried.items() if tried.state is not None]
            chosen = max(kept, key=self._level)
        for rate, found in self._tried.items():
            if rate != chosen:
                self._course.give_back(found.rounds, self._start.slope)
        now, before = self._tried[chosen], self._tried[self._present]
        if now is not before:
            first, later = self._advantages(chosen)
            self._course.change(later if now.rounds == before.rounds else first)
        return self._with(chosen), now

    def _with(self, rate: float) -> Tensor:
        point = self._start.point.clone()
        point[self._column] = rate
        return point


_REASON = "a trial of the learning rate"
