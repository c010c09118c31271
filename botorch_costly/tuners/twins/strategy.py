"""The steps of a plan as a strategy: one round after another, from the present or an earlier state."""

import ast
import json
import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from botorch_costly.ask_tell.evaluations import Evaluations
from botorch_costly.ask_tell.state import Undo, attributes_of
from botorch_costly.ask_tell.strategy import Action, PlannedStrategy, Proposal
from botorch_costly.ask_tell.tariff import Stock
from botorch_costly.parameters import BASES, Plain, Real, Scheduled
from botorch_costly.randomness import generator_of
from botorch_costly.records import Observation, TwinDecision
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.twins.plan import Plan
from botorch_costly.tuners.twins.replay import BEGIN, Moment, Replay
from botorch_costly.tuners.twins.run_budget import RunBudget, Step
from botorch_costly.tuners.twins.warm_up import WarmUp

Seen = Evaluations[TwinDecision, Observation]
_UNKNOWN = 100  # rounds of a plan until it is known how many the seconds of a run hold


class TwinStrategy(PlannedStrategy):
    """Plays the steps of a plan, each for one or more rounds.

    A step is judged by the level of the metric at its end. All decisions follow from these levels: a
    state holds the levels, and loading it rebuilds the plan.

    Args:
        space: Search space of the configurations.
        start: Encoded first configuration.
        horizon: Rounds of compute; None if they are inferred from the clock.
        queries: Largest share of queried rounds.
        seed: Seed of all random draws.
        seconds: Seconds of the run, if they are limited.

    Attributes:
        kept: States of training by number, for sessions.
        by_hand: Whether a decision to go back was handed out without a session.
        loads: Number of states loaded so far.
    """

    _because = "the plan chooses all rounds (see the argument start)"

    def __init__(
        self,
        space: SearchSpace,
        start: Tensor,
        horizon: int | None,
        queries: float,
        seed: int,
        *,
        seconds: float | None = None,
    ) -> None:
        self._space, self._start = space, start
        self._limit, self._horizon = horizon, horizon  # and the rounds as they are known now
        self._seconds, self._was_known = seconds, horizon is not None
        self._queries, self._seed = queries, seed
        # Rounds that were expected at each moment: a clock says others later.
        self._horizons: dict[Moment, int] = {BEGIN: _UNKNOWN if horizon is None else horizon}
        self.replay = Replay(self._plan, self._horizons[BEGIN])
        self._levels: list[float] = []  # level after each step so far
        # Queries that are affordable before each step, the present one included.
        self._stocks: list[Stock] = []
        self._alone: list[tuple[int, int | None]] = []  # periods without going back
        # Whether the present one of them ends as soon as the rate and the rounds are known.
        self._waits = False
        self._warm_up: WarmUp | None = WarmUp()  # until something is tried
        self._step: Step | None = None  # present step
        self._played, self._level = 0, math.nan  # rounds and level of the present step
        self.kept: dict[int, Any] = {}
        self.by_hand = False
        self.loads = 0

    @property
    def plan(self) -> Plan:
        """The plan in its present state."""
        return self.replay.plan

    @property
    def is_settled(self) -> bool:
        """Whether the rest of the run plays the incumbent and never goes back."""
        return bool(self._alone) and self._alone[-1][1] is None

    @property
    def tries_nothing(self) -> bool:
        """Whether the run was settled while rounds were left, and plays the incumbent since."""
        return self.is_settled and self._alone[-1][0] < len(self._levels)

    @property
    def state_of_incumbent(self) -> int | None:
        """Number of the kept state that the incumbent continues from; None for the present state."""
        settled = self._step is None or self.is_settled
        return None if settled else self.plan.state_of_incumbent

    def settle(self) -> None:
        """Play the incumbent from the present state to the end."""
        if not self.is_settled:
            self._step = None
            self._alone = [*self._alone, (len(self._levels), None)]
            self.kept.clear()
        self._waits, self._warm_up = False, None

    def see(self, rate: float, rounds: int, horizon: int | None) -> None:
        """Play nothing but the incumbent while the rounds are unknown or the rate rises by itself.

        Args:
            rate: Rate of the optimizer after so many rounds; NaN if it is not known.
            rounds: Rounds so far.
            horizon: Rounds of the run as they are known now; None if they are not.
        """
        was_known = self._was_known
        if horizon is not None:
            # The next round is one even if time is just over.
            self._horizon = max(horizon, rounds + 1)
        self._was_known = self._horizon is not None
        if self._warm_up is None:
            return
        goes_on: bool | None = True
        if self._horizon is not None:
            goes_on = self._warm_up.goes_on(rounds, rate, self._horizon)
        self._warm_up = self._warm_up.after(rounds, rate)
        if goes_on and not self._waits:
            self._end_step()
            self._alone = [*self._alone, (len(self._levels), None)]
            self.kept.clear()
            self._waits = True
        elif self._waits and (goes_on is False or not (goes_on or was_known)):
            self._end_step()
            self._alone = [*self._alone[:-1], (self._alone[-1][0], len(self._levels))]
            self._waits, self._warm_up = False, None if goes_on is False else self._warm_up

    def _end_step(self) -> None:
        """Note the level of the present step if it is complete, so that another plan follows it."""
        if self._step is not None and self._played == self._step.rounds:
            self._levels = [*self._levels, self._level]
        self._step = None

    def suggest(self, seen: Seen) -> Proposal:
        """Return the next round of the present step, or the first of the next step."""
        step, played, levels, stocks = self._step, self._played, self._levels, self._stocks
        horizons = self._horizons  # the plan goes on for the rounds as they are known now
        if step is None or played == step.rounds:
            horizons = self._with_present(horizons, (len(levels), step is not None))
            levels = levels if step is None else [*levels, self._level]
            stocks = stocks if len(stocks) > len(levels) else [*stocks, seen.stock]
            step, played = self.replay.step(levels, self._alone, stocks, horizons), 0
        proposal = self._proposal(step, played, len(levels))
        if step.restore is not None:
            self._warm_up = None
        if played == 0:
            self._step, self._levels, self._level = step, levels, math.nan
            self._stocks, self._horizons = stocks, horizons
        self._played = played + 1
        return proposal

    def _proposal(self, step: Step, played: int, number: int) -> Proposal:
        """Return one of the rounds of a step."""
        peak = self._space.decode(step.point)
        share = min((step.began + played) / (self._horizon or math.inf), 1.0)
        first, last = played == 0, played == step.rounds - 1
        return Proposal(
            _scheduled(self._space, peak, share),
            f"{step.reason} (round {played + 1} of {step.rounds})",
            query=step.query and last,
            details={
                "interval": number,
                "peak": peak,
                "trained": step.trained + played,
                "keep": step.keep if first else None,
                "restore": step.restore if first else None,
                "drop": step.drop if first else (),
            },
        )

    def learn(self, outcome: Observation, seen: Seen, *details: Any) -> None:
        """Note the level after a round; it counts if the round is the latest, and ends a step."""
        (level,) = details
        is_latest = outcome.round == len(seen) - 1
        if is_latest and self._step is not None and self._played == self._step.rounds:
            self._level = level

    def snapshot(self, action: Action, seen: Seen) -> Undo:
        """Return a function that restores the strategy: a plan is made anew from the levels heard."""
        return attributes_of(self)

    def state_dict(self) -> dict[str, Any]:
        """Return the levels, and the states of training that a session has kept."""
        progress = [
            self._levels,
            self._level,
            self._played,
            self._alone,
            self._step is not None,
            [[*moment, horizon] for moment, horizon in self._horizons.items()],
            self.by_hand,
        ]
        if any(stock != Stock() for stock in self._stocks):
            progress.append(self._stocks)
        # Text is exact and can hold NaN and infinities.
        watched = None if self._warm_up is None else self._warm_up.before
        warm_up = json.dumps([self._waits, watched])
        return {"progress": json.dumps(progress), "kept": dict(self.kept), "warm_up": warm_up}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``; rebuilding the plan takes some seconds."""
        levels, level, played, alone, began, horizons, by_hand, *limited = json.loads(
            state["progress"]
        )
        saved, alone = _moments(horizons), _periods(alone)
        waits, watched = json.loads(state["warm_up"])
        limit, seconds = (
            ast.literal_eval(state["header"].get(name, "None")) for name in ("horizon", "seconds")
        )
        # The rounds of a state are those of its plan, unless no plan had begun or others are given.
        was_known = limit is not None or list(saved) != [BEGIN]
        latest = saved[max(saved)] if was_known else None
        is_other = self._limit is not None and (self._limit != limit or self._seconds is None)
        self._horizon, self._was_known = self._limit if is_other else latest, was_known
        moment = len(levels), bool(began)
        if alone and alone[-1][1] is None and self._is_longer(limit, seconds, latest) and not waits:
            alone[-1], began = (alone[-1][0], len(levels)), False
            moment = len(levels), False
        if self._horizon != latest:
            saved = self._with_present(saved, moment)
        replay = Replay(self._plan, saved[BEGIN])
        # Without a share of the clock all queries have been affordable.
        stocks = [Stock(*stock) for stocks in limited for stock in stocks]
        stocks = stocks or [Stock()] * (len(levels) + began)
        step = replay.step(levels, alone, [*stocks, Stock()], saved)
        kept = {int(number): state_kept for number, state_kept in state["kept"].items()}
        self.replay, self._horizons, self._step = replay, saved, step if began else None
        self._levels, self._level, self._stocks = levels, level, stocks
        self._played, self._alone = played, alone
        self.kept, self.by_hand, self._waits = kept, bool(by_hand), waits
        self._warm_up = None if watched is None else WarmUp(watched)
        self.loads += 1

    def _is_longer(self, limit: int | None, seconds: float | None, latest: int | None) -> bool:
        """Return whether the run has more rounds or seconds than one whose state is loaded.

        Args:
            limit: Horizon of that run, if it had one.
            seconds: Seconds of that run, if they were limited.
            latest: Rounds that were expected of it, if known.
        """
        if self._seconds is None:
            return latest is None or (self._limit is not None and self._limit > latest)
        if limit is not None and (self._limit is None or self._limit > limit):
            return True
        return seconds is not None and self._seconds > seconds

    def _with_present(self, saved: Mapping[Moment, int], moment: Moment) -> dict[Moment, int]:
        """Return horizons by moment, with the present one from a moment on."""
        before = {key: horizon for key, horizon in saved.items() if key <= moment}
        latest, is_guess = before[max(before)], self._limit is None and len(before) == 1
        if self._horizon is None or (latest == self._horizon and not is_guess):
            return before
        # A guess gives way to a number even if that is equal: from then on the rounds are known.
        return {**before, moment: self._horizon}

    def _plan(self, horizon: int) -> Plan:
        budget = RunBudget(horizon, self._queries, falls=bool(self._space.rates))
        return Plan(self._space, self._start, budget, generator_of(self._seed))


def _scheduled(space: SearchSpace, peak: dict[str, Plain], share: float) -> dict[str, Plain]:
    """Return the scheduled values of a configuration after a share of the run, in [0, 1].

    A learning rate without a schedule of its own falls in the last fifth, too, within its range: the end
    of a run profits from small steps, and a tuner that may set the rate may do so.
    """
    config = space.scheduled(peak, share)
    parameters, factor = dict(space.parameters), BASES["wsd"](share)
    for name in space.rates:
        rate = parameters[name]
        if isinstance(rate, Real) and not isinstance(rate, Scheduled):
            config[name] = max(rate.low, rate.canonical(name, peak[name]) * factor)
    return config


def _moments(saved: list[list[int]]) -> dict[Moment, int]:
    """Return horizons by moment; earlier states hold one for each number of levels."""
    return {(each[0], len(each) > 2 and bool(each[1])): each[-1] for each in saved}


def _periods(saved: Any) -> list[tuple[int, int | None]]:
    """Return the periods without going back; earlier states hold the beginning of one or None."""
    if saved is None or isinstance(saved, int):
        return [] if saved is None else [(saved, None)]
    return [(begin, end) for begin, end in saved]
