"""The protocol of a strategy: it says which evaluation is next, and knows no ledger, file or engine.

A new optimizer is one strategy. ``suggest`` reads the evaluations so far and returns a proposal; the
optimizer around it numbers the proposal, records the outcome, undoes interrupted calls, saves and loads.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from torch import Tensor

from botorch_costly.ask_tell.evaluations import Evaluations
from botorch_costly.ask_tell.state import Undo, attributes_of, states_of
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.parameters import Plain

Action = Literal["ask", "note", "load"]
ENQUEUED = "enqueued"  # reason of a suggestion that the user made
START = "the start"  # reason of the first suggestion, where the user gave it


@dataclass(frozen=True)
class Proposal:
    """The next evaluation.

    Args:
        config: Configuration to evaluate.
        reason: Reason for it, a short sentence.
        query: Whether its outcome is paid for.
        details: Further fields of the suggestion's record, such as ``fidelities``.
    """

    config: Mapping[str, Plain]
    reason: str
    query: bool = True
    details: Mapping[str, Any] = field(default_factory=dict)


class Strategy(ABC):
    """Base class of strategies; ``suggest`` is the only method that each must have.

    A strategy that draws random numbers or learns returns all that its next proposal depends on from
    ``state_dict``.
    """

    @abstractmethod
    def suggest(self, seen: Evaluations[Any, Any]) -> Proposal:
        """Return the next evaluation.

        Args:
            seen: Evaluations so far.

        Raises:
            HorizonExceededError: If nothing is left to evaluate.
        """

    def predict(
        self, seen: Evaluations[Any, Any], points: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor] | None:
        """Return the posterior of values at encoded configurations, in the units that were told.

        Args:
            seen: Evaluations so far.
            points: Encoded configurations, shape ``(n, space.dim)``.
            *args: Inside a run, of gains, the round; the next one if omitted.
            **kwargs: The same by keyword, ``round=``.

        Returns:
            Mean and standard deviation, each of shape ``(n,)``, larger is better; None without a model,
            or before there is a value.
        """
        return None

    def may_query(self, seen: Evaluations[Any, Any]) -> bool:
        """Return whether the budget allows a further query."""
        return True

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values; keys other than ``header`` and ``ledger``."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``; ``state`` may hold further keys."""
        return

    def restored(self, seen: Evaluations[Any, Any], *, same_options: bool) -> None:
        """Rebuild from the evaluations after a state was loaded; raise if it is damaged.

        Args:
            seen: Evaluations of the loaded run.
            same_options: Whether the run continues with the options that it began with.
        """
        return

    def enqueued(
        self, seen: Evaluations[Any, Any], config: Mapping[str, Plain]
    ) -> Mapping[str, Any]:
        """Return further fields of the record of a user's suggestion.

        Args:
            seen: Evaluations so far.
            config: Configuration that the user wants to be evaluated next.

        Raises:
            CostlyError: If this strategy cannot have it.
        """
        return {}

    def next(self, seen: Evaluations[Any, Any], start: Mapping[str, Plain] | None) -> Proposal:
        """Return the start, if there is one and all suggestions before are cancelled, or ``suggest``."""
        if start is None or seen.has_begun:
            return self.suggest(seen)
        return self.started(seen, start)

    def started(self, seen: Evaluations[Any, Any], config: Mapping[str, Plain]) -> Proposal:
        """Return the first evaluation, of a configuration that the user knows to be good."""
        return Proposal(config, START, details=self.enqueued(seen, config))

    def entered(self, suggestion: Any, seen: Evaluations[Any, Any]) -> None:
        """Take note of a suggestion, one's own or the user's, which is not among those seen yet."""
        return

    def cancelled(self, suggestion: Any, seen: Evaluations[Any, Any]) -> None:
        """Take note of a suggestion that is cancelled; raise if this strategy cannot do without it."""
        return

    def learn(self, outcome: Any, seen: Evaluations[Any, Any], *details: Any) -> None:
        """Take note of an outcome, which is among those seen.

        Args:
            outcome: Record of the outcome.
            seen: Evaluations so far, this one included.
            *details: Whatever the optimizer's own ``tell`` hands on beside the record.
        """
        return

    def snapshot(self, action: Action, seen: Evaluations[Any, Any]) -> Undo:
        """Return a function that restores the strategy as it is now, if an action is not completed.

        A strategy that defines no method of its own for notes is not changed by one: nothing is copied.

        Args:
            action: ``"ask"``, ``"note"`` (``learn``, ``entered``, ``cancelled``) or ``"load"``.
            seen: Evaluations so far.
        """
        own, base = type(self), Strategy
        takes_notes = (own.learn, own.entered, own.cancelled) != (
            base.learn,
            base.entered,
            base.cancelled,
        )
        return attributes_of() if action == "note" and not takes_notes else states_of(self)


class PlannedStrategy(Strategy):
    """Base class of strategies whose rounds continue each other: none can be added or cancelled."""

    _because: ClassVar[str]  # why no round can be enqueued

    def enqueued(
        self, seen: Evaluations[Any, Any], config: Mapping[str, Plain]
    ) -> Mapping[str, Any]:
        """Refuse a round of the user's.

        Raises:
            InvalidArgumentError: Always.
        """
        raise InvalidArgumentError("enqueue", f"no enqueued round, because {self._because}", config)

    def cancelled(self, suggestion: Any, seen: Evaluations[Any, Any]) -> None:
        """Refuse to cancel a round.

        Raises:
            InvalidArgumentError: Always.
        """
        expected = "a round that is never told, which does no harm"
        raise InvalidArgumentError("cancel", expected, suggestion.id)
