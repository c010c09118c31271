"""The decision of each round: the design, then the decider, held for an interval, within a budget."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.ask_tell.search import CLOSE
from botorch_costly.ask_tell.tariff import NOT_YET, Stock
from botorch_costly.errors import StateMismatchError, check, check_count
from botorch_costly.parameters import Plain
from botorch_costly.query import RECENT, Progress, QueryRule
from botorch_costly.records import Decision
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.online.decider import Decider
from botorch_costly.tuners.online.intervals import Interval, Intervals
from botorch_costly.tuners.online.learner import Learner
from botorch_costly.tuners.online.opening import Opening, is_of_design
from botorch_costly.tuners.online.trust_region import StepLimits, TrustRegion, log_limits

_HELD = "the enqueued configuration is held"
_NO_TIME = "the share of the clock affords no decision yet"
_TRACED = 1000  # latest trust regions that are known
_PARTS = 5  # of the affordable queries the opening takes one part


class Run(NamedTuple):
    """Space, intervals and limits of a run."""

    space: SearchSpace
    intervals: Intervals
    horizon: int | None
    max_queries: int | None
    is_rationed: bool = False  # whether queries take a share of the clock
    steps: StepLimits | None = None  # of the trust region, if there is one


class Account(NamedTuple):
    """Queries of a run so far, and those that are affordable."""

    queries: int
    stock: Stock = Stock()
    left: int | None = None  # rounds, the next one included
    may_decide: bool = True  # whether there is time for a decision
    has_begun: bool = True  # whether a round so far is not cancelled

    def affords(self, rounds: int) -> bool:
        """Return whether the share of the clock affords a query after some rounds."""
        return self.stock.affords(rounds, left=self.left)

    def affordable(self, ahead: int) -> float:
        """Return the number of queries that are affordable until the end of the run.

        Args:
            ahead: Rounds to look ahead if the end is not known.
        """
        return self.stock.after(ahead if self.left is None else self.left)


class Proposer:
    """Proposes the configuration of the next round, and whether its end is queried.

    Args:
        run: Space, intervals and limits of the run.
        opening: Chooser in the first intervals.
        decider: Chooser in all others.
        query: Rule of the decider, which explains its verdicts.
        generator: Source of random configurations, starts and coins.
    """

    def __init__(
        self,
        run: Run,
        opening: Opening,
        decider: Decider,
        query: QueryRule,
        generator: torch.Generator,
    ) -> None:
        self._run, self._opening, self._decider = run, opening, decider
        self._query, self._generator = query, generator
        self._chosen: Decision | None = None  # of the present interval, or of the one before
        self._enqueued: dict[int, Decision] = {}  # the user's of the present interval, by round
        self._num_told: int | None = None  # number of rewards before the last decision
        self.region: TrustRegion | None = None
        if run.steps is not None:
            self.region = TrustRegion(opening.start or {}, run.steps.rates)
        self._box: Tensor | None = None  # that the decider is confined to
        # First round and limits of each region, of which no decision depends on.
        self.trace: tuple[tuple[int, dict[str, tuple[float, float]]], ...] = ()

    def holds(self, now: int) -> bool:
        """Return whether the configuration of a round is decided already."""
        return self._held(now) is not None

    def _held(self, now: int) -> Decision | None:
        """Return the choice that holds in a round: the user's latest in its interval, or the own one."""
        first = self._run.intervals.at(now).first
        latest = max(self._enqueued, default=-1)
        if latest >= first:
            return replace(self._enqueued[latest], reason=_HELD)
        return self._chosen if now > first else None

    def propose(self, now: int, learner: Learner, account: Account) -> Decision:
        """Return the decision of a round.

        Args:
            now: Current round, from 0.
            learner: Belief after the queries so far.
            account: Queries so far, and those that are affordable.
        """
        interval, choice = self._run.intervals.at(now), self._held(now)
        if choice is None:
            choice = self._chosen = self._choose(interval, learner, account)
        return self._within_budget(_in_round(choice, now, interval), account)

    def hold(self, decision: Decision) -> None:
        """Hold the configuration of the user's decision for the rest of its interval."""
        first = self._run.intervals.at(decision.round).first
        earlier = [enqueued for enqueued in self._enqueued.values() if enqueued.round >= first]
        self._enqueued = {enqueued.round: enqueued for enqueued in [*earlier, decision]}
        if decision.round == first:
            self._chosen = None  # its interval is over
        if self.region is not None:
            self.region = replace(self.region, interval=None)

    def release(self, decision: Decision) -> None:
        """Hold the configuration of the user's decision no more."""
        kept = [
            enqueued for enqueued in self._enqueued.values() if enqueued.round != decision.round
        ]
        self._enqueued = {enqueued.round: enqueued for enqueued in kept}

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values that the next proposals depend on."""
        enqueued = [decision.to_dict() for decision in self._enqueued.values()]
        return {
            "chosen": None if self._chosen is None else self._chosen.to_dict(),
            "strategy": {**self._decider.state_dict(), "enqueued": json.dumps(enqueued)},
            "generator": self._generator.get_state(),
            "num_told": self._num_told,
            "region": self.region
            and {**self.region.state_dict(), "box": self._box, "trace": self.trace},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        chosen = state["chosen"]
        self._chosen = None if chosen is None else Decision.from_dict(chosen)
        # States of earlier versions lack the decisions of the user.
        enqueued = map(Decision.from_dict, json.loads(state["strategy"].get("enqueued", "[]")))
        self._enqueued = {decision.round: decision for decision in enqueued}
        region = state["region"]
        expected = (
            "that of a tuner with a trust region" if self.region else "none, as in this tuner"
        )
        same_kind = (region is None) == (self.region is None)
        check(same_kind, "state: region", expected, region, StateMismatchError)
        if region is not None:
            parts = dict(region)
            box = parts.pop("box")
            self.trace = tuple(parts.pop("trace", ()))  # which states of earlier versions lack
            self.region = TrustRegion.from_state(parts)
            self._confine_to(box)
        self._decider.load_state_dict(state["strategy"])
        self._generator.set_state(state["generator"].cpu())
        num_told = state["num_told"]
        self._num_told = None if num_told is None else check_count("num_told", num_told)

    def check_complete(self, rounds: int, *, has_chosen: bool, same_options: bool) -> None:
        """Raise if a part of the state is missing.

        Args:
            rounds: Number of rounds so far.
            has_chosen: Whether the present interval began with a choice of the tuner's own.
            same_options: Whether the options are those of the saved run.

        Raises:
            InvalidArgumentError: If a part is missing.
        """
        chosen = self._chosen
        fits = chosen is None if rounds == 0 else chosen is not None or not has_chosen
        check(fits, "chosen", f"that of {rounds} rounds", chosen)
        opened = chosen is not None and chosen.reason != _HELD and self._is_past_opening(chosen)
        complete = not opened or not same_options or self._num_told is not None
        check(complete, "num_told", "a count", None)

    def _is_past_opening(self, chosen: Decision) -> bool:
        if self._run.is_rationed:  # an opening that waits for the clock is longer than its design
            return chosen.query and not is_of_design(chosen)
        return (chosen.interval or 0) >= self._opening.rounds

    def _choose(self, interval: Interval, learner: Learner, account: Account) -> Decision:
        """Choose the configuration of an interval, and whether its end is queried."""
        affordable, number = account.affords(interval.length), self._opens(interval, account)
        home = self._home(interval, learner, opens=number is not None)
        if number is not None:
            if not affordable:
                return self._waiting()
            opened = self._opening.decide(number, self._generator, self._box)
            self._note(interval, opened.config, home, in_design=True)
            return opened
        if self.region is not None and not self.region.is_past_design:
            has_design = self._opening.rounds > self._opening.start_rounds
            self.region = self.region.past_design(has_design=has_design)
        if self._chosen is not None and not account.may_decide:
            return replace(self._chosen, query=False, reason=_NO_TIME)
        may_query = affordable and not self._spent(account)
        progress = self._progress(interval, learner, account)
        again, self._num_told = learner.num_told == self._num_told, learner.num_told
        proposal = self._decider.decide(
            learner.belief, progress, may_query, self._generator, again, explores=affordable
        )
        query, confidence = bool(proposal.verdict.query), float(proposal.verdict.confidence)
        config = self._run.space.decode(
            proposal.query_at if query and may_query else proposal.play_unqueried
        )
        if self.region is not None:
            # A rule that weighs the value of a query against its price has weighed this one.
            stays = self.region.waits > 0 or not (query and may_query)
            if stays and self._query.outlook(progress) is None:
                config = home
            self._note(interval, config, home)
        return Decision(
            round=interval.first,
            config=config,
            query=query and affordable,
            reason=NOT_YET if query and not affordable else self._query.explain(proposal.verdict),
            confidence=None if math.isnan(confidence) else confidence,
        )

    def limits(self) -> dict[str, tuple[float, float]]:
        """Return the least and the largest value of each column of the trust region."""
        steps, region = self._run.steps, self.region
        return (
            {} if steps is None or region is None else steps.limits(region.center, region.widened)
        )

    def _confine_to(self, box: Tensor | None) -> None:
        if box is not None and (self._box is None or not torch.equal(box, self._box)):
            self._decider.confine(box)
        self._box = box

    def _home(self, interval: Interval, learner: Learner, *, opens: bool) -> dict[str, Plain]:
        """Return home, and confine decisions to the trust region around it; empty without a region.

        Home is the incumbent with the learning rates and the like of the region's center. While the run
        opens, and until an excursion succeeds, it is the center, of which all else is the start's.
        """
        region, steps = self.region, self._run.steps
        if region is None or steps is None:
            return {}
        row = None if opens or not region.has_moved else learner.incumbent(interval.number)
        home = dict(region.center)
        if row is not None:
            home = self._run.space.decode(row[:-1].double().cpu())
        home |= {name: region.center[name] for name in steps.names}
        self._confine_to(steps.box(home, region.widened))
        self._trace_limits(interval.first)
        return home

    def _trace_limits(self, round: int) -> None:
        """Note the limits of the region from a round on if they are new; the first ones are logged."""
        limits = self.limits()
        if not self.trace:
            log_limits(limits, self._run.space)
        if not self.trace or self.trace[-1][1] != limits:
            self.trace = (*self.trace[1 - _TRACED :], (round, limits))

    def _note(
        self,
        interval: Interval,
        config: Mapping[str, Plain],
        home: Mapping[str, Plain],
        *,
        in_design: bool = False,
    ) -> None:
        """Note for the trust region whether the choice of an interval is away from home."""
        if self.region is not None:
            space = self._run.space
            is_away = bool((space.encode(config) - space.encode(home)).abs().max() > CLOSE)
            self.region = self.region.chosen(interval.number, is_away=is_away, in_design=in_design)

    def _opens(self, interval: Interval, account: Account) -> int | None:
        """Return the place of an interval in the opening; None after it.

        Within a share of the clock the opening waits for its queries, and takes at most a fifth of those
        that are affordable in a run of known length.
        """
        if not self._run.is_rationed:
            if self._opening.start is not None and not account.has_begun:
                return 0  # also after a start that was cancelled
            return interval.number if interval.number < self._opening.rounds else None
        in_all = math.inf if account.left is None else account.queries + account.affordable(0)
        longest = min(self._opening.rounds, max(in_all // _PARTS, 1))
        is_over = self._num_told is not None or account.queries >= longest
        return None if is_over else account.queries

    def _waiting(self) -> Decision:
        """Return the start, or else the configuration so far, while the opening waits."""
        start, chosen = self._opening.start, self._chosen
        if chosen is None:
            chosen = self._opening.decide(0, self._generator)
        config = chosen.config if start is None else start
        return replace(chosen, config=config, query=False, reason=NOT_YET)

    def _progress(self, interval: Interval, learner: Learner, account: Account) -> Progress:
        """Return the progress of the run in intervals; only the reward rate is per round."""
        intervals, horizon = self._run.intervals, self._run.horizon
        # Without a horizon the seconds of the run say when it is expected to end.
        if horizon is None and account.left is not None:
            horizon = interval.first + account.left
        affordable = None
        if self._run.is_rationed:
            known = horizon is not None
            ahead = 0 if known else intervals.first_of(interval.number + RECENT) - interval.first
            affordable = account.affordable(ahead)
        reads = self._query.reads_rewards  # else the reward rate is not computed, to save time
        return Progress(
            round=interval.number + 1,
            queries=account.queries,
            horizon=None if horizon is None else intervals.within(horizon),
            forgetting=learner.model.forgetting,
            scale=learner.model.scale,
            reward_rate=learner.reward_rate(interval.number, intervals.lengths) if reads else None,
            affordable=affordable,
        )

    def may_query(self, account: Account) -> bool:
        """Return whether the budgets allow a query in the next round."""
        within = account.queries < (self._query.budget or math.inf) and account.affords(1)
        return within and not self._spent(account)

    def _spent(self, account: Account) -> bool:
        return self._run.max_queries is not None and account.queries >= self._run.max_queries

    def _within_budget(self, decision: Decision, account: Account) -> Decision:
        if not decision.query:
            return decision
        if self._spent(account):
            reason = f"the budget of {self._run.max_queries} queries is spent"
            return replace(decision, query=False, reason=reason)
        return decision if account.affords(1) else replace(decision, query=False, reason=NOT_YET)


def _in_round(chosen: Decision, now: int, interval: Interval) -> Decision:
    """Return the choice of an interval as the decision of one of its rounds."""
    if interval.length == 1 and chosen.round == now and chosen.interval == interval.number:
        return chosen
    changes: dict[str, Any] = {"round": now, "interval": interval.number}
    if not interval.is_last(now):
        reason = f"held (round {now - interval.first + 1} of {interval.length})"
        changes |= {"query": False, "reason": reason}
    return replace(chosen, **changes)
