"""Costs of a tuner for its log: the budget of queries, and the expected cost of exploration."""

from typing import Any, Protocol, runtime_checkable

from botorch_costly.ask_tell import AskTell
from botorch_costly.query import QueryRule
from botorch_costly.records import Decision


@runtime_checkable
class Budgeted(Protocol):
    """A tuner with a query rule and an optional cap on queries."""

    @property
    def query(self) -> QueryRule:
        """The query rule."""

    @property
    def max_queries(self) -> int | None:
        """Largest number of queries of the run."""


@runtime_checkable
class Exploring(Protocol):
    """A tuner that adds up its expected cost of exploration."""

    @property
    def exploration_cost(self) -> float:
        """Expected cost of exploration so far."""


def budget_of(tuner: object) -> int | None:
    """Return the largest number of queries of a run, if known."""
    if not isinstance(tuner, Budgeted):
        return None
    caps = [cap for cap in (tuner.query.budget, tuner.max_queries) if cap is not None]
    return min(caps, default=None)


class ExplorationCost:
    """The expected cost of exploration in the round of a tuner's latest decision.

    For a tuner that predicts gains, it is the expected gain of the incumbent minus that of the decision,
    at least 0. For a tuner that adds up its cost of exploration, it is the increase since the last call.

    Args:
        tuner: The tuner; for other tuners the cost is unknown.
    """

    def __init__(self, tuner: AskTell[Any]) -> None:
        self._tuner = tuner
        self._before = tuner.exploration_cost if isinstance(tuner, Exploring) else 0.0

    def __call__(self, decision: Decision) -> float | None:
        """Return the cost; None if unknown."""
        tuner = self._tuner
        if isinstance(tuner, Exploring):
            before, self._before = self._before, tuner.exploration_cost
            return self._before - before
        predicts = tuner.tells == "gain" and tuner.predicts
        return shortfall(tuner, decision) if predicts else None


def shortfall(tuner: AskTell[Any], decision: Decision) -> float | None:
    """Return the predicted advantage of the incumbent over a decision, at least 0; None if unknown."""
    best = tuner.best()
    if best is None:
        return None
    posterior = tuner.predict([best, decision.config], decision.round)
    if posterior is None:
        return None
    mean, _ = posterior
    advantage = float(mean[0] - mean[1])
    return max(advantage if tuner.maximize else -advantage, 0.0)
