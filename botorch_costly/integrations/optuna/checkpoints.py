"""What a trial of Optuna goes on with: the checkpoint of an earlier trial."""

from contextlib import suppress
from typing import Any

from botorch_costly.integrations.offline import Checkpoint
from botorch_costly.integrations.optuna.outcomes import CLAIM

with suppress(ImportError):
    from optuna.trial import Trial


def checkpoint_of(trial: Any) -> Checkpoint:
    """Return what a trial goes on with that ``CurveSampler(resumes=True)`` has decided on.

    Args:
        trial: That an objective is called with, or one of ``study.trials``.

    Returns:
        Number of the earlier trial, and the iterations of which it has left a checkpoint; None and 0 if
        the trial begins anew.

    Example::

        earlier, done = checkpoint_of(trial)
        network = new_network(lr) if earlier is None else torch.load(f"{earlier}.pt")
        for epoch in range(done, epochs):
    """
    if isinstance(trial, Trial):  # under way: it does not hold what is stored
        _ = trial.relative_params  # decided on now, if no parameter has been suggested yet
        trial = trial.storage.get_trial(trial._trial_id)
    return claimed_checkpoint(trial) or Checkpoint(None, 0)


def claimed_checkpoint(trial: Any) -> Checkpoint | None:
    """Return what a stored trial says that it goes on with; None if it begins anew."""
    said = trial.system_attrs.get(CLAIM, {}).get("checkpoint")
    return None if said is None else Checkpoint(*map(int, said))
