"""The log entry of a round, as numbers for trackers or as a row for tables."""

import math
from dataclasses import dataclass
from typing import Any

from botorch_costly.ask_tell.rows import cell_of, row_of
from botorch_costly.records import Decision, Observation

_OF_THE_ROUND: tuple[str, ...] = ("round", "interval", "query", "reason", "confidence")
_OF_THE_ROUND += ("reward", "metric", "failed", "query_seconds")


@dataclass(frozen=True, kw_only=True)
class LogEntry:
    """A round of a run, and the progress of the run after it.

    Args:
        decision: Decision of the round.
        observation: Observation of the round; None without one, or before it.
        queries: Number of queries paid for so far.
        budget: Largest number of queries of the run, if known.
        horizon: Rounds of the run, if known.
        seconds: Sum of the known seconds of all queries so far.
        exploration_cost: Expected cost of the round compared with playing the incumbent, in units of the
            reward; for a ``TwinTuner`` in log loss at the end. None if unknown.
        milliseconds: Time of the tuner in ``ask`` and ``tell`` of the round.
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
        """The reward of the round, if any."""
        return None if self.observation is None else self.observation.reward

    @property
    def metric(self) -> float | None:
        """The metric of the round as it was measured, if it was told; NaN or infinite if it diverged."""
        return None if self.observation is None else self.observation.metric

    @property
    def failed(self) -> bool:
        """Whether the round has a query without a finite reward."""
        return self.observation is not None and self.observation.failed

    def numbers(self) -> dict[str, float]:
        """Return the finite numbers by name; those of the configuration as ``config/<name>``.

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
        """Return all fields in plain values, by name; unknown ones are None."""
        fields = row_of(self.decision, self.observation)
        config = {name: value for name, value in fields.items() if name.startswith("config/")}
        return {
            **{name: fields[name] for name in _OF_THE_ROUND},
            "queries": self.queries,
            "budget": self.budget,
            "seconds": self.seconds,
            "exploration_cost": self.exploration_cost,
            "tuner_ms": self.milliseconds,
            **{name: cell_of(v) if isinstance(v, list) else v for name, v in config.items()},
        }
