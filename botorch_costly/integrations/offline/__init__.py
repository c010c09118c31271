"""Trials of an engine as evaluations of an optimizer that is asked and told.

An engine runs trials, several at once, and knows each by a key. Some were asked for here, others were
not: another process began them, or a user did. ``OfflineTrials`` keeps an optimizer in step with all of
them. What is under way counts as pending; what runs otherwise than asked for is taken back and entered
as it runs; what ended is told, once.

A *setting* is all that a trial is told: its configuration and, beside it, its iterations or fidelities.
"""

from botorch_costly.integrations.offline.curves import CurveTrials
from botorch_costly.integrations.offline.kinds import ValueTrials
from botorch_costly.integrations.offline.trials import (
    Checkpoint,
    Ended,
    OfflineTrials,
    Setting,
    stored_number,
    typical_cost,
)

__all__ = [
    "Checkpoint",
    "CurveTrials",
    "Ended",
    "OfflineTrials",
    "Setting",
    "ValueTrials",
    "stored_number",
    "typical_cost",
]
