"""A line search for the learning rate from one state of training.

All trials begin in one state and see the same batches. At the beginning of a run, tenfold and then half
steps find the rate that is fastest over a few rounds. If it is larger than the present one, a rate 2.5
times smaller is taken: few rounds favour steps that are too large in the end. The present rate stays
where none is faster. In a run that stalls, smaller rates are tried for longer.

References:
    Y. Wu, M. Ren, R. Liao, R. Grosse. Understanding short-horizon bias in stochastic meta-optimization.
    2018: late in a run, the loss a few steps later favours small rates, so the search comes early.
"""

import math
from dataclasses import dataclass

from torch import Tensor

from botorch_costly.tuners.twins.course import Course
from botorch_costly.tuners.twins.curve import TYPICAL, Slope, lasting
from botorch_costly.tuners.twins.steps import Steps

_TOLD_APART = 0.1  # difference, in units, from which the search was conclusive
_LEVEL = 0.03  # difference, in units, of rates that are level
_TIES = 1  # rates in a row that are level with the one before
_SEVERAL = 4  # rates that go on where the first rounds told nothing
_LONGER = 5  # rounds by which trials in a run that stalls go on
_GREW = 0.03  # log loss, at least, of an advantage that has grown
_BELOW = 0.4  # of a tenfold step, by which what is taken is below the fastest rate
_NEAR = 0.05  # of a tenfold step: rates this near are one
_SAME = 1e-9  # columns that are equal but for rounding
_EDGE = 0.3  # of a tenfold step: a bound nearer than this is not tried
_LOST = -0.3  # advantage below which the state of a trial is not kept


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
        return max(self.slope, TYPICAL)

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
            return -1.0
        if not math.isfinite(than):
            return 3.0
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
        self._until = until
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
        if not self.settled:
            for rate in sorted(self._tried, key=self._level)[-_SEVERAL:]:
                yield from self._longer(rate)
        chosen = self._fastest()
        if not self.settled or not self._clearly_faster(chosen):
            chosen = self._present
        elif chosen > self._present:
            chosen = yield from self._below_fastest()
        return self._paid(chosen)

    def after_a_stall(self) -> Steps[tuple[Tensor, Tried]]:
        """Search smaller rates in a run that stalls; return the configuration to go on with."""
        yield from self._longer(self._present)
        rate, best = self._present, self._present
        while rate >= _EDGE * self._step and self._has_room(
            self._start.rounds + _LONGER, queries=2
        ):
            rate = max(rate - self._step / 2, 0.0)
            yield from self._first(rate)
            yield from self._longer(rate)
            before, best = best, self._lastingly_better()
            if best == before:
                break
        return self._paid(best)

    @property
    def settled(self) -> bool:
        """Whether rates that did not diverge were told apart."""
        longest = max(tried.rounds for tried in self._tried.values())
        alike = [tried.level for tried in self._tried.values() if tried.rounds == longest]
        finite = [level for level in alike if math.isfinite(level)]
        if len(finite) < len(alike) and self._level(self._present) == -math.inf:
            return bool(finite)
        best = max(finite, default=0.0)
        near = [level for level in finite if level > best - 1]
        return len(near) > 1 and best - min(near) > _TOLD_APART * self._start.unit

    def _tenfold(self) -> Steps[None]:
        rate = self._present
        while rate <= 1 - _EDGE * self._step:
            following = min(rate + self._step, 1.0)
            yield from self._first(following)
            if self._level(following) <= self._level(rate):
                return
            rate = following

    def _downwards(self) -> Steps[None]:
        """Try half steps down for as long as they are not slower; where all diverge, on and on."""
        rate, ties, level = self._present, 0, _LEVEL * self._start.unit
        while rate >= _EDGE * self._step and ties <= _TIES:
            following = max(rate - self._step / 2, 0.0)
            yield from self._first(following)
            broken = self._level(rate) == -math.inf and following in self._tried
            gained = self._level(following) - self._level(rate)
            if not broken and not gained >= -level:
                return
            ties += not broken and gained <= level
            rate = following

    def _clearly_faster(self, rate: float) -> bool:
        gained = self._level(rate) - self._level(self._present)
        return gained > _TOLD_APART * self._start.unit

    def _below_fastest(self) -> Steps[float]:
        """Play a rate some way below the fastest, but not below the present one; return it."""
        wanted = max(self._vertex() - _BELOW * self._step, self._present)
        near = min(self._tried, key=lambda rate: abs(rate - wanted))
        rate = near if abs(near - wanted) < _NEAR * self._step else wanted
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
        state = self._course.mark() if advantage > _LOST else None
        self._tried[rate] = Tried(level, level, state, start.rounds)

    def _longer(self, rate: float) -> Steps[None]:
        found, later = self._tried.get(rate), self._start.began + self._start.rounds
        if found is None or found.state is None or not math.isfinite(found.level):
            return
        if not self._has_room(_LONGER):
            return
        level = yield from self._course.play(
            self._with(rate), _LONGER, _REASON, state=found.state, began=later
        )
        self._course.drop(found.state)
        self._tried[rate] = Tried(found.first, level, self._course.mark(), found.rounds + _LONGER)

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
        level = best - _TOLD_APART * self._start.unit
        return min(rate for rate in self._tried if self._level(rate) >= level)

    def _lastingly_better(self) -> float:
        """Return the best of the rates whose advantage has grown; the present one if there is none.

        A smaller step calms a network at once, even where a larger one ends better. So the first
        advantage of a smaller rate says nothing; its growth says much.
        """
        present, good = self._tried[self._present], [self._present]
        for rate, tried in self._tried.items():
            first, second = tried.first - present.first, tried.level - present.level
            grew = second > max(first, _GREW) or self._level(self._present) == -math.inf
            if grew and tried.state is not None and self._level(rate) > -math.inf:
                good.append(rate)
        return max(good, key=self._level)

    def _paid(self, chosen: float) -> tuple[Tensor, Tried]:
        for rate, found in self._tried.items():
            if rate != chosen:
                self._course.give_back(found.rounds, self._start.slope)
        now, before = self._tried[chosen], self._tried[self._present]
        if now is not before:
            same = now.rounds == before.rounds
            self._course.change(now.level - before.level if same else now.first - before.first)
        return self._with(chosen), now

    def _with(self, rate: float) -> Tensor:
        point = self._start.point.clone()
        point[self._column] = rate
        return point


_REASON = "a trial of the learning rate"
