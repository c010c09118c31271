"""Trials: other configurations are played from the state that the present one started from."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.improvement import expected_improvement
from botorch_costly.tuners.twins.belief import Row, TwinBelief
from botorch_costly.tuners.twins.candidates import apart_from
from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.curve import Slope
from botorch_costly.tuners.twins.run_budget import RunBudget, Steps

_MOST = 4  # trials from one state; later states have learnt more
_SURE = 1.64  # standard deviations; a trial is better with a probability of 0.95


class Side(NamedTuple):
    """A configuration that was played from a common state, its level, and the state after it."""

    point: Tensor  # encoded, shape: (d,)
    level: float  # -inf if it diverged
    state: int | None  # None if it is not kept
    early: float = math.nan  # level after half of the rounds, of rates

    def lead_over(self, other: "Side") -> float:
        """Return by how many levels it leads; inf if the other one alone diverged, -inf if it did."""
        if not math.isfinite(other.level):
            return math.inf if math.isfinite(self.level) else -math.inf
        return self.level - other.level


class Start(NamedTuple):
    """The state that trials start from, and the present configuration after as many rounds."""

    state: int
    incumbent: Side
    rounds: int
    slope: Slope
    trained: int  # rounds that the state was trained for
    began: int  # rounds of compute spent when the state was kept


class Challenge:
    """The comparison of one configuration with the present one.

    A passing effect, such as the calm after a smaller step, fades when both go on; a lasting one grows.

    Args:
        budget: Budget of the run.
        start: State and configuration that it is compared from.
    """

    def __init__(self, budget: RunBudget, start: Start) -> None:
        self._budget, self._start = budget, start

    def play(self, point: Tensor, reason: str) -> Steps[Side]:
        """Play a configuration for as many rounds as the present one, with as many queries."""
        start, budget, early = self._start, self._budget, math.nan
        where: Any = {"state": start.state, "began": start.began}
        if math.isnan(start.incumbent.early):
            level = yield from budget.play(point, start.rounds, reason, **where)
        else:
            early, level = yield from budget.play_halves(point, start.rounds, reason, **where)
        budget.give_back(start.rounds, start.slope.upper)
        return Side(point, level, budget.mark(), early)

    def confirm(
        self, trial: Side, least: float = 0.0, *, growth: float = CONSTANTS.lasting_share
    ) -> Steps[Side]:
        """Let a trial and the present configuration go on; return the better one.

        If neither is measured, the present configuration stays, in the state before they went on.

        Args:
            trial: A trial that leads.
            least: Smallest last lead of a trial that is taken.
            growth: Smallest factor from its first lead to the last one.
        """
        start, budget = self._start, self._budget
        present, began = start.incumbent, start.began + start.rounds
        sides = []
        for side in (trial, present):
            level = yield from budget.play(
                side.point, start.rounds, "a trial that goes on", state=side.state, began=began
            )
            sides.append(Side(side.point, level, budget.mark()))
            if side is trial:
                budget.drop(side.state)
        budget.give_back(start.rounds, start.slope.upper)
        if not any(math.isfinite(side.level) for side in sides):
            for side in sides:
                budget.drop(side.state)
            budget.give_back(start.rounds, start.slope.upper)
            return present
        budget.drop(present.state)
        first, second = (a.lead_over(b) for a, b in ((trial, present), sides))
        lasts = not math.isfinite(first) or second >= growth * first
        chosen, other = sides if lasts and second > least else reversed(sides)
        if chosen is sides[0]:
            budget.change()
        budget.drop(other.state)
        return chosen


class Trials:
    """Trials of several hyperparameters at once, as long as they promise more than they cost.

    Args:
        budget: Budget of the run.
        start: State and configuration that the trials start from.
        belief: Model of the advantages; it observes the trials.
        draw: Function that returns candidates around the present configuration, shape ``m x d``.

    Attributes:
        largest: Largest size of an advantage so far; 0 before the first trial.
    """

    def __init__(
        self, budget: RunBudget, start: Start, belief: TwinBelief, draw: Callable[[], Tensor]
    ) -> None:
        self._budget, self._start, self._belief, self._draw = budget, start, belief, draw
        self._challenge = Challenge(budget, start)
        self._tried: list[Tensor] = []
        self._time = math.log(max(start.trained + start.rounds, 1))
        self.largest = 0.0

    def run(self) -> Steps[Side]:
        """Play trials, and return the best side."""
        budget, rounds = self._budget, self._start.rounds
        best, lead = self._start.incumbent, 0.0
        for _ in range(_MOST):
            room = budget.affords_trial(3 * rounds, 3) and budget.may_query()  # also to confirm it
            point = self._candidate(lead) if room else None
            if point is None:
                break
            budget.trials += self._price
            trial = yield from self._challenge.play(point, "a trial")
            self._tried.append(point)
            advantage = self._observe(trial)
            self.largest = max(self.largest, abs(advantage))
            if advantage > lead and self._is_sure(point, lead):
                self._release(best)
                best, lead = trial, advantage
            else:
                self._release(trial)
        if lead > 0:
            trial, best = best, (yield from self._challenge.confirm(best))
            if torch.equal(best.point, trial.point):
                budget.trials = 0.0
        return best

    def _candidate(self, lead: float) -> Tensor | None:
        """Return the candidate of largest expected improvement; None if it is not worth its cost."""
        points, start = self._draw(), self._start
        for point in self._tried:  # equal trials from one state give the same information
            points = apart_from(points, point)
        if not len(points):
            return None
        mean, sd = self._belief.better(points, start.incumbent.point, self._time)
        promise = expected_improvement(mean, sd, lead)
        chosen = int(promise.argmax())
        gain = float(promise[chosen]) * unit_of(start.slope.upper)
        affords = self._budget.affords_cost(start.slope.upper, start.rounds, gain)
        return points[chosen] if gain >= self._price and affords else None

    @property
    def _price(self) -> float:
        """Cost of a trial at the end of the run, in log loss."""
        return self._budget.price(self._start.slope.upper, self._start.rounds)

    def _observe(self, trial: Side) -> float:
        present = self._start.incumbent
        advantage = trial.lead_over(present) / unit_of(self._start.slope.upper)
        self._belief.observe(Row(trial.point, present.point, self._time, advantage))
        return advantage

    def _is_sure(self, point: Tensor, lead: float) -> bool:
        present = self._start.incumbent.point
        mean, sd = self._belief.better(point.unsqueeze(0), present, self._time)
        return float(mean) > max(lead, _SURE * float(sd))

    def _release(self, side: Side) -> None:
        if side.state is not None and side.state != self._start.incumbent.state:
            self._budget.drop(side.state)


def unit_of(slope: float) -> float:
    """Return the difference of levels that counts as an advantage of 1 where a run has a slope."""
    return max(slope, CONSTANTS.typical_slope)
