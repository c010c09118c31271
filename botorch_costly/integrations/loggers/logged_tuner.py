"""A tuner that sends an entry a round to loggers."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Self, TypeVar
from weakref import WeakValueDictionary

from botorch_costly.ask_tell.around import Around
from botorch_costly.ask_tell.protocol import AskTell, check_asked
from botorch_costly.ask_tell.serial import Serial
from botorch_costly.errors import StateMismatchError, check
from botorch_costly.integrations.loggers.costs import ExplorationCost, budget_of
from botorch_costly.integrations.loggers.entry import LogEntry
from botorch_costly.integrations.loggers.logger import Logger
from botorch_costly.records import Decision, Observation

D = TypeVar("D", bound=Decision)
_LOG = "log"  # the key of a state under which it says how far the log is
_logger = logging.getLogger(__name__)
_SENDING: WeakValueDictionary[int, Any] = (
    WeakValueDictionary()
)  # tuners, by the loggers they send to


@dataclass
class _Running(Generic[D]):
    """A round that is not over."""

    decision: D
    milliseconds: float = 0.0
    cost: float | None = None
    told: Observation | None = None


class LoggedTuner(Serial, Around[D]):
    """A tuner, and the loggers that hear of each of its rounds.

    It is asked and told as the tuner itself, decides exactly as that one does, and has its state, beside
    which it says how far the log is: a state saved with loggers loads without them, and the reverse.
    Everything else that the tuner has is reached through it by the same name. The entry of a round is
    sent when it is over: when the next decision is asked for, or at ``close``. In a distributed run it is
    what ``SharedTuner`` takes, and rank 0 alone logs.

    Args:
        tuner: An ``OnlineTuner``, or any other optimizer of the package.
        loggers: Where entries are sent. One that raises does not stop the run: its first error is
            reported once as a warning of the ``logging`` module.

    Raises:
        InvalidArgumentError: If the tuner cannot be asked and told, or a logger is none.

    Example:
        >>> import botorch_costly as bc
        >>> tuner = bc.RandomTuner(bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)}))
        >>> class Printing(Logger):
        ...     def log(self, entry):
        ...         print(entry.round, entry.queries, entry.reward)
        >>> with LoggedTuner(tuner, Printing()) as logged:
        ...     decision = logged.ask()
        ...     _ = logged.tell(decision, 0.5)
        ...     decision = logged.ask()
        0 1 0.5
        1 1 None
    """

    def __init__(self, tuner: AskTell[D], loggers: Logger | Iterable[Logger]) -> None:
        check_asked(tuner, " (ranks share it with its logs: SharedTuner(LoggedTuner(..)))")
        self.tuner = tuner
        self._loggers = [loggers] if isinstance(loggers, Logger) else list(loggers)
        for one in self._loggers:
            check(isinstance(one, Logger), "loggers", "Logger objects", one)
        self._troubled: list[object] = []
        self._running: _Running[D] | None = None
        self._take_up()

    # -- the face of the tuner ---------------------------------------------------------------------

    def __iter__(self) -> Iterator[D]:
        """Iterate over the decisions that are left, if the tuner can be iterated over, as a session can.

        Raises:
            InvalidArgumentError: If it cannot.
        """
        expected = "one that can be iterated over, such as a Session; ask this one"
        check(isinstance(self.tuner, Iterable), "tuner", expected, type(self.tuner).__name__)
        return self._left()

    def _left(self) -> Iterator[D]:
        while self.horizon is None or len(self.decisions) < self.horizon:
            yield self.ask()

    def ask(self) -> D:
        """Return the next decision of the tuner, and log the round before."""
        began = time.perf_counter()
        decision = self.tuner.ask()
        milliseconds = 1000 * (time.perf_counter() - began)
        self._flush()
        self._queries = self.tuner.queries
        cost = self._guarded(self.tuner, self._cost_of, decision)
        self._running = _Running(decision, milliseconds, cost)
        return decision

    def tell(self, decision: D, *outcome: Any, **details: Any) -> Observation:
        """Tell the tuner; arguments and errors are its own."""
        began = time.perf_counter()
        told: Observation = self.tuner.tell(decision, *outcome, **details)
        milliseconds = 1000 * (time.perf_counter() - began)
        self._seconds += told.seconds or 0.0
        self._queries = self.tuner.queries
        running = self._running
        if running is not None and told.round == running.decision.round:
            running.told = told
            running.milliseconds += milliseconds
        else:
            self._send(_Running(decision, milliseconds, told=told))
        return told

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the tuner, and how far the log is."""
        running = self._running
        began = None if running is None else [running.milliseconds, running.cost]
        return {**self.tuner.state_dict(), _LOG: {"seconds": self._seconds, "running": began}}

    def load_state_dict(self, state: Any, **options: Any) -> None:
        """Continue from the state of the tuner; arguments and errors are its own.

        Loggers are told what was logged after the state was saved: those rounds are logged again.
        """
        log = state.get(_LOG) if isinstance(state, Mapping) else None
        whole = log is None or (isinstance(log, Mapping) and set(log) == {"seconds", "running"})
        expected = "how far the log is, as a LoggedTuner says it"
        check(whole, f"state: {_LOG}", expected, log, StateMismatchError)
        self.tuner.load_state_dict(state, **options)
        self._take_up(log)

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of the tuner that has the name, which this class does not have."""
        if name.startswith("_") or name == "tuner":
            raise AttributeError(name)  # a copy that is being made has no tuner yet
        return getattr(self.tuner, name)

    # -- logging -----------------------------------------------------------------------------------

    def flush(self) -> None:
        """Log the last round as it is, as at the end of a fit; the loggers stay open."""
        self._flush()
        super().flush()

    def close(self) -> None:
        """Log the last round and close the loggers, those of tuners within it, too.

        The tuner can still be used.
        """
        self._flush()
        super().close()
        for one in self._loggers:
            self._guarded(one, one.close)
            if _SENDING.get(id(one)) is self:
                del _SENDING[id(one)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _take_up(self, log: Mapping[str, Any] | None = None) -> None:
        """Take the tuner as it is, and the log as it was; without one a round that was told is over."""
        told = {one.round: one for one in self.tuner.observations}
        kept = sum(one.seconds or 0.0 for one in told.values())
        self._seconds = kept if log is None else log["seconds"]  # of those not kept any more, too
        last = self.tuner.decisions[-1] if self.tuner.decisions else None
        self._running = None
        if last is not None and (last.round not in told if log is None else log["running"]):
            milliseconds, cost = (0.0, None) if log is None else log["running"]
            self._running = _Running(last, milliseconds, cost, told.get(last.round))
        self._first = 0 if last is None else last.round + (self._running is None)
        open_ = (one.round for one in self.tuner.decisions if one.round not in told)
        self._untold = frozenset(number for number in open_ if number < self._first)
        self._begun, self._queries = False, self.tuner.queries
        self._cost_of = ExplorationCost(self.tuner)

    def _flush(self) -> None:
        """Send the entry of the running round, which is over."""
        if self._running is not None:
            over, self._running = self._running, None
            self._send(over)

    def _send(self, over: _Running[D]) -> None:
        entry = LogEntry(
            decision=over.decision,
            observation=over.told,
            queries=self._queries,
            budget=budget_of(self.tuner),
            horizon=self.tuner.horizon,
            seconds=self._seconds,
            exploration_cost=over.cost,
            milliseconds=over.milliseconds,
        )
        if not self._begun:
            self._begun = True
            for one in self._loggers:
                self._claim(one)
                self._guarded(one, one.begin, self._first)
                self._guarded(one, one.reopen, self._untold)
        for one in self._loggers:
            self._guarded(one, one.log, entry)

    def _claim(self, one: Logger) -> None:
        """Say so if another tuner that is not closed sends its rounds there, too."""
        other = _SENDING.get(id(one))
        if other is not None and other is not self:
            said = "%s is sent the rounds of two tuners. Give each its own, or close the first one."
            _logger.warning(said, type(one).__name__)
        _SENDING[id(one)] = self

    def _guarded(self, one: object, call: Callable[..., Any], *args: Any) -> Any:
        """Call what belongs to the log; report the first error of each object, and go on."""
        try:
            return call(*args)
        except Exception as error:
            if not any(one is other for other in self._troubled):
                self._troubled.append(one)
                said = "%s could not log (%s: %s). The run goes on."
                _logger.warning(said, type(one).__name__, type(error).__name__, error)
        return None
