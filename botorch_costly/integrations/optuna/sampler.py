"""Base of the samplers of Optuna: an optimizer is kept in step with the trials of a study."""

import logging
import threading
import time
import zlib
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch

from botorch_costly.ask_tell.diagnosis import SearchDiagnosis
from botorch_costly.calls import advised
from botorch_costly.device import check_tkwargs
from botorch_costly.errors import HorizonExceededError, check
from botorch_costly.integrations.extras import require
from botorch_costly.integrations.offline.translation import NothingFitsError
from botorch_costly.integrations.optuna.distributions import (
    Distributions,
    cast,
    contains,
    is_number,
)
from botorch_costly.integrations.optuna.trials import StudyTrials
from botorch_costly.randomness import check_seed

try:
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.search_space import IntersectionSearchSpace
except ImportError:
    BaseSampler = object

_ABOVE_0 = 5e-324  # the smallest number
_STRIDE = 65_537  # between the seeds of optimizers that begin at different trials
_logger = logging.getLogger(__name__)
R = TypeVar("R")


class OfflineSampler(BaseSampler):
    """A sampler whose optimizer is kept in step with the trials of a study.

    Everything is read from the study's storage, so several processes may work on one study, each with its
    own sampler; trials of other processes are pending. The random draws also depend on the number of the
    trial, so samplers may share a seed.

    Args:
        distributions: Distributions of the parameters that are sampled together; if None, those that all
            complete trials have.
        seed: Seed of the random generator.
        dtype: Precision of the computations.
        device: Device of the computations.
        fidelities: Names of the parameters that set how much a trial trains; the first trials, before
            parameters are sampled together, have the smallest values of these.
        whole: Whether the fidelities are integers.
        pruned: Whether pruned trials count as complete for ``distributions``.

    Raises:
        InvalidArgumentError: If an argument is outside its range.
        MissingExtraError: If Optuna is missing, or older than 4.0.
    """

    def __init__(
        self,
        distributions: Mapping[str, Any] | None,
        seed: int,
        dtype: torch.dtype,
        device: torch.device | str,
        *,
        fidelities: Sequence[str] = (),
        whole: bool = False,
        pruned: bool = False,
    ) -> None:
        require("optuna", "4.0", "optuna")
        self._seed, self._tkwargs = check_seed(seed), check_tkwargs(dtype, device)
        self._given = None if distributions is None else dict(distributions)
        self._fidelities, self._whole = tuple(fidelities), whole
        if self._given is not None:
            self._check_fidelities(self._given)
        self._pruned = pruned
        self._studied: _Studied | None = None
        self._lock = threading.Lock()  # trials of one process may run in threads

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_lock": None, "_studied": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def reseed_rng(self) -> None:
        """Change nothing: draws depend on the number of the trial, in a copy of this sampler, too."""

    @advised
    def before_trial(self, study: Any, trial: Any) -> None:
        """Change nothing; a study that has this class as its sampler calls this first, and is told so."""

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        """Return the distributions that are sampled together."""
        if self._given is not None:
            return self._given
        shared = self._of(study).intersection.calculate(study)
        return {name: d for name, d in (shared or {}).items() if not d.single()}

    def sample_relative(
        self, study: Any, trial: Any, search_space: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the parameters of a trial.

        Raises:
            InvalidArgumentError: If the study has several objectives, or lacks a parameter.
        """
        began = time.perf_counter()  # the time of a decision includes waiting for other threads
        count = len(study.directions)
        check(count == 1, "study", "a study with one objective", f"{count} of them")
        if search_space:
            return self._decided(study, trial, search_space, began)
        guessed = self._guessed()
        if guessed and self._given is None:
            params = self._decided(study, trial, guessed, began)
            self._of(study).guesses[trial.number] = params
        return {}

    def _decided(
        self, study: Any, trial: Any, search_space: dict[str, Any], began: float
    ) -> dict[str, Any]:
        """Return the parameters that the optimizer chooses; empty if everything has been tried."""
        self._check_fidelities(search_space)
        with self._lock:
            trials = self._read(study, search_space, trial.number)
            try:
                return trials.ask(study, trial, began)
            except HorizonExceededError as error:
                studied = self._of(study)
                if not studied.exhausted:
                    studied.exhausted = True
                    _logger.warning("All has been tried (%s): further trials are random.", error)
                return {}

    def sample_independent(
        self, study: Any, trial: Any, param_name: str, param_distribution: Any
    ) -> Any:
        """Return a random value of a parameter, or the smallest value of a fidelity."""
        if param_name in self._fidelities:
            self._check_fidelities({param_name: param_distribution}, [param_name])
            return param_distribution.low
        guesses = self._of(study).guesses.get(trial.number, {})
        if param_name in guesses:
            if contains(param_distribution, guesses[param_name]):
                return cast(param_distribution, guesses[param_name])
            _logger.warning(
                "%r differs from that of earlier studies: trial %d has a random value.",
                param_name,
                trial.number,
            )
        seed = zlib.crc32(f"{self._seed} {trial.number} {param_name}".encode())
        sampler = RandomSampler(seed=seed)
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def best_params(self, study: Any) -> dict[str, Any] | None:
        """Return the parameters of the incumbent of a study; None before a value is known.

        Raises:
            InvalidArgumentError: If the study lacks a fidelity.
        """
        return self._read_by(StudyTrials.best, study)

    def diagnose(self, study: Any) -> SearchDiagnosis | None:
        """Return the diagnosis of the trials of a study, as of an optimizer; None without a trial.

        Raises:
            InvalidArgumentError: If the study lacks a fidelity.
        """
        return self._read_by(StudyTrials.diagnose, study)

    def _read_by(self, call: Callable[[StudyTrials], R], study: Any) -> R | None:
        """Call a function with the trials; None if parameters are unknown or studies unfit."""
        space = self.infer_relative_search_space(study, None) or self._guessed()
        if not space:
            return None
        self._check_fidelities(space)
        with self._lock:
            try:
                return call(self._read(study, space, None))
            except NothingFitsError:
                return None  # trials are random

    def _of(self, study: Any) -> "_Studied":
        """Return the memory of a study; an empty one for another study than before."""
        studied = self._studied
        if studied is None or not studied.is_of(study):
            studied = self._studied = _Studied(study, pruned=self._pruned)
        return studied

    def _read(self, study: Any, space: dict[str, Any], number: int | None) -> StudyTrials:
        """Return the trials of a study after reading them from its storage."""
        studied, listed = self._of(study), study.get_trials(deepcopy=False)
        trials = studied.trials
        if trials is None or trials.space != list(space.items()):
            seed = self._seed + _STRIDE * (len(listed) if number is None else number)
            trials = self._begin(space, seed=seed, maximize=study.direction.name == "MAXIMIZE")
            studied.trials = trials
        trials.read(listed, number)
        return trials

    def _check_fidelities(
        self, space: Mapping[str, Any], names: Sequence[str] | None = None
    ) -> None:
        """Raise unless a search space has the fidelities, with valid ranges."""
        kind = "suggest_int" if self._whole else "suggest_float or suggest_int"
        for name in self._fidelities if names is None else names:
            # Optuna drops a parameter whose range is another one in some trials.
            expected = (
                f"a parameter of trial.{kind} in all trials, in one range, or else its new range in "
                f"distributions=; those with one range are {sorted(space)}"
            )
            check(name in space, "iterations" if self._whole else "fidelities", expected, name)
            least = 1 if self._whole else _ABOVE_0
            low = "1" if self._whole else "above 0"
            expected = f"a parameter of trial.{kind} with several values from {low} on"
            is_valid = is_number(space[name], least, whole=self._whole)
            check(is_valid, name, expected, space[name])

    def _split(self, space: Mapping[str, Any]) -> tuple[Distributions, dict[str, Any]]:
        """Return the distributions of the configuration and of the fidelities."""
        others = {name: d for name, d in space.items() if name not in self._fidelities}
        return Distributions(others), {name: space[name] for name in self._fidelities}

    def _guessed(self) -> dict[str, Any]:
        """Return the distributions, with several values, to assume before any trial is complete."""
        return {}

    @abstractmethod
    def _begin(self, space: Mapping[str, Any], *, seed: int, maximize: bool) -> StudyTrials:
        """Return the trials of a new optimizer of a search space."""


class _Studied:
    """Memory of a sampler about one study.

    Args:
        study: The study.
        pruned: Whether pruned trials count as complete for the parameters that trials share.
    """

    def __init__(self, study: Any, *, pruned: bool) -> None:
        # All studies in memory have number 0, each in its own storage.
        self._storage, self._number = study._storage, study._study_id
        self._directions = list(study.directions)
        self.intersection = IntersectionSearchSpace(include_pruned=pruned)
        self.trials: StudyTrials | None = None
        # Parameters by number of the trial, while the study's distributions are not known yet: Optuna
        # refuses a value that is sampled for one distribution and suggested for another.
        self.guesses: dict[int, dict[str, Any]] = {}
        self.exhausted = self.warned = False

    def is_of(self, study: Any) -> bool:
        """Return whether this is the memory of a study."""
        is_same = self._storage is study._storage and self._number == study._study_id
        return is_same and self._directions == list(study.directions)
