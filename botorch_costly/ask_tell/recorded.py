"""What a tuner lets its user read from the ledger, and take back: decisions, observations, a history."""

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.protocol import Tells
from botorch_costly.ask_tell.serial import Whole
from botorch_costly.ask_tell.state import changeable
from botorch_costly.ask_tell.surroundings import shield
from botorch_costly.records import Decision, Observation

D = TypeVar("D", bound=Decision)
T = TypeVar("T", bound=Observation)


class Recorded(Whole, Generic[D, T]):
    """A tuner whose rounds are in a ledger.

    Threads may share it, it is pickled as it is, and it computes undisturbed by what surrounds a call.

    Attributes:
        tells: What ``tell`` is handed: the gain of a round, the metric as it was measured, the value of a
            configuration, or its learning curve.
        records: The classes of its decisions and observations.
    """

    tells: ClassVar[Tells] = "gain"
    records: ClassVar[tuple[type[Any], type[Any]]] = (Decision, Observation)

    _ledger: Ledger[D, T]
    _header: Mapping[str, str]
    _changeable: ClassVar[tuple[str, ...]] = ("horizon",)  # options, or groups of them; () for all
    _missing: ClassVar[Mapping[str, Any]] = {"reward": None, "failed": False, "seconds": None}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        shield(cls)

    def _rows_of_matrix(self) -> int:
        """Return how many rows the largest matrix has that is factored."""
        return self.queries

    @property
    def decisions(self) -> tuple[D, ...]:
        """The decisions so far, by round, as far as they are kept."""
        return self._ledger.suggestions

    @property
    def observations(self) -> tuple[T, ...]:
        """The queries told so far, by round, as far as their decisions are kept."""
        return self._ledger.outcomes

    @property
    def pending(self) -> tuple[D, ...]:
        """The decisions with a query that have not been told, as far as they are kept."""
        told = {one.round for one in self.observations}
        return tuple(one for one in self.decisions if one.query and one.round not in told)

    @property
    def queries(self) -> int:
        """Queries paid for: those decided on, and other rounds that were told anyway."""
        return self._ledger.queries

    @property
    def failed_queries(self) -> int:
        """Queries whose reward was not finite."""
        return self._ledger.failed_queries

    @property
    def changeable(self) -> frozenset[str]:
        """Names of the options that may change when a run is continued."""
        return changeable(self._header, *self._changeable)

    @property
    def history(self) -> list[dict[str, Any]]:
        """One plain dictionary per round, ready for a data frame."""
        return self._ledger.history(self._missing)


class Withdrawable(Recorded[D, T]):
    """A tuner whose decisions can be taken back."""

    def withdraw(self, decision: D) -> None:
        """Take back a decision that nothing will come of; it was never asked for, but for the horizon.

        Args:
            decision: What ``ask`` or ``adopt`` returned, and was not told.

        Raises:
            UnknownDecisionError: If it is of another tuner, or was taken back before.
            AlreadyToldError: If it was told. In both cases the tuner is unchanged.
        """
        self._ledger.withdraw(decision)
