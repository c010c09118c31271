"""What a tuner knows of its costs: how many queries it may pay for, and what a round gives up."""

from typing import Any, Protocol, runtime_checkable

from botorch_costly.ask_tell import AskTell
from botorch_costly.query import QueryRule
from botorch_costly.records import Decision


@runtime_checkable
class Budgeted(Protocol):
    """A tuner with a query rule, and perhaps a cap on queries."""

    @property
    def query(self) -> QueryRule:
        """Whether to query."""

    @property
    def max_queries(self) -> int | None:
        """The most queries that the run may pay for."""


@runtime_checkable
class Exploring(Protocol):
    """A tuner that keeps account of what exploring has cost so far."""

    @property
    def exploration_cost(self) -> float:
        """What exploring is expected to have cost so far."""


def budget_of(tuner: object) -> int | None:
    """Return the most queries that a run may pay for, if that is known."""
    if not isinstance(tuner, Budgeted):
        return None
    caps = [cap for cap in (tuner.query.budget, tuner.max_queries) if cap is not None]
    return min(caps, default=None)


class ExplorationCost:
    """From the latest decision of a tuner to what its round is expected to cost.

    A tuner that predicts gains says by how much the configuration is expected to earn less than the
    incumbent, at least 0. A tuner that keeps account of its exploration says by how much that has grown
    since the last call.

    Args:
        tuner: The tuner; the cost is not known if it does neither.
    """

    def __init__(self, tuner: AskTell[Any]) -> None:
        self._tuner = tuner
        self._before = tuner.exploration_cost if isinstance(tuner, Exploring) else 0.0

    def __call__(self, decision: Decision) -> float | None:
        """Return the cost; None if it is not known."""
        tuner = self._tuner
        if isinstance(tuner, Exploring):
            before, self._before = self._before, tuner.exploration_cost
            return self._before - before
        predicts = tuner.tells == "gain" and tuner.predicts
        return shortfall(tuner, decision) if predicts else None


def shortfall(tuner: AskTell[Any], decision: Decision) -> float | None:
    """Return by how much a decision is believed to earn less than the incumbent; None if unknown."""
    best = tuner.best()
    if best is None:
        return None
    posterior = tuner.predict([best, decision.config], decision.round)
    if posterior is None:
        return None
    mean, _ = posterior
    missed = float(mean[0] - mean[1])
    return max(missed if tuner.maximize else -missed, 0.0)
