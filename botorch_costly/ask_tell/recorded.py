"""Read access to suggestions, outcomes, queries and costs of an optimizer."""

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from botorch_costly.ask_tell.evaluations import Evaluations
from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.serial import Serial
from botorch_costly.ask_tell.surroundings import shield
from botorch_costly.records import Decision, Observation

D = TypeVar("D", bound=Decision)
T = TypeVar("T", bound=Observation)


class Recorded(Serial, Generic[D, T]):
    """Read access to the ledger of an optimizer."""

    _missing: ClassVar[Mapping[str, Any]] = {"reward": None, "failed": False, "seconds": None}
    _ledger: Ledger[D, T]
    _seen: Evaluations[D, T]

    @property
    def decisions(self) -> tuple[D, ...]:
        """The suggestions so far, by number, as far as they are kept."""
        return self._ledger.suggestions

    @property
    def observations(self) -> tuple[T, ...]:
        """The outcomes so far, by number, as far as their suggestions are kept."""
        return self._ledger.outcomes

    @property
    def pending(self) -> tuple[D, ...]:
        """The queried suggestions that have not been told, as far as they are kept."""
        return self._seen.pending

    @property
    def queries(self) -> int:
        """Number of queries paid for: those decided on, and other rounds that were told anyway."""
        return self._ledger.queries

    @property
    def failed_queries(self) -> int:
        """Number of queries without a finite outcome."""
        return self._ledger.failed_queries

    @property
    def total_cost(self) -> float:
        """Sum of the costs of all outcomes; of the seconds where ``tell`` takes no cost."""
        return self._ledger.total_cost

    @property
    def history(self) -> list[dict[str, Any]]:
        """One plain dictionary per suggestion, ready for a data frame."""
        return self._ledger.history(self._missing)


shield(Recorded)
