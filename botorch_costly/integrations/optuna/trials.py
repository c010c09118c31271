"""The trials of a study of Optuna, as evaluations of an optimizer.

Everything is read from the study's storage. Each process stores its decision there, too: as the *claim*
of a trial, before the trial suggests its first parameter. A process that finds a similar claim of another
process asks again, so that no two trials begin alike.
"""

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from botorch_costly.ask_tell.diagnosis import SearchDiagnosis
from botorch_costly.calls import advised
from botorch_costly.errors import HorizonExceededError, InvalidConfigError
from botorch_costly.integrations.offline import Checkpoint, OfflineTrials, Setting
from botorch_costly.integrations.optuna.distributions import Distributions, contains, next_step
from botorch_costly.integrations.optuna.outcomes import CLAIM, ENDS, Outcomes

with suppress(ImportError):
    from optuna.trial import Trial

_AGAIN = 9  # further questions when another process has claimed a similar setting


@advised
def checkpoint_of(trial: Any) -> Checkpoint:
    """Return the checkpoint from which ``CurveSampler(resumes=True)`` lets a trial continue.

    Args:
        trial: The trial that an objective is called with, or one of ``study.trials``.

    Returns:
        Number of the earlier trial that saved the checkpoint, and the iterations before it; None and 0 if
        the trial begins anew.

    Example::

        earlier, done = checkpoint_of(trial)
        network = new_network(lr) if earlier is None else torch.load(f"{earlier}.pt")
        for epoch in range(done, epochs):
    """
    if isinstance(trial, Trial):  # a running trial, which does not hold the stored attributes
        _ = trial.relative_params  # makes the decision, if no parameter has been suggested yet
        trial = trial.storage.get_trial(trial._trial_id)
    return _claimed_checkpoint(trial) or Checkpoint(None, 0)


def _claimed_checkpoint(trial: Any) -> Checkpoint | None:
    """Return the checkpoint in a stored trial's claim; None if the trial begins anew."""
    checkpoint = trial.system_attrs.get(CLAIM, {}).get("checkpoint")
    return None if checkpoint is None else Checkpoint(*map(int, checkpoint))


