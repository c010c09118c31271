"""An optimizer in step with the trials of an engine, and the trials of an optimizer of values."""

import json
import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args

from botorch_costly.ask_tell import Optimizer
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
How = Literal["complete", "stopped", "failed"]
_ALIKE = 1e-3  # distance in the unit cube at which a second evaluation tells nothing new


class Checkpoint(NamedTuple):
    """The checkpoint from which a trial resumes a training."""

    trial: Any  # key of the trial that saved it
    iterations: int  # iterations trained before it


@dataclass(frozen=True)
class Ended:
    """The outcome of a trial.

    Args:
        value: Metric of the trial; None if it has none.
        curve: Metric after some of its iterations, by iteration, from 1.
        cost: Cost of the trial, such as seconds; None if unknown.
        how: ``"complete"``, ``"stopped"`` before its end, or ``"failed"``.

    Raises:
        InvalidArgumentError: If ``how`` is none of these.
    """

    value: float | None = None
    curve: Mapping[int, float] = field(default_factory=dict)
    cost: float | None = None
    how: How = "complete"

    def __post_init__(self) -> None:
        check(self.how in get_args(How), "how", f"one of {get_args(How)}", self.how)

    @property
    def value_or_nan(self) -> float:
        """The metric of a complete trial; NaN, which counts as the worst value, of any other."""
        return math.nan if self.how != "complete" or self.value is None else self.value


