"""Trials of an engine, such as Optuna, Ax or Ray, as evaluations of an optimizer.

An engine runs several trials at once and identifies each by a key. Some trials were asked for here;
another process or the user started the others. ``OfflineTrials`` keeps an optimizer in step with all of
them: running trials are pending, a trial that runs another setting than the proposed one replaces the
proposal, and each ended trial is told once.

A *setting* is everything that a trial needs: its configuration and, if there are any, its iterations or
fidelities.
"""

from botorch_costly.integrations.offline.curves import CurveTrials
from botorch_costly.integrations.offline.options import SubsetOptions, TransferOptions
from botorch_costly.integrations.offline.translation import Translation
from botorch_costly.integrations.offline.trials import (
    Checkpoint,
    Ended,
    OfflineTrials,
    Setting,
    ValueTrials,
    cost_of,
    stored_number,
)

__all__ = [
    "Checkpoint",
    "CurveTrials",
    "Ended",
    "OfflineTrials",
    "Setting",
    "SubsetOptions",
    "TransferOptions",
    "Translation",
    "ValueTrials",
    "cost_of",
    "stored_number",
]
