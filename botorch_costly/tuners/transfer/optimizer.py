"""``TransferOptimizer``: a search that starts from the results of earlier studies."""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from botorch_costly.ask_tell.clocks import Clocks
from botorch_costly.ask_tell.domain import Domain, digest_of
from botorch_costly.ask_tell.evaluations import sign_of
from botorch_costly.ask_tell.observed import LOSSES, seem_losses
from botorch_costly.ask_tell.optimizer import Optimizer
from botorch_costly.ask_tell.surroundings import one_thread
from botorch_costly.device import Tkwargs
from botorch_costly.errors import check, check_count
from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.numerics.robust import outliers, ranks_of
from botorch_costly.parameters import Plain
from botorch_costly.randomness import check_seed, generator_of
from botorch_costly.records import FrozenConfig, ValueObservation
from botorch_costly.space import SearchSpace
from botorch_costly.task_advice import first_proposal
from botorch_costly.task_encoding import representative
from botorch_costly.task_records import Task, check_tasks
from botorch_costly.transfer_records import TransferDecision
from botorch_costly.tuners.earlier.percent import warn_of_units
from botorch_costly.tuners.transfer.advice import advice_in_units, cautious
from botorch_costly.tuners.transfer.belief import bounded
from botorch_costly.tuners.transfer.choice import TransferStrategy
from botorch_costly.tuners.transfer.options import ByEvidence, ByGaps, Robustness

_logger = logging.getLogger(__name__)

_BY_EVIDENCE = ByEvidence()
_HINTED = 8  # values after which a warning is due
# Rank correlations of values with what the tasks predict that earn it: their mean, and each of them.
_OPPOSITE, _EACH = -0.65, -0.25


