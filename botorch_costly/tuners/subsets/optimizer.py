"""Cheap evaluations that tell where the optimum of the whole is: ask for one, tell its value and cost."""

import hashlib
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.observed import seem_losses
from botorch_costly.ask_tell.protocol import Tells
from botorch_costly.ask_tell.recorded import Withdrawable
from botorch_costly.ask_tell.state import (
    check_header,
    header,
    taking_over,
    unchanged_on_error,
    undone_on_error,
)
from botorch_costly.device import check_tkwargs
from botorch_costly.errors import (
    InvalidSpaceError,
    check,
    check_count,
    check_nonnegative,
    check_positive,
)
from botorch_costly.numerics.robust import tempered
from botorch_costly.parameters import Plain, Real
from botorch_costly.plain import as_number
from botorch_costly.randomness import check_seed, generator_of
from botorch_costly.records import FrozenConfig
from botorch_costly.space import SearchSpace
from botorch_costly.subset_records import Candidate, SubsetDecision, SubsetObservation
from botorch_costly.tuners.subsets.belief import Evaluations, Sampling
from botorch_costly.tuners.subsets.choice import SubsetChooser

_LEAST_FRACTION = 1 / 512
_DECIMALS = 9  # of an encoding that tell evaluations apart
_LARGEST = 1e150  # of values: squares are finite
_SAMPLING = Sampling()
_LOSSES = (
    "The values told look like losses, and the largest counts as best: losses need maximize=False."
)
_HINTED = 8  # values after which that is said
_logger = logging.getLogger(__name__)


