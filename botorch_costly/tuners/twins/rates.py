"""The search of the learning rate: short trainings from the first state, compared at several lengths.

All rates are trained from the same state, so the answer depends on the state and little on the rate that
the run was started with. Two half steps, and tenfold ones where these go on to be better, lead to a rate
with a worse one on either side. Each rate is measured after half of its rounds, too: if the maximizer of
a parabola through the three moves, they go on for as many rounds again. Networks that were trained
before, normalizations and warm-ups favour other rates at first than later.

References:
    Y. Wu, M. Ren, R. Liao, R. Grosse. Understanding short-horizon bias in stochastic meta-optimization.
    2018: late in a run, the loss a few steps later favours small rates, so the search comes first.
"""

import math
from collections.abc import Callable
from itertools import chain, repeat

from torch import Tensor

from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.rate_belief import estimated
from botorch_costly.tuners.twins.run_budget import RunBudget, Steps
from botorch_costly.tuners.twins.trials import Side, Start

_REASON = "a trial of the learning rate"
_HALF = 0.5  # decades between the rates of a bracket
_NEAR = 0.1  # decades; rates this close are one
_DIVERGED = 1.0  # levels; a network this far behind has diverged
_SLIGHT = 0.15  # decades; a change up to this is not worth a doubt


class RateSearch:
    """One search.

    Args:
        budget: Budget of the run.
        start: State that all rates are trained from, and the present configuration after some rounds.
        column: Column of the learning rate.
        tenfold: Step in that column that multiplies the rate by ten.
        allowance: Rounds that may be given back.
        lead: Function that is told of the best rate and its state whenever another rate was played.

    Attributes:
        lost: Rounds that were given back.
        is_conclusive: Whether rates were found to differ.
    """

    def __init__(
        self,
        budget: RunBudget,
        start: Start,
        column: int,
        tenfold: float,
        allowance: int,
        lead: Callable[[Side], None],
    ) -> None:
        self._budget, self._first, self._present = budget, start.state, start.incumbent
        self._column, self._tenfold = column, tenfold
        self._allowance, self._lead = allowance, lead
        self._rounds = self._trained = start.rounds  # the first ones, and those of each rate so far
        self._began, self._is_late = start.began, start.trained > 0  # late, small rates look better
        self._sides = {0.0: start.incumbent}  # by decades from the present rate
        self.lost, self.is_conclusive = 0, False
        self._bracket = [0.0]  # rates that are kept, in order
        self._before = math.nan  # best rate at half of the rounds trained
        self._safe: Side | None = None  # what goes on if all diverge; None for the first state

    def run(self) -> Steps[Side]:
        """Return the configuration to go on with, and the state to go on from."""
        yield from self._climb()
        yield from self._surround()
        self.is_conclusive = self._differs()
        if not self.is_conclusive:
            return self._chosen(0.0)
        self._drop(self._first)
        self._before = self._vertex(early=True)
        while self._moves and self._change != 0 and self._may_lengthen():
            yield from self._lengthen()
        return self._chosen(self._change)

    @property
    def _change(self) -> float:
        """Decades by which the rate would change now; 0 if that is slight, or late and in doubt."""
        decades = estimated(self._vertex(), self._movement).mean
        lead = self._level(self._best) - self._level(0.0)
        in_doubt = self._is_late and decades < 0 and lead <= CONSTANTS.level_noise
        return decades if abs(decades) > _SLIGHT and not in_doubt else 0.0

    @property
    def _moves(self) -> bool:
        return abs(self._movement) > _HALF / 2

    def _differs(self) -> bool:
        """Return whether a rate can be told: the rates differ, or the network learns by the best one."""
        best = self._sides[self._best]
        if best.level == -math.inf or self._level(0.0) == -math.inf:
            return best.level > -math.inf
        learns = [
            side.level for side in self._sides.values() if side.level > best.level - _DIVERGED
        ]
        early = [best.early] if not math.isnan(best.early) else []
        return best.level - min(learns + early) > CONSTANTS.level_noise

    @property
    def _movement(self) -> float:
        """Decades by which the best rate moved while the rounds doubled; half a step if unknown."""
        moved = self._vertex() - self._before
        return _HALF if len(self._bracket) < 3 or math.isnan(moved) else moved

    def _climb(self) -> Steps[None]:
        """Walk up, or else down; first down from a rate at which networks diverge."""
        rate = 0.0
        while self._level(self._best) == -math.inf and (yield from self._try(rate - 1.0)):
            rate = min(self._sides)
        if not (yield from self._walk(1.0)):
            yield from self._walk(-1.0)

    def _walk(self, sign: float) -> Steps[bool]:
        """Take two half steps and then tenfold ones while each is better; return whether one was.

        Upwards level ones will do: before networks have begun to learn, a larger rate tells more.
        """
        origin = before = self._best
        steps = chain([_HALF, _HALF], repeat(1.0))
        while (yield from self._try(before + sign * next(steps))):
            after = max(self._sides) if sign > 0 else min(self._sides)
            gained = self._level(after) - self._level(before)
            if gained < -CONSTANTS.level_noise or (sign < 0 and gained <= 0):
                break
            before = after
        return self._best != origin

    def _surround(self) -> Steps[None]:
        """Take half steps until the best rate has a worse one on either side, or there is no room."""
        untried = True
        while untried:
            untried = False
            for side in (self._best + _HALF, self._best - _HALF):
                if self._find(side) is None and (yield from self._try(side)):
                    untried = True
                    break
        self._keep_only(self._around_best())

    def _try(self, decades: float) -> Steps[bool]:
        """Play the first rounds of a rate; return whether it is in range and there was room."""
        point = self._at(decades)
        decades = self._decades(point)
        if self._find(decades) is not None or self.lost + self._rounds > self._allowance:
            return False
        if not self._budget.affords_trial(self._rounds):
            return False
        self._sides[decades] = yield from self._played(
            point, self._rounds, self._first, self._began
        )
        self.lost += self._rounds  # of this or of another one
        self._keep_only(self._around_best())
        self._lead(self._sides[self._best])
        return True

    def _played(self, point: Tensor, rounds: int, state: int | None, began: int) -> Steps[Side]:
        """Play rounds of a rate, with a query after half of them and at the end."""
        early, level = yield from self._budget.play_halves(
            point, rounds, _REASON, state=state, began=began
        )
        return Side(point, _finite(level), self._budget.mark(), early)

    def _may_lengthen(self) -> bool:
        """Return whether the rates of the bracket can go on for as many rounds again."""
        alive = len(self._alive())
        lost = self.lost + self._trained * (alive - 1)
        affords = self._budget.affords_trial(self._trained * alive, alive)
        return alive > 1 and lost <= self._allowance and affords

    def _lengthen(self) -> Steps[None]:
        """Train the rates of the bracket for as many rounds again; it moves if its best is at an edge.

        A rate that diverges keeps the state before: the first one is gone by then, if all diverge.
        """
        self._before = self._vertex()
        self._move()
        alive, began = self._alive(), self._began + self._trained
        self._safe = self._sides[alive[0]]
        for decades in alive:
            side = self._sides[decades]
            level = yield from self._budget.play(
                side.point, self._trained, _REASON, state=side.state, began=began
            )
            longer = Side(side.point, _finite(level), self._budget.mark())
            if longer.level == -math.inf:
                self._budget.drop(longer.state)
                self._sides[decades] = longer._replace(state=side.state)
                continue
            self._sides[decades] = longer
            self._drop(side.state)
            self._lead(longer)
        # The rounds of one that goes on are not lost.
        self.lost += self._trained * (len(alive) - bool(self._alive()))
        self._trained *= 2

    def _move(self) -> None:
        """Centre the bracket at its best rate; a rate without a state goes on from that of the best.

        Rates that were left behind do not count: where training worsens networks, those trained for fewer
        rounds look better.
        """
        best = max(self._alive(), key=self._rank)
        bracket = [best]
        for distance in (_HALF, -_HALF):
            point = self._at(best + distance)
            decades = self._find(self._decades(point))
            decades = self._decades(point) if decades is None else decades
            side = self._sides.get(decades, self._sides[best])
            if side.state is None and side.level > -math.inf:
                side = self._sides[best]
            self._sides[decades] = side._replace(point=point)
            bracket.append(decades)
        self._keep_only(sorted({*bracket}))

    def _chosen(self, decades: float) -> Side:
        """Return an estimate as a configuration, with the state of the rate that is nearest to it.

        If all networks diverged, it is the smallest rate with the first state, or with its own state
        before it was trained for longer.
        """
        alive = self._alive()
        if not alive:
            if self._safe is not None:
                return self._safe
            self.lost += self._trained
            return self._sides[min(self._sides)]._replace(state=self._first)
        point = self._at(decades)
        near = min(alive, key=lambda rate: abs(rate - self._decades(point)))
        self._keep_only([near])
        return self._sides[near]._replace(point=point)

    def _vertex(self, *, early: bool = False) -> float:
        """Return the maximizer of a parabola through the bracket, near its best rate, in decades."""
        sides = [self._sides[rate] for rate in self._bracket]
        levels = [side.early if early else side.level for side in sides]
        if any(math.isnan(level) for level in levels):
            return math.nan
        ranked = zip(levels, (-abs(rate) for rate in self._bracket), self._bracket, strict=True)
        best = max(ranked)[-1]
        if len(levels) < 3:
            return best
        left, middle, right = levels
        if right == -math.inf:
            return best - _HALF / 2
        if left == -math.inf:
            return best + _HALF / 2
        bend, tilt = 2 * middle - left - right, right - left
        # A bend within the noise says as little about the rate as none.
        offset = _HALF * tilt / (2 * max(bend, CONSTANTS.level_noise))
        return self._bracket[1] + min(max(offset, -1.5 * _HALF), 1.5 * _HALF)

    def _alive(self) -> list[float]:
        """Return the rates of the bracket that have a state to go on from."""
        return [
            r
            for r in self._bracket
            if self._sides[r].state is not None and self._sides[r].level > -math.inf
        ]

    def _level(self, rate: float) -> float:
        return self._sides[rate].level

    @property
    def _best(self) -> float:
        return max(self._sides, key=self._rank)

    def _rank(self, rate: float) -> tuple[float, float]:
        return self._sides[rate].level, -abs(rate)

    def _around_best(self) -> list[float]:
        """Return the best rate and those half a step from it that were tried."""
        best = self._best
        found = (self._find(best + side) for side in (-_HALF, 0.0, _HALF))
        return sorted({rate for rate in found if rate is not None})

    def _find(self, decades: float) -> float | None:
        """Return the rate that was tried there; None if there is none."""
        return next((rate for rate in self._sides if abs(rate - decades) < _NEAR), None)

    def _keep_only(self, rates: list[float]) -> None:
        """Drop the states of all other rates."""
        for rate, side in self._sides.items():
            if rate not in rates and side.state is not None:
                self._sides[rate] = side._replace(state=None)
                self._drop(side.state)
        self._bracket = sorted(rates)

    def _drop(self, state: int | None) -> None:
        """Drop a state that no rate goes on from."""
        if state is not None and all(side.state != state for side in self._sides.values()):
            self._budget.drop(state)

    def _at(self, decades: float) -> Tensor:
        point = self._present.point.clone()
        point[self._column] = (point[self._column] + decades * self._tenfold).clamp(0, 1)
        return point

    def _decades(self, point: Tensor) -> float:
        moved = point[self._column] - self._present.point[self._column]
        return float(moved) / self._tenfold


def _finite(level: float) -> float:
    return level if math.isfinite(level) else -math.inf
