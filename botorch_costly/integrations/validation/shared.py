"""A ``Validation`` that all ranks of a distributed run share, with the decisions of rank 0."""

import json
import math
from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor

from botorch_costly.calls import advised
from botorch_costly.errors import StateMismatchError, check, check_count, check_nonnegative
from botorch_costly.integrations.ranks import Ranks, Said, weighted_mean
from botorch_costly.plain import as_number
from botorch_costly.validation import Validation
from botorch_costly.validation.readings import Best

# All ranks meet again after this share of the steps so far, and after so many steps at most. Rank 0 alone
# sees a spike of the training loss, and the ranks validate at their next meeting.
_SHARE = 128
_FARTHEST = 64
_KEYS = {"validation", "step", "read", "due", "pending"}


class SharedValidation:
    """The validation of rank 0, which decides for all ranks of a distributed run.

    All ranks construct it after ``init_process_group``, and call ``due`` at every step and ``tell`` after
    each validation. They do not communicate at every step: in a meeting rank 0 announces whether to
    validate, and the step of the next meeting. A reading may thus come later than on a single rank, by
    at most 1 % of the steps so far. Training loss and seconds are those of rank 0, and the metric is the
    mean over the ranks. A run that is not distributed has a single rank, and decides like ``Validation``.

    The state is the state of rank 0, so a run may be resumed with another number of ranks.

    Args:
        validation: A ``Validation``; with several ranks without ``examples``, for the set is read as a
            whole: ranks would have to agree after each shard, and the losses of all of them to travel.
        timeout: Seconds after which a missing rank is lost.

    Raises:
        InvalidArgumentError: If it is no such validation, or the timeout is not positive.

    Example:
        >>> import botorch_costly as bc
        >>> shared = SharedValidation(bc.Validation(overhead=1.0))
        >>> for step in range(100):
        ...     if shared.due(step, train_loss=1 / (1 + step), last=step == 99):
        ...         mean = shared.tell(1.1 / (1 + step), weight=128)
        >>> shared.best.step
        99
    """

    @advised
    def __init__(self, validation: Validation, *, timeout: float = 60.0) -> None:
        is_validation = isinstance(validation, Validation)
        check(is_validation, "validation", "a Validation", validation)
        self.validation, self.ranks = validation, Ranks(timeout)
        expected = "a Validation without examples: several ranks read the whole set"
        received = f"one with examples={validation.options.examples}"
        is_whole = validation.options.examples is None or self.ranks.count == 1
        check(is_whole, "validation", expected, received)
        self._step = self._read = -1
        self._next = -1  # step of the next meeting
        self._has_answered = False  # at the latest step
        self._due = self._pending = False  # for all ranks; on rank 0, before a meeting
        self._verdict: dict[str, Any] = {}  # of rank 0 after the latest reading, with several ranks

    @property
    def is_due(self) -> bool:
        """Whether a reading of the latest step waits for its metric."""
        return self._due

    @property
    def step(self) -> int:
        """The latest step; -1 before the first."""
        return self._step

    @property
    def read(self) -> int:
        """Step of the latest reading; -1 before the first."""
        return self._read

    def due(
        self, step: int, *, train_loss: float | Tensor | None = None, last: bool = False
    ) -> bool:
        """Return whether to validate after a step of training, the same on all ranks.

        Asked again for the same step, it gives the same answer until ``tell``.

        Args:
            step: Number of the step, at least 0.
            train_loss: Training loss of the step on this rank; that of rank 0 counts.
            last: Whether this is the last step of the run, on all ranks.

        Raises:
            InvalidArgumentError: If ``step`` is no integer of at least 0, or the loss no number.
            RankError: If the ranks are at different steps, or one is lost.
        """
        step = check_count("step", step)
        if self._has_answered and step == self._step and not last:
            if self.ranks.is_first:
                self.validation.due(step, train_loss=train_loss)
            return self._due
        self._due, self._has_answered = False, True
        self._verdict = {**self._verdict, "is_best": False}
        if self.ranks.is_first:
            if self._pending:  # the ranks have not heard of it yet
                self.validation.misuse.answered(average=False)
            is_due = self.validation.due(step, train_loss=train_loss, last=last)
            self._pending = is_due or (self._pending and step >= self._step)
        between = self.ranks.count > 1 and self._step <= step < self._next and not last
        self._step = step
        if not between:
            following = float(self._following(step))
            report = self.ranks.meet("validation", step, following, float(self._pending))[0]
            self._next, self._due, self._pending = int(report.value), report.weight > 0, False
        return self._due

    def _following(self, step: int) -> int:
        """Return the step of the next meeting, which leaves out no step that is read in any case."""
        ahead, steps = min(max(step // _SHARE, 1), _FARTHEST), self.validation.steps
        demanded = [*self.validation.options.read_at, *([] if steps is None else [steps])]
        return min([step + ahead, *(other for other in demanded if other > step)])

    def tell(self, value: float | None, *, weight: float = 1.0) -> float | None:
        """Record a reading of the latest step; all ranks call it.

        Args:
            value: The metric of this rank; None if it has none.
            weight: Weight of the metric, such as the number of examples in it.

        Returns:
            The mean over the ranks, the same on all of them. None if no rank has a metric: then the
            reading has failed.

        Raises:
            InvalidArgumentError: If the value is no number, the weight is negative, or no step came
                before.
            RankError: If the ranks are at different places, or one is lost.
        """
        number = math.nan if value is None else as_number("value", value)
        weight = 0.0 if value is None else check_nonnegative("weight", weight)
        check(self._step >= 0, "tell", "a step before, by shared.due(step)", "none")
        reports = self.ranks.meet("reading", self._step, number, weight)
        mean = _mean([report for report in reports if report.weight > 0])
        self._due, self._read = False, self._step
        if self.ranks.is_first:
            self.validation.tell(math.nan if mean is None else mean)
        if self.ranks.count > 1:
            message = json.dumps(self._own_verdict()).encode() if self.ranks.is_first else None
            self._verdict = json.loads(self.ranks.receive(message, "reading", self._step))
        return mean

    @property
    def examples(self) -> list[int]:
        """Numbers of the examples to read next; empty once there are enough, or for the whole set."""
        return self.validation.examples

    def tell_part(self, values: Tensor) -> None:
        """Record the values of ``examples`` on a single rank, in their order.

        Raises:
            InvalidShapeError: If there is not one value for each example.
        """
        self.validation.tell(values)
        self._due, self._read = bool(self.examples), self._step

    def close(self) -> None:
        """End a reading whose values did not come."""
        self._due = False

    def _own_verdict(self) -> dict[str, Any]:
        ours, best = self.validation, self.validation.best
        return {
            "is_best": ours.is_best,
            "has_diverged": ours.has_diverged,
            "should_stop": ours.options.false_stop is not None and ours.should_stop,
            "reason": ours.reason,
            "best": None if best is None else [best.step, best.value],
        }

    def restored_to(self, step: int) -> None:
        """Record that the run was put back to its state at an earlier step; see ``Validation``."""
        if self.ranks.is_first:
            self.validation.restored_to(step)

    @property
    def is_best(self) -> bool:
        """Whether the latest step was read, and is the best checkpoint so far."""
        return self._verdict_of("is_best", False)

    @property
    def has_diverged(self) -> bool:
        """Whether the latest reading is not finite."""
        return self._verdict_of("has_diverged", False)

    @property
    def should_stop(self) -> bool:
        """Whether the rest of the run is unlikely to improve the metric, by the latest reading."""
        return self._verdict_of("should_stop", False)

    @property
    def reason(self) -> str:
        """Why the latest step is read, or is not; on other ranks than 0 that of the latest reading."""
        return self._verdict_of("reason", "rank 0 decides")

    @property
    def best(self) -> Best | None:
        """The best checkpoint so far; None before the first successful reading."""
        if self.ranks.count == 1:
            return self.validation.best
        best = self._verdict.get("best")
        return None if best is None else Best(int(best[0]), float(best[1]), None, None)

    def _verdict_of(self, name: str, default: Any) -> Any:
        """Return a verdict of rank 0."""
        if self.ranks.count == 1 or (self.ranks.is_first and name == "reason"):
            return getattr(self.validation, name)
        return self._verdict.get(name, default)

    def state_dict(self) -> dict[str, Any]:
        """Return the state, on rank 0 with that of its validation. No rank waits for another."""
        return {
            "validation": self.validation.state_dict() if self.ranks.is_first else None,
            "step": self._step,
            "read": self._read,
            "due": self._due,
            "pending": self._pending,
        }

    def load_state_dict(self, state: Mapping[str, Any], changed: Collection[str] = ()) -> None:
        """Continue from the state of rank 0, which all ranks load.

        Args:
            state: A ``state_dict`` of rank 0.
            changed: Options of the validation that may differ from those in the state.

        Raises:
            StateMismatchError: If the state is damaged, belongs to another rank, or is refused by the
                validation; nothing is changed.
        """
        is_valid = isinstance(state, Mapping) and set(state) == _KEYS
        check(is_valid, "state", "a state_dict of SharedValidation", state, StateMismatchError)
        for name in ("step", "read"):
            is_step = isinstance(state[name], int) and state[name] >= -1
            check(is_step, f"state: {name}", "a step", state[name], StateMismatchError)
        of_first = state["validation"] is not None
        check(of_first, "state", "the state of rank 0", "another rank's", StateMismatchError)
        self.validation.load_state_dict(state["validation"], changed)
        self._step, self._read, self._next = state["step"], state["read"], -1
        self._due, self._pending = bool(state["due"]), bool(state["pending"])
        self._has_answered = False
        self._verdict = {**self._own_verdict(), "is_best": False} if self.ranks.count > 1 else {}


def fresh_state(validation: Validation) -> dict[str, Any]:
    """Return the state of a ``SharedValidation`` of a validation, before the first step of a run."""
    blank = {"step": -1, "read": -1, "due": False, "pending": False}
    return {"validation": validation.state_dict(), **blank}


def _mean(reports: list[Said]) -> float | None:
    """Return the mean of the ranks that have a value, a single one to the last bit; None without one."""
    if len(reports) > 1:
        return weighted_mean(reports)
    return reports[0].value if reports else None