class StudyTrials:
    """Keeps an optimizer in step with a study's trials, and decides on the next one.

    Args:
        space: The distributions that are sampled together, by name.
        distributions: Distributions of the configuration's parameters, without ``fidelities``.
        fidelities: Distributions of the iterations, or of other fidelities, by name.
        trials: Trials of the optimizer.
        outcomes: Reader of the outcomes of trials.
    """

    def __init__(
        self,
        space: Mapping[str, Any],
        distributions: Distributions,
        fidelities: Mapping[str, Any],
        trials: OfflineTrials[Any],
        outcomes: Outcomes,
    ) -> None:
        self.space = list(space.items())
        self._distributions, self._fidelities = distributions, dict(fidelities)
        self._trials, self._outcomes = trials, outcomes

    # -- settings and parameters ------------------------------------------------------------------

    def _setting(self, params: Mapping[str, Any]) -> Setting | None:
        """Return the setting of parameters; None if one is missing or outside."""
        config = self._distributions.config(params)
        inside = all(n in params and contains(d, params[n]) for n, d in self._fidelities.items())
        if config is None or not inside:
            return None
        return self._trials.space.canonical({**config, **{n: params[n] for n in self._fidelities}})

    def _params(self, setting: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that are suggested for a setting."""
        config = {name: value for name, value in setting.items() if name not in self._fidelities}
        fidelities = {name: next_step(d, setting[name]) for name, d in self._fidelities.items()}
        return {**self._distributions.params(config), **fidelities}

    def _setting_of(self, trial: Any) -> Setting | None:
        """Return the setting of a trial, which may be waiting, running or ended; None if unknown."""
        setting = self._setting(trial.params)
        if setting is not None or trial.state.name == "COMPLETE":
            return setting
        if trial.state.name == "WAITING":
            return self._setting(trial.system_attrs.get("fixed_params", {}))
        # It may be running, or have failed or been pruned, before it has suggested all parameters.
        claimed = self._claimed(trial)
        return None if claimed is None else self._setting({**claimed, **trial.params})

    def _claimed(self, trial: Any) -> dict[str, Any] | None:
        """Return the parameters that a trial claims; None without a claim in this search space."""
        claim = trial.system_attrs.get(CLAIM)
        if claim is None:
            return None
        try:
            return self._params(self._trials.space.canonical(claim["setting"]))
        except InvalidConfigError:
            return None  # the claim belongs to another search space

    # -- reading and asking -----------------------------------------------------------------------

    def read(self, trials: Iterable[Any], now: int | None = None) -> None:
        """Enter the trials of a study, except the one that begins now, and tell their outcomes."""
        for trial in self._unended(trials, now):
            setting = self._setting_of(trial)
            if setting is None:
                self._trials.cancel(trial.number)
            else:
                self._trials.enter(trial.number, setting, _claimed_checkpoint(trial))
            if trial.state.name in ENDS:
                self._trials.end(trial.number, self._outcomes.of(trial))

    def _unended(self, trials: Iterable[Any], now: int | None) -> list[Any]:
        ended = self._trials.has_ended
        return [trial for trial in trials if trial.number != now and not ended(trial.number)]

    def _is_taken(self, setting: Setting, trials: Iterable[Any], now: int) -> bool:
        """Return whether a trial that is not entered yet has a close setting or the same checkpoint."""
        ours = self._trials.checkpoint_of(now)
        for trial in self._unended(trials, now):
            theirs = self._setting_of(trial)
            if theirs is None or self._trials.knows(trial.number, theirs):
                continue
            same = ours is not None and ours == _claimed_checkpoint(trial)
            if same or self._trials.are_close(setting, theirs):
                return True
        return False

    def ask(self, study: Any, trial: Any, began: float) -> dict[str, Any]:
        """Return the parameters of the trial that begins now, and claim them.

        If other processes were faster each time, the result is empty, and the trial is random.

        Args:
            study: Study of the trial.
            trial: The trial.
            began: ``time.perf_counter()`` when the decision on it began.

        Raises:
            HorizonExceededError: If all settings of a finite space have been tried.
        """
        fixed = trial.system_attrs.get("fixed_params", {})

        def settle(proposed: Setting) -> Setting:
            settled = self._setting({**self._params(proposed), **fixed})
            return self._trials.space.canonical(proposed) if settled is None else settled

        # A trial that Optuna's callback repeats has the claim of the trial that failed.
        failed_from = _claimed_checkpoint(trial)
        for _ in range(1 + _AGAIN):
            try:
                setting = self._trials.ask(trial.number, settle, failed_from)
            except HorizonExceededError:
                _claim(study, trial, {}, None, time.perf_counter() - began)
                raise
            checkpoint = self._trials.checkpoint_of(trial.number)
            _claim(study, trial, setting, checkpoint, time.perf_counter() - began)
            trials = study.get_trials(deepcopy=False)
            if not self._is_taken(setting, trials, trial.number):
                return self._params(setting)
            # Cancelled first, so that the other trial may continue the training.
            self._trials.cancel(trial.number)
            self.read(trials, trial.number)
        _claim(study, trial, {}, None, time.perf_counter() - began)
        return {}

    def best(self) -> dict[str, Any] | None:
        """Return the parameters of the incumbent, without fidelities; None before any value."""
        best = self._trials.best()
        return None if best is None else self._distributions.params(best)

    def diagnose(self) -> SearchDiagnosis:
        """Return the diagnosis of the optimizer of the trials."""
        found: SearchDiagnosis = self._trials.optimizer.diagnose()
        return found


def _claim(
    study: Any, trial: Any, setting: Setting, checkpoint: Checkpoint | None, seconds: float
) -> None:
    """Store a trial's setting and checkpoint, and the seconds that the decision took.

    Optuna's own samplers use system attributes for other processes in the same way.
    """
    claim = {"setting": dict(setting), "seconds": seconds}
    if checkpoint is not None:
        claim["checkpoint"] = list(checkpoint)
    study._storage.set_trial_system_attr(trial._trial_id, CLAIM, claim)
