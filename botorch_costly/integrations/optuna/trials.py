"""The trials of a study of Optuna, as evaluations of an optimizer.

All that is known is read from the study's storage. A process says there, too, what it has asked for: in
its claim, before the trial suggests the first parameter. A process that finds the claim of another one
beside its own asks again, so that no two of them begin alike.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from botorch_costly.errors import HorizonExceededError, InvalidConfigError
from botorch_costly.integrations.offline import Checkpoint, OfflineTrials, Setting
from botorch_costly.integrations.optuna.checkpoints import claimed_checkpoint
from botorch_costly.integrations.optuna.distributions import Distributions, contains, next_step
from botorch_costly.integrations.optuna.outcomes import CLAIM, ENDS, Outcomes

_AGAIN = 9  # times that is asked again beside the claim of another process


class StudyTrials:
    """Reads a study's trials, and says what the next one is.

    Args:
        space: The distributions that are sampled together, by name.
        distributions: Of the configuration's parameters, those of ``fidelities`` left out.
        fidelities: Distributions of the iterations, or of other fidelities, by name.
        trials: Keeps the optimizer in step with them.
        outcomes: Reads what trials came to.
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
        """Return what a trial runs, will run or has run; None if it is not known."""
        found = self._setting(trial.params)
        if found is not None or trial.state.name == "COMPLETE":
            return found
        if trial.state.name == "WAITING":
            return self._setting(trial.system_attrs.get("fixed_params", {}))
        # It may be under way, or have failed or been pruned, before it has suggested all parameters.
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
            return None  # of another search space

    # -- the face ---------------------------------------------------------------------------------

    def read(self, trials: Iterable[Any], now: int | None = None) -> None:
        """Take in what the trials of a study run and have come to, but for the one that begins now."""
        for trial in self._unended(trials, now):
            setting = self._setting_of(trial)
            if setting is None:
                self._trials.cancel(trial.number)
            else:
                self._trials.enter(trial.number, setting, claimed_checkpoint(trial))
            if trial.state.name in ENDS:
                self._trials.end(trial.number, self._outcomes.of(trial))

    def _unended(self, trials: Iterable[Any], now: int | None) -> list[Any]:
        ended = self._trials.has_ended
        return [trial for trial in trials if trial.number != now and not ended(trial.number)]

    def _is_taken(self, setting: Setting, trials: Iterable[Any], now: int) -> bool:
        """Return whether a trial that was not known runs, or has run, what is close to a setting.

        Or goes on with the same checkpoint.
        """
        ours = self._trials.checkpoint_of(now)
        for one in self._unended(trials, now):
            theirs = self._setting_of(one)
            if theirs is None or self._trials.knows(one.number, theirs):
                continue
            same = ours is not None and ours == claimed_checkpoint(one)
            if same or self._trials.are_close(setting, theirs):
                return True
        return False

    def ask(self, study: Any, trial: Any, began: float) -> dict[str, Any]:
        """Return the parameters of the trial that begins now, and claim them.

        Where other processes were faster each time, none are returned, and the trial is random.

        Args:
            study: Of the trial.
            trial: Begins now.
            began: What ``time.perf_counter`` said when the decision on it began.

        Raises:
            HorizonExceededError: If all settings of a finite space have been tried.
        """
        fixed = trial.system_attrs.get("fixed_params", {})

        def settle(proposed: Setting) -> Setting:
            settled = self._setting({**self._params(proposed), **fixed})
            return self._trials.space.canonical(proposed) if settled is None else settled

        # One that is tried again, such as by Optuna's callback, has the claim of the trial that failed.
        failed_from = claimed_checkpoint(trial)
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
            # Taken back first, so that the training which the other one goes on with may go on.
            self._trials.cancel(trial.number)
            self.read(trials, trial.number)
        _claim(study, trial, {}, None, time.perf_counter() - began)
        return {}

    def best(self) -> dict[str, Any] | None:
        """Return the parameters that are believed best, without fidelities; None before any."""
        found = self._trials.best()
        return None if found is None else self._distributions.params(found)


def _claim(
    study: Any, trial: Any, setting: Setting, checkpoint: Checkpoint | None, seconds: float
) -> None:
    """Say in the storage what a trial will run and go on with, and how long deciding took.

    Optuna's own samplers keep what other processes need in this place as well.
    """
    said = {"setting": dict(setting), "seconds": seconds}
    if checkpoint is not None:
        said["checkpoint"] = list(checkpoint)
    study._storage.set_trial_system_attr(trial._trial_id, CLAIM, said)
