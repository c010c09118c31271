"""Trials of an optimizer of curves: the number of iterations is a part of each setting."""

import json
import logging
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
from botorch_costly.tuners.curves import CurveOptimizer
from botorch_costly.tuners.curves.sparse import CURVES, seem_sparse
from botorch_costly.tuners.curves.trainings import Training

_logger = logging.getLogger(__name__)


class CurveTrials(OfflineTrials[CurveDecision]):
    """Trials of an optimizer of curves: the number of iterations is a part of each setting.

    Each trial begins anew or, with an optimizer that ``resumes``, continues the training of another trial
    from its checkpoint. A stopped training may be trained for longer. A training that fails before any
    value is known has diverged, and counts as having ended at the lowest value seen. If a trial fails
    later, or is stopped too early to show a new value, the known part of the curve stays; after two such
    trials in a row the training is not asked for any more.

    A failed trial leaves no checkpoint.

    Args:
        optimizer: The optimizer. Nothing else may ask and tell it.
        iterations: Name of the iterations in a setting.
        shortest: Smallest number of iterations.
        longest: Largest number of iterations.

    Attributes:
        resumes: Whether trials resume trainings of other trials.

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
        # Last reported iteration, and the last one, of trials.
        self._reports: list[tuple[int, int]] = []
        # The trial that saved the last checkpoint of a training.
        self._left_by: dict[int, Hashable] = {}

    def iterations_of(self, setting: Mapping[str, Plain]) -> int:
        """Return how many iterations a setting trains for."""
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
        decision: CurveDecision = self._optimizer.enqueue(config, until, training=training)
        return decision

    def _stands_at(self, training: Training, checkpoint: Checkpoint | None) -> bool:
        """Return whether a checkpoint is the last one of a training."""
        left_by = self._left_by.get(training.number)
        return checkpoint is not None and checkpoint == (left_by, training.done)

    def _checkpoint(self, decision: CurveDecision) -> Checkpoint | None:
        if not decision.since:
            return None
        return Checkpoint(self._left_by[decision.training], decision.since)

    def end(self, trial: Hashable, ended: Ended) -> None:
        """Tell the outcome of a trial; if its training has advanced, the trial saved its last checkpoint.

        Raises:
            InvalidArgumentError: If the outcome is invalid, such as a curve beyond the trial's
                iterations.
        """
        decision = self._open.get(trial)
        super().end(trial, ended)
        if decision is not None and self._training_of(decision).done > decision.since:
            self._left_by[decision.training] = trial

    def _training_of(self, decision: CurveDecision) -> Training:
        trainings: tuple[Training, ...] = self._optimizer.trainings
        return next(t for t in trainings if t.number == decision.training)

    def _tell(self, decision: CurveDecision, ended: Ended) -> None:
        since, until = decision.since, decision.until
        within = all(1 <= iteration <= until for iteration in ended.curve)
        check(within, "curve", f"values of the iterations 1 to {until}", sorted(ended.curve))
        shown = dict(ended.curve)
        if ended.how == "complete" and shown and since == 0 and until > 1:
            self._warn_of_sparse_reports(max(shown), until)
        if ended.how == "complete" and ended.value is not None:
            shown.setdefault(until, ended.value)
        last = until if ended.how == "complete" else max([since, *shown])
        failed, begun = ended.how == "failed", self._training_of(decision).done > 0
        if failed and since and (last == since or math.isfinite(shown[last])):
            last = since  # no checkpoint was saved, and the training has not diverged
        curve = [shown.get(iteration) for iteration in range(since + 1, last + 1)]
        self._optimizer.tell(
            decision, curve or None, cost=ended.cost, broken=True if failed and not begun else None
        )

    def _warn_of_sparse_reports(self, last: int, until: int) -> None:
        """Warn once if the first complete trials end their reports at one and the same share of them."""
        if len(self._reports) == CURVES:
            return
        self._reports.append((last, until))
        if len(self._reports) == CURVES and seem_sparse(self._reports):
            _logger.warning(
                "The reports of complete trials end early (%s): they are taken for those of the first "
                "iterations, although others came after them. Report the number of the iteration.",
                ", ".join(f"at iteration {n} of {m}" for n, m in self._reports),
            )

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the trials, and which trial saved the last checkpoint of each training."""
        left_by = [[number, listed(trial)] for number, trial in self._left_by.items()]
        return {**super().state_dict(), "left_by": json.dumps(left_by)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            StateMismatchError: If the state belongs to another optimizer, or is damaged; nothing has
                changed then.
        """
        try:
            left_by = {int(k): tupled(trial) for k, trial in json.loads(state["left_by"])}
        except (KeyError, TypeError, ValueError) as error:
            raise StateMismatchError(type(self).__name__, "a state of its own", state) from error
        super().load_state_dict(state)
        self._left_by = left_by