class OfflineTrials(ABC, Generic[D]):
    """Keeps an optimizer in step with the trials of an engine.

    A refused call changes nothing.

    Args:
        optimizer: The optimizer. Nothing else may ask and tell it.

    Attributes:
        space: Space of the settings.
        resumes: Whether trials resume trainings of other trials.
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
        """Return the setting of a trial that begins now; it replaces an earlier setting of the trial.

        Args:
            trial: Key of the trial.
            settle: Function from the proposed setting to the one that is run, for example with values
                that the user fixed, or rounded to steps of the engine. A different setting uses up two
                suggestions of a horizon.
            checkpoint: Checkpoint from which the trial resumes if the settled configuration differs
                from the proposed one.

        Raises:
            HorizonExceededError: If all settings of a finite space have been tried, or the horizon is
                used up.
            InvalidConfigError: If ``settle`` returns a setting outside of the space.
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
        """Return whether a trial has ended, or is entered as running with this setting."""
        if trial not in self._open:
            return trial in self._ended
        return self._setting(self._open[trial]) == self.space.canonical(setting)

    def enter(
        self,
        trial: Hashable,
        setting: Mapping[str, Plain],
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Enter a running trial; nothing changes if it is entered with this setting, or has ended.

        Args:
            trial: Key of the trial.
            setting: Setting that it runs.
            checkpoint: Checkpoint that it resumes from. The trial begins anew if None, or if the
                checkpoint is not known.

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
            self.cancel(trial)  # first, so that its training may be resumed
            self._open[trial] = self._enqueue(settled, checkpoint)

    def cancel(self, trial: Hashable) -> None:
        """Cancel a running trial; any other trial stays as it is."""
        if trial in self._open:
            self._optimizer.cancel(self._open.pop(trial))

    def end(self, trial: Hashable, ended: Ended) -> None:
        """Tell the outcome of a trial if it is entered as running; a second call changes nothing.

        Raises:
            InvalidArgumentError: If the outcome is invalid, such as a curve beyond the trial's
                iterations.
        """
        if trial in self._open:
            self._tell(self._open[trial], ended)
            del self._open[trial]
        self._ended.add(trial)

    def has_ended(self, trial: Hashable) -> bool:
        """Return whether a trial has ended."""
        return trial in self._ended

    @property
    def optimizer(self) -> Any:
        """The optimizer. Nothing else may ask and tell it."""
        return self._optimizer

    @property
    def maximizes(self) -> bool:
        """Whether larger values are better."""
        return bool(self._optimizer.maximize)

    def iterations_of(self, setting: Mapping[str, Plain]) -> int | None:
        """Return how many iterations a setting trains for; None if it does not say so."""
        return None

    def checkpoint_of(self, trial: Hashable) -> Checkpoint | None:
        """Return the checkpoint that a running trial resumes from; None if it begins anew."""
        return self._checkpoint(self._open[trial])

    def _checkpoint(self, decision: D) -> Checkpoint | None:
        """Return the checkpoint that the trial of a decision resumes from; None if it begins anew."""
        return None

    def under_way(self) -> dict[Any, Setting]:
        """Return the settings of all running trials, by key."""
        return {trial: self._setting(decision) for trial, decision in self._open.items()}

    def rename(self, trial: Hashable, key: Hashable) -> None:
        """Give a running trial another key."""
        self._open[key] = self._open.pop(trial)

    def state_dict(self) -> dict[str, Any]:
        """Return the state in tensors and plain values; keys of trials must be plain, or plain tuples."""
        under_way = [[listed(key), decision.round] for key, decision in self._open.items()]
        return {
            "optimizer": self._optimizer.state_dict(),
            "open": json.dumps(under_way),
            "ended": json.dumps([listed(key) for key in self._ended]),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            StateMismatchError: If the state belongs to another optimizer, or is damaged; nothing has
                changed then.
        """
        try:
            with unchanged_on_error(self._optimizer):
                self._optimizer.load_state_dict(state["optimizer"])
                pending = {decision.round: decision for decision in self._optimizer.pending}
                numbers = json.loads(state["open"])
                under_way = {tupled(key): pending[number] for key, number in numbers}
                ended = {tupled(key) for key in json.loads(state["ended"])}
        except StateMismatchError:  # its message names the difference
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise StateMismatchError(type(self).__name__, "a state of its own", state) from error
        self._open, self._ended = under_way, ended

    def best(self) -> dict[str, Plain] | None:
        """Return the incumbent; None before there is one."""
        best: dict[str, Plain] | None = self._optimizer.best()
        return best

    def are_close(self, one: Mapping[str, Plain], other: Mapping[str, Plain]) -> bool:
        """Return whether two settings are so close that the second tells nothing new."""
        ours, theirs = (self.space.encode(self.space.canonical(s)) for s in (one, other))
        return bool((ours - theirs).abs().max() <= _ALIKE)

    @abstractmethod
    def _setting(self, decision: D) -> Setting:
        """Return the setting of a decision."""

    @abstractmethod
    def _enqueue(self, setting: Setting, checkpoint: Checkpoint | None = None) -> D:
        """Enqueue a setting that the optimizer did not propose."""

    @abstractmethod
    def _tell(self, decision: D, ended: Ended) -> None:
        """Tell the outcome of a decision."""


class ValueTrials(OfflineTrials[Decision]):
    """Trials of an optimizer that is told values; fidelities, if any, are a part of each setting.

    Stopped and failed trials count as failures.

    Args:
        optimizer: A ``TransferOptimizer``, a ``SubsetOptimizer`` or another ``Optimizer`` that is told
            values. Nothing else may ask and tell it.

    Raises:
        InvalidArgumentError: If the optimizer is told another kind of outcome.
        InvalidSpaceError: If a parameter has the name of a fidelity.
    """

    def __init__(self, optimizer: Optimizer[Any, Any]) -> None:
        check(optimizer.tells == "value", "optimizer", "one that is told values", optimizer.tells)
        super().__init__(optimizer)
        fidelities = optimizer.fidelities
        self._names = () if fidelities is None else fidelities.names
        self.space = optimizer.space
        if fidelities is not None:
            self.space = extended(optimizer.space, dict(fidelities.parameters))

    def _setting(self, decision: Decision) -> Setting:
        return {**decision.config, **decision.fidelity}

    def _enqueue(self, setting: Setting, checkpoint: Checkpoint | None = None) -> Decision:
        config = {name: value for name, value in setting.items() if name not in self._names}
        fidelities = {name: setting[name] for name in self._names} if self._names else None
        decision: Decision = self._optimizer.enqueue(config, fidelities)
        return decision

    def _tell(self, decision: Decision, ended: Ended) -> None:
        self._optimizer.tell(decision, ended.value_or_nan, cost=ended.cost)


def stored_number(value: Any) -> float:
    """Return a number that a user stored as a float; NaN if it is no number, or too large for a float."""
    try:
        return as_number("value", value)
    except InvalidArgumentError:
        return math.nan


def cost_of(trial: Hashable, costs: Mapping[Any, float]) -> float:
    """Return the cost of a trial; if unknown, the median of the known costs, or 1 without any."""
    return costs[trial] if trial in costs else statistics.median(costs.values() or [1.0])


def extended(space: SearchSpace, more: Mapping[str, Any]) -> SearchSpace:
    """Return a space with further parameters."""
    taken = sorted(set(space.names) & set(more))
    expected = f"other names than those of parameters, {list(space.names)}"
    check(not taken, "names", expected, taken, InvalidSpaceError)
    return SearchSpace({**dict(space.parameters), **more})
