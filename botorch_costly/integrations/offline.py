"""Trials of an engine as evaluations of an optimizer that is asked and told.

An engine runs trials, several at once, and knows each by a key. Some were asked for here, others were
not: another process began them, or a user did. ``OfflineTrials`` keeps an optimizer in step with all of
them. What is under way counts as pending; what runs otherwise than asked for is taken back and entered
as it runs; what ended is told, once.

A *setting* is all that a trial is told: its configuration and, beside it, its iterations or fidelities.
"""

import json
import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from botorch_costly.ask_tell.state import unchanged_on_error
from botorch_costly.curve_records import CurveDecision
from botorch_costly.errors import InvalidSpaceError, StateMismatchError, check
from botorch_costly.parameters import Integer, Plain
from botorch_costly.plain import as_number, listed, tupled
from botorch_costly.records import Decision
from botorch_costly.space import SearchSpace
from botorch_costly.subset_records import SubsetDecision
from botorch_costly.transfer_records import TransferDecision
from botorch_costly.tuners import CurveOptimizer, SubsetOptimizer, TransferOptimizer

Setting = dict[str, Plain]
D = TypeVar("D", bound=Decision)
_ALIKE = 1e-3  # distance in the unit cube at which a second evaluation tells nothing new


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
        space: Of the settings.
    """

    space: SearchSpace

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._open: dict[Hashable, D] = {}
        self._ended: set[Hashable] = set()

    def ask(
        self, trial: Hashable, settle: Callable[[Setting], Mapping[str, Plain]] = dict
    ) -> Setting:
        """Return the setting of a trial that begins now, in place of what it ran.

        Args:
            trial: Its key.
            settle: Returns the setting that is run for one that is proposed, such as with values that
                the user fixed, or rounded to steps of the engine. One that differs uses up two numbers
                of a horizon.

        Raises:
            HorizonExceededError: If all settings of a finite space have been tried, or the horizon is
                used up.
            InvalidConfigError: If what ``settle`` returns does not belong to the space.
        """
        with self._unchanged_on_error():
            self.withdraw(trial)
            decision: D = self._optimizer.ask()
            proposed = self._setting(decision)
            settled = self.space.canonical(settle(proposed))
            if settled != proposed:
                self._optimizer.withdraw(decision)
                decision = self._adopt(settled)
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

    def enter(self, trial: Hashable, setting: Mapping[str, Plain]) -> None:
        """Enter a trial that is under way. One that is known, or has ended, stays as it is.

        Raises:
            HorizonExceededError: If the horizon is used up.
            InvalidConfigError: If the setting does not belong to the space.
        """
        settled = self.space.canonical(setting)
        if self.knows(trial, settled):
            return
        if trial not in self._open:
            self._open[trial] = self._adopt(settled)
            return
        with self._unchanged_on_error():
            self.withdraw(trial)  # first, so that its training may go on
            self._open[trial] = self._adopt(settled)

    def withdraw(self, trial: Hashable) -> None:
        """Take back a trial that is under way; any other stays as it is."""
        if trial in self._open:
            self._optimizer.withdraw(self._open.pop(trial))

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
    def maximizes(self) -> bool:
        """Whether larger values are better."""
        return bool(self._optimizer.maximize)

    def iterations_of(self, setting: Mapping[str, Plain]) -> int | None:
        """Return how long a trial of a setting trains; None if the optimizer does not say it."""
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
        found: dict[str, Plain] | None = self._optimizer.best_seen()
        return found

    def are_close(self, one: Mapping[str, Plain], other: Mapping[str, Plain]) -> bool:
        """Return whether two settings are so close that the second tells nothing new."""
        ours, theirs = (self.space.encode(self.space.canonical(s)) for s in (one, other))
        return bool((ours - theirs).abs().max() <= _ALIKE)

    @abstractmethod
    def _setting(self, decision: D) -> Setting:
        """Return the setting of a decision."""

    @abstractmethod
    def _adopt(self, setting: Setting) -> D:
        """Enter a setting that was not asked for."""

    @abstractmethod
    def _tell(self, decision: D, ended: Ended) -> None:
        """Tell what a decision came to."""


class TransferTrials(OfflineTrials[TransferDecision]):
    """Trials of an optimizer that knows earlier studies. What was stopped or failed counts as worst.

    Args:
        optimizer: To be asked and told by this alone.
    """

    def __init__(self, optimizer: TransferOptimizer) -> None:
        super().__init__(optimizer)
        self.space = optimizer.space

    def _setting(self, decision: TransferDecision) -> Setting:
        return dict(decision.config)

    def _adopt(self, setting: Setting) -> TransferDecision:
        found: TransferDecision = self._optimizer.adopt(setting)
        return found

    def _tell(self, decision: TransferDecision, ended: Ended) -> None:
        self._optimizer.tell(decision, ended.value_or_nan)


class CurveTrials(OfflineTrials[CurveDecision]):
    """Trials of an optimizer of curves: how long each trains is a part of its setting.

    Each trial begins anew. What was stopped may be trained for longer; what failed has diverged.

    Args:
        optimizer: To be asked and told by this alone; one whose trainings do not go on.
        iterations: Name of the iterations in a setting.
        shortest: The fewest there may be.
        longest: The most.

    Raises:
        InvalidArgumentError: If the trainings of the optimizer go on.
        InvalidSpaceError: If a parameter of the optimizer has the name of the iterations.
    """

    def __init__(
        self, optimizer: CurveOptimizer, iterations: str, *, shortest: int, longest: int
    ) -> None:
        super().__init__(optimizer)
        anew = "one with resumes=False, for each trial begins anew"
        check(not optimizer.resumes, "optimizer", anew, "resumes=True")
        self.space = _with(optimizer.space, {iterations: Integer(shortest, longest)})
        self._iterations = iterations

    def iterations_of(self, setting: Mapping[str, Plain]) -> int:
        """Return how long a trial of a setting trains."""
        return int(as_number(self._iterations, setting[self._iterations]))

    def _setting(self, decision: CurveDecision) -> Setting:
        return {**decision.config, self._iterations: decision.until}

    def _adopt(self, setting: Setting) -> CurveDecision:
        config = {name: value for name, value in setting.items() if name != self._iterations}
        until = self.iterations_of(setting)
        longer = [
            training.number
            for training in self._optimizer.trainings
            if training.may_go_on and training.done < until and dict(training.config) == config
        ]
        training = longer[-1] if longer else None
        found: CurveDecision = self._optimizer.adopt(config, until, training=training)
        return found

    def _tell(self, decision: CurveDecision, ended: Ended) -> None:
        until, shown = decision.until, dict(ended.curve)
        within = all(1 <= at <= until for at in shown)
        check(within, "curve", f"values of the iterations 1 to {until}", sorted(shown))
        if ended.how == "complete" and ended.value is not None:
            shown.setdefault(until, ended.value)
        last = until if ended.how == "complete" else max(shown, default=1)
        curve = [shown.get(at) for at in range(1, last + 1)]
        broken = True if ended.how == "failed" else None
        self._optimizer.tell(decision, curve, cost=ended.cost, broken=broken)


class SubsetTrials(OfflineTrials[SubsetDecision]):
    """Trials of an optimizer of subsets: the fidelities are a part of each setting.

    What was stopped or failed counts as worst.

    Args:
        optimizer: To be asked and told by this alone.

    Raises:
        InvalidSpaceError: If a parameter has the name of a fidelity.
    """

    def __init__(self, optimizer: SubsetOptimizer) -> None:
        super().__init__(optimizer)
        self._names = optimizer.fidelities.names
        self.space = _with(optimizer.space, dict(optimizer.fidelities.parameters))

    def _setting(self, decision: SubsetDecision) -> Setting:
        return {**decision.config, **decision.fidelities}

    def _adopt(self, setting: Setting) -> SubsetDecision:
        config = {name: value for name, value in setting.items() if name not in self._names}
        fidelities = {name: setting[name] for name in self._names}
        found: SubsetDecision = self._optimizer.adopt(config, fidelities)
        return found

    def _tell(self, decision: SubsetDecision, ended: Ended) -> None:
        self._optimizer.tell(decision, ended.value_or_nan, cost=ended.cost)


def typical_cost(costs: Collection[float]) -> float:
    """Return what a trial counts for whose cost is not known: the median of others, or 1."""
    return statistics.median(costs) if costs else 1.0


def _with(space: SearchSpace, more: Mapping[str, Any]) -> SearchSpace:
    """Return a space with further parameters."""
    taken = sorted(set(space.names) & set(more))
    expected = f"other names than those of parameters, {list(space.names)}"
    check(not taken, "names", expected, taken, InvalidSpaceError)
    return SearchSpace({**dict(space.parameters), **more})
