"""A sampler of Optuna that says how much of the data each trial trains on."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from botorch_costly.errors import check, check_nonnegative
from botorch_costly.integrations.offline import ValueTrials
from botorch_costly.integrations.optuna.outcomes import Outcomes, attribute
from botorch_costly.integrations.optuna.sampler import OfflineSampler
from botorch_costly.integrations.optuna.trials import StudyTrials
from botorch_costly.parameters import Real
from botorch_costly.space import SearchSpace
from botorch_costly.tuners import Sampling, SubsetOptimizer


class SubsetSampler(OfflineSampler):
    """Sample configurations together with how much data they train on, to learn of the whole by parts.

    The share of the data, or how many rows there are, is a parameter,
    ``trial.suggest_float("fraction", 1 / 128, 1.0, log=True)``; its largest value is the whole. Next is
    what tells most about the best configuration for the whole, by second. Values of different parts
    cannot be compared: ``best_params``, not the study's, is the best configuration for the whole. A
    pruned or failed trial counts as the worst value seen. Otherwise as ``TransferSampler``: any number of
    processes.

    References:
        A. Klein, S. Falkner, S. Bartels, P. Hennig, F. Hutter. Fast Bayesian optimization of machine
        learning hyperparameters on large datasets. AISTATS 2017.

    Args:
        fidelities: Name of the parameter with the share; or the names of several fidelities.
        distributions: Of the parameters, the share included; those that all complete trials have, if
            omitted. Other parameters are drawn at random.
        cost: User attribute in which a trial says what it has cost; its seconds if omitted.
        overhead: What each trial costs beside that, in that unit, such as the seconds of deciding.
        sampling: How hyperparameters are drawn, and the optimum looked for.
        seed: Of randomness. Processes that share a study may share it.
        dtype: Precision of what is computed.
        device: Where it is computed.

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

    def __init__(
        self,
        fidelities: str | Sequence[str] = "fraction",
        *,
        distributions: Mapping[str, Any] | None = None,
        cost: str | None = None,
        overhead: float = 0.0,
        sampling: Sampling | None = None,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        names = [fidelities] if isinstance(fidelities, str) else fidelities
        listed = isinstance(names, Sequence) and all(isinstance(name, str) for name in names)
        distinct = listed and len(names) == len(set(names)) > 0
        check(distinct, "fidelities", "the name of a parameter, or distinct names", fidelities)
        super().__init__(distributions, seed, dtype, device, fidelities=names)
        self._cost, self._overhead = attribute(cost), check_nonnegative("overhead", overhead)
        known = sampling is None or isinstance(sampling, Sampling)
        check(known, "sampling", "a Sampling or None", sampling)
        self._sampling = Sampling() if sampling is None else sampling

    def _begin(self, space: Mapping[str, Any], *, seed: int, maximize: bool) -> StudyTrials:
        distributions, parts = self._split(space)
        # Belief and noise are of the logarithm, however trials at random are spread.
        bounds = {name: Real(float(d.low), float(d.high), log=True) for name, d in parts.items()}
        optimizer = SubsetOptimizer(
            distributions.space,
            SearchSpace(bounds),
            maximize=maximize,
            overhead=self._overhead,
            sampling=self._sampling,
            seed=seed,
            **self._tkwargs,
        )
        trials = ValueTrials(optimizer)
        return StudyTrials(space, distributions, parts, trials, Outcomes(cost=self._cost))
