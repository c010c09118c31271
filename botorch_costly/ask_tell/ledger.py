"""The ledger of a run: its suggestions, outcomes, and the counts and costs of queries."""

import json
import logging
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from botorch_costly.ask_tell.protocol import Outcome, Suggestion
from botorch_costly.errors import (
    AlreadyToldError,
    HorizonExceededError,
    UnknownDecisionError,
    check,
    is_power_of_two,
)
from botorch_costly.parameters import Plain
from botorch_costly.records import queried_of
from botorch_costly.roles import role_by_name

S = TypeVar("S", bound=Suggestion)
T = TypeVar("T", bound=Outcome)
_SILENT = 8  # outcomes without any reward, or queries without any outcome, that earn a warning
_MULTIPLIES = 0.5  # rates from here on that diverge are perhaps multipliers
_logger = logging.getLogger(__name__)


class Ledger(Generic[S, T]):
    """Suggestions and outcomes by number; counts of all, however long the run.

    Args:
        suggestion: Class of the suggestions, with ``to_dict`` and ``from_dict``.
        outcome: Class of the outcomes, with ``to_dict`` and ``from_dict``.
        kept: Number of the latest suggestions that are kept, with their outcomes; all if omitted.
        told: Noun for the value of an outcome, for messages.
        unit: Noun for what is suggested, likewise.

    Attributes:
        first: The first suggestion that was not cancelled, however long ago; None if all were.
    """

    def __init__(
        self,
        suggestion: type[S],
        outcome: type[T],
        kept: int | None = None,
        *,
        told: str = "reward",
        unit: str = "round",
    ) -> None:
        self.kept, self.told = kept, told
        self._unit, self._queried = unit, queried_of(unit)
        self._suggestion, self._outcome = suggestion, outcome
        self._suggested: dict[int, S] = {}
        self._told: dict[int, T] = {}
        self._number = self.queries = self.failed_queries = 0
        self.total_cost = 0.0
        self._unanswered: int | None = (
            0  # queries asked for before the first outcome; None after it
        )
        self.first: S | None = None

    def __len__(self) -> int:
        return self._number

    @property
    def suggestions(self) -> tuple[S, ...]:
        """The suggestions by number, as far as they are kept."""
        return tuple(self._suggested.values())

    @property
    def outcomes(self) -> tuple[T, ...]:
        """The outcomes by number, as far as they are kept."""
        return tuple(self._told[number] for number in sorted(self._told))

    def suggestion(self, number: int) -> S:
        """Return a suggestion that is kept."""
        return self._suggested[number]

    def config_of(self, number: int) -> Mapping[str, Plain] | None:
        """Return the configuration of a suggestion; None if that is not kept."""
        suggestion = self._suggested.get(number)
        return None if suggestion is None else suggestion.config

    def next_within(self, horizon: int | None) -> int:
        """Return the number of the next suggestion.

        Raises:
            HorizonExceededError: If the horizon is reached.
        """
        over = horizon is not None and len(self) >= horizon
        expected = (
            f"at most {horizon} {self._unit}s, those before loading included (loop while not "
            "tuner.is_over, or load into a longer horizon with changed=['horizon'])"
        )
        check(not over, "ask", expected, len(self) + 1, HorizonExceededError)
        return len(self)

    def suggest(self, suggestion: S, *, awaited: bool = False) -> None:
        """Enter the next suggestion; warn if several queries were awaited, and nothing was told.

        Args:
            suggestion: The suggestion.
            awaited: Whether its query is told before the next one is asked for, as in a run.
        """
        number, query = suggestion.id, suggestion.query  # read before anything is entered
        if awaited and query and self._unanswered is not None:
            self._unanswered += 1
            if self._unanswered == _SILENT:
                message = (
                    "%d queries were asked for, and none was told: tell a %s where decision.query."
                )
                _logger.warning(message, _SILENT, self.told)
        self._suggested[number] = suggestion
        self.first = self.first or suggestion
        self._number += 1
        self.queries += query
        if self.kept is not None:
            self._suggested.pop(self._number - 1 - self.kept, None)
            self._told.pop(self._number - 1 - self.kept, None)

    def check_open(self, suggestion: S, *, cancels: bool = False) -> None:
        """Raise unless a suggestion was entered, is kept and has not been told yet.

        Args:
            suggestion: The suggestion.
            cancels: Whether it is to be cancelled, for the error; to be told otherwise.

        Raises:
            InvalidArgumentError: If it is no suggestion.
            UnknownDecisionError: If it was never entered as it is, or is not kept any more.
            AlreadyToldError: If it was told before.
        """
        kind = self._suggestion.__name__
        typed = isinstance(suggestion, self._suggestion)
        check(typed, "decision", f"a {kind} that ask returned", suggestion)
        mine = self._suggested.get(suggestion.id) == suggestion
        kept = self.kept is not None and len(self) > self.kept
        which = f"last {self.kept}" if kept else f"{len(self)}"
        expected = (
            f"one of the {which} decisions of this tuner, not cancelled, or an unchanged copy"
        )
        check(mine, "decision", expected, suggestion, UnknownDecisionError)
        is_first = suggestion.id not in self._told
        if cancels:
            received = f"{self._unit} {suggestion.id}, which was told"
            check(is_first, "cancel", "a decision that was not told", received, AlreadyToldError)
        expected = f"the first outcome of {self._unit} {suggestion.id}"
        check(is_first, "reward", expected, "a second one", AlreadyToldError)

    def tell(self, outcome: T) -> None:
        """Enter an outcome; a query that was not decided on is paid for now."""
        number, failed, price = outcome.id, outcome.failed, outcome.price  # read before all changes
        unasked = not self._suggested[number].query
        self._told[number], self._unanswered = outcome, None
        self.queries += unasked
        self.failed_queries += failed
        self.total_cost += float(price)

    def warn_of(self, outcome: T) -> None:
        """Warn if the outcome just entered has failed, or if no outcome so far has a reward."""
        if outcome.failed and is_power_of_two(self.failed_queries):  # many may fail in a row
            message = "%s %d failed: no finite %s (failed %s so far: %d).%s"
            advice = self._advice(outcome) if 2 * self.failed_queries >= len(self._told) else ""
            failed = "The query in round" if self._unit == "round" else self._unit.capitalize()
            counted = (self._queried, self.failed_queries)
            _logger.warning(message, failed, outcome.id, self.told, *counted, advice)
        if len(self._told) == _SILENT and all(map(_is_empty, self._told.values())):
            message = "%d %s have been told, all without a %s: nothing is learnt from them.%s"
            once = " A GainReward has none at its first metric: make it once, before the loop."
            advice = once if self.told == "reward" else ""
            _logger.warning(message, _SILENT, self._queried, self.told, advice)

    def _advice(self, outcome: T) -> str:
        """Return advice for a run half of whose queries, or more, have failed."""
        config = self.config_of(outcome.id) or {}
        items = [(n, v) for n, v in config.items() if isinstance(v, int | float)]
        rates = {n: v for n, v in items if role_by_name(n) == "learning_rate"}
        if not rates:
            return " Check the data, the loss function and the ranges of the space."
        played = " and ".join(f"{n} {v:.3g}" for n, v in rates.items())
        factor = " (a multiplier is applied by rates='multipliers')"
        return (
            f" Check the data and the loss function, or lower start and upper bound: it played {played}"
            f"{factor if max(rates.values()) >= _MULTIPLIES else ''}."
        )

    def cancel(self, suggestion: S) -> None:
        """Remove a suggestion that will not be told; its number is not used again.

        Raises:
            InvalidArgumentError: If it is no suggestion.
            UnknownDecisionError: If it was never entered, or is not kept any more.
            AlreadyToldError: If it was told before.
        """
        self.check_open(suggestion, cancels=True)
        number, query, first = suggestion.id, suggestion.query, self.first
        if first is not None and first.id == number:  # all after it are kept, as it is itself
            first = next((s for other, s in self._suggested.items() if other != number), None)
        # No call from here on, in which an interrupt might come.
        del self._suggested[number]
        self.queries -= query
        self.first = first

    def history(self, missing: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return one plain dictionary per suggestion that is kept, with its outcome.

        Args:
            missing: Fields of an outcome to add, with their values for suggestions without an outcome.
        """
        rows = []
        for suggestion in self._suggested.values():
            outcome = self._told.get(suggestion.id)
            values = missing if outcome is None else outcome.to_dict()
            rows.append({**suggestion.to_dict(), **{name: values[name] for name in missing}})
        return rows

    def state_dict(self) -> dict[str, Any]:
        """Return the ledger as JSON text, which is exact for every plain value."""
        return {
            "suggestions": json.dumps([s.to_dict() for s in self._suggested.values()]),
            "outcomes": json.dumps([o.to_dict() for o in self._told.values()]),
            "first": None if self.first is None else json.dumps(self.first.to_dict()),
            "counts": [self._number, self.queries, self.failed_queries, self.total_cost],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        read = self._suggestion.from_dict
        suggestions = [read(fields) for fields in json.loads(state["suggestions"])]
        outcomes = [self._outcome.from_dict(fields) for fields in json.loads(state["outcomes"])]
        first = None if state["first"] is None else read(json.loads(state["first"]))
        self._number, self.queries, self.failed_queries, *costs = state["counts"]
        # States of earlier versions lack the total cost, which is the sum over the outcomes.
        self.total_cost = costs[0] if costs else sum((o.price for o in outcomes), 0.0)
        oldest = 0 if self.kept is None else self._number - self.kept
        self._suggested = {s.id: s for s in suggestions if s.id >= oldest}
        self._told = {o.id: o for o in outcomes if o.id >= oldest}
        self.first = first
        self._unanswered = None if self.queries else 0  # what is not kept may have been told


def _is_empty(outcome: Outcome) -> bool:
    return outcome.reward is None and not outcome.failed
