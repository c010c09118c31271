"""A sampler of Optuna that chooses how long each trial trains, and learns from its curve."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from botorch_costly.calls import advised
from botorch_costly.errors import check, check_count
from botorch_costly.integrations.offline import CurveTrials
from botorch_costly.integrations.offline.translation import translated
from botorch_costly.integrations.optuna.outcomes import Outcomes, attribute
from botorch_costly.integrations.optuna.sampler import OfflineSampler
from botorch_costly.integrations.optuna.trials import StudyTrials
from botorch_costly.task_records import Task, check_tasks
from botorch_costly.tuners.curves import Compression, CurveOptimizer


class CurveSampler(OfflineSampler):
    """Sample configurations and how long they train, no longer than they are worth.

    The number of iterations is a parameter, ``trial.suggest_int("epochs", 1, 27)``; its largest value is
    a whole training. The values that ``trial.report`` takes after each iteration are the curve; without
    reports the value of the trial is the end of its curve. Each trial trains anew, a promising
    configuration several times and longer each time; or, with ``resumes``, it continues from the
    checkpoint of an earlier trial. A pruned trial is a shorter training. A trial that fails before any
    value of its configuration is known has diverged, and counts as having ended at the lowest value seen.
    If a longer trial fails, or is pruned too early to show a new value, the known part of the curve
    stays; after two such trials in a row their configuration is not sampled again. Any number of
    processes may share a study, as with ``TransferSampler``.

    References:
        V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020.

    Args:
        iterations: Name of the parameter with the number of iterations.
        distributions: Distributions of the parameters, the iterations included; if omitted, those that
            all complete or pruned trials have. Other parameters are drawn at random.
        first_step: Step of the report after the first iteration: 0 if steps count from 0.
        resumes: Whether trials continue from the checkpoint that ``checkpoint_of`` returns. They continue
            its steps, too, and save a checkpoint before they end or are pruned.
        cost: User attribute with the cost of a trial; its seconds if omitted.
        tasks: Earlier studies whose larger values are better, such as
            ``task_from_optuna(study, iterations=27)``.
        compression: Compression of curves to scores, as in BOIL; by default the models are of ranks
            and of growth.
        seed: Seed of the random generator. Processes that share a study may share it.
        dtype: Precision of the computations.
        device: Device of the computations.

    Raises:
        InvalidArgumentError: If an argument is outside its range, or ``iterations`` is no parameter with
            several integers from 1 on; when a trial begins, if the study has several objectives.
        MissingExtraError: If Optuna is missing, or older than 4.0.

    Example::

        study = optuna.create_study(sampler=CurveSampler("epochs"), direction="maximize")
        study.optimize(objective, n_trials=50)
    """

    @advised
    def __init__(
        self,
        iterations: str = "epochs",
        *,
        distributions: Mapping[str, Any] | None = None,
        first_step: int = 0,
        resumes: bool = False,
        cost: str | None = None,
        tasks: Sequence[Task] = (),
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
        is_valid = compression is None or isinstance(compression, Compression)
        check(is_valid, "compression", "a Compression or None", compression)
        self._compression = compression
        self._tasks = check_tasks(tasks)
        none = compression is None or not len(tasks)
        check(none, "tasks", "none beside a compression", f"{len(tasks)} tasks")

    def _begin(self, space: Mapping[str, Any], *, seed: int, maximize: bool) -> StudyTrials:
        distributions, length = self._split(space)
        ((name, iterations),) = length.items()
        sign = 1 if maximize else -1
        tasks = translated("tasks", self._tasks, distributions, sign) if self._tasks else ()
        optimizer = CurveOptimizer(
            distributions.space,
            iterations.high,
            tasks=tasks,
            shortest=iterations.low,
            resumes=self._resumes,
            maximize=maximize,
            compression=self._compression,
            seed=seed,
            **self._tkwargs,
        )
        trials = CurveTrials(optimizer, name, shortest=iterations.low, longest=iterations.high)
        outcomes = Outcomes(cost=self._cost, iterations=name, first_step=self._first_step)
        return StudyTrials(space, distributions, length, trials, outcomes)
