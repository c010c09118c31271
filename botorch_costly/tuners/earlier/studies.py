"""Predictions of earlier studies for configurations, and the portfolio that a search begins with."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from botorch_costly.ask_tell.design import sobol
from botorch_costly.ask_tell.domain import digest_of
from botorch_costly.ask_tell.observed import LOSSES, seem_losses
from botorch_costly.ask_tell.surroundings import one_thread
from botorch_costly.device import Tkwargs
from botorch_costly.models import TaskEnsemble
from botorch_costly.models.fidelity_cost import FidelityCost, LogShares
from botorch_costly.numerics.growth import Marks
from botorch_costly.numerics.portfolio import greedy_portfolio
from botorch_costly.numerics.robust import normal_scores
from botorch_costly.space import SearchSpace
from botorch_costly.task_advice import first_proposal
from botorch_costly.task_encoding import EncodedTask, representative
from botorch_costly.task_records import Task, check_tasks
from botorch_costly.tuners.earlier.costs import Costs, costs_of, expected_cost
from botorch_costly.tuners.earlier.extrapolation import ends_of

_logger = logging.getLogger(__name__)
_FIRST, _LONGEST = 3, 50  # size of the portfolio, and of the one from which it is taken
_APART = 0.05  # least distance of its configurations, in a column
_SPREAD = 512  # Sobol points among which it is chosen, besides the best of each study
_BEST = 8  # of each study


class EarlierStudies:
    """Final values of earlier studies, as Gaussian processes of their ranks.

    Where trainings were stopped early, their ends are extrapolated (``earlier.extrapolation``). Values
    count by their normal scores within their study: studies may have different units, and one value far
    off the others does not set the scale.

    Args:
        space: Search space of the configurations.
        tasks: Earlier studies, with values or curves of the same metric.
        sign: 1.0, or -1.0 if smaller values are better.
        fill: Values of parameters that the studies lack, by name.
        tkwargs: Dtype and device of the Gaussian processes.
        fidelities: Space of the fidelities, if there are any.

    Attributes:
        values: Finite values of all studies but advice, in their own units.

    Raises:
        InvalidArgumentError: If ``tasks`` is no list of tasks.
        InvalidConfigError: If all of a task does not belong to the space.
        InvalidSpaceError: If a fidelity has the name of a parameter.
    """

    def __init__(
        self,
        space: SearchSpace,
        tasks: Sequence[Task],
        sign: float,
        *,
        fill: Mapping[str, Any] | None,
        tkwargs: Tkwargs,
        fidelities: SearchSpace | None = None,
    ) -> None:
        shares = [task.shares for task in check_tasks(tasks)]
        tasks = [_with_failures(task, sign) for task in tasks]
        if tasks and fidelities is not None:
            tasks = [_at_target(t, space, fidelities) if t.is_advice else t for t in tasks]
            space, fill = _with_fidelities(space, fidelities, fill)
        studies = [task.in_space(space, fill=fill) for task in tasks]
        tables = [table for s in studies for table in (s.points, s.values)]
        tables += [torch.tensor(task.progress) for task in tasks if task.progress is not None]
        self.digest = digest_of(tables)
        triples = zip(tasks, studies, shares, strict=True) if fidelities is not None else ()
        pairs = [costs_of(task, study, of_task) for task, study, of_task in triples]
        measured = [
            (task, study) for task, study in zip(tasks, studies, strict=True) if not task.is_advice
        ]
        self.values = [v for task, _ in measured for v in task.values if v is not None]
        self._costs = [costs for costs in pairs if costs is not None]
        self.digest_of_costs = digest_of([table for costs in self._costs for table in costs])
        self._fidelities = 0 if fidelities is None else fidelities.dim
        if sign > 0 and any(_seem_losses(*pair, self._fidelities) for pair in measured):
            _logger.warning(LOSSES, "of the tasks")
        self._empty = torch.empty(0, space.dim, **tkwargs)
        self._ensemble = None
        self._pool = self._empty
        advised = [task.is_advice for task in tasks]
        self._advised = torch.tensor(advised, dtype=torch.bool, device=self._empty.device)
        self._proposed = self._empty
        if studies:
            ends = [_ends(task, study, sign) for task, study in zip(tasks, studies, strict=True)]
            points, scores = zip(
                *(representative(x, normal_scores(y)) for x, y in ends), strict=True
            )
            best = [
                x[y.topk(min(_BEST, len(y))).indices] for x, y in zip(points, scores, strict=True)
            ]
            configs = space.dim - self._fidelities
            self._proposed = first_proposal(studies).to(self._empty)[:, :configs]
            pool = torch.cat([*best, sobol(space, _SPREAD, 0).to(points[0])]).to(self._empty)
            self._pool = pool[:, :configs]
            with one_thread(max(map(len, scores))):
                near = [[part.to(**tkwargs) for part in parts] for parts in (points, scores)]
                self._ensemble = TaskEnsemble(*near).fit()

    @property
    def count(self) -> int:
        """Number of studies."""
        return 0 if self._ensemble is None else self._ensemble.count

    def means(self, X: Tensor) -> Tensor:
        """Return the posterior means of the studies at configurations ``n x d``, ``n x T``.

        They are in normal scores, and with fidelities at the target.
        """
        if self._ensemble is None:
            return X.new_empty(len(X), 0)
        target = X.new_ones(len(X), self._fidelities)
        return self._ensemble.means(torch.cat([X, target], -1).to(self._empty)).mT.to(X)

    def expected_cost(self, log_shares: LogShares) -> FidelityCost | None:
        """Return a model of the studies' costs, up to a factor; None if they have none."""
        device = self._empty.device
        costs = [Costs(points.to(device), whole.to(device)) for points, whole in self._costs]
        return expected_cost(costs, log_shares, self._fidelities)

    def marks(self, x: Tensor, share: Tensor) -> Marks:
        """Return configurations ``n x d`` after shares of their trainings, with the studies' means."""
        return Marks(x, share, self.means(x))

    def portfolio(self, listed: Tensor | None) -> Tensor:
        """Return points of which each is good in studies that those before it are not good in, ``k x d``.

        The first proposal of advice comes first, and no other one follows. There are at most three, and
        no two are alike.

        Args:
            listed: Candidates, shape ``(n, d)``; None for the whole space.
        """
        pool = self._pool if listed is None else listed.to(self._empty)
        chosen = self._proposed
        if listed is not None:
            chosen = pool[torch.cdist(chosen, pool).argmin(-1)]
        # Advice is one guess: neighbours of its first proposal are not worth a training each.
        means = self.means(pool).mT[~self._advised]
        useful = pool[greedy_portfolio(means, min(_LONGEST, len(pool)))] if len(means) else pool[:0]
        for point in useful:
            far = not len(chosen) or float((chosen - point).abs().amax(-1).min()) >= _APART
            if len(chosen) < _FIRST and far:
                chosen = torch.cat([chosen, point[None]])
        return chosen


