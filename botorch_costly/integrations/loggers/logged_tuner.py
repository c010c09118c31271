"""A tuner that sends an entry per round to loggers."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Self, TypeVar
from weakref import WeakValueDictionary

from botorch_costly.ask_tell.around import Around, warn_if_over
from botorch_costly.ask_tell.protocol import AskTell, check_asked
from botorch_costly.ask_tell.serial import Serial
from botorch_costly.calls import advised
from botorch_costly.errors import HorizonExceededError, StateMismatchError, check
from botorch_costly.integrations.loggers.costs import ExplorationCost, budget_of
from botorch_costly.integrations.loggers.entry import LogEntry
from botorch_costly.integrations.loggers.logger import Logger
from botorch_costly.parameters import Plain
from botorch_costly.records import Decision, Observation

D = TypeVar("D", bound=Decision)
_LOG = "log"  # key of the progress of the log in a state
_logger = logging.getLogger(__name__)
_SENDING: WeakValueDictionary[int, Any] = WeakValueDictionary()  # tuners by id of their logger


@dataclass
class _Running(Generic[D]):
    """A round before its entry is sent."""

    decision: D
    milliseconds: float = 0.0
    cost: float | None = None
    observation: Observation | None = None


@advised
class LoggedTuner(Serial, Around[D]):
    """A tuner with loggers that receive an entry per round.

    It is asked and told like the tuner, makes the same decisions, and forwards all other attributes. Its
    state is the tuner's with the progress of the log: a state saved with loggers loads without them, and
    the reverse. The entry of a round is sent after it: when the next decision is asked for, or at
    ``close``. In a distributed run, pass it to ``SharedTuner``, and only rank 0 logs.

    Args:
        tuner: An ``OnlineTuner``, or any other optimizer of the package.
        loggers: Receivers of the entries. An error in a logger does not stop the run: the first error of
            each logger is a warning of the ``logging`` module.

    Raises:
        InvalidArgumentError: If the tuner cannot be asked and told, or a logger is no ``Logger``.

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
        for logger in self._loggers:
            check(isinstance(logger, Logger), "loggers", "Logger objects", logger)
        self._troubled: list[object] = []
        self._running: _Running[D] | None = None
        self._take_up()

    # -- asking and telling -----------------------------------------------------------------------

    def __iter__(self) -> Iterator[D]:
        """Iterate over the remaining decisions of an iterable tuner, such as a session.

        Raises:
            InvalidArgumentError: If the tuner is not iterable.
        """
        expected = "an iterable one, such as a Session (use ask for others)"
        check(isinstance(self.tuner, Iterable), "tuner", expected, type(self.tuner).__name__)
        warn_if_over(self)
        return self._left()

    def _left(self) -> Iterator[D]:
        while True:
            try:
                decision = self.ask()
            except HorizonExceededError:
                return  # a session is in the state of its incumbent
            yield decision

    def ask(self) -> D:
        """Return the next decision of the tuner, and log the round before."""
        return self._begun_by(self.tuner.ask)

    def enqueue(self, config: Mapping[str, Plain], *args: Any, **options: Any) -> D:
        """Enter a round of your own, and log the round before; see the tuner's ``enqueue``."""
        return self._begun_by(lambda: self.tuner.enqueue(config, *args, **options))

    def cancel(self, decision: D) -> None:
        """Cancel a decision of the tuner. The running round is not logged if it is cancelled."""
        self.tuner.cancel(decision)
        self._queries = self.tuner.queries
        if self._running is not None and self._running.decision.round == decision.round:
            self._running = None

    def _begun_by(self, call: Callable[[], D]) -> D:
        """Return the decision of a call of the tuner, whose round runs from now on."""
        began = time.perf_counter()
        decision = call()
        milliseconds = 1000 * (time.perf_counter() - began)
        self._flush()
        self._queries = self.tuner.queries
        cost = self._guarded(self.tuner, self._cost_of, decision)
        self._running = _Running(decision, milliseconds, cost)
        return decision

    def tell(self, decision: D, *outcome: Any, **details: Any) -> Observation:
        """Tell the tuner; arguments and errors are those of its ``tell``."""
        began = time.perf_counter()
        observation: Observation = self.tuner.tell(decision, *outcome, **details)
        milliseconds = 1000 * (time.perf_counter() - began)
        self._seconds += observation.seconds or 0.0
        self._queries = self.tuner.queries
        running = self._running
        if running is not None and observation.round == running.decision.round:
            running.observation = observation
            running.milliseconds += milliseconds
        else:
            self._send(_Running(decision, milliseconds, observation=observation))
        return observation

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the tuner with the progress of the log."""
        running = self._running
        began = None if running is None else [running.milliseconds, running.cost]
        return {**self.tuner.state_dict(), _LOG: {"seconds": self._seconds, "running": began}}

    def load_state_dict(self, state: Any, **options: Any) -> None:
        """Continue from a state of the tuner; arguments and errors are those of its ``load_state_dict``.

        Entries that were logged after the state was saved are outdated: their rounds are logged again.
        """
        log = state.get(_LOG) if isinstance(state, Mapping) else None
        is_valid = log is None or (isinstance(log, Mapping) and set(log) == {"seconds", "running"})
        expected = "the progress of a LoggedTuner's log"
        check(is_valid, f"state: {_LOG}", expected, log, StateMismatchError)
        self.tuner.load_state_dict(state, **options)
        self._take_up(log)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the tuner that this class does not have."""
        if name.startswith("_") or name == "tuner":
            raise AttributeError(name)  # during copying there is no tuner yet
        return getattr(self.tuner, name)

    # -- logging -----------------------------------------------------------------------------------

    def flush(self) -> None:
        """Log the running round, for example at the end of a fit; the loggers stay open."""
        self._flush()
        super().flush()

    def close(self) -> None:
        """Log the running round and close the loggers, also those of inner tuners.

        The tuner can still be used.
        """
        self._flush()
        super().close()
        for logger in self._loggers:
            self._guarded(logger, logger.close)
            if _SENDING.get(id(logger)) is self:
                del _SENDING[id(logger)]

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
        """Start from the tuner's state and the progress of a log.

        Without a log, the last round is running unless it has an observation.
        """
        outcomes = {outcome.round: outcome for outcome in self.tuner.observations}
        kept = sum(outcome.seconds or 0.0 for outcome in outcomes.values())
        # The seconds of a log include those of observations that the tuner does not keep any more.
        self._seconds = kept if log is None else log["seconds"]
        last = self.tuner.decisions[-1] if self.tuner.decisions else None
        self._running = None
        if last is not None and (last.round not in outcomes if log is None else log["running"]):
            milliseconds, cost = (0.0, None) if log is None else log["running"]
            self._running = _Running(last, milliseconds, cost, outcomes.get(last.round))
        self._first = 0 if last is None else last.round + (self._running is None)
        rounds = frozenset(d.round for d in self.tuner.decisions if d.round < self._first)
        self._untold = rounds.difference(outcomes)
        self._begun, self._queries = False, self.tuner.queries
        self._cost_of = ExplorationCost(self.tuner)

    def _flush(self) -> None:
        """End the running round, and send its entry."""
        if self._running is not None:
            ended, self._running = self._running, None
            self._send(ended)

    def _send(self, ended: _Running[D]) -> None:
        entry = LogEntry(
            decision=ended.decision,
            observation=ended.observation,
            queries=self._queries,
            budget=budget_of(self.tuner),
            horizon=self.tuner.horizon,
            seconds=self._seconds,
            exploration_cost=ended.cost,
            milliseconds=ended.milliseconds,
        )
        if not self._begun:
            self._begun = True
            for logger in self._loggers:
                self._claim(logger)
                self._guarded(logger, logger.begin, self._first)
                self._guarded(logger, logger.reopen, self._untold)
        for logger in self._loggers:
            self._guarded(logger, logger.log, entry)

    def _claim(self, logger: Logger) -> None:
        """Warn if another tuner that is not closed sends its rounds to the logger, too."""
        other = _SENDING.get(id(logger))
        if other is not None and other is not self:
            _logger.warning(
                "%s is sent the rounds of two tuners. Use one logger for each, or close the first tuner.",
                type(logger).__name__,
            )
        _SENDING[id(logger)] = self

    def _guarded(self, source: object, call: Callable[..., Any], *args: Any) -> Any:
        """Call a function for the log; warn of the first error of each source, and continue."""
        try:
            return call(*args)
        except Exception as error:
            if not any(source is other for other in self._troubled):
                self._troubled.append(source)
                names = type(source).__name__, type(error).__name__
                _logger.warning("%s could not log (%s: %s). The run continues.", *names, error)
        return None
