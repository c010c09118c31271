"""The suggestions and outcomes of a run, as records and as tensors."""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import torch
from torch import Tensor

from botorch_costly.ask_tell.clocks import Clocks
from botorch_costly.ask_tell.domain import Domain
from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.points import SAME, among
from botorch_costly.ask_tell.tariff import Stock
from botorch_costly.errors import check
from botorch_costly.parameters import Plain
from botorch_costly.records import Decision, Observation

D = TypeVar("D", bound=Decision)
T = TypeVar("T", bound=Observation)


def sign_of(maximize: bool) -> float:
    """Return the factor of values with which larger is better: 1.0, or -1.0 if smaller values are better.

    Raises:
        InvalidArgumentError: If ``maximize`` is no bool.
    """
    check(isinstance(maximize, bool), "maximize", "a bool", maximize)
    return 1.0 if maximize else -1.0


def text_of_values(outcomes: Sequence[Observation], config: Mapping[str, Plain]) -> str:
    """Return a phrase on the value of a configuration, or on their mean; "" if it has none.

    Example:
        >>> lr = {"lr": 1.0}
        >>> text_of_values([Observation(0, lr, 0.5), Observation(1, lr, 0.25)], lr)
        ', mean of 2 values 0.375'
    """
    told = [o.reward for o in outcomes if o.reward is not None and dict(o.config) == dict(config)]
    if not told:
        return ""
    number = "value" if len(told) == 1 else f"mean of {len(told)} values"
    return f", {number} {sum(told) / len(told):.6g}"


class Evaluations(Generic[D, T]):
    """Read access to the ledger of a run; each setting is encoded once.

    Args:
        domain: Domain of the settings.
        ledger: Ledger of the run.
        sign: Result of ``sign_of``.
        clocks: Limits of the clock.
        horizon: Largest number of suggestions; None if unknown.
    """

    def __init__(
        self,
        domain: Domain,
        ledger: Ledger[D, T],
        sign: float,
        clocks: Clocks | None = None,
        horizon: int | None = None,
    ) -> None:
        self.domain, self.sign, self._ledger = domain, sign, ledger
        self._clocks, self._horizon = Clocks() if clocks is None else clocks, horizon
        self._latest: T | None = None  # an outcome that the ledger is about to take
        self._encoded: dict[int, Tensor] = {}  # points by number; what the ledger has entered stays

    def __len__(self) -> int:
        """Return the number of suggestions so far, cancelled ones included."""
        return len(self._ledger)

    @property
    def suggestions(self) -> tuple[D, ...]:
        """The suggestions by number, as far as they are kept."""
        return self._ledger.suggestions

    @property
    def outcomes(self) -> tuple[T, ...]:
        """The outcomes by number, as far as they are kept."""
        outcomes = self._ledger.outcomes
        if self._latest is None:
            return outcomes
        return tuple(sorted((*outcomes, self._latest), key=lambda outcome: outcome.id))

    @property
    def has_begun(self) -> bool:
        """Whether there was a suggestion that is not cancelled, however long ago."""
        return self._ledger.first is not None

    @property
    def pending(self) -> tuple[D, ...]:
        """The queried suggestions without an outcome, as far as they are kept."""
        finished = {outcome.id for outcome in self.outcomes}
        return tuple(s for s in self.suggestions if s.query and s.id not in finished)

    @property
    def queries(self) -> int:
        """Number of queries paid for."""
        return self._ledger.queries

    @property
    def stock(self) -> Stock:
        """Queries that the share of the clock affords before the next round; all without a share."""
        tariff = self._clocks.tariff
        if tariff is None:
            return Stock()
        return tariff.stock_in(len(self), self.rounds, len(self.pending))

    @property
    def left(self) -> int | None:
        """Rounds that are expected to be left, the next one included; None if unknown."""
        rounds = self.rounds
        return None if rounds is None else rounds - len(self)

    @property
    def rounds(self) -> int | None:
        """Rounds that the run is expected to have; None if unknown."""
        return self._clocks.rounds(len(self), self._horizon)

    @property
    def may_decide(self) -> bool:
        """Whether the tuner's own time keeps to its part of the share of the clock."""
        return self._clocks.affords_decision

    def suggestion(self, number: int) -> D:
        """Return a suggestion that is kept."""
        return self._ledger.suggestion(number)

    @property
    def points(self) -> Tensor:
        """Encoded settings of the outcomes, shape ``(n, dim)``."""
        return self._stacked([self.suggestion(outcome.id) for outcome in self.outcomes])

    @property
    def values(self) -> Tensor:
        """Values of the outcomes, larger is better; NaN for a failure; float64 on the CPU, ``(n,)``."""
        rewards = (outcome.reward for outcome in self.outcomes)
        signed = [math.nan if reward is None else self.sign * reward for reward in rewards]
        return torch.tensor(signed, dtype=torch.float64)

    @property
    def costs(self) -> Tensor:
        """Costs of the outcomes, float64 on the CPU, shape ``(n,)``."""
        return torch.tensor([outcome.price for outcome in self.outcomes], dtype=torch.float64)

    @property
    def pending_points(self) -> Tensor:
        """Encoded settings of the pending suggestions, shape ``(m, dim)``."""
        return self._stacked(self.pending)

    @property
    def best(self) -> T | None:
        """The outcome with the best finite value; None without one."""
        finite = [outcome for outcome in self.outcomes if outcome.reward is not None]
        return max(finite, key=lambda o: self.sign * float(o.reward or 0.0), default=None)

    def are_new(self, points: Tensor) -> Tensor:
        """Return which encoded settings are neither evaluated nor pending, bool, shape ``(m,)``.

        Args:
            points: Encoded settings, shape ``(m, dim)``.
        """
        settings = torch.cat([self.points, self.pending_points]).to(points)
        return ~among(points, settings, SAME)

    def with_outcome(self, outcome: T) -> "Evaluations[D, T]":
        """Return the evaluations with an outcome that the ledger does not have yet."""
        other = copy.copy(self)
        other._latest = outcome
        return other

    def _stacked(self, suggestions: Sequence[D]) -> Tensor:
        return self.domain.stacked([self._point(suggestion) for suggestion in suggestions])

    def _point(self, suggestion: D) -> Tensor:
        if suggestion.id not in self._encoded:
            point = self.domain.encode(suggestion.config, suggestion.fidelity)
            self._encoded[suggestion.id] = point
        return self._encoded[suggestion.id]
