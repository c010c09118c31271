"""A search that begins where earlier studies ended: ask for a configuration, tell its value."""

import hashlib
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.observed import observation_of, seem_losses
from botorch_costly.ask_tell.protocol import Tells
from botorch_costly.ask_tell.recorded import Withdrawable
from botorch_costly.ask_tell.state import (
    check_header,
    header,
    taking_over,
    unchanged_on_error,
    undone_on_error,
)
from botorch_costly.ask_tell.surroundings import one_thread
from botorch_costly.device import check_tkwargs
from botorch_costly.errors import InvalidArgumentError, InvalidSpaceError, check, check_count
from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.numerics.robust import outliers
from botorch_costly.parameters import Plain
from botorch_costly.plain import as_number
from botorch_costly.randomness import check_seed, generator_of
from botorch_costly.records import FrozenConfig, Observation
from botorch_costly.space import SearchSpace
from botorch_costly.task_records import Task
from botorch_costly.transfer_records import TransferDecision
from botorch_costly.tuners.transfer.belief import Told, bounded, plausible, told_of
from botorch_costly.tuners.transfer.choice import TransferChooser
from botorch_costly.tuners.transfer.options import ByEvidence, ByGaps, Robustness

_logger = logging.getLogger(__name__)

_DECIMALS = 9  # of an encoding that tell configurations apart
_WRITTEN = 4  # decimals of shares and weights in the history
_LOSSES = (
    "The values %s look like losses, and the largest counts as best: losses need maximize=False."
)
_BY_EVIDENCE = ByEvidence()


