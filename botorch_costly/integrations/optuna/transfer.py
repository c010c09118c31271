"""A sampler of Optuna that begins where earlier studies ended."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch

from botorch_costly.errors import check, check_count
from botorch_costly.integrations.earlier import NothingFitsError, translated
from botorch_costly.integrations.offline import ValueTrials
from botorch_costly.integrations.optuna.outcomes import Outcomes
from botorch_costly.integrations.optuna.sampler import OfflineSampler
from botorch_costly.integrations.optuna.trials import StudyTrials
from botorch_costly.task_readers import task_from_optuna
from botorch_costly.tuners import ByEvidence, ByGaps, TransferOptimizer

with suppress(ImportError):
    from optuna.search_space import intersection_search_space

_logger = logging.getLogger(__name__)


class TransferSampler(OfflineSampler):
    """Sample with what earlier studies found, and without harm for long if they mislead.

    All that is known is read from the study's storage, so several processes may work on one study, each
    with a sampler of its own; trials that run elsewhere count as under way. A trial that was pruned
    or failed counts less than expected. So does one whose process died, once the storage finds it
    out (``heartbeat_interval``); until then it counts as under way.

    The parameters need not be those of the earlier studies. What these lack is filled in, values that are
    no longer possible are left out, and a parameter that is another one than before is random until a
    trial is complete.

    References:
        Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
        UAI 2022.

    Args:
        studies: Earlier studies with one objective, of either direction.
        distributions: Of the parameters; those that all complete trials have, of the study or, before
            there are any, of the earlier studies, if omitted. Other parameters are drawn at random.
        robust: How the share of the earlier studies is decided.
        warm_start: Trials that begin with a portfolio of the earlier studies' best.
        seed: Of randomness. Processes that share a study may share it.
        dtype: Precision of what is computed.
        device: Where it is computed.

    Raises:
        InvalidArgumentError: If there is no earlier study with a completed trial, or an argument is
            outside its range; when a trial begins, if the study has several objectives.
        MissingExtraError: If Optuna is missing, or older than 4.0.

    Example::

        study = optuna.create_study(sampler=TransferSampler([earlier_study]), direction="maximize")
        study.optimize(objective, n_trials=50)
    """

    def __init__(
        self,
        studies: Sequence[Any],
        *,
        distributions: Mapping[str, Any] | None = None,
        robust: ByEvidence | ByGaps | None = None,
        warm_start: int = 0,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(distributions, seed, dtype, device)
        listed = isinstance(studies, Sequence) and len(studies) > 0
        check(listed, "studies", "at least one optuna.Study in a list", studies)
        self._tasks = [task_from_optuna(study) for study in studies]  # larger is better
        self._robust = ByEvidence() if robust is None else robust
        self._warm_start = check_count("warm_start", warm_start)
        self._earlier = _shared(
            [intersection_search_space(s.get_trials(deepcopy=False)) for s in studies]
        )

    def _at_first(self) -> Mapping[str, Any]:
        return self._earlier

    def _decided(
        self, study: Any, trial: Any, search_space: dict[str, Any], began: float
    ) -> dict[str, Any]:
        try:
            return super()._decided(study, trial, search_space, began)
        except NothingFitsError as error:
            if self._given is not None:  # it is known before the first trial
                raise
            studied = self._of(study)
            if not studied.warned:
                studied.warned = True
                _logger.warning("Earlier studies say nothing, trials are random: %s", error)
            return {}

    def _begin(self, space: Mapping[str, Any], *, seed: int, maximize: bool) -> StudyTrials:
        distributions, none = self._split(space)
        tasks = translated("studies", self._tasks, distributions, 1 if maximize else -1)
        optimizer = TransferOptimizer(
            distributions.space,
            tasks,
            maximize=maximize,
            robust=self._robust,
            warm_start=self._warm_start,
            seed=seed,
            **self._tkwargs,
        )
        trials, outcomes = ValueTrials(optimizer), Outcomes(priced=False)
        return StudyTrials(space, distributions, none, trials, outcomes)


def _shared(spaces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the distributions that are the same in all search spaces."""
    first, *others = spaces
    return {n: d for n, d in first.items() if all(space.get(n) == d for space in others)}
