"""What is logged of a round: a frozen record, as numbers for trackers or as a row for tables."""

import math
from dataclasses import dataclass
from typing import Any

from botorch_costly.ask_tell.rows import cell_of, row_of
from botorch_costly.records import Decision, Observation

_OF_THE_ROUND = (
    "round",
    "interval",
    "query",
    "reason",
    "confidence",
    "reward",
    "failed",
    "query_seconds",
)


@dataclass(frozen=True, kw_only=True)
class LogEntry:
    """A round of a run, and where the run stands after it.

    Args:
        decision: Of the round.
        observation: What was told of it; None if nothing was, or not yet.
        queries: Queries paid for so far.
        budget: The most queries that the run may pay for, if known.
        horizon: Rounds of the run, if known.
        seconds: What the queries told so far took, as far as they said so.
        exploration_cost: What the round is expected to cost beyond playing the incumbent, in units of the
            reward; of a ``TwinTuner`` in log loss at the end. None where the tuner does not know it.
        milliseconds: What the tuner took for the round, in ``ask`` and ``tell``.
    """

    decision: Decision
    observation: Observation | None = None
    queries: int = 0
    budget: int | None = None
    horizon: int | None = None
    seconds: float = 0.0
    exploration_cost: float | None = None
    milliseconds: float = 0.0

    @property
    def round(self) -> int:
        """The round of training, from 0."""
        return self.decision.round

    @property
    def reward(self) -> float | None:
        """The reward that was told, if any."""
        return None if self.observation is None else self.observation.reward

    @property
    def failed(self) -> bool:
        """Whether there was a query that gave no finite reward."""
        return self.observation is not None and self.observation.failed

    def numbers(self) -> dict[str, float]:
        """Return what is a finite number, by name; of the configuration as ``config/<name>``.

        Example:
            >>> decision = Decision(3, {"lr": 0.1, "policy": "light"}, query=False, reason="no rival")
            >>> numbers = LogEntry(decision=decision, queries=2, milliseconds=1.5).numbers()
            >>> numbers["queries"], numbers["tuner_ms"], numbers["config/lr"]
            (2.0, 1.5, 0.1)
        """
        row = self.row()
        del row["round"], row["interval"]
        return {
            name: float(value)
            for name, value in row.items()
            if isinstance(value, int | float) and math.isfinite(value)
        }

    def row(self) -> dict[str, Any]:
        """Return everything in plain values, by name; what is not known is None."""
        known = row_of(self.decision, self.observation)
        config = {name: value for name, value in known.items() if name.startswith("config/")}
        return {
            **{name: known[name] for name in _OF_THE_ROUND},
            "queries": self.queries,
            "budget": self.budget,
            "seconds": self.seconds,
            "exploration_cost": self.exploration_cost,
            "tuner_ms": self.milliseconds,
            **{name: cell_of(v) if isinstance(v, list) else v for name, v in config.items()},
        }