class TransferOptimizer(Withdrawable[TransferDecision, Observation]):
    """Tune with what earlier studies found, and without harm for long if they mislead.

    The next configuration maximizes an upper bound in which the earlier tasks have a share. The share
    falls as the target's values disagree with them, and tends to 0 in any case.

    References:
        Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
        UAI 2022.

    Args:
        space: Of the configurations.
        tasks: Earlier studies, whose values are of the kind that is told, in the same direction. A few
            values of a study that lie far off all others are left out, and a warning is logged.
        candidates: Configurations to choose from, each once; all of the space if omitted.
        horizon: The most evaluations that are asked for; ``None`` if unknown.
        maximize: Whether larger values are better, here and in the tasks.
        robust: How the share of the tasks is decided: ``ByEvidence``, or ``ByGaps`` as published.
        warm_start: Evaluations that begin with a portfolio: configurations of which each is good on tasks
            that those before it are not good on. If the tasks mislead, at most so many are lost.
        fill: Values of parameters that the tasks lack, by name; see ``Task.in_space``.
        kernel: Of all Gaussian processes: ``"matern52"``, ``"matern32"``, ``"matern12"`` or ``"rbf"``.
        seed: The one source of randomness; the global generators are never touched.
        dtype: Of all computation, ``torch.float64`` or ``torch.float32``.
        device: Of all computation. Draws are made on the CPU, so that a state moves between devices.

    Attributes:
        tasks: The earlier tasks' Gaussian processes.

    Raises:
        InvalidArgumentError: If there is no task, an argument is outside its range, or a candidate is
            listed twice, or there is no such device here.
        InvalidConfigError: If a candidate, or all of a task, does not belong to the space.
        InvalidSpaceError: If the space holds nothing to choose.

    Example:
        >>> from botorch_costly import Real
        >>> space = SearchSpace({"lr": Real(1e-4, 1e-1, log=True)})
        >>> rates = [10 ** (-4 + k / 4) for k in range(13)]
        >>> earlier = Task([{"lr": r} for r in rates], [-abs(math.log10(r / 8e-3)) for r in rates])
        >>> optimizer = TransferOptimizer(space, [earlier])
        >>> for _ in range(4):
        ...     ask = optimizer.ask()
        ...     _ = optimizer.tell(ask, -abs(math.log10(ask.config["lr"] / 1e-2)))
        >>> 5e-3 < optimizer.best_seen()["lr"] < 2e-2
        True
    """

    tells: ClassVar[Tells] = "value"
    records: ClassVar = (TransferDecision, Observation)

    def __init__(
        self,
        space: SearchSpace,
        tasks: Sequence[Task],
        *,
        candidates: Sequence[Mapping[str, Plain]] | None = None,
        horizon: int | None = None,
        maximize: bool = True,
        robust: Robustness = _BY_EVIDENCE,
        warm_start: int = 0,
        fill: Mapping[str, Any] | None = None,
        kernel: str = "matern52",
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        tunable = isinstance(space, SearchSpace) and space.dim > 0
        check(tunable, "space", "a SearchSpace with something to tune", space, InvalidSpaceError)
        check(isinstance(maximize, bool), "maximize", "a bool", maximize)
        kinds = isinstance(robust, ByEvidence | ByGaps)
        check(kinds, "robust", "ByEvidence or ByGaps", robust)
        warm_start = check_count("warm_start", warm_start)
        self.space = space
        self._tkwargs = check_tkwargs(dtype, device)
        self.horizon = None if horizon is None else check_count("horizon", horizon, minimum=1)
        self.maximize = maximize
        self._sign = 1.0 if maximize else -1.0
        encoded = [one.in_space(space, fill=fill) for one in _checked(tasks)]
        pairs = [
            _without_outliers(number, one.points, bounded(self._sign * one.values))
            for number, one in enumerate(encoded)
        ]
        inputs = [points.to(**self._tkwargs) for points, _ in pairs]
        values = [bounded(known.to(**self._tkwargs)) for _, known in pairs]
        with one_thread(max(map(len, values))):
            self.tasks = TaskEnsemble(inputs, values, kernel=kernel)
            self.tasks.fit()
        self._candidates = None if candidates is None else [dict(one) for one in candidates]
        listed = None if candidates is None else self._encoded(self._candidates or [])
        options = {
            "tasks": _digest([part for one in encoded for part in (one.points, one.values)]),
            "candidates": None if listed is None else _digest([listed]),
            "horizon": self.horizon,
            "maximize": maximize,
            "robust": robust,
            "warm_start": warm_start,
            "kernel": kernel,
            "seed": check_seed(seed),
            "dtype": dtype,
        }
        self._plausible = plausible(self.tasks)
        self._listed = listed = None if listed is None else listed.to(**self._tkwargs)
        self._header = header(type(self), space, options)
        if maximize and any(seem_losses(one.values.tolist()) for one in encoded):
            _logger.warning(_LOSSES, "of the tasks")
        self._ledger = Ledger(*self.records, told="value")
        self._rows: dict[int, Tensor] = {}  # encoded configurations of evaluations
        generator = generator_of(seed)
        self._chooser = TransferChooser(space, self.tasks, listed, robust, generator, warm_start)

    def _encoded(self, configs: Sequence[Mapping[str, Plain]]) -> Tensor:
        check(len(configs) > 0, "candidates", "at least one configuration", configs)
        rows = torch.stack([self.space.encode(config) for config in configs])
        each = len(rows.round(decimals=_DECIMALS).unique(dim=0))
        check(each == len(rows), "candidates", "each once", f"{each} in {len(rows)}")
        return rows

    def _rows_of_matrix(self) -> int:
        return max(len(self._ledger), self.tasks.inputs.shape[1])

    # -- the face ---------------------------------------------------------------------------------

    def ask(self) -> TransferDecision:
        """Decide on the next evaluation. An error or an interrupt changes nothing.

        Raises:
            HorizonExceededError: If all evaluations of the horizon, or of the candidates, have been
                asked for.
        """
        number = self._ledger.next_within(self.horizon)
        with unchanged_on_error(self._chooser), undone_on_error(self._ledger):
            told = self._chooser.learn(self._told())
            point, reason = self._chooser.choose(told, self._pending())
            decision = TransferDecision(
                number,
                self._decoded(point),
                query=True,
                reason=reason,
                share=round(self.share, _WRITTEN),
                weights=tuple(round(weight, _WRITTEN) for weight in self.weights),
            )
            self._ledger.suggest(decision)
        return decision

    def adopt(self, config: Mapping[str, Plain]) -> TransferDecision:
        """Enter an evaluation that was not asked for, such as that of another program, to be told.

        Args:
            config: Its configuration, of the space; it need not be a candidate.

        Returns:
            The decision to tell. Until then it is under way, as one that was asked for.

        Raises:
            HorizonExceededError: As ``ask``.
            InvalidConfigError: If it does not belong to the space. The optimizer is unchanged.

        Example:
            >>> from botorch_costly import Real
            >>> space = SearchSpace({"lr": Real(0.0, 1.0)})
            >>> earlier = Task([{"lr": 0.1}, {"lr": 0.9}], [1.0, 2.0])
            >>> optimizer = TransferOptimizer(space, [earlier])
            >>> optimizer.tell(optimizer.adopt({"lr": 0.5}), 1.5).reward
            1.5
        """
        number = self._ledger.next_within(self.horizon)
        known = self.space.canonical(config)
        decision = TransferDecision(number, known, query=True, reason="not asked for")
        self._ledger.suggest(decision)
        return decision

    def _decoded(self, point: Tensor) -> Mapping[str, Plain]:
        if self._candidates is None or self._listed is None:
            return self.space.decode(point)
        return self._candidates[int((self._listed - point).abs().sum(-1).argmin())]

    def tell(self, decision: TransferDecision, value: float) -> Observation:
        """Hand in what an evaluation came to.

        Args:
            decision: What ``ask`` returned, once; in any order, late, or never.
            value: The metric; not finite if the evaluation failed. Nothing is learnt from a failure but
                that its neighbours may fail, too. A value far below whatever the tasks showed, or far
                below all others, counts as one; by evidence, also a low value as long as the tasks
                foretell all others.

        Returns:
            The record of the evaluation.

        Raises:
            UnknownDecisionError: If this optimizer never asked for it.
            AlreadyToldError: If it was told before.
            InvalidArgumentError: If the value is no number. In all cases the optimizer is unchanged.
        """
        self._ledger.check_open(decision)
        told = observation_of(decision, as_number("value", value))
        self._ledger.tell(told)
        return told

    @property
    def incumbent(self) -> FrozenConfig | None:
        """The configuration with the best value told; None before the first finite one."""
        finite = [one for one in self.observations if one.reward is not None]
        if not finite:
            return None
        best = max(finite, key=lambda one: self._sign * float(one.reward or 0.0))
        return FrozenConfig(best.config)

    def best_seen(self) -> dict[str, Plain] | None:
        """Return the configuration with the best value told; None before the first finite one."""
        best = self.incumbent
        return None if best is None else dict(best)

    @property
    def share(self) -> float:
        """What the earlier tasks had in the latest decision, in [0, 1]."""
        return self._chooser.sharing.share

    @property
    def weights(self) -> list[float]:
        """Of each task, in the latest decision; by evidence they may have any sign."""
        return [float(weight) for weight in self._chooser.sharing.weights]

    @property
    def gaps(self) -> list[float] | None:
        """How far each task is from the target, in its standard deviations; None before a value."""
        gaps = self._chooser.sharing.gaps
        return None if gaps is None else [float(gap) for gap in gaps]

    def summary(self) -> str:
        """Return a few lines on what was evaluated, found, and owed to the tasks."""
        lines = [
            f"{len(self.observations)} evaluations, {self.failed_queries} failed, "
            f"{len(self.pending)} under way",
            f"{self.tasks.count} earlier tasks with a share of {self.share:.2f}",
        ]
        best = self.best_seen()
        return "\n".join(lines if best is None else [*lines, f"best seen: {best}"])

    # -- what is told -----------------------------------------------------------------------------

    def _told(self) -> Told:
        """Return what was told, apart from where evaluations failed or went astray."""
        rows = self._stacked([self._encoded_once(one) for one in self.observations])
        values = [
            math.nan if one.reward is None else self._sign * one.reward for one in self.observations
        ]
        rewards = torch.tensor(values, **self._tkwargs)
        return told_of(rows, bounded(rewards, self.tasks), self._plausible)

    def _pending(self) -> Tensor:
        return self._stacked([self._encoded_once(one) for one in self.pending])

    def _encoded_once(self, one: TransferDecision | Observation) -> Tensor:
        """Return the encoded configuration of an evaluation, whose decision never changes."""
        if one.round not in self._rows:
            self._rows[one.round] = self.space.encode(one.config).to(**self._tkwargs)
        return self._rows[one.round]

    def _stacked(self, rows: Sequence[Tensor]) -> Tensor:
        nothing = torch.zeros(0, self.space.dim, **self._tkwargs)
        return torch.stack(list(rows)) if rows else nothing

    # -- the state --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values from which the run continues identically."""
        return {
            "header": dict(self._header),
            "ledger": self._ledger.state_dict(),
            "chooser": self._chooser.state_dict(),
        }

    def load_state_dict(
        self, state: Mapping[str, Any], *, changed: tuple[str, ...] | list[str] = ()
    ) -> None:
        """Continue from ``state_dict``.

        Args:
            state: State of an optimizer with equal options.
            changed: ``["horizon"]`` if the horizon may differ.

        Raises:
            StateMismatchError: If the state belongs to other options or tasks, or is damaged; the
                optimizer is unchanged.
        """
        check_header(state, self._header, changed, among=self.changeable)
        with taking_over(type(self).__name__, self._ledger, self._chooser):
            self._ledger.load_state_dict(state["ledger"])
            self._chooser.load_state_dict(state["chooser"])
        self._rows = {}


def _checked(tasks: Sequence[Task]) -> Sequence[Task]:
    listed = isinstance(tasks, Sequence) and len(tasks) > 0
    listed = listed and all(isinstance(one, Task) for one in tasks)
    check(listed, "tasks", "at least one Task in a list", tasks, InvalidArgumentError)
    return tasks


def _without_outliers(number: int, points: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Return a study less values far off all others: they would be all that its units can tell apart."""
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


def _digest(parts: Sequence[Tensor]) -> str:
    """Return a short hash of tensors that does not depend on the last bits."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part.float().contiguous().numpy().tobytes())
    return f"{len(parts)} tables, {total.hexdigest()[:16]}"
