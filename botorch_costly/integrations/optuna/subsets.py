"""A sampler of Optuna that chooses how much of the data each trial trains on."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from botorch_costly.calls import advised
from botorch_costly.integrations.offline.options import SubsetOptions
from botorch_costly.integrations.optuna.outcomes import Outcomes, attribute
from botorch_costly.integrations.optuna.sampler import OfflineSampler
from botorch_costly.integrations.optuna.trials import StudyTrials
from botorch_costly.task_records import Task
from botorch_costly.tuners.subsets import Sampling

_optuna = logging.getLogger("optuna.botorch_costly")  # shown where Optuna names its best trial


class SubsetSampler(OfflineSampler):
    """Sample configurations and the size of the data that they train on, to learn about the whole data.

    The share of the data, or the number of rows, is a parameter,
    ``trial.suggest_float("fraction", 1 / 128, 1.0, log=True)``; its largest value is the whole data. The
    next trial is the one that tells most per second about the best configuration for the whole data.
    Values on subsets of different sizes cannot be compared: use ``best_params`` of this sampler, which is
    for the whole data, not the study's; Optuna's log says so at the first trial. A pruned or failed trial
    counts as the worst value seen. Any number of processes may share a study, as with
    ``TransferSampler``.

    References:
        A. Klein, S. Falkner, S. Bartels, P. Hennig, F. Hutter. Fast Bayesian optimization of machine
        learning hyperparameters on large datasets. AISTATS 2017.

    Args:
        fidelities: Name of the parameter with the share; or the names of several fidelities.
        distributions: Distributions of the parameters, the share included; if omitted, those that all
            complete trials have. Other parameters are drawn at random.
        cost: User attribute with the cost of a trial; its seconds if omitted.
        overhead: Additional cost of each trial in the same unit, such as the seconds of a decision.
        tasks: Earlier studies whose larger values are better, such as
            ``task_from_optuna(study, iterations=27)``; one without the fidelities was on all of the data.
        sampling: How hyperparameters are sampled, and how the optimum is searched.
        seed: Seed of the random generator. Processes that share a study may share it.
        dtype: Precision of the computations.
        device: Device of the computations.

    Raises:
        InvalidArgumentError: If an argument is outside its range, or a fidelity is no parameter with
            several numbers above 0; when a trial begins, if the study has several objectives.
        MissingExtraError: If Optuna is missing, or older than 4.0.

    Example::

        sampler = SubsetSampler("fraction")
        study = optuna.create_study(sampler=sampler, direction="maximize")
        study.optimize(objective, n_trials=50)
        print(sampler.best_params(study))
    """

    @advised
    def __init__(
        self,
        fidelities: str | Sequence[str] = "fraction",
        *,
        distributions: Mapping[str, Any] | None = None,
        cost: str | None = None,
        overhead: float = 0.0,
        tasks: Sequence[Task] = (),
        sampling: Sampling | None = None,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        sampling = Sampling() if sampling is None else sampling
        self._options = SubsetOptions(fidelities, overhead, sampling, tasks)
        super().__init__(distributions, seed, dtype, device, fidelities=self._options.names)
        self._cost = attribute(cost)

    def after_trial(self, study: Any, trial: Any, state: Any, values: Any) -> None:
        """Say once which parameters are best, before Optuna's log names the best value of any part."""
        studied = self._of(study)
        if values is not None and not studied.warned:
            studied.warned = True
            _optuna.info(
                "The best trial of the study is that with the best value on a part of any size. Best for "
                "the whole: sampler.best_params(study)."
            )

    def _begin(self, space: Mapping[str, Any], *, seed: int, maximize: bool) -> StudyTrials:
        distributions, fidelities = self._split(space)
        options = {"seed": seed, **self._tkwargs}
        trials = self._options.trials(
            distributions.space, fidelities, distributions, maximize=maximize, **options
        )
        return StudyTrials(space, distributions, fidelities, trials, Outcomes(cost=self._cost))
