"""What each round plays: the design, then what the strategy says, held for a move, within a budget."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from botorch_costly.query import Progress, QueryRule
from botorch_costly.records import Decision
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.design import InitialDesign
from botorch_costly.tuners.domain import Domain
from botorch_costly.tuners.holding import Moves, Place
from botorch_costly.tuners.learner import Learner
from botorch_costly.tuners.strategy import Strategy


class Run(NamedTuple):
    """What is to be played, and how much of it may be looked at."""

    space: SearchSpace
    moves: Moves
    horizon: int | None
    max_looks: int | None


class Proposer:
    """Proposes what the next round plays, and whether its end is looked at.

    It knows how long the run is; what was seen in it comes with each question.

    Args:
        run: What is to be played.
        design: Of the first moves.
        strategy: Of all others.
        domain: Where the strategy may go; what it remembers of former searches is kept here.
        query: Explains the verdicts of the strategy.
        generator: Source of random configurations, starts and coins.
    """

    def __init__(
        self,
        run: Run,
        design: InitialDesign,
        strategy: Strategy,
        domain: Domain,
        query: QueryRule,
        generator: torch.Generator,
    ) -> None:
        self._run, self._design, self._strategy = run, design, strategy
        self._domain, self._query, self._generator = domain, query, generator
        self._chosen: Decision | None = None
        self._lessons: int | None = None  # that the last decision of the strategy knew

    def propose(self, now: int, learner: Learner, looks: int) -> Decision:
        """Return the decision of a round.

        Whatever is raised meanwhile, an interrupt included, leaves the proposer as it was.

        Args:
            now: The round, from 0.
            learner: What the looks so far taught.
            looks: How many were paid for.
        """
        place = self._run.moves.at(now)
        if now > place.first and self._chosen is not None:
            return self._within_budget(_held(self._chosen, now, place), looks)
        before = self.state_dict()
        try:
            self._chosen = self._choose(place, learner, looks)
            return self._within_budget(_held(self._chosen, now, place), looks)
        except BaseException:
            self.load_state_dict(before)
            raise

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values that the next proposals depend on."""
        return {
            "chosen": None if self._chosen is None else self._chosen.to_dict(),
            "domain": self._domain.state_dict(),
            "strategy": self._strategy.state_dict(),
            "generator": self._generator.get_state(),
            "lessons": self._lessons,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        chosen = state["chosen"]
        self._chosen = None if chosen is None else Decision.from_dict(chosen)
        self._domain.load_state_dict(state["domain"])
        self._strategy.load_state_dict(state["strategy"])
        self._generator.set_state(state["generator"].cpu())
        self._lessons = state["lessons"]

    def _choose(self, place: Place, learner: Learner, looks: int) -> Decision:
        """Decide what a move plays, and whether its end is looked at."""
        if place.move < self._design.rounds:
            return self._design.decide(place.move, self._generator)
        may_look, progress = not self._spent(looks), self._progress(place, learner, looks)
        again, self._lessons = learner.lessons == self._lessons, learner.lessons
        move = self._strategy.decide(learner.belief, progress, may_look, self._generator, again)
        look, confidence = bool(move.verdict.look), float(move.verdict.confidence)
        return Decision(
            round=place.first,
            config=self._run.space.decode(move.look_at if look and may_look else move.play_blind),
            query=look,
            reason=self._query.explain(move.verdict),
            confidence=None if math.isnan(confidence) else confidence,
        )

    def _progress(self, place: Place, learner: Learner, looks: int) -> Progress:
        """Return how far the run has come, counted in moves; but income is that of a round."""
        moves, horizon = self._run.moves, self._run.horizon
        reads = self._query.reads_rewards  # which takes as long as there are rewards
        return Progress(
            round=place.move + 1,
            looks=looks,
            horizon=None if horizon is None else moves.within(horizon),
            forgetting=learner.model.forgetting,
            scale=learner.model.scale,
            income=learner.income(place.move, moves.lengths) if reads else None,
        )

    def _spent(self, looks: int) -> bool:
        return self._run.max_looks is not None and looks >= self._run.max_looks

    def _within_budget(self, decision: Decision, looks: int) -> Decision:
        if not (decision.query and self._spent(looks)):
            return decision
        reason = f"the budget of {self._run.max_looks} looks is spent"
        return replace(decision, query=False, reason=reason)


def _held(chosen: Decision, now: int, place: Place) -> Decision:
    """Return what was chosen as the decision of one of the rounds of its move."""
    changes: dict[str, Any] = {"round": now, "move": place.move}
    if not place.is_last(now):
        held = f"held (round {now - place.first + 1} of {place.length})"
        changes |= {"query": False, "reason": held}
    return replace(chosen, **changes)
