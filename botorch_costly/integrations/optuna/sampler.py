"""What all samplers of Optuna share: a study's trials are read, and an optimizer asked for the next."""

import logging
import threading
import time
import zlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from botorch_costly.device import check_tkwargs
from botorch_costly.errors import HorizonExceededError, check
from botorch_costly.integrations.extras import require
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


class OfflineSampler(BaseSampler):
    """A sampler whose optimizer is kept in step with the trials of a study.

    All that is known is read from the study's storage, so several processes may work on one study, each
    with a sampler of its own; trials that run elsewhere count as under way. Draws are of the number of
    the trial that they begin at: samplers may share a seed.

    Args:
        distributions: Of the parameters that are sampled together; those that all complete trials have
            if None.
        seed: Of randomness.
        dtype: Precision of what is computed.
        device: Where it is computed.
        fidelities: Names of the parameters that say how much a trial trains; the first trials, before
            anything is sampled together, are as small as these allow.
        whole: Whether these parameters are whole numbers.
        pruned: Whether pruned trials count as complete for the first argument.

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
        """Change nothing: draws are of each trial's own number, in a copy of this sampler as well."""

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        """Return the distributions that are sampled together."""
        if self._given is not None:
            return self._given
        found = self._of(study).intersection.calculate(study)
        return {name: d for name, d in (found or {}).items() if not d.single()}

    def sample_relative(
        self, study: Any, trial: Any, search_space: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the parameters of a trial.

        Raises:
            InvalidArgumentError: If the study has several objectives, or lacks a parameter.
        """
        began = time.perf_counter()  # waiting for other threads is a part of deciding
        one = len(study.directions) == 1
        check(one, "study", "a study with one objective", f"{len(study.directions)} of them")
        if search_space:
            return self._decided(study, trial, search_space, began)
        guessed = {name: d for name, d in self._at_first().items() if not d.single()}
        if guessed and self._given is None:
            params = self._decided(study, trial, guessed, began)
            self._of(study).guesses[trial.number] = params
        return {}

    def _decided(
        self, study: Any, trial: Any, search_space: dict[str, Any], began: float
    ) -> dict[str, Any]:
        """Return what an optimizer decides for a trial; nothing if all has been tried."""
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
        """Return a parameter at random, or the least of those that say how much a trial trains."""
        if param_name in self._fidelities:
            self._check_fidelities({param_name: param_distribution}, [param_name])
            return param_distribution.low
        guesses = self._of(study).guesses.get(trial.number, {})
        if param_name in guesses:
            if contains(param_distribution, guesses[param_name]):
                return cast(param_distribution, guesses[param_name])
            said = "%r is not what it was in earlier studies: trial %d has a random value."
            _logger.warning(said, param_name, trial.number)
        seed = zlib.crc32(f"{self._seed} {trial.number} {param_name}".encode())
        drawn = RandomSampler(seed=seed)
        return drawn.sample_independent(study, trial, param_name, param_distribution)

    def best_params(self, study: Any) -> dict[str, Any] | None:
        """Return the parameters that are believed best in a study; None before a value is known.

        Raises:
            InvalidArgumentError: If the study lacks a parameter that says how much a trial trains.
        """
        space = self.infer_relative_search_space(study, None) or {
            name: d for name, d in self._at_first().items() if not d.single()
        }
        if not space:
            return None
        self._check_fidelities(space)
        with self._lock:
            return self._read(study, space, None).best()

    def _of(self, study: Any) -> "_Studied":
        """Return what is known of a study; nothing yet of another one than before."""
        studied = self._studied
        if studied is None or not studied.is_of(study):
            studied = self._studied = _Studied(study, pruned=self._pruned)
        return studied

    def _read(self, study: Any, space: dict[str, Any], number: int | None) -> StudyTrials:
        """Return the trials of a study, read anew."""
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
        """Raise unless the parameters that say how much a trial trains are in a search space."""
        kind = "suggest_int" if self._whole else "suggest_float or suggest_int"
        for name in self._fidelities if names is None else names:
            # Optuna drops a parameter whose range is another one in some trials.
            given = (
                f"a parameter that trial.{kind} gives in all trials, in one range, or else its new range "
                f"in distributions=; those with one range are {sorted(space)}"
            )
            check(name in space, "iterations" if self._whole else "fidelities", given, name)
            least = 1 if self._whole else _ABOVE_0
            good = is_number(space[name], least, whole=self._whole)
            low = "1" if self._whole else "above 0"
            expected = f"what trial.{kind} gives, of several values from {low} on"
            check(good, name, expected, space[name])

    def _split(self, space: Mapping[str, Any]) -> tuple[Distributions, dict[str, Any]]:
        """Return the distributions of the configuration, and those of the fidelities."""
        others = {name: d for name, d in space.items() if name not in self._fidelities}
        return Distributions(others), {name: space[name] for name in self._fidelities}

    def _at_first(self) -> Mapping[str, Any]:
        """Return distributions that are guessed before any trial is complete."""
        return {}

    @abstractmethod
    def _begin(self, space: Mapping[str, Any], *, seed: int, maximize: bool) -> StudyTrials:
        """Return what reads a study's trials, and asks an optimizer of a search space."""


class _Studied:
    """What a sampler knows of one study.

    Args:
        study: The study.
        pruned: Whether pruned trials count as complete for what trials have in common.
    """

    def __init__(self, study: Any, *, pruned: bool) -> None:
        # Studies in memory are all of number 0, each in a storage of its own.
        self._storage, self._number = study._storage, study._study_id
        self._directions = list(study.directions)
        self.intersection = IntersectionSearchSpace(include_pruned=pruned)
        self.trials: StudyTrials | None = None
        # By number of the trial, where the present study's distributions are not known yet. Optuna
        # refuses a value that is sampled for one distribution and suggested for another.
        self.guesses: dict[int, dict[str, Any]] = {}
        self.exhausted = self.warned = False

    def is_of(self, study: Any) -> bool:
        """Return whether this is known of a study."""
        one = self._storage is study._storage and self._number == study._study_id
        return one and self._directions == list(study.directions)