class TransferOptimizer(Optimizer[TransferDecision, ValueObservation]):
    """Tune with the results of earlier studies, and without harm for long if they mislead.

    The next configuration maximizes an upper bound in which the earlier tasks have a share. The share
    falls as the target's values disagree with them, and tends to 0 in any case.

    A failed evaluation teaches only that its neighbours may fail, too, unless others nearby did not. A
    value far below all that the tasks showed, or far below all others, counts as a failure; by evidence,
    also a low value as long as the tasks predict all others well. A value far above all others counts as
    the best of these, until several values confirm it. Values have the units of the tasks; those of a
    target in other units are believed from the fourth on.

    References:
        Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
        UAI 2022.

    Args:
        space: Search space of the configurations.
        tasks: Earlier studies, with values of the same metric in the same direction, or ``Task.advice``,
            whose first complete proposal is evaluated first; if all tasks are advice, two random
            configurations follow. By evidence, a single study's best observed configuration is evaluated
            first. A few values of a study that lie far off all
            others are left out, and a warning is logged. Of a study with more than 1,500 values, 1,500
            are read, evenly spread over their ranks.
        candidates: Configurations to choose from, each once; the whole space if omitted.
        start: Configuration of the first evaluation, if one is known to be good, perhaps no candidate.
        horizon: Largest number of evaluations; ``None`` if unknown.
        seconds: Seconds that the run may take, from the first ``ask`` on; no limit if omitted.
        maximize: Whether larger values are better, here and in the tasks.
        robust: Rule that decides the share of the tasks: ``ByEvidence``, or ``ByGaps`` as published.
        warm_start: Number of first evaluations from a portfolio: configurations of which each is good on
            tasks that those before it are not good on. If the tasks mislead, at most so many are lost.
        fill: Values of parameters that the tasks lack, by name; see ``Task.in_space``.
        kernel: Kernel of all Gaussian processes: ``"matern52"``, ``"matern32"``, ``"matern12"`` or
            ``"rbf"``.
        seed: Seed of all random draws; the global generators are never touched.
        dtype: ``torch.float64`` or ``torch.float32``, the type of all computation.
        device: Device of all computation. Draws are made on the CPU, so that a state moves between
            devices.

    Attributes:
        tasks: The earlier tasks' Gaussian processes.

    Raises:
        InvalidArgumentError: If there is no task, an argument is outside its range, a candidate is listed
            twice, or there is no such device here.
        InvalidConfigError: If a candidate, the start, or all of a task, does not belong to the space.
        InvalidSpaceError: If the space holds a single configuration.

    Example:
        >>> import math
        >>> from botorch_costly import Real
        >>> space = SearchSpace({"lr": Real(1e-4, 1e-1, log=True)})
        >>> rates = [10 ** (-4 + k / 4) for k in range(13)]
        >>> earlier = Task([{"lr": r} for r in rates], [-abs(math.log10(r / 8e-3)) for r in rates])
        >>> optimizer = TransferOptimizer(space, [earlier])
        >>> for _ in range(4):
        ...     ask = optimizer.ask()
        ...     _ = optimizer.tell(ask, -abs(math.log10(ask.config["lr"] / 1e-2)))
        >>> 5e-3 < optimizer.best()["lr"] < 2e-2
        True
    """

    records: ClassVar = (TransferDecision, ValueObservation)
    predicts: bool = True

    _strategy: TransferStrategy
    _is_hinted_at_direction = False

    def __init__(
        self,
        space: SearchSpace,
        tasks: Sequence[Task],
        *,
        candidates: Sequence[Mapping[str, Plain]] | None = None,
        start: Mapping[str, Plain] | None = None,
        horizon: int | None = None,
        seconds: float | None = None,
        maximize: bool = True,
        robust: Robustness = _BY_EVIDENCE,
        warm_start: int = 0,
        fill: Mapping[str, Any] | None = None,
        kernel: str = "matern52",
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        check(isinstance(robust, ByEvidence | ByGaps), "robust", "ByEvidence or ByGaps", robust)
        domain = Domain(space, candidates=candidates, dtype=dtype, device=device)
        sign = sign_of(maximize)
        studies = [task.in_space(space, fill=fill) for task in _checked(tasks)]
        advised = [task.is_advice for task in tasks]
        pairs = [
            (s.points, task.signed(s.values, sign)) for task, s in zip(tasks, studies, strict=True)
        ]
        self._advised = advised
        self.tasks = _fitted(pairs, advised, kernel, domain.tkwargs)
        warm_start = check_count("warm_start", warm_start)
        generator = generator_of(seed)
        strategy = TransferStrategy(
            domain,
            self.tasks,
            cautious(robust) if all(advised) else robust,
            generator,
            warm_start,
            proposed=first_proposal(studies),
            has_units=not all(advised),
        )
        options = {
            "tasks": digest_of(
                [table for study in studies for table in (study.points, study.values)]
            ),
            "candidates": domain.digest,
            "maximize": maximize,
            "robust": robust,
            "warm_start": warm_start,
            "kernel": kernel,
            "seed": check_seed(seed),
            "dtype": dtype,
        }
        super().__init__(
            domain,
            strategy,
            horizon=horizon,
            maximize=maximize,
            options=options,
            start=start,
            clocks=Clocks(seconds),
        )
        measured = [
            study for study, is_advice in zip(studies, advised, strict=True) if not is_advice
        ]
        self._earlier = [v for s in measured for v in s.values.tolist() if math.isfinite(v)]
        if maximize and any(seem_losses(study.values.tolist()) for study in measured):
            _logger.warning(LOSSES, "of the tasks")

    def _rows_of_matrix(self) -> int:
        return max(len(self._ledger), self.tasks.inputs.shape[1])

    def _hint(self, latest: ValueObservation) -> None:
        """Warn once, too, if the values fall where the earlier studies' rise."""
        super()._hint(latest)
        warn_of_units(self._ledger.outcomes, latest, self._earlier)
        finite = self._seen.values.isfinite()
        if self._is_hinted_at_direction or int(finite.sum()) != _HINTED or all(self._advised):
            return
        self._is_hinted_at_direction = True
        with torch.no_grad():
            means = self.tasks.means(self._seen.points[finite].to(self.tasks.inputs))
        told = means[~torch.tensor(self._advised)], self._seen.values[finite].to(means)
        ranks = torch.stack([ranks_of(row) for row in (told[1], *told[0])])
        # NaN of equal values, for which no comparison holds.
        agreement = torch.corrcoef(ranks)[0, 1:]
        mean = float(agreement.mean())
        if mean < _OPPOSITE and float(agreement.max()) < _EACH:
            message = "Values fall where the tasks' rise (rank correlation %.2f): "
            message += "the best lies far from theirs, or their direction is another."
            _logger.warning(message, mean)

    @property
    def incumbent(self) -> FrozenConfig | None:
        """The configuration with the best value told; None before the first finite one."""
        best = self._seen.best
        return None if best is None else FrozenConfig(best.config)

    @property
    def share(self) -> float:
        """Share of the earlier tasks in the latest suggestion, in [0, 1]."""
        return self._strategy.weighting.share

    @property
    def weights(self) -> list[float]:
        """Weight of each task in the latest suggestion; by evidence they may have any sign."""
        return [float(weight) for weight in self._strategy.weighting.weights]

    @property
    def gaps(self) -> list[float] | None:
        """Gap of each task to the target, in the target's standard deviations; None before a value."""
        gaps = self._strategy.weighting.gaps
        return None if gaps is None else [float(gap) for gap in gaps]

    def summary(self) -> str:
        """Return a few lines on the evaluations, the best configuration and the share of the tasks."""
        tasks = f"{self.tasks.count} earlier tasks with a share of {self.share:.2f}"
        return f"{super().summary()}\n{tasks}"

    def _remarks(self) -> list[str]:
        shares = [d.share for d in self.decisions if d.share is not None and d.weights]
        if not shares:
            return []
        before = f"went from {shares[0]:.2f} to" if len(shares) > 1 else "is"
        return [f"The share of the earlier tasks in the choices {before} {shares[-1]:.2f}."]


def _fitted(
    studies: Sequence[tuple[Tensor, Tensor]],
    advised: Sequence[bool],
    kernel: str,
    tkwargs: Tkwargs,
) -> TaskEnsemble:
    """Return the Gaussian processes of the studies, each without its outliers.

    Args:
        studies: Points and values of each study; larger values are better.
        advised: Which studies are advice, whose values have no units.
        kernel: Kernel of the Gaussian processes.
        tkwargs: Dtype and device.
    """
    pairs = [
        representative(*_without_outliers(n, x, bounded(y))) for n, (x, y) in enumerate(studies)
    ]
    measured = [y for (_, y), is_advice in zip(pairs, advised, strict=True) if not is_advice]
    values = [
        advice_in_units(y, measured) if is_advice else y
        for (_, y), is_advice in zip(pairs, advised, strict=True)
    ]
    values = [bounded(y.to(**tkwargs)) for y in values]
    with one_thread(max(map(len, values))):
        tasks = TaskEnsemble([points.to(**tkwargs) for points, _ in pairs], values, kernel=kernel)
        tasks.fit()
    return tasks


def _checked(tasks: Sequence[Task]) -> Sequence[Task]:
    early = [task for task in check_tasks(tasks, fewest=1) if task.progress is not None]
    check(not early, "tasks", "final values; CurveOptimizer reads curves", early[:1])
    return tasks


def _without_outliers(number: int, points: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Return a study without outliers, which would determine its scale."""
    far = outliers(values)
    if not bool(far.any()):
        return points, values
    _logger.warning(
        "Study %d: %d of %d values lie far off all others and are left out, as evaluations that failed.",
        number,
        int(far.sum()),
        len(far),
    )
    return points[~far], values[~far]
