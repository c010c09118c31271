"""A sampler of Optuna that says how long each trial trains, and learns from its curve."""

from collections.abc import Mapping
from typing import Any

import torch

from botorch_costly.errors import check, check_count
from botorch_costly.integrations.offline import CurveTrials
from botorch_costly.integrations.optuna.outcomes import Outcomes, attribute
from botorch_costly.integrations.optuna.sampler import OfflineSampler
from botorch_costly.integrations.optuna.trials import StudyTrials
from botorch_costly.tuners import Compression, CurveOptimizer


class CurveSampler(OfflineSampler):
    """Sample configurations together with how long they train: no longer than they are worth.

    The length is a parameter, ``trial.suggest_int("epochs", 1, 27)``; its largest value is a whole
    training. What ``trial.report`` says after each iteration is the curve; without reports the value of
    the trial is its end. Each trial trains anew, a promising configuration several times and longer each
    time; or, with ``resumes``, it goes on with the checkpoint of an earlier trial. A pruned trial is a
    shorter one. One that failed when nothing was known of its configuration has diverged, and counts as
    having ended at the lowest value seen. What was known before a longer trial failed, or was pruned too
    early to show anything new, stays known; after two such trials in a row their configuration is left.
    Otherwise as ``TransferSampler``: any number of processes.

    References:
        V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020.

    Args:
        iterations: Name of the parameter with the length.
        distributions: Of the parameters, the length included; those that all complete or pruned trials
            have, if omitted. Other parameters are drawn at random.
        first_step: Step of the report after the first iteration: 0 if steps count from 0.
        resumes: Whether trials go on with what ``checkpoint_of`` says. Their steps go on as well, and
            they save a checkpoint before they end or are pruned.
        cost: User attribute in which a trial says what it has cost; its seconds if omitted.
        compression: Makes scores of curves, as in BOIL; by default ranks and ends are believed in.
        seed: Of randomness. Processes that share a study may share it.
        dtype: Precision of what is computed.
        device: Where it is computed.

    Raises:
        InvalidArgumentError: If an argument is outside its range, or the length is no parameter with
            several whole numbers from 1 on; when a trial begins, if the study has several objectives.
        MissingExtraError: If Optuna is missing, or older than 4.0.

    Example::

        study = optuna.create_study(sampler=CurveSampler("epochs"), direction="maximize")
        study.optimize(objective, n_trials=50)
    """

    def __init__(
        self,
        iterations: str = "epochs",
        *,
        distributions: Mapping[str, Any] | None = None,
        first_step: int = 0,
        resumes: bool = False,
        cost: str | None = None,
        compression: Compression | None = None,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        check(isinstance(iterations, str), "iterations", "the name of a parameter", iterations)
        super().__init__(
            distributions, seed, dtype, device, fidelities=[iterations], whole=True, pruned=True
        )
        self._first_step, self._cost = check_count("first_step", first_step), attribute(cost)
        check(isinstance(resumes, bool), "resumes", "a bool", resumes)
        self._resumes = resumes
        compressed = compression is None or isinstance(compression, Compression)
        check(compressed, "compression", "a Compression or None", compression)
        self._compression = compression

    def _begin(self, space: Mapping[str, Any], *, seed: int, maximize: bool) -> StudyTrials:
        distributions, length = self._split(space)
        ((name, of_length),) = length.items()
        optimizer = CurveOptimizer(
            distributions.space,
            of_length.high,
            shortest=of_length.low,
            resumes=self._resumes,
            maximize=maximize,
            compression=self._compression,
            seed=seed,
            **self._tkwargs,
        )
        trials = CurveTrials(optimizer, name, shortest=of_length.low, longest=of_length.high)
        outcomes = Outcomes(cost=self._cost, iterations=name, first_step=self._first_step)
        return StudyTrials(space, distributions, length, trials, outcomes)
