"""CE-GP-UCB as a strategy: a belief that learns from queries, and a proposer that reads it."""

from collections.abc import Mapping
from typing import Any

import torch

from botorch_costly.ask_tell.evaluations import Evaluations
from botorch_costly.ask_tell.state import Undo, attributes_of, states_of
from botorch_costly.ask_tell.strategy import ENQUEUED, Action, Proposal, Strategy
from botorch_costly.parameters import Plain
from botorch_costly.records import Decision, Observation
from botorch_costly.tuners.online.learner import Learner
from botorch_costly.tuners.online.proposer import Account, Proposer, Run

Seen = Evaluations[Decision, Observation]


class OnlineStrategy(Strategy):
    """Proposes the next round of a run, and learns the rewards of its queries.

    The belief is a streaming Cholesky factor: a new reward adds a row, and nothing is refitted.

    Args:
        run: Space that is searched, intervals and budget of the run.
        learner: Belief about the rewards.
        proposer: Chooser of configurations and queries.
        dtype: Type of encoded configurations.
    """

    def __init__(self, run: Run, learner: Learner, proposer: Proposer, dtype: torch.dtype) -> None:
        self.run, self.learner, self.proposer, self._dtype = run, learner, proposer, dtype

    def suggest(self, seen: Seen) -> Proposal:
        """Return the configuration of the next round, and whether its end is queried."""
        state = {"may_decide": seen.may_decide, "has_begun": seen.has_begun}
        account = Account(seen.queries, seen.stock, seen.left, **state)
        decision = self.proposer.propose(len(seen), self.learner, account)
        details = {"confidence": decision.confidence, "interval": decision.interval}
        return Proposal(decision.config, decision.reason, query=decision.query, details=details)

    def may_query(self, seen: Seen) -> bool:
        """Return whether the budgets allow a query in the next round."""
        account = Account(seen.queries, seen.stock, seen.left)
        return self.proposer.may_query(account)

    def enqueued(self, seen: Seen, config: Mapping[str, Plain]) -> Mapping[str, Any]:
        """Return the interval of a round of the user's.

        Raises:
            InvalidConfigError: If the configuration is not in the space that is searched.
        """
        self.run.space.encode(config)
        return {"interval": self.run.intervals.at(len(seen)).number}

    def entered(self, suggestion: Decision, seen: Seen) -> None:
        """Hold an enqueued configuration for the rest of its interval."""
        if suggestion.reason == ENQUEUED:
            self.proposer.hold(suggestion)

    def cancelled(self, suggestion: Decision, seen: Seen) -> None:
        """Hold an enqueued configuration no more."""
        self.proposer.release(suggestion)

    def learn(self, outcome: Observation, seen: Seen, *details: Any) -> None:
        """Learn a reward."""
        interval = self.run.intervals.at(outcome.round).number
        reward = None if outcome.reward is None else seen.sign * outcome.reward
        if reward is not None:
            x = self.run.space.encode(outcome.config).to(self._dtype)
            self.learner.observe(x, interval, reward, outcome.variance)
        region = self.proposer.region
        if region is not None:
            self.proposer.region = region.learned(interval, reward, outcome.config)

    def snapshot(self, action: Action, seen: Seen) -> Undo:
        """Return a function that restores the strategy; a round within an interval changes nothing."""
        if action == "load":
            return states_of(self)
        if action == "note":
            return attributes_of(self.learner, self.proposer)
        holds = self.proposer.holds(len(seen))
        return attributes_of() if holds else states_of(self.proposer, copies=False)

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values that the next proposals depend on."""
        return {"learner": self.learner.state_dict(), **self.proposer.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self.learner.load_state_dict(state["learner"])
        self.proposer.load_state_dict(state)

    def restored(self, seen: Seen, *, same_options: bool) -> None:
        """Raise if a part of the state is missing."""
        now = len(seen)
        first = self.run.intervals.at(now - 1).first if now else 0
        begun = any(s.round == first and s.reason != ENQUEUED for s in seen.suggestions)
        has_chosen = begun and same_options
        self.proposer.check_complete(now, has_chosen=has_chosen, same_options=same_options)
