"""A sampler of Optuna that starts from earlier studies."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any

import torch

from botorch_costly.calls import advised
from botorch_costly.errors import check
from botorch_costly.integrations.offline.options import TransferOptions
from botorch_costly.integrations.offline.translation import NothingFitsError
from botorch_costly.integrations.optuna.outcomes import Outcomes
from botorch_costly.integrations.optuna.sampler import OfflineSampler
from botorch_costly.integrations.optuna.trials import StudyTrials
from botorch_costly.space import of_earlier_studies
from botorch_costly.task_readers import task_from_optuna
from botorch_costly.task_records import Task
from botorch_costly.tuners.transfer import ByEvidence, ByGaps

with suppress(ImportError):
    from optuna.search_space import intersection_search_space

_logger = logging.getLogger(__name__)


class TransferSampler(OfflineSampler):
    """Sample from earlier studies; misleading ones do no harm for long.

    Everything is read from the study's storage, so several processes may work on one study, each with its
    own sampler; trials of other processes are pending. A pruned or failed trial counts less than
    expected. So does a trial whose process died, once the storage notices it (``heartbeat_interval``);
    until then it is pending.

    The parameters may differ from those of the earlier studies. Missing parameters are filled in, values
    outside of the present ranges are left out, and a parameter with another distribution than before is
    random until a trial is complete.

    References:
        Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
        UAI 2022.

    Args:
        studies: Earlier studies with one objective, of either direction, or tasks, such as those of
            ``tasks_from_csv``.
        distributions: Distributions of the parameters; if omitted, those that all complete trials of the
            study have or, before there are any, those of the earlier studies of Optuna. Other parameters
            are drawn at random.
        robust: How the weight of the earlier studies is decided.
        warm_start: Number of first trials from a portfolio of the earlier studies' best configurations.
        seed: Seed of the random generator. Processes that share a study may share it.
        dtype: Precision of the computations.
        device: Device of the computations.

    Raises:
        InvalidArgumentError: If there is no earlier study with a completed trial, or an argument is
            outside its range; when a trial begins, if the study has several objectives.
        MissingExtraError: If Optuna is missing, or older than 4.0.

    Example::

        study = optuna.create_study(sampler=TransferSampler([earlier_study]), direction="maximize")
        study.optimize(objective, n_trials=50)
    """

    @advised
    def __init__(
        self,
        studies: Sequence[Any | Task],
        *,
        distributions: Mapping[str, Any] | None = None,
        robust: ByEvidence | ByGaps | None = None,
        warm_start: int = 0,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(distributions, seed, dtype, device)
        listed = isinstance(studies, Sequence) and not isinstance(studies, str) and len(studies) > 0
        check(listed, "studies", "at least one optuna.Study or Task in a list", studies)
        tasks = [s if isinstance(s, Task) else task_from_optuna(s) for s in studies]
        robust = ByEvidence() if robust is None else robust
        self._options = TransferOptions(tasks, robust, warm_start)
        self._earlier = _shared(
            [
                intersection_search_space(study.get_trials(deepcopy=False))
                for study in studies
                if not isinstance(study, Task)
            ]
        )

    def _guessed(self) -> dict[str, Any]:
        return self._earlier

    def _decided(
        self, study: Any, trial: Any, search_space: dict[str, Any], began: float
    ) -> dict[str, Any]:
        try:
            return super()._decided(study, trial, search_space, began)
        except NothingFitsError as error:
            if self._given is not None:  # the space is known before the first trial
                raise
            studied = self._of(study)
            if not studied.warned:
                studied.warned = True
                _logger.warning("Earlier studies do not fit, trials are random: %s", error)
            return {}

    def _begin(self, space: Mapping[str, Any], *, seed: int, maximize: bool) -> StudyTrials:
        with of_earlier_studies() if dict(space) == self._earlier else nullcontext():
            distributions, fidelities = self._split(space)
            trials = self._options.trials(
                "studies", distributions, maximize=maximize, seed=seed, **self._tkwargs
            )
        return StudyTrials(space, distributions, fidelities, trials, Outcomes(priced=False))


def _shared(spaces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the distributions, with several values, that are equal in all search spaces."""
    first, *others = spaces or [{}]
    shared = {n: d for n, d in first.items() if all(space.get(n) == d for space in others)}
    return {name: d for name, d in shared.items() if not d.single()}
