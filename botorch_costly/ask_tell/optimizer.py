"""Optimizers that are told the value of a configuration, or the gain of a round."""

import logging
import math
from typing import Any, ClassVar, TypeVar

from botorch_costly.ask_tell.frame import Frame
from botorch_costly.ask_tell.observed import LOSSES, observation_of, seem_losses
from botorch_costly.ask_tell.protocol import Tells
from botorch_costly.plain import as_number
from botorch_costly.records import Decision, Observation, ValueObservation

_logger = logging.getLogger(__name__)
_HINTED = 8  # values after which the warning of losses is due
D = TypeVar("D", bound=Decision)
T = TypeVar("T", bound=Observation)


class Optimizer(Frame[D, T]):
    """A strategy that is asked for configurations and told their values.

    Args and Attributes are those of ``Frame``.

    Example:
        >>> from botorch_costly import Real, SearchSpace
        >>> from botorch_costly.ask_tell import Domain, Proposal, Strategy
        >>> class Halving(Strategy):
        ...     def suggest(self, seen):
        ...         return Proposal({"x": 0.5 ** len(seen)}, "half of the one before")
        >>> optimizer = Optimizer(Domain(SearchSpace({"x": Real(0.0, 1.0)})), Halving(), horizon=3)
        >>> for _ in range(3):
        ...     suggestion = optimizer.ask()
        ...     _ = optimizer.tell(suggestion, -(suggestion.config["x"] - 0.4) ** 2)
        >>> optimizer.best()
        {'x': 0.5}
    """

    tells: ClassVar[Tells] = "value"
    records: ClassVar[tuple[type[Any], type[Any]]] = (Decision, ValueObservation)

    _hinted = False  # whether the warning of losses was due
    _missing: ClassVar = {**Frame._missing, "cost": None}

    def _own_options(self) -> dict[str, Any]:
        """Return domain and strategy of a bare optimizer; a preset names its own options."""
        if type(self) is not Optimizer:
            return {}
        fidelities = None if self.fidelities is None else self.fidelities.fingerprint()
        settings = {"candidates": self._domain.digest, "fidelities": fidelities}
        return {"maximize": self.maximize, "strategy": self._strategy, **settings}

    def tell(
        self,
        suggestion: D,
        value: float,
        *,
        cost: float | None = None,
        seconds: float | None = None,
    ) -> T:
        """Record the value of a suggestion.

        Args:
            suggestion: A suggestion of ``ask`` or ``enqueue``, or a copy; once, in any order, or never.
            value: Value of its configuration; not finite if the evaluation failed.
            cost: Cost of the evaluation, in any unit, if known.
            seconds: Seconds of the evaluation, if known.

        Returns:
            The record of the evaluation.

        Raises:
            UnknownDecisionError: If this optimizer never made the suggestion.
            AlreadyToldError: If it was told before.
            InvalidArgumentError: If the value is no number, or a cost is negative. In all cases the
                optimizer is unchanged.
        """
        self._ledger.check_open(suggestion)
        number = as_number("value", value)
        finite = number if math.isfinite(number) else None
        paid = None if cost is None else as_number("cost", cost)
        outcome: T = self.records[1](
            suggestion.round,
            suggestion.config,
            finite,
            failed=finite is None,
            cost=self._price(suggestion, paid),
            seconds=seconds,
        )
        self._tell(outcome)
        self._hint(outcome)
        if cost is not None:
            self._warn_of_rising_costs(suggestion.round)
        return outcome

    def _price(self, suggestion: D, cost: float | None) -> float | None:
        """Return the cost of an evaluation; None if it is not known."""
        return cost

    def _hint(self, latest: T) -> None:
        """Warn once if the values look like losses, although the largest counts as best.

        Args:
            latest: The outcome that was just told.
        """
        finite = len(self._ledger.outcomes) - self._ledger.failed_queries
        if self.maximize and finite == _HINTED and not self._hinted:
            self._hinted = True
            told = [o for o in self._ledger.outcomes if o.reward is not None]
            values = [o.reward for o in told if o.reward is not None]
            shares = None
            if self.fidelities is not None:
                made: list[Any] = [self._ledger.suggestion(outcome.round) for outcome in told]
                shares = [self._domain.share(suggestion.fidelities) for suggestion in made]
            if seem_losses(values, shares):
                _logger.warning(LOSSES, "told")


class GainOptimizer(Frame[D, Observation]):
    """An optimizer inside one training run, which is told the gain of a round if it queries it.

    A suggestion that is never told is the normal case.
    """

    tells: ClassVar[Tells] = "gain"
    queries_last: bool = True
    _largest: float = math.inf  # size of rewards that can be computed with
    _missing: ClassVar = {**Frame._missing, "variance": None, "metric": None}

    def tell(
        self,
        decision: D,
        reward: float | None,
        *,
        seconds: float | None = None,
        variance: float = 0.0,
        metric: float | None = None,
    ) -> Observation:
        """Record the reward of a decision, in any order and however late.

        Args:
            decision: A decision of ``ask`` or ``enqueue``, or a copy of it.
            reward: Reward in its own units, such as the gain that a ``GainReward`` makes of a loss. NaN
                or an infinity is a failed query: paid for, recorded, never learnt from. ``None`` is a
                query without a reward yet, such as the first one of ``GainReward``: paid for and
                recorded.
            seconds: Seconds of the query, if known.
            variance: Variance of the reward, in its units squared, beyond that of a query of the whole
                validation set, such as the one that ``GainReward.read`` returns for a part of it.
            metric: The metric that the reward was made of, such as the validation loss. It is shown in
                logs, reports and pictures, and no decision depends on it; NaN and infinities are allowed.

        Returns:
            The record of the query, with ``failed`` set if the reward was not finite.

        Raises:
            UnknownDecisionError: If this tuner never made the decision.
            AlreadyToldError: If it was told before.
            InvalidArgumentError: If the reward or the metric is no number, or the reward too large to
                compute with, the seconds are negative, or the variance is no finite number of at least
                0, or not 0 although the tuner's model has one noise for all rewards. In all cases the
                tuner is unchanged.
        """
        self._ledger.check_open(decision)
        told: dict[str, Any] = {"seconds": seconds, "variance": variance, "metric": metric}
        outcome = observation_of(decision, reward, **told, largest=self._largest)
        self._check_variance(outcome.variance)
        return self._tell(outcome)

    def _check_variance(self, variance: float) -> None:
        """Raise if the model cannot take a reward with a variance of its own."""
        return
