"""Trials whose setting is a configuration, alone or with its fidelities."""

from typing import Any

from botorch_costly.ask_tell import Optimizer
from botorch_costly.errors import check
from botorch_costly.integrations.offline.trials import (
    Checkpoint,
    Ended,
    OfflineTrials,
    Setting,
    extended,
)
from botorch_costly.records import Decision
from botorch_costly.space import SearchSpace


class ValueTrials(OfflineTrials[Decision]):
    """Trials of an optimizer that is told values; the fidelities, if any, are a part of each setting.

    Trials that were stopped or failed count as failures.

    Args:
        optimizer: A ``TransferOptimizer``, a ``SubsetOptimizer`` or another ``Optimizer`` that is told
            values. Nothing else may ask and tell it.

    Raises:
        InvalidArgumentError: If the optimizer is told something else.
        InvalidSpaceError: If a parameter has the name of a fidelity.
    """

    def __init__(self, optimizer: Optimizer[Any, Any]) -> None:
        check(optimizer.tells == "value", "optimizer", "one that is told values", optimizer.tells)
        super().__init__(optimizer)
        fidelities = optimizer.fidelities
        self._names = () if fidelities is None else fidelities.names
        self.space: SearchSpace = optimizer.space
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
