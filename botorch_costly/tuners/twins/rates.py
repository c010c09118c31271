"""A line search for the learning rate from one state, judged by what longer rounds say.

All trials begin in one state and see the same batches. Tenfold steps are compared after a few rounds,
which favour rates that are too large; so the best of them, one half a step below and the present one go
on, and the smallest that is level with the best then is taken.

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

_CLEARLY = 0.15  # advantage, in units, from which a rate is better
_FAR = 1.5  # advantage from which a further tenfold step is tried
_LEVEL = 0.03  # difference, in units, of rates that are level
_TOLD_APART = 0.1  # difference, in units, from which the search was conclusive
_LONGER = 5  # rounds by which the best go on
_MISSED = 0.4  # of what the best rate gains: a smaller one may gain so much less
_GREW = 0.03  # log loss, at least, of an advantage that has grown
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

    advantage: float
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
        self._tried = {self._present: Tried(0.0, start.level, start.level, start.end, start.rounds)}
        self.settled = False

    def search(self, *, upwards: bool = True) -> Steps[tuple[Tensor, Tried]]:
        """Return the configuration to go on with, and where it stands.

        Args:
            upwards: Whether larger rates are tried, too: not where a run stalls.
        """
        if upwards:
            yield from self._upwards()
        top = max(self._tried, key=lambda rate: self._tried[rate].advantage)
        if self._tried[top].advantage >= _CLEARLY:
            several = [top, top - self._step / 2, self._present]
            for rate in dict.fromkeys(several):
                if rate >= 0:
                    yield from self._longer(rate)
        else:
            yield from self._longer(self._present)
            yield from self._downwards()
        chosen = self._smallest_of_the_good() if upwards else self._lastingly_better()
        self._pay(chosen)
        return self._with(chosen), self._tried[chosen]

    def _upwards(self) -> Steps[None]:
        rate = self._present
        while rate <= 1 - _EDGE * self._step and self._has_room(self._start.rounds):
            before = self._tried[rate].advantage
            if rate != self._present and before <= _FAR:
                return
            following = min(rate + self._step, 1.0)
            yield from self._first(following)
            if self._tried[following].advantage <= before:
                return
            rate = following

    def _downwards(self) -> Steps[None]:
        best, rate = self._tried[self._present].level, self._present
        whole = self._start.rounds + _LONGER
        while rate >= _EDGE * self._step and self._has_room(whole, queries=2):
            rate = max(rate - self._step / 2, 0.0)
            yield from self._first(rate)
            if math.isfinite(best) and self._tried[rate].advantage < -_TOLD_APART:
                return
            yield from self._longer(rate)
            level = self._tried[rate].level
            broken = math.isinf(best) and not math.isfinite(level)  # a smaller one may not be
            if not broken and not level > best - _LEVEL * self._start.unit:
                return
            best = max(best, level)

    def _first(self, rate: float) -> Steps[None]:
        start = self._start
        level = yield from self._course.play(
            self._with(rate), start.rounds, _REASON, state=start.state, began=start.began
        )
        advantage = start.advantage(level, self._course.horizon)
        state = self._course.mark() if advantage > _LOST else None
        self._tried[rate] = Tried(advantage, level, level, state, start.rounds)

    def _longer(self, rate: float) -> Steps[None]:
        start = self._start
        if rate not in self._tried and self._has_room(start.rounds):
            yield from self._first(rate)
        found = self._tried.get(rate)
        if found is None or found.state is None or not math.isfinite(found.level):
            return
        if not self._has_room(_LONGER):
            return
        level = yield from self._course.play(
            self._with(rate),
            _LONGER,
            _REASON,
            state=found.state,
            began=start.began + start.rounds,
        )
        self._course.drop(found.state)
        self._tried[rate] = Tried(
            found.advantage, found.first, level, self._course.mark(), found.rounds + _LONGER
        )

    def _has_room(self, rounds: int, queries: int = 1) -> bool:
        return self._course.has_room(rounds, self._until, queries)

    def _smallest_of_the_good(self) -> float:
        """Return the smallest rate that gains most of what the best gains; the present one if none does.

        The first rounds favour steps that are too large in the end.
        """
        unit = self._start.unit
        went_on = {r: t.level for r, t in self._tried.items() if t.rounds > self._start.rounds}
        levels = {r: level for r, level in went_on.items() if math.isfinite(level)}
        first = [tried.advantage for tried in self._tried.values()]
        apart = max(first) - min(first) > _TOLD_APART
        if levels:
            best = max(levels.values())
            apart = apart or best - min(went_on.values()) > _TOLD_APART * unit
        self.settled = apart and bool(levels)
        if not levels or not apart:
            return self._present
        present = self._tried[self._present].level
        if present >= best - _LEVEL * unit:
            return self._present
        gain = best - present if math.isfinite(present) else 0.0
        return min(r for r, level in levels.items() if level >= best - _MISSED * gain)

    def _lastingly_better(self) -> float:
        """Return the best of the rates whose advantage has grown; the present one if there is none.

        A smaller step calms a network at once, whatever is best in the end; so what a smaller rate is
        better by at first says nothing, and what it gains after that says much.
        """
        present = self._tried[self._present]
        found = {self._present: present.level if math.isfinite(present.level) else -math.inf}
        for rate, tried in self._tried.items():
            if tried.state is None or not math.isfinite(tried.level):
                continue
            first, second = tried.first - present.first, tried.level - present.level
            if second > max(first, _GREW) or not math.isfinite(present.level):
                found[rate] = tried.level
        return max(found, key=lambda rate: found[rate])

    def _pay(self, chosen: float) -> None:
        for rate, found in self._tried.items():
            if rate != chosen:
                self._course.give_back(found.rounds, self._start.slope)

    def _with(self, rate: float) -> Tensor:
        point = self._start.point.clone()
        point[self._column] = rate
        return point


_REASON = "a trial of the learning rate"
