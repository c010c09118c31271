"""Trials whose setting is a configuration, alone or with its fidelities."""

from botorch_costly.integrations.offline.trials import (
    Checkpoint,
    Ended,
    OfflineTrials,
    Setting,
    extended,
)
from botorch_costly.subset_records import SubsetDecision
from botorch_costly.transfer_records import TransferDecision
from botorch_costly.tuners import SubsetOptimizer, TransferOptimizer


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

    def _adopt(self, setting: Setting, checkpoint: Checkpoint | None = None) -> TransferDecision:
        found: TransferDecision = self._optimizer.adopt(setting)
        return found

    def _tell(self, decision: TransferDecision, ended: Ended) -> None:
        self._optimizer.tell(decision, ended.value_or_nan)


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
        self.space = extended(optimizer.space, dict(optimizer.fidelities.parameters))

    def _setting(self, decision: SubsetDecision) -> Setting:
        return {**decision.config, **decision.fidelities}

    def _adopt(self, setting: Setting, checkpoint: Checkpoint | None = None) -> SubsetDecision:
        config = {name: value for name, value in setting.items() if name not in self._names}
        fidelities = {name: setting[name] for name in self._names}
        found: SubsetDecision = self._optimizer.adopt(config, fidelities)
        return found

    def _tell(self, decision: SubsetDecision, ended: Ended) -> None:
        self._optimizer.tell(decision, ended.value_or_nan, cost=ended.cost)
