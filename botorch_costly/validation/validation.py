"""When to validate within one training run, on how many examples, when to stop, what to keep."""

import math
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from torch import Tensor

from botorch_costly.ask_tell.state import refuse_damage, unchanged_on_error
from botorch_costly.ask_tell.tariff import Tariff
from botorch_costly.calls import advised
from botorch_costly.errors import check, check_count
from botorch_costly.lookups import Advising
from botorch_costly.rewards.direction import Direction
from botorch_costly.rewards.metric_gain import Kind
from botorch_costly.validation.belief import Reading
from botorch_costly.validation.misuse import Misuse
from botorch_costly.validation.options import Options, checked_steps
from botorch_costly.validation.partial import PartialReading
from botorch_costly.validation.readings import Best, Readings, counts_of, summary_of
from botorch_costly.validation.timing import Timing
from botorch_costly.validation.training_loss import TrainingLoss
from botorch_costly.validation.values import Values, checked


@advised
class Validation(Advising):
    """Decide when to validate within one training run, and on how many examples.

    Training is not changed: nothing is drawn from global generators, and no mode is switched. From the
    training loss, earlier readings and their measured seconds, a belief of the validation curve says when
    a reading is worth its price, within a share of the clock. With ``examples`` a reading proceeds in
    shards, and ends once it is clear whether the checkpoint is better than the best one so far.

    Args:
        overhead: Largest share of the clock that validation and deciding about it may take, in (0, 1];
            with 1 all steps are read. Readings at ``read_at`` and at the last step are made in any case,
            and count. With ``steps`` it is a share of the whole run: early readings run ahead of it.
        metric: Kind of the metric: ``"loss"`` is minimized, ``"accuracy"``, or another score, maximized.
        examples: Number of examples of the validation set, if ``tell`` gets a value for each example.
            None for metrics that are no means over examples, such as BLEU, which need the whole set.
        steps: Last step of the run, if known: it is read, and its price is put aside.
        read_at: Further steps that are read, such as those before and after a decay of the rate.
        target: Value of the metric that the run is to reach.
        patience: Largest number of steps between two readings that the share affords.
        min_delta: Differences of the metric up to this size do not matter.
        false_stop: Largest probability, at most 0.5, of a stop although the metric would have improved by
            more than ``min_delta`` until ``steps``; by default ``should_stop`` stays False.
        level: Largest probability, at most 0.5, that a reading of part of the examples calls a better
            checkpoint worse, or the reverse.
        seed: Seed of the order in which examples are read.
        clock: Function that returns seconds.

    Raises:
        InvalidArgumentError: If an option is outside its range, or ``false_stop`` lacks ``steps``.

    References:
        I. Waudby-Smith, A. Ramdas. Estimating means of bounded random variables by betting. JRSS B 86,
        2024.

    Example:
        >>> validation = Validation(overhead=0.03, steps=99)
        >>> for step in range(100):
        ...     if validation.due(step, train_loss=1 / (1 + step)):
        ...         validation.tell(1.1 / (1 + step))
        >>> validation.best.step, validation.reason
        (99, 'the last step')
    """

    def __init__(
        self,
        overhead: float = 0.03,
        metric: Kind = "loss",
        *,
        examples: int | None = None,
        steps: int | None = None,
        read_at: Collection[int] = (),
        target: float | None = None,
        patience: int | None = None,
        min_delta: float = 0.0,
        false_stop: float | None = None,
        level: float = 0.01,
        seed: int = 0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.options = Options(
            overhead=overhead,
            metric=metric,
            examples=examples,
            steps=steps,
            read_at=checked_steps(read_at),
            target=target,
            patience=patience,
            min_delta=min_delta,
            false_stop=false_stop,
            level=level,
            seed=seed,
        )
        self._rules, self._order = self.options.rules, self.options.order()
        self._tariff, self._training = Tariff(overhead, clock), TrainingLoss()
        self._history, self._direction = Readings(), Direction(metric)
        heard = self._tariff, self._training, self._history
        self._timing = Timing(self.options, self._rules, *heard)
        self._partial: PartialReading | None = None  # the reading in progress
        self._is_open = False  # whether a reading is due or in progress,
        self._is_average = False  # and is that of an average of weights
        self._is_resting = False  # whether nothing has happened since a step that is not read
        self._has_answered = self._has_loss = False  # of the latest step
        self._step, self._examples_read, self.misuse = -1, 0, Misuse()

    # -- asking ---------------------------------------------------------------------------------------

    @property
    def reason(self) -> str:
        """Why the latest step is read, or is not."""
        return self._timing.reason

    def start(self) -> None:
        """Begin to measure the seconds of training; without this call, at the first step that ends."""
        self._tariff.mark()

    def expect(self, steps: int | None) -> None:
        """Set the last step of the run as it is estimated, unless the option ``steps`` names it.

        The step is read, and its price is put aside. A run that ends later, or whose length changes, is
        read at the end that was set last. A run that ends long before it may have taken twice its share.

        Args:
            steps: The last step; None if it is unknown.

        Raises:
            InvalidArgumentError: If it is no integer of at least 1.
        """
        self._timing.expected = None if steps is None else check_count("steps", steps, 1)
        self._is_resting = False

    @property
    def steps(self) -> int | None:
        """Last step of the run by the option ``steps`` or by ``expect``; None if it is unknown."""
        return self._timing.steps

    def due(
        self, step: int, *, train_loss: float | Tensor | None = None, last: bool = False
    ) -> bool:
        """Return whether to validate after a step of training; ``reason`` says why.

        Asked again for the same step, it gives the same answer until ``tell``, and then False. Only as
        the last one a step that was not due is decided about once more.

        Args:
            step: Number of the step, at least 0. One before the latest step means that training went
                back: readings of later steps do not describe the run any more.
            train_loss: Training loss of the step, if there is one. Tensors on a device are read a few at
                a time, so that steps do not wait for them.
            last: Whether this is the last step of the run, which is read.

        Raises:
            InvalidArgumentError: If ``step`` is no integer of at least 0, or the loss no number.
        """
        step = step if type(step) is int and step >= 0 else check_count("step", step)
        is_again = self._has_answered and step == self._step
        if train_loss is not None and not (is_again and self._has_loss):
            self._training.add(train_loss)
        self._has_loss = train_loss is not None or (is_again and self._has_loss)
        is_waiting = self._is_open and not self._is_average
        if is_again and (is_waiting or not last or self._history.has(step)):
            self._timing.note_last(last=last)
            return is_waiting
        if self._is_resting and not last and self._timing.may_pass(step, self._step):
            self._tariff.count(step - self._step)
            self._step = step
            return False
        self._tariff.end(self._tariff.training, max(step - self._step, 1))
        self._leave()
        self.misuse.asked(step, self._step, self.options.steps, self._timing.expected)
        if step < self._step:
            self._history.go_back(step)
            self._timing.next_check = -1
        since, self._step = self._step if step >= self._step else step - 1, step
        self._begin(is_due=self._timing.is_due(step, since, last=last))
        self._has_answered = True
        self._is_resting, has_asked = not self._is_open, self._timing.has_asked
        self._tariff.end(self._tariff.deciding if has_asked else self._tariff.watching)
        return self._is_open

    def due_average(self) -> bool:
        """Return whether to validate an average of weights after a reading of the latest step.

        The average, such as that of ``torch.optim.swa_utils.AveragedModel``, is read like a checkpoint
        by ``examples`` and ``tell``. It may be the best one, but the curve of the run leaves it out.
        It is due where the share affords it, and in any case at the last step, for which its price is
        put aside from the first call on. If it is not due, the next value told is no reading of it.
        """
        check(self._step >= 0, "due_average", "a step before, by validation.due(step)", "none")
        if self._is_average:  # asked again
            return True
        self._is_resting = False
        self._tariff.keep()
        self._leave()
        self._begin(is_due=self._timing.is_average_due(self._step))
        self._is_average = self._is_open
        self._tariff.end(self._tariff.watching)
        return self._is_open

    def _leave(self) -> None:
        """End the latest reading, and note one of which nothing was told."""
        if self._is_open and (self._partial is None or not len(self._partial.losses)):
            self.misuse.unanswered(self._step, average=self._is_average)
        self._is_open = self._is_average = False
        self._history.close()

    def _begin(self, *, is_due: bool) -> None:
        """Begin a reading if it is due."""
        self._is_open, self._partial = is_due, None
        if is_due and self._rules is not None:
            self._partial = self._timing.reading(self._step, self._rules)

    # -- telling --------------------------------------------------------------------------------------

    @property
    def examples(self) -> list[int]:
        """Numbers of the examples to read next, in this order; empty if the reading is complete.

        Without the option ``examples`` the set is read as a whole, and the list is empty.
        """
        if not self._is_open or self._partial is None:
            return []
        return self._order[len(self._partial.losses) : self._partial.planned]

    def tell(self, value: Values) -> None:
        """Record a reading of the latest step, or a further shard of it.

        Without a reading that is due, it is one of the caller's, which counts like the others.

        Args:
            value: The metric on the whole set; or, with the option ``examples``, its value for each of
                ``validation.examples``, in their order. NaN and infinities are a failed reading: the
                checkpoint is not the best one.

        Raises:
            InvalidShapeError: If there is not one value for each example.
            InvalidArgumentError: If a value is no number, or no step came before. In all cases nothing is
                changed.
        """
        check(self._step >= 0, "tell", "a step before, by validation.due(step)", "none")
        self._is_resting = False
        self._training.read()
        has_examples = self._rules is not None
        losses = self.options.sign * checked(value, len(self.examples), has_examples=has_examples)
        self.misuse.answered(average=self._is_average)
        if losses.ndim:
            self._tariff.end(self._tariff.validation, len(losses))
            self._add_shard(losses)
        else:
            self._is_open, self._partial = False, None
            self._tariff.end(self._tariff.validation, self.options.examples or 1)
            self._examples_read += self.options.examples or 0
            reading = Reading(self._step, float(losses), 0.0, self._training.level)
            self._history.record_whole(reading, averaged=self._is_average)
            self._end_reading()
        self._tariff.end(self._tariff.deciding)

    def _add_shard(self, losses: Tensor) -> None:
        """Add the losses of the examples that were due to the reading in progress."""
        if (partial := self._partial) is None:
            return
        is_new = not len(partial.losses)
        partial.add(losses, self._timing.affordable(self._step))
        self._examples_read += len(losses)
        self._is_open = not partial.is_complete
        named = {"is_new": is_new, "averaged": self._is_average}
        self._history.record(self._step, partial, self._training.level, **named)
        if not self._is_open:
            self._end_reading()

    def _end_reading(self) -> None:
        """Warn of a reading that says that the metric or the share is not as meant."""
        if not self._is_average:
            self.misuse.told(self._step)
            self._direction.watch(self.options.sign * self._history.all[-1].value)
        self._is_average = False
        self._timing.warn_of_price(self._step)

    def restored_to(self, step: int) -> None:
        """Record that the run was put back to its state at an earlier step, while its steps count on.

        Readings after that step are forgotten, and the latest one up to it counts for the present step.

        Args:
            step: Step of the state, such as ``GoodState.step``.

        Raises:
            InvalidArgumentError: If it is no integer from 0 to the latest step.
        """
        step = check_count("step", step)
        check(step <= self._step, "step", f"at most {self._step}, the latest step", step)
        self._is_open = self._is_average = self._is_resting = False
        self._partial = None
        self._history.restore(step, self._step)
        latest = self._history.all[-1:]
        self._training.restart(latest[0].training if latest else math.nan)
        self._timing.next_check, self._timing.has_spiked = -1, False

    # -- verdicts -------------------------------------------------------------------------------------

    @property
    def is_best(self) -> bool:
        """Whether the latest step was read, and is the best checkpoint by its reading so far."""
        return self._history.latest_is_best

    @property
    def verdict(self) -> str:
        """Comparison of a partial reading with the best checkpoint before.

        One of ``"better"``, ``"worse"``, ``"close"`` (within ``min_delta``), ``"undecided"``.
        """
        return "undecided" if self._partial is None else self._partial.comparison.verdict

    @property
    def has_diverged(self) -> bool:
        """Whether the latest reading is not finite."""
        return any(not math.isfinite(latest.value) for latest in self._history.all[-1:])

    @property
    def should_stop(self) -> bool:
        """Whether the rest of the run is unlikely to improve the metric; False without ``false_stop``."""
        self.misuse.asked_whether_to_stop(is_named=self.options.false_stop is not None)
        return self._timing.should_stop(self._step)

    @property
    def best(self) -> Best | None:
        """The best checkpoint so far; None before the first successful reading."""
        return self._history.reported(self._rules, self.options.sign)

    def summary(self) -> str:
        """Return a sentence about the readings, what they took, and the best checkpoint."""
        return summary_of(self.counts, self.best)

    @property
    def counts(self) -> dict[str, Any]:
        """Counts of the run in plain values.

        ``share`` is the share of the clock that validation took, ``examples`` the number read, and
        ``saved`` the share of examples that the readings did not need.
        """
        return counts_of(self._history, self._tariff, self._examples_read, self.options.examples)

    @property
    def history(self) -> tuple[tuple[int, float], ...]:
        """Steps and estimated values of the readings, without those that training went back behind."""
        return tuple((one.step, self.options.sign * one.value) for one in self._history.all)

    @property
    def readings(self) -> int:
        """Number of readings so far."""
        return self._history.count

    # -- state ----------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the whole state in tensors and plain values.

        A reading in progress is closed by loading: its checkpoint counts as it stands.
        """
        return {
            "options": self.options.to_dict(),
            "tariff": self._tariff.state_dict(),
            "training": self._training.state_dict(),
            "history": self._history.state_dict(),
            "timing": self._timing.state_dict(),
            "step": self._step,
            "examples": self._examples_read,
        }

    def load_state_dict(self, state: Mapping[str, Any], changed: Collection[str] = ()) -> None:
        """Continue from a state; the clock of the run goes on from the seconds in it.

        Args:
            state: Result of ``state_dict``.
            changed: Options that may differ from those in the state, such as ``["steps"]``. The number of
                examples and their order may not.

        Raises:
            StateMismatchError: If it is no such state, or another option differs; nothing is changed.
        """
        self.options.check_same(state, changed)
        with unchanged_on_error(self._tariff, self._training, self._history, self._timing):
            try:
                self._tariff.load_state_dict(state["tariff"])
                self._training.load_state_dict(state["training"])
                self._history.load_state_dict(state["history"])
                self._timing.load_state_dict(state["timing"])
                self._step, self._examples_read = int(state["step"]), int(state["examples"])
            except Exception as error:
                refuse_damage(type(self).__name__, error)
                raise
        self._is_open = self._is_average = self._is_resting = self._has_answered = False
        self._partial = None
        self.misuse.restart()
