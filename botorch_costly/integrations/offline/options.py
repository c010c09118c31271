"""Options of the optimizers that several engines offer, and the trials of a new optimizer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from botorch_costly.errors import check, check_count, check_nonnegative
from botorch_costly.integrations.offline.translation import Translation, translated
from botorch_costly.integrations.offline.trials import ValueTrials
from botorch_costly.parameters import Real
from botorch_costly.space import SearchSpace
from botorch_costly.task_records import Task, check_tasks
from botorch_costly.tuners.subsets import Sampling, SubsetOptimizer
from botorch_costly.tuners.transfer import ByEvidence, ByGaps, TransferOptimizer


@dataclass(frozen=True)
class TransferOptions:
    """Options of a ``TransferOptimizer`` in an engine.

    Args:
        tasks: Earlier studies in parameters of the engine; their larger values are better.
        robust: How the weight of the earlier studies is decided.
        warm_start: Number of first trials from a portfolio of the earlier studies' best configurations.

    Raises:
        InvalidArgumentError: If an option is outside its range.
    """

    tasks: Sequence[Task]
    robust: ByEvidence | ByGaps = field(default_factory=ByEvidence)
    warm_start: int = 0

    def __post_init__(self) -> None:
        check_tasks(self.tasks, fewest=1)
        check(
            type(self.robust) in (ByEvidence, ByGaps), "robust", "ByEvidence or ByGaps", self.robust
        )
        object.__setattr__(self, "warm_start", check_count("warm_start", self.warm_start))

    def trials(
        self, name: str, translation: Translation, *, maximize: bool = True, **options: Any
    ) -> ValueTrials:
        """Return the trials of a new optimizer.

        Args:
            name: Name of the argument with the tasks, for the error.
            translation: Translation of the engine's parameters.
            maximize: Whether larger values of the present study are better.
            **options: Further options of the optimizer.

        Raises:
            NothingFitsError: If no trial of any task has a finite value and fits.
        """
        tasks = translated(name, self.tasks, translation, 1 if maximize else -1)
        options |= {"robust": self.robust, "warm_start": self.warm_start, "maximize": maximize}
        return ValueTrials(TransferOptimizer(translation.space, tasks, **options))


@dataclass(frozen=True)
class SubsetOptions:
    """Options of a ``SubsetOptimizer`` in an engine.

    Args:
        fidelities: Name of the parameter with the fidelity; or the names of several fidelities.
        overhead: Additional cost of each trial.
        sampling: How hyperparameters are sampled, and how the optimum is searched; the optimizer's own
            if None.
        tasks: Earlier studies in parameters of the engine; their larger values are better.

    Raises:
        InvalidArgumentError: If an option is outside its range.
    """

    fidelities: str | Sequence[str]
    overhead: float = 0.0
    sampling: Sampling | None = None
    tasks: Sequence[Task] = ()

    def __post_init__(self) -> None:
        check_tasks(self.tasks)
        names = self.names
        listed = isinstance(names, Sequence) and all(isinstance(name, str) for name in names)
        distinct = listed and len(names) == len(set(names)) > 0
        expected = "the name of a parameter, or distinct names"
        check(distinct, "fidelities", expected, self.fidelities)
        check_nonnegative("overhead", self.overhead)
        is_valid = self.sampling is None or isinstance(self.sampling, Sampling)
        check(is_valid, "sampling", "a Sampling or None", self.sampling)

    @property
    def names(self) -> Sequence[str]:
        """Names of the fidelities."""
        return [self.fidelities] if isinstance(self.fidelities, str) else self.fidelities

    def trials(
        self,
        space: SearchSpace,
        bounds: Mapping[str, Any],
        translation: Translation,
        *,
        maximize: bool = True,
        **options: Any,
    ) -> ValueTrials:
        """Return the trials of a new optimizer.

        Args:
            space: Search space of the configurations.
            bounds: Object with ``low`` and ``high`` of each fidelity, by name.
            translation: Translation of the engine's parameters, perhaps without the fidelities.
            maximize: Whether larger values of the present study are better.
            **options: Further options of the optimizer.

        Raises:
            InvalidArgumentError: If ``bounds`` are not those of the fidelities.
            NothingFitsError: If there are tasks, and no trial of any has a finite value and fits.
        """
        check(set(bounds) == set(self.names), "bounds", f"those of {self.names}", list(bounds))
        # The model is over the logarithm of a fidelity, even if random trials are uniform in it.
        reals = {n: Real(float(b.low), float(b.high), log=True) for n, b in bounds.items()}
        sign = 1 if maximize else -1
        tasks: Sequence[Task] = ()
        if self.tasks:
            tasks = translated("tasks", self.tasks, translation, sign, fidelities=[*self.names])
        options |= {"overhead": self.overhead, "tasks": tasks, "maximize": maximize}
        options |= {} if self.sampling is None else {"sampling": self.sampling}
        return ValueTrials(SubsetOptimizer(space, SearchSpace(reals), **options))
