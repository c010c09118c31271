"""The frame around strategies: the only ask and tell, the ledger, undone calls, states."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from botorch_costly.ask_tell.clocks import Clocks
from botorch_costly.ask_tell.diagnosis import Diagnosed
from botorch_costly.ask_tell.domain import Domain
from botorch_costly.ask_tell.earlier_files import own
from botorch_costly.ask_tell.earlier_names import EarlierNames
from botorch_costly.ask_tell.evaluations import Evaluations, sign_of, text_of_values
from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.protocol import Tells
from botorch_costly.ask_tell.recorded import Recorded
from botorch_costly.ask_tell.saving import read, save
from botorch_costly.ask_tell.serial import Whole
from botorch_costly.ask_tell.state import (
    Undo,
    both,
    changeable,
    check_header,
    header,
    refuse_damage,
)
from botorch_costly.ask_tell.strategy import ENQUEUED, Action, Proposal, Strategy
from botorch_costly.ask_tell.sums import warn_of_rising
from botorch_costly.ask_tell.surroundings import shield
from botorch_costly.calls import advised
from botorch_costly.errors import check_count
from botorch_costly.lookups import Advising
from botorch_costly.parameters import Plain
from botorch_costly.plain import config_text
from botorch_costly.records import Decision, FrozenConfig, Observation, unit_of

_NOUNS: Mapping[Tells, str] = {
    "gain": "reward",
    "metric": "metric",
    "value": "value",
    "curve": "reward",
}

D = TypeVar("D", bound=Decision)
T = TypeVar("T", bound=Observation)
R = TypeVar("R")


class Frame(Whole, EarlierNames, Diagnosed, Recorded[D, T], Advising, ABC, Generic[D, T]):
    """A strategy that is asked for suggestions and told their outcomes.

    A suggestion may be told late, in any order, or never. A refused or interrupted call changes nothing.
    Threads may share an optimizer, it can be pickled, and torch's settings around it change no decision.

    Args:
        domain: Settings that may be evaluated.
        strategy: Chooser of the next evaluation.
        horizon: Largest number of suggestions; ``None`` if unknown.
        maximize: Whether larger values are better.
        options: Further options that a state must have been made with, by name.
        start: Configuration of the first suggestion, if one is known to be good.
        kept: Number of the latest suggestions that are kept; all if omitted.
        clocks: Seconds that the run may take, and the share of queries; no limits if omitted.

    Attributes:
        tells: Kind of the outcome that ``tell`` takes.
        predicts: Whether ``predict`` has a model.
        queries_last: Whether the last round of a horizon is always queried, within the budget: a network
            that diverged in it would not be noticed otherwise.
        records: Classes of the suggestions and outcomes.
    """

    tells: ClassVar[Tells] = "value"
    predicts: bool = False
    queries_last: bool = False
    records: ClassVar[tuple[type[Any], type[Any]]] = (Decision, Observation)

    _in_place_of_items = "calls, as in: while not optimizer.is_over: decision = optimizer.ask()"
    # Options, or groups of them, that may change; () for all.
    _changeable: ClassVar[tuple[str, ...]] = ("horizon", "seconds")

    def __init__(
        self,
        domain: Domain,
        strategy: Strategy,
        *,
        horizon: int | None = None,
        maximize: bool = True,
        options: Mapping[str, Any] | None = None,
        start: Mapping[str, Plain] | None = None,
        kept: int | None = None,
        clocks: Clocks | None = None,
    ) -> None:
        self.space, self.fidelities, self.maximize = domain.space, domain.fidelities, maximize
        self.horizon = None if horizon is None else check_count("horizon", horizon, minimum=1)
        self._sign = sign_of(maximize)
        self._domain, self._strategy = domain, strategy
        self._begins_at = None if start is None else FrozenConfig(domain.space.canonical(start))
        named = {"start": self._begins_at, **self._own_options(), **(options or {})}
        self._kept, self._clocks = kept, Clocks() if clocks is None else clocks
        ends = {"horizon": self.horizon, "seconds": self.seconds}
        self._header = header(type(self), domain.space, {**named, **ends})
        self._ledger = self._empty_ledger()
        self._seen: Evaluations[D, T] = self._evaluations(self._ledger)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        shield(cls)
        advised(cls)

    def _empty_ledger(self) -> Ledger[D, T]:
        told, unit = _NOUNS[self.tells], unit_of(self.records[0], self.tells)
        return Ledger(*self.records, self._kept, told=told, unit=unit)

    def _evaluations(self, ledger: Ledger[D, T]) -> Evaluations[D, T]:
        return Evaluations(self._domain, ledger, self._sign, self._clocks, self.horizon)

    def _own_options(self) -> dict[str, Any]:
        """Return the options that a state knows beside those of the constructor's ``options``."""
        return {}

    def _rows_of_matrix(self) -> int:
        """Return the number of rows of the largest matrix that is factored."""
        return self.queries

    # -- asking and telling -----------------------------------------------------------------------

    def ask(self) -> D:
        """Return the next suggestion. An error or an interrupt changes nothing.

        Raises:
            HorizonExceededError: If all suggestions of the horizon, or of a list, have been asked for, or
                the seconds have passed.
        """
        return self._whole("ask", self._next)

    def _snapshot(self, action: Action) -> Undo:
        """Return a function that restores strategy and clock, if an action is not completed."""
        return both(self._strategy.snapshot(action, self._seen), self._clocks.snapshot())

    def _whole(self, action: Action, call: Callable[[], R]) -> R:
        """Return a call's result; if it raises, the strategy is as before.

        The call changes the ledger last, so that the ledger needs no undoing.
        """
        undo = self._snapshot(action)
        try:
            return call()
        except BaseException as error:
            undo(error)
            raise

    def _next(self) -> D:
        """Enter the next suggestion, and return it."""
        number = self._begin_round()
        proposal = self._strategy.next(self._seen, self._begins_at)
        if self.queries_last and number + 1 == self.horizon:
            proposal = self._queried(proposal)
        # Inside a run a query is told before the next one; other outcomes may be late.
        return self._enter(self._suggestion(number, proposal), self.tells in ("gain", "metric"))

    def _begin_round(self) -> int:
        """Return the number of the round that begins; raise if neither rounds nor time are left."""
        number = self._ledger.next_within(self.horizon)
        self._clocks.begin_round(number)
        return number

    def _enter(self, suggestion: D, awaited: bool = False) -> D:
        self._strategy.entered(suggestion, self._seen)
        self._clocks.decided()
        self._ledger.suggest(suggestion, awaited=awaited)
        return suggestion

    def _queried(self, proposal: Proposal) -> Proposal:
        """Return the proposal of the last round with a query, if the budget allows one."""
        if proposal.query or not self._strategy.may_query(self._seen):
            return proposal
        return replace(proposal, query=True, reason=f"the last round ({proposal.reason})")

    def _suggestion(self, number: int, proposal: Proposal) -> D:
        kind, details = self.records[0], proposal.details
        suggestion: D = kind(
            number, proposal.config, query=proposal.query, reason=proposal.reason, **details
        )
        return suggestion

    @abstractmethod
    def tell(self, suggestion: D, *args: Any, **kwargs: Any) -> T:
        """Record the outcome of a suggestion; each kind of optimizer says which arguments it takes."""

    def _tell(self, outcome: T, *details: Any) -> T:
        """Let the strategy learn from a checked outcome, and record it: both or nothing."""

        def learn() -> None:
            self._strategy.learn(outcome, self._seen.with_outcome(outcome), *details)
            self._clocks.tell(self._queries_of(outcome), outcome.seconds)
            self._ledger.tell(outcome)

        self._whole("note", learn)
        self._ledger.warn_of(outcome)
        return outcome

    def _warn_of_rising_costs(self, latest: int) -> None:
        """Warn once if told costs seem sums or times; those of enqueued evaluations may be in order."""
        if self._ledger.suggestion(latest).reason == ENQUEUED:
            return
        told = ((o.round, getattr(o, "cost", None)) for o in self._ledger.outcomes)
        costs = [(self._ledger.suggestion(n).reason, cost) for n, cost in told if cost is not None]
        warn_of_rising(cost for reason, cost in costs if reason != ENQUEUED)

    def _queries_of(self, outcome: T) -> int:
        """Return the number of queries that an outcome is of."""
        return 1

    def enqueue(self, config: Mapping[str, Plain], *args: Any, **kwargs: Any) -> D:
        """Enter an evaluation of your own, such as that of another program, in place of the next one.

        Args:
            config: Configuration of the space; it need not be a candidate.
            *args: Value of each fidelity, by name, in a domain that has some.
            **kwargs: The same by keyword, ``fidelities=``.

        Returns:
            The suggestion to tell. Until then it is pending, like one that was asked for.

        Raises:
            HorizonExceededError: If all suggestions of the horizon have been asked for, or time is over.
            InvalidConfigError: If the setting does not belong to the domain. The optimizer is unchanged.
        """
        number = self._ledger.next_within(self.horizon)
        plain, values = self._domain.canonical(config, *args, **kwargs)
        details = dict(self._strategy.enqueued(self._seen, plain))
        details |= {"fidelities": values} if self._domain.fidelities is not None else {}
        return self._enqueue(self._suggestion(number, Proposal(plain, ENQUEUED, details=details)))

    def _enqueue(self, suggestion: D) -> D:
        def enter() -> D:
            self._begin_round()
            return self._enter(suggestion)

        return self._whole("note", enter)

    def cancel(self, suggestion: D) -> None:
        """Cancel a pending suggestion; its number still counts towards the horizon.

        Args:
            suggestion: A suggestion that was not told.

        Raises:
            UnknownDecisionError: If it belongs to another optimizer, or was cancelled before.
            AlreadyToldError: If it was told. In both cases the optimizer is unchanged.
        """
        self._ledger.check_open(suggestion, cancels=True)

        def cancel() -> None:
            self._strategy.cancelled(suggestion, self._seen)
            self._ledger.cancel(suggestion)

        self._whole("note", cancel)

    # -- reading ----------------------------------------------------------------------------------

    @property
    def overhead(self) -> float | None:
        """Largest share of the clock that queries and the optimizer may take; None without a limit."""
        return self._clocks.overhead

    @property
    def seconds(self) -> float | None:
        """Seconds that the run may take, from the first ``ask`` on; None without a limit."""
        return self._clocks.seconds

    @property
    def is_over(self) -> bool:
        """Whether ``ask`` has nothing left, after the horizon or the seconds; without either never."""
        self._clocks.warn_of_no_end(self.horizon)
        return self._clocks.is_over or self._seen.left == 0

    @property
    def expected_rounds(self) -> int | None:
        """Rounds that the run is expected to have; None if unknown."""
        return self._seen.rounds

    def best(self) -> dict[str, Plain] | None:
        """Return the configuration with the best value told; None before the first finite value."""
        outcome = self._seen.best
        return None if outcome is None else dict(outcome.config)

    def predict(
        self, configs: Sequence[Mapping[str, Plain]], *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor] | None:
        """Return the posterior of the value of each configuration, in the units that were told.

        Args:
            configs: Configurations of the space.
            *args: Inside a run, of gains, the round; the next one if omitted.
            **kwargs: The same by keyword, ``round=``.

        Returns:
            Mean and standard deviation, each of shape ``(n,)``; None without a model, or before there is
            a value.

        Raises:
            InvalidConfigError: If a configuration does not belong to the space.
        """
        points = [self.space.encode(config) for config in configs]
        rows = (
            torch.stack(points) if points else torch.zeros(0, self.space.dim, dtype=torch.float64)
        )
        rows = rows.to(**self._domain.tkwargs)
        posterior = self._strategy.predict(self._seen, rows, *args, **kwargs)
        if posterior is None:
            return None
        mean, std = posterior
        return self._sign * mean.detach(), std.detach()

    def summary(self) -> str:
        """Return a few lines on the evaluations, their cost and the best configuration."""
        evaluations, pending = len(self.observations), len(self.pending)
        lines = [f"{evaluations} evaluations, {self.failed_queries} failed, {pending} pending"]
        if self.total_cost > 0:
            lines.append(f"total cost {self.total_cost:.6g}")
        if (best := self.best()) is not None:
            lines.append(f"best: {config_text(best)}{self._value_of(best)}")
        return "\n".join([*lines, *self._on_the_clock()])

    def _value_of(self, best: Mapping[str, Plain]) -> str:
        """Return a phrase on the told values of the best configuration; "" unless they are compared."""
        is_plain = self.tells == "value" and self.fidelities is None
        return text_of_values(self.observations, best) if is_plain else ""

    def _on_the_clock(self, per_round: int = 1) -> list[str]:
        """Return a sentence for each limit of the clock that there is."""
        return self._clocks.summary(len(self._ledger), per_round)

    # -- the state --------------------------------------------------------------------------------

    @property
    def changeable(self) -> frozenset[str]:
        """Names of the options that may change when a run is continued."""
        return changeable(self._header, *self._changeable)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the state in a file that is replaced at once; ``botorch_costly.save`` takes more parts."""
        save(path, tuner=self)

    def load(
        self, path: str | os.PathLike[str], *, changed: tuple[str, ...] | list[str] = ()
    ) -> None:
        """Continue from a file that ``save`` wrote; arguments and errors of ``load_state_dict``."""
        self.load_state_dict(read(path, ["tuner"])["tuner"], changed=changed)
        own(path)

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values from which the run continues identically.

        The state knows the options of the constructor: build the optimizer in the same way and load it.
        """
        return {
            "header": dict(self._header),
            "ledger": self._ledger.state_dict(),
            **self._clocks.state_dict(),
            **self._strategy.state_dict(),
        }

    def load_state_dict(
        self, state: Mapping[str, Any], *, changed: tuple[str, ...] | list[str] = ()
    ) -> None:
        """Continue from ``state_dict``.

        Args:
            state: State of an optimizer with equal options; its device may be another.
            changed: Names of options that may differ, such as ``["horizon"]`` for a run that is extended.

        Raises:
            StateMismatchError: If another option differs, which the error names, or the state belongs to
                another version or kind of optimizer, or is damaged; the optimizer is unchanged.
        """
        check_header(state, self._header, changed, among=self.changeable)
        undo = self._snapshot("load")
        try:
            ledger = self._empty_ledger()
            ledger.load_state_dict(state["ledger"])
            self._clocks.load_state_dict(state)
            seen = self._evaluations(ledger)
            self._strategy.load_state_dict(state)
            self._strategy.restored(seen, same_options=not changed)
        except BaseException as error:
            undo(error)
            refuse_damage(type(self).__name__, error)
            raise
        self._ledger, self._seen = ledger, seen


shield(Frame)  # derived classes are shielded, and advised, as they are made
advised(Frame)
