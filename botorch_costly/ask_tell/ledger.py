"""The books of a run: what was decided, what was seen, and what has been paid for."""

import json
from collections.abc import Mapping
from typing import Any

from botorch_costly.errors import AlreadyToldError, UnknownDecisionError, check
from botorch_costly.records import Decision, Observation, Plain


class Ledger:
    """Decisions and observations by round; counts of all, however long the run.

    Args:
        kept: How many of the latest decisions are kept, with what was seen of them; all if omitted.
    """

    def __init__(self, kept: int | None = None) -> None:
        self.kept = kept
        self._decisions: dict[int, Decision] = {}
        self._seen: dict[int, Observation] = {}
        self._rounds = self.queries = self.failed_queries = 0
        self.first: Decision | None = None

    def __len__(self) -> int:
        return self._rounds

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What was decided, by round, as far as it is kept."""
        return tuple(self._decisions.values())

    @property
    def observations(self) -> tuple[Observation, ...]:
        """What was told, by round, as far as it is kept."""
        return tuple(self._seen[r] for r in sorted(self._seen))

    def config_of(self, round: int) -> Mapping[str, Plain] | None:
        """Return what a round played; None if that is not kept."""
        decision = self._decisions.get(round)
        return None if decision is None else decision.config

    def decide(self, decision: Decision) -> None:
        """Enter the decision of the next round."""
        self._decisions[decision.round] = decision
        self.first = self.first or decision
        self._rounds += 1
        self.queries += decision.query
        if self.kept is not None:
            self._decisions.pop(self._rounds - 1 - self.kept, None)
            self._seen.pop(self._rounds - 1 - self.kept, None)

    def check_open(self, decision: Decision) -> None:
        """Raise unless ``decision`` was entered, is kept and has not been told yet.

        Raises:
            UnknownDecisionError: If it was never entered, or is not kept any more.
            AlreadyToldError: If it was told before.
        """
        check(isinstance(decision, Decision), "decision", "a Decision", decision)
        mine = self.config_of(decision.round) == decision.config
        known = f"one of the {len(self)} decisions of this tuner"
        if self.kept is not None and len(self) > self.kept:
            known = f"one of the last {self.kept} decisions of this tuner"
        check(mine, "decision", known, decision, UnknownDecisionError)
        fresh = decision.round not in self._seen
        expected = f"the first reward for round {decision.round}"
        check(fresh, "reward", expected, "a second one", AlreadyToldError)

    def see(self, observation: Observation) -> None:
        """Enter what was told; a query that was not decided on is paid for now."""
        self._seen[observation.round] = observation
        self.queries += not self._decisions[observation.round].query
        self.failed_queries += observation.failed

    def history(self) -> list[dict[str, Any]]:
        """Return one plain dictionary per round that is kept."""
        rows = []
        for decision in self._decisions.values():
            seen = self._seen.get(decision.round)
            outcome = {
                "reward": seen.reward if seen else None,
                "failed": seen.failed if seen else False,
                "seconds": seen.seconds if seen else None,
            }
            rows.append({**decision.to_dict(), **outcome})
        return rows

    def state_dict(self) -> dict[str, Any]:
        """Return the books as text: one object instead of many, exact for every plain value."""
        return {
            "decisions": json.dumps([d.to_dict() for d in self._decisions.values()]),
            "observations": json.dumps([o.to_dict() for o in self._seen.values()]),
            "first": None if self.first is None else json.dumps(self.first.to_dict()),
            "counts": [self._rounds, self.queries, self.failed_queries],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        decisions = [Decision.from_dict(d) for d in json.loads(state["decisions"])]
        observations = [Observation.from_dict(o) for o in json.loads(state["observations"])]
        first = None if state["first"] is None else Decision.from_dict(json.loads(state["first"]))
        self._rounds, self.queries, self.failed_queries = state["counts"]
        oldest = 0 if self.kept is None else self._rounds - self.kept
        self._decisions = {d.round: d for d in decisions if d.round >= oldest}
        self._seen = {o.round: o for o in observations if o.round >= oldest}
        self.first = first
