"""Trials that are trainings, or stretches of these: how long each trains is a part of its setting."""

import json
import math
from collections.abc import Hashable, Mapping
from typing import Any

from botorch_costly.curve_records import CurveDecision
from botorch_costly.errors import StateMismatchError, check
from botorch_costly.integrations.offline.trials import (
    Checkpoint,
    Ended,
    OfflineTrials,
    Setting,
    extended,
)
from botorch_costly.parameters import Integer, Plain
from botorch_costly.plain import as_number, listed, tupled
from botorch_costly.tuners import CurveOptimizer
from botorch_costly.tuners.curves.trainings import Training


class CurveTrials(OfflineTrials[CurveDecision]):
    """Trials of an optimizer of curves: how long each trains is a part of its setting.

    Each trial begins anew or, with an optimizer that ``resumes``, goes on with the training that another
    trial left at its checkpoint. What was stopped may be trained for longer. What failed when nothing was
    known of it has diverged, and counts as having ended at the lowest value seen. What was known before a
    trial failed, or was stopped too early to show anything new, stays known; after two such trials in a
    row their training is left.

    A trial that failed leaves no checkpoint.

    Args:
        optimizer: To be asked and told by this alone.
        iterations: Name of the iterations in a setting.
        shortest: The fewest there may be.
        longest: The most.

    Attributes:
        resumes: Whether trials go on with trainings of others.

    Raises:
        InvalidSpaceError: If a parameter of the optimizer has the name of the iterations.
    """

    def __init__(
        self, optimizer: CurveOptimizer, iterations: str, *, shortest: int, longest: int
    ) -> None:
        super().__init__(optimizer)
        self.resumes = optimizer.resumes
        self.space = extended(optimizer.space, {iterations: Integer(shortest, longest)})
        self._iterations = iterations
        self._left_by: dict[int, Hashable] = {}  # the trial at whose checkpoint a training stands

    def iterations_of(self, setting: Mapping[str, Plain]) -> int:
        """Return how long a trial of a setting trains."""
        return int(as_number(self._iterations, setting[self._iterations]))

    def _setting(self, decision: CurveDecision) -> Setting:
        return {**decision.config, self._iterations: decision.until}

    def _enqueue(self, setting: Setting, checkpoint: Checkpoint | None = None) -> CurveDecision:
        config = {name: value for name, value in setting.items() if name != self._iterations}
        until = self.iterations_of(setting)
        longer = [
            training.number
            for training in self._optimizer.trainings
            if training.may_go_on and training.done < until and dict(training.config) == config
            if not self.resumes or self._stands_at(training, checkpoint)
        ]
        training = longer[-1] if longer else None
        found: CurveDecision = self._optimizer.enqueue(config, until, training=training)
        return found

    def _stands_at(self, training: Training, checkpoint: Checkpoint | None) -> bool:
        """Return whether a training stands at a checkpoint."""
        left_by = self._left_by.get(training.number)
        return checkpoint is not None and checkpoint == (left_by, training.done)

    def _checkpoint(self, decision: CurveDecision) -> Checkpoint | None:
        if not decision.since:
            return None
        return Checkpoint(self._left_by[decision.training], decision.since)

    def end(self, trial: Hashable, ended: Ended) -> None:
        """Tell what a trial came to, as above; a training that came farther stands where this left it.

        Raises:
            InvalidArgumentError: If it cannot be, such as a curve beyond the iterations of its trial.
        """
        decision = self._open.get(trial)
        super().end(trial, ended)
        if decision is not None and self._training_of(decision).done > decision.since:
            self._left_by[decision.training] = trial

    def _training_of(self, decision: CurveDecision) -> Training:
        trainings: tuple[Training, ...] = self._optimizer.trainings
        return next(one for one in trainings if one.number == decision.training)

    def _tell(self, decision: CurveDecision, ended: Ended) -> None:
        since, until = decision.since, decision.until
        within = all(1 <= at <= until for at in ended.curve)
        check(within, "curve", f"values of the iterations 1 to {until}", sorted(ended.curve))
        shown = dict(ended.curve)
        if ended.how == "complete" and ended.value is not None:
            shown.setdefault(until, ended.value)
        last = until if ended.how == "complete" else max([since, *shown])
        failed, begun = ended.how == "failed", self._training_of(decision).done > 0
        if failed and since and (last == since or math.isfinite(shown[last])):
            last = since  # it has left no checkpoint, and not diverged
        curve = [shown.get(at) for at in range(since + 1, last + 1)]
        self._optimizer.tell(
            decision, curve or None, cost=ended.cost, broken=True if failed and not begun else None
        )

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values, as of all trials, and where trainings stand."""
        left_by = [[number, listed(trial)] for number, trial in self._left_by.items()]
        return {**super().state_dict(), "left_by": json.dumps(left_by)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            StateMismatchError: If the state belongs to another optimizer, or is damaged; all stays.
        """
        try:
            left_by = {int(k): tupled(trial) for k, trial in json.loads(state["left_by"])}
        except (KeyError, TypeError, ValueError) as error:
            raise StateMismatchError(type(self).__name__, "a state of its own", state) from error
        super().load_state_dict(state)
        self._left_by = left_by
