"""What trials of all kinds share: an optimizer is kept in step with those of an engine."""

import json
import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from botorch_costly.ask_tell.state import unchanged_on_error
from botorch_costly.errors import (
    InvalidArgumentError,
    InvalidSpaceError,
    StateMismatchError,
    check,
)
from botorch_costly.parameters import Plain
from botorch_costly.plain import as_number, listed, tupled
from botorch_costly.records import Decision
from botorch_costly.space import SearchSpace

Setting = dict[str, Plain]
D = TypeVar("D", bound=Decision)
_ALIKE = 1e-3  # distance in the unit cube at which a second evaluation tells nothing new


class Checkpoint(NamedTuple):
    """Where a training stands that a trial goes on with."""

    trial: Any  # key of the trial that left it there
    iterations: int  # that it has been trained for


@dataclass(frozen=True)
class Ended:
    """What a trial came to.

    Args:
        value: Its metric; None if it has none.
        curve: The metric after some of its iterations, by iteration, from 1.
        cost: Of the trial, such as seconds; None if it is not known.
        how: ``"complete"``, ``"stopped"`` before its end, or ``"failed"``.

    Raises:
        InvalidArgumentError: If ``how`` is none of these.
    """

    value: float | None = None
    curve: Mapping[int, float] = field(default_factory=dict)
    cost: float | None = None
    how: Literal["complete", "stopped", "failed"] = "complete"

    def __post_init__(self) -> None:
        known = ("complete", "stopped", "failed")
        check(self.how in known, "how", f"one of {known}", self.how)

    @property
    def value_or_nan(self) -> float:
        """The metric of a complete trial; NaN, which counts as the worst value, of any other."""
        return math.nan if self.how != "complete" or self.value is None else self.value