def _with_fidelities(
    space: SearchSpace, fidelities: SearchSpace, fill: Mapping[str, Any] | None
) -> tuple[SearchSpace, Mapping[str, Any]]:
    """Return the space with its fidelities, which are at the target if a study does not say."""
    highest = fidelities.decode(torch.ones(fidelities.dim))
    both = SearchSpace([*space.parameters, *fidelities.parameters])
    return both, {**highest, **({} if fill is None else fill)}


def _at_target(task: Task, space: SearchSpace, fidelities: SearchSpace) -> Task:
    """Return advice whose proposals, those that name a parameter, name the fidelities, too."""
    highest = fidelities.decode(torch.ones(fidelities.dim))
    named = [c for c in task.configs if isinstance(c, Mapping) and set(c) & set(space.names)]
    return Task.advice([{**highest, **c} for c in named], name=task.name) if named else task


def _with_failures(task: Task, sign: float) -> Task:
    """Return a task whose failed observations are trainings that ended at the lowest value."""
    measured = [value for value in task.values if value is not None]
    if not measured or len(measured) == len(task):
        return task
    lowest = sign * min(sign * value for value in measured)
    values = tuple(lowest if value is None else value for value in task.values)
    pairs = zip(task.values, task.shares, strict=True)
    progress = tuple(1.0 if value is None else share for value, share in pairs)
    return replace(task, values=values, progress=progress)


def _seem_losses(task: Task, study: EncodedTask, fidelities: int) -> bool:
    """Return whether values look like losses; the last columns of a study may be fidelities."""
    shares = [task.shares[row] for row in study.kept]
    if fidelities:
        shares = study.points[:, -fidelities:].sum(-1).tolist()
    return seem_losses(study.values.tolist(), shares)


def _ends(task: Task, study: EncodedTask, sign: float) -> tuple[Tensor, Tensor]:
    """Return the configurations of a study, and numbers in the order of their final values."""
    if task.progress is None:
        return study.points, task.signed(study.values, sign)
    shares = study.values.new_tensor(task.progress)[list(study.kept)]
    return ends_of(study.points, sign * study.values, shares)