class SubsetOptimizer(Withdrawable[SubsetDecision, SubsetObservation]):
    r"""Tune for the whole of the data by evaluations on parts of it, or on other cheap versions.

    ``ask`` says which configuration to evaluate, and at which fidelities; ``tell`` hands in its value and
    cost. Next is what tells most about the optimum at the target, by unit of cost. The target is the
    upper bound of each fidelity.

    References:
        A. Klein, S. Falkner, S. Bartels, P. Hennig, F. Hutter. Fast Bayesian optimization of machine
        learning hyperparameters on large datasets. AISTATS 2017.

    Args:
        space: Of the configurations.
        fidelities: Of the fidelities, each a ``Real`` above 0; the fraction of the data from 1/512 to 1,
            on a logarithmic scale, if omitted.
        candidates: Pairs of a configuration and its fidelities, to choose evaluations from; all of both
            spaces if omitted.
        horizon: The most evaluations that are asked for; ``None`` if unknown.
        maximize: Whether larger values are better.
        overhead: What each evaluation costs beside its own cost, in that unit, such as the seconds that
            loading the data and deciding take.
        sampling: How hyperparameters are drawn, and the optimum looked for.
        seed: The one source of randomness; the global generators are never touched.
        dtype: Of all computation, ``torch.float64`` or ``torch.float32``.
        device: Of all computation. Draws are made on the CPU, so that a state moves between devices.

    Raises:
        InvalidArgumentError: If an argument is outside its range, a candidate is listed twice, or there
            is no such device here.
        InvalidConfigError: If a candidate does not belong to the spaces.
        InvalidSpaceError: If a space holds nothing to choose, or a fidelity is no ``Real`` above 0.

    Example:
        >>> from botorch_costly import SearchSpace
        >>> optimizer = SubsetOptimizer(SearchSpace({"lr": Real(1e-4, 1e-1, log=True)}), seed=1)
        >>> for _ in range(9):
        ...     ask = optimizer.ask()
        ...     fraction = ask.fidelities["fraction"]
        ...     value = -(abs(math.log10(ask.config["lr"] / 1e-2)) + 0.3 * (1 - fraction))
        ...     _ = optimizer.tell(ask, value, cost=fraction)
        >>> 3e-3 < optimizer.best_seen()["lr"] < 3e-2
        True
    """

    tells: ClassVar[Tells] = "value"
    records: ClassVar = (SubsetDecision, SubsetObservation)

    _missing: ClassVar = {"reward": None, "cost": None, "failed": False}

    def __init__(
        self,
        space: SearchSpace,
        fidelities: SearchSpace | None = None,
        *,
        candidates: Sequence[Candidate] | None = None,
        horizon: int | None = None,
        maximize: bool = True,
        overhead: float = 0.0,
        sampling: Sampling = _SAMPLING,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        tunable = isinstance(space, SearchSpace) and space.dim > 0
        check(tunable, "space", "a SearchSpace with something to tune", space, InvalidSpaceError)
        self.space = space
        self._tkwargs = check_tkwargs(dtype, device)
        self.fidelities = _fraction() if fidelities is None else _checked(fidelities)
        self.horizon = None if horizon is None else check_count("horizon", horizon, minimum=1)
        check(isinstance(maximize, bool), "maximize", "a bool", maximize)
        check(isinstance(sampling, Sampling), "sampling", "a Sampling", sampling)
        self._candidates = None if candidates is None else list(candidates)
        self._listed = listed = self._encoded()
        options = {
            "fidelities": self.fidelities.fingerprint(),
            "candidates": None if listed is None else _digest(listed),
            "horizon": self.horizon,
            "maximize": maximize,
            "overhead": check_nonnegative("overhead", overhead),
            "sampling": sampling,
            "seed": check_seed(seed),
            "dtype": dtype,
        }
        self._header = header(type(self), space, options)
        self.maximize = maximize
        self._sign = 1.0 if maximize else -1.0
        self._ledger = Ledger(*self.records, told="value")
        generator = generator_of(seed)
        like = torch.empty(0, **self._tkwargs)
        self._chooser = SubsetChooser(
            space, self.fidelities, listed, sampling, float(overhead), generator, like
        )

    def _encoded(self) -> Tensor | None:
        pairs = self._candidates
        if pairs is None:
            return None
        check(len(pairs) > 0, "candidates", "at least one evaluation", pairs)
        for number, pair in enumerate(pairs):
            two = isinstance(pair, Sequence) and len(pair) == 2
            expected = "pairs of a configuration and its fidelities"
            check(two, "candidates", expected, f"{pair} as number {number}")
        rows = torch.stack([self._point(config, fidelities) for config, fidelities in pairs])
        each = len(rows.round(decimals=_DECIMALS).unique(dim=0))
        check(each == len(rows), "candidates", "each evaluation once", f"{each} in {len(rows)}")
        return rows

    def _point(self, config: Mapping[str, Plain], fidelities: Mapping[str, Any]) -> Tensor:
        """Return the encoding of an evaluation, in float64 on the CPU."""
        return torch.cat([self.space.encode(config), self.fidelities.encode(fidelities)])

    # -- the face ---------------------------------------------------------------------------------

    def ask(self) -> SubsetDecision:
        """Decide on the next evaluation. An error or an interrupt changes nothing.

        Raises:
            HorizonExceededError: If all evaluations of the horizon, or of the candidates, have been
                asked for.
        """
        number = self._ledger.next_within(self.horizon)
        with unchanged_on_error(self._chooser), undone_on_error(self._ledger):
            point, reason = self._chooser.choose(self._known(), self._pending())
            config, at = self._decoded(point)
            fidelities = {name: as_number(name, value) for name, value in at.items()}
            decision = SubsetDecision(
                number, config, query=True, reason=reason, fidelities=fidelities
            )
            self._ledger.suggest(decision)
        return decision

    def adopt(self, config: Mapping[str, Plain], fidelities: Mapping[str, float]) -> SubsetDecision:
        """Enter an evaluation that was not asked for, such as that of another program, to be told.

        Args:
            config: Its configuration, of the space; it need not be a candidate.
            fidelities: The setting of each fidelity.

        Returns:
            The decision to tell. Until then it is under way, as one that was asked for.

        Raises:
            HorizonExceededError: As ``ask``.
            InvalidConfigError: If one does not belong to its space. The optimizer is unchanged.

        Example:
            >>> optimizer = SubsetOptimizer(SearchSpace({"lr": Real(0.0, 1.0)}))
            >>> optimizer.tell(optimizer.adopt({"lr": 0.5}, {"fraction": 0.25}), 1.5).cost
            0.25
        """
        number = self._ledger.next_within(self.horizon)
        known, at = self.space.canonical(config), self.fidelities.canonical(fidelities)
        decision = SubsetDecision(
            number,
            known,
            query=True,
            reason="not asked for",
            fidelities={name: as_number(name, value) for name, value in at.items()},
        )
        self._ledger.suggest(decision)
        return decision

    def _decoded(self, point: Tensor) -> tuple[Mapping[str, Plain], Mapping[str, Any]]:
        """Return configuration and fidelities of a point, as they were listed."""
        if self._candidates is not None:
            return self._candidates[self._nearest(point)]
        dim = self.space.dim
        return self.space.decode(point[:dim]), self.fidelities.decode(point[dim:])

    def _nearest(self, point: Tensor) -> int:
        """Return the number of the listed candidate whose first columns are nearest to a point."""
        assert self._listed is not None
        listed = self._listed[:, : len(point)].to(point)
        return int((listed - point).abs().sum(-1).argmin())

    def tell(
        self, decision: SubsetDecision, value: float, *, cost: float | None = None
    ) -> SubsetObservation:
        """Hand in what an evaluation came to.

        Args:
            decision: What ``ask`` returned, once; in any order, late, or never.
            value: The metric; not finite if the evaluation failed, which counts as the worst value seen.
            cost: Of the evaluation, in any unit, such as seconds; the product of its fidelities, as
                shares of the target, if omitted.

        Returns:
            The record of the evaluation.

        Raises:
            UnknownDecisionError: If this optimizer never asked for it.
            AlreadyToldError: If it was told before.
            InvalidArgumentError: If the value is no number, or the cost not positive. In all cases the
                optimizer is unchanged.
        """
        self._ledger.check_open(decision)
        number = as_number("value", value)
        finite = math.isfinite(number)
        asked = self._ledger.suggestion(decision.round)
        paid = (
            self._share(asked) if cost is None else check_positive("cost", as_number("cost", cost))
        )
        told = SubsetObservation(
            decision.round,
            decision.config,
            number if finite else None,
            failed=not finite,
            cost=paid,
        )
        self._ledger.tell(told)
        values = [one.reward for one in self.observations if one.reward is not None]
        if self.maximize and finite and len(values) == _HINTED and seem_losses(values):
            _logger.warning(_LOSSES)
        return told

    def _share(self, decision: SubsetDecision) -> float:
        highest = {name: parameter.high for name, parameter in self._reals()}
        return math.prod(v / highest[name] for name, v in decision.fidelities.items())

    def _reals(self) -> list[tuple[str, Real]]:
        return [(name, p) for name, p in self.fidelities.parameters if isinstance(p, Real)]

    @property
    def incumbent(self) -> FrozenConfig | None:
        """The configuration believed best at the target; None before the first finite value.

        Of all candidates, or of those evaluated if there is no list.
        """
        if not self._finite():
            return None
        known = self._known()
        point = self._chooser.incumbent(known)
        if self._candidates is None:
            return FrozenConfig(self.space.decode(point))
        return FrozenConfig(self._candidates[self._nearest(point)][0])

    def believed(self, configs: Sequence[Mapping[str, Plain]]) -> list[float]:
        """Return the mean of what is believed of each configuration at the target, as values are told.

        Raises:
            InvalidConfigError: If a configuration does not belong to the space.
            InvalidArgumentError: If no finite value has been told yet, or no configuration is given.
        """
        check(len(configs) > 0, "configs", "at least one configuration", configs)
        known = self._known()
        check(self._finite(), "believed", "a finite value that was told", "none")
        points = torch.stack([self.space.encode(config) for config in configs]).to(**self._tkwargs)
        return (self._sign * self._chooser.believed(known, points)).tolist()

    def best_seen(self) -> dict[str, Plain] | None:
        """Return the configuration believed best at the target; None before the first finite value."""
        best = self.incumbent
        return None if best is None else dict(best)

    @property
    def paid(self) -> float:
        """What all evaluations told have cost."""
        return sum((one.cost for one in self.observations), 0.0)

    def summary(self) -> str:
        """Return a few lines on what was evaluated, paid and found."""
        best = self.best_seen()
        lines = [
            f"{len(self.observations)} evaluations, {self.failed_queries} failed, "
            f"{len(self.pending)} under way",
            f"paid {self.paid:.6g}",
        ]
        if best is not None:
            lines.append(f"believed best at the target: {best}")
        return "\n".join(lines)

    # -- what is told -----------------------------------------------------------------------------

    def _finite(self) -> bool:
        return any(not one.failed for one in self.observations)

    def _known(self) -> Evaluations:
        """Return what was told, outliers tempered; failures have the lowest value that is left."""
        told = self.observations
        asked = [self._ledger.suggestion(o.round) for o in told]
        rows = [self._point(one.config, one.fidelities) for one in asked]
        values = [math.nan if o.reward is None else self._sign * o.reward for o in told]
        rewards = torch.tensor(values, dtype=torch.float64)
        finite = ~rewards.isnan()
        rewards[finite] = tempered(rewards[finite].clamp(-_LARGEST, _LARGEST))
        lowest = float(rewards[finite].min()) if bool(finite.any()) else 0.0
        rewards = rewards.nan_to_num(lowest).to(self._tkwargs["device"])
        costs = torch.tensor([o.cost for o in told], dtype=torch.float64).to(rewards)
        return Evaluations(self._stacked(rows), rewards, costs)

    def _pending(self) -> Tensor:
        return self._stacked([self._point(d.config, d.fidelities) for d in self.pending])

    def _stacked(self, rows: Sequence[Tensor]) -> Tensor:
        dim = self.space.dim + self.fidelities.dim
        stacked = torch.stack(list(rows)) if rows else torch.zeros(0, dim, dtype=torch.float64)
        return stacked.to(**self._tkwargs)

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
            StateMismatchError: If the state belongs to other options, or is damaged; the optimizer is
                unchanged.
        """
        check_header(state, self._header, changed, among=self.changeable)
        with taking_over(type(self).__name__, self._ledger, self._chooser):
            self._ledger.load_state_dict(state["ledger"])
            self._chooser.load_state_dict(state["chooser"])


def _fraction() -> SearchSpace:
    return SearchSpace({"fraction": Real(_LEAST_FRACTION, 1.0, log=True)})


def _checked(fidelities: SearchSpace) -> SearchSpace:
    good = isinstance(fidelities, SearchSpace) and fidelities.dim > 0
    good = good and all(isinstance(parameter, Real) for _, parameter in fidelities.parameters)
    check(good, "fidelities", "a SearchSpace of Real parameters", fidelities, InvalidSpaceError)
    for name, parameter in fidelities.parameters:
        above = isinstance(parameter, Real) and parameter.low > 0
        check(above, f"fidelity {name}", "bounds above 0", parameter, InvalidSpaceError)
    return fidelities


def _digest(listed: Tensor) -> str:
    rows = listed.round(decimals=_DECIMALS).contiguous().numpy().tobytes()
    return f"{len(listed)} evaluations, {hashlib.sha256(rows).hexdigest()[:16]}"