class OfflineTrials(ABC, Generic[D]):
    """Keeps an optimizer in step with the trials of an engine.

    A refused call changes nothing.

    Attributes:
        space: Space of the settings.
        resumes: Whether trials go on with the trainings of others.
    """

    space: SearchSpace
    resumes: bool = False

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._open: dict[Hashable, D] = {}
        self._ended: set[Hashable] = set()

    def ask(
        self,
        trial: Hashable,
        settle: Callable[[Setting], Mapping[str, Plain]] = dict,
        checkpoint: Checkpoint | None = None,
    ) -> Setting:
        """Return the setting of a trial that begins now, in place of what it ran.

        Args:
            trial: Its key.
            settle: Returns the setting that is run for one that is proposed, such as with values that
                the user fixed, or rounded to steps of the engine. One that differs uses up two numbers
                of a horizon.
            checkpoint: What the trial goes on with if its settled configuration is another than the
                proposed one.

        Raises:
            HorizonExceededError: If all settings of a finite space have been tried, or the horizon is
                used up.
            InvalidConfigError: If what ``settle`` returns does not belong to the space.
        """
        with self._unchanged_on_error():
            self.cancel(trial)
            decision: D = self._optimizer.ask()
            proposed = self._setting(decision)
            settled = self.space.canonical(settle(proposed))
            if settled != proposed:
                proposed_from = self._checkpoint(decision)
                self._optimizer.cancel(decision)
                decision = self._enqueue(settled, proposed_from or checkpoint)
            self._open[trial] = decision
        return settled

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Return to the state before if the block raises, an interrupt included."""
        under_way = dict(self._open)
        try:
            with unchanged_on_error(self._optimizer):
                yield
        except BaseException:
            self._open = under_way
            raise

    def knows(self, trial: Hashable, setting: Mapping[str, Plain]) -> bool:
        """Return whether a trial has ended, or is known to be under way with a setting."""
        known = self._open.get(trial)
        if known is None:
            return trial in self._ended
        return self._setting(known) == self.space.canonical(setting)

    def enter(
        self,
        trial: Hashable,
        setting: Mapping[str, Plain],
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Enter a trial that is under way. One that is known, or has ended, stays as it is.

        Args:
            trial: Its key.
            setting: What it runs.
            checkpoint: What it goes on with; it begins anew if None, or where that is not known.

        Raises:
            HorizonExceededError: If the horizon is used up.
            InvalidConfigError: If the setting does not belong to the space.
        """
        settled = self.space.canonical(setting)
        if self.knows(trial, settled):
            return
        if trial not in self._open:
            self._open[trial] = self._enqueue(settled, checkpoint)
            return
        with self._unchanged_on_error():
            self.cancel(trial)  # first, so that its training may go on
            self._open[trial] = self._enqueue(settled, checkpoint)

    def cancel(self, trial: Hashable) -> None:
        """Take back a trial that is under way; any other stays as it is."""
        if trial in self._open:
            self._optimizer.cancel(self._open.pop(trial))

    def end(self, trial: Hashable, ended: Ended) -> None:
        """Tell what a trial came to, if that is known to be under way; a second time changes nothing.

        Raises:
            InvalidArgumentError: If it cannot be, such as a curve beyond the iterations of its trial.
        """
        if trial in self._open:
            self._tell(self._open[trial], ended)
            del self._open[trial]
        self._ended.add(trial)

    def has_ended(self, trial: Hashable) -> bool:
        """Return whether nothing more is expected of a trial."""
        return trial in self._ended

    @property
    def optimizer(self) -> Any:
        """The optimizer, which is asked and told by this alone."""
        return self._optimizer

    @property
    def maximizes(self) -> bool:
        """Whether larger values are better."""
        return bool(self._optimizer.maximize)

    def iterations_of(self, setting: Mapping[str, Plain]) -> int | None:
        """Return how long a trial of a setting trains; None if the optimizer does not say it."""
        return None

    def checkpoint_of(self, trial: Hashable) -> Checkpoint | None:
        """Return what a trial under way goes on with; None if it begins anew."""
        return self._checkpoint(self._open[trial])

    def _checkpoint(self, decision: D) -> Checkpoint | None:
        """Return what the trial of a decision goes on with; None if it begins anew."""
        return None

    def under_way(self) -> dict[Any, Setting]:
        """Return the settings of all trials that have not ended, by key."""
        return {trial: self._setting(decision) for trial, decision in self._open.items()}

    def rename(self, trial: Hashable, key: Hashable) -> None:
        """Know a trial that is under way by another key from now on."""
        self._open[key] = self._open.pop(trial)

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values from which all trials are known again.

        Keys are to be plain values, tuples of them among these.
        """
        under_way = [[listed(key), decision.round] for key, decision in self._open.items()]
        return {
            "optimizer": self._optimizer.state_dict(),
            "open": json.dumps(under_way),
            "ended": json.dumps([listed(key) for key in self._ended]),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            StateMismatchError: If the state belongs to another optimizer, or is damaged; all stays.
        """
        try:
            with unchanged_on_error(self._optimizer):
                self._optimizer.load_state_dict(state["optimizer"])
                pending = {decision.round: decision for decision in self._optimizer.pending}
                numbers = json.loads(state["open"])
                under_way = {tupled(key): pending[number] for key, number in numbers}
                ended = {tupled(key) for key in json.loads(state["ended"])}
        except StateMismatchError:  # names what differs
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise StateMismatchError(type(self).__name__, "a state of its own", state) from error
        self._open, self._ended = under_way, ended

    def best(self) -> dict[str, Plain] | None:
        """Return the configuration that is believed best; None before there is one."""
        found: dict[str, Plain] | None = self._optimizer.best()
        return found

    def are_close(self, one: Mapping[str, Plain], other: Mapping[str, Plain]) -> bool:
        """Return whether two settings are so close that the second tells nothing new."""
        ours, theirs = (self.space.encode(self.space.canonical(s)) for s in (one, other))
        return bool((ours - theirs).abs().max() <= _ALIKE)

    @abstractmethod
    def _setting(self, decision: D) -> Setting:
        """Return the setting of a decision."""

    @abstractmethod
    def _enqueue(self, setting: Setting, checkpoint: Checkpoint | None = None) -> D:
        """Enter a setting that was not asked for."""

    @abstractmethod
    def _tell(self, decision: D, ended: Ended) -> None:
        """Tell what a decision came to."""


def stored_number(value: Any) -> float:
    """Return a number that a user stored as a float; NaN of all else, and of what no float can hold."""
    try:
        return as_number("value", value)
    except InvalidArgumentError:
        return math.nan


def typical_cost(costs: Collection[float]) -> float:
    """Return what a trial counts for whose cost is not known: the median of others, or 1."""
    return statistics.median(costs) if costs else 1.0


def extended(space: SearchSpace, more: Mapping[str, Any]) -> SearchSpace:
    """Return a space with further parameters."""
    taken = sorted(set(space.names) & set(more))
    expected = f"other names than those of parameters, {list(space.names)}"
    check(not taken, "names", expected, taken, InvalidSpaceError)
    return SearchSpace({**dict(space.parameters), **more})
