"""The books of a run: what was decided, what was seen, and what has been paid for."""

import json
from collections.abc import Mapping
from typing import Any

from botorch_costly.errors import AlreadyToldError, UnknownDecisionError, check
from botorch_costly.records import Decision, Observation


class Ledger:
    """Decisions and observations by round; counting looks costs nothing however long the run."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self._seen: dict[int, Observation] = {}
        self.looks = 0

    def __len__(self) -> int:
        return len(self.decisions)

    @property
    def observations(self) -> tuple[Observation, ...]:
        """What was told, by round."""
        return tuple(self._seen[r] for r in sorted(self._seen))

    @property
    def failed_looks(self) -> int:
        """Looks whose reward was not finite."""
        return sum(o.failed for o in self._seen.values())

    def decide(self, decision: Decision) -> None:
        """Enter the decision of the next round."""
        self.decisions.append(decision)
        self.looks += decision.query

    def check_open(self, decision: Decision) -> None:
        """Raise unless ``decision`` was entered and has not been told yet.

        Raises:
            UnknownDecisionError: If it was never entered.
            AlreadyToldError: If it was told before.
        """
        check(isinstance(decision, Decision), "decision", "a Decision", decision)
        mine = decision.round < len(self)
        mine = mine and self.decisions[decision.round].config == decision.config
        known = f"one of the {len(self)} decisions of this tuner"
        check(mine, "decision", known, decision, UnknownDecisionError)
        fresh = decision.round not in self._seen
        expected = f"the first reward for round {decision.round}"
        check(fresh, "reward", expected, "a second one", AlreadyToldError)

    def see(self, observation: Observation) -> None:
        """Enter what was told; a look that was not decided on is paid for now."""
        self._seen[observation.round] = observation
        self.looks += not self.decisions[observation.round].query

    def history(self) -> list[dict[str, Any]]:
        """Return one plain dictionary per round."""
        rows = []
        for decision in self.decisions:
            seen = self._seen.get(decision.round)
            outcome = {
                "reward": seen.reward if seen else None,
                "failed": seen.failed if seen else False,
                "seconds": seen.seconds if seen else None,
            }
            rows.append({**decision.to_dict(), **outcome})
        return rows

    def state_dict(self) -> dict[str, str]:
        """Return the books as text: one object instead of many, exact for every plain value."""
        return {
            "decisions": json.dumps([d.to_dict() for d in self.decisions]),
            "observations": json.dumps([o.to_dict() for o in self._seen.values()]),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        decisions = [Decision.from_dict(d) for d in json.loads(state["decisions"])]
        observations = [Observation.from_dict(o) for o in json.loads(state["observations"])]
        self.decisions, self._seen = decisions, {o.round: o for o in observations}
        self.looks = sum(d.query or d.round in self._seen for d in decisions)
