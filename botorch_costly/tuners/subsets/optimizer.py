"""``SubsetOptimizer``: cheap evaluations at low fidelities locate the optimum at the target."""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch

from botorch_costly.ask_tell.clocks import Clocks
from botorch_costly.ask_tell.domain import Domain, digest_of
from botorch_costly.ask_tell.earlier_names import warn_of
from botorch_costly.ask_tell.evaluations import sign_of, text_of_values
from botorch_costly.ask_tell.optimizer import Optimizer
from botorch_costly.ask_tell.points import SAME
from botorch_costly.ask_tell.state import FIDELITIES
from botorch_costly.ask_tell.strategy import ENQUEUED
from botorch_costly.errors import check, check_nonnegative, check_positive
from botorch_costly.parameters import Plain, Real
from botorch_costly.randomness import check_seed, generator_of
from botorch_costly.records import FrozenConfig
from botorch_costly.space import SearchSpace
from botorch_costly.subset_records import Candidate, SubsetDecision, SubsetObservation
from botorch_costly.task_records import Task
from botorch_costly.tuners.earlier import EarlierStudies
from botorch_costly.tuners.earlier.percent import warn_of_units
from botorch_costly.tuners.subsets.belief import Sampling
from botorch_costly.tuners.subsets.choice import SubsetStrategy
from botorch_costly.tuners.subsets.doubtful_costs import (
    EVALUATIONS,
    LATER,
    are_flat,
    falling_fidelities,
)
from botorch_costly.tuners.subsets.published import Fabolas

_logger = logging.getLogger(__name__)
_LEAST_FRACTION = 1 / 512
_SAMPLING = Sampling()


class SubsetOptimizer(Optimizer[SubsetDecision, SubsetObservation]):
    r"""Tune for the whole data set by evaluations on subsets of it, or at other low fidelities.

    ``ask`` returns a configuration and its fidelities; ``tell`` takes the value and the cost. The next
    evaluation has the largest expected information about the optimum at the target, by unit of cost. The
    target is the upper bound of each fidelity. A failed evaluation counts as the worst value seen.

    References:
        A. Klein, S. Falkner, S. Bartels, P. Hennig, F. Hutter. Fast Bayesian optimization of machine
        learning hyperparameters on large datasets. AISTATS 2017.

    Args:
        space: Search space of the configurations.
        fidelities: Space of the fidelities, each a ``Real`` above 0; the fraction of the data from 1/512
            to 1, on a logarithmic scale, if omitted.
        tasks: Earlier studies, with values or curves of the same metric in the same direction, on all of
            the data or at fidelities that are parameters of theirs. A search begins with three
            configurations that are good on them, and learns how much they say. Their costs, if they
            have some, say what evaluations at other fidelities are expected to cost.
        fill: Values of parameters that the tasks lack, by name; see ``Task.in_space``. Fidelities that
            they lack are at the target.
        candidates: Pairs of a configuration and its fidelities, to choose evaluations from; all of both
            spaces if omitted.
        start: Configuration of the first evaluation, if one is known to be good; it is evaluated at a low
            fidelity, and need not be a candidate.
        horizon: Largest number of evaluations; ``None`` if unknown.
        seconds: Seconds that the run may take, from the first ``ask`` on; no limit if omitted.
        maximize: Whether larger values are better.
        overhead: Fixed cost of each evaluation in addition to the cost told, in the same unit, such as
            the seconds that loading the data takes.
        sampling: Settings of the draws of hyperparameters and of the search for the optimum.
        fabolas: Model, first evaluations and incumbent of the paper; ours if omitted. See
            ``as_published``.
        seed: Seed of all random draws; the global generators are never touched.
        dtype: ``torch.float64`` or ``torch.float32``, the type of all computation.
        device: Device of all computation. Draws are made on the CPU, so that a state moves between
            devices.

    Raises:
        InvalidArgumentError: If an argument is outside its range, a candidate is listed twice, there is
            no such device here, or there are tasks beside ``fabolas``.
        InvalidConfigError: If a candidate, the start, or all of a task, does not belong to the spaces.
        InvalidSpaceError: If a space holds a single point, a fidelity is no ``Real`` above 0, or there
            are tasks and a fidelity has the name of a parameter.

    Example:
        >>> import math
        >>> from botorch_costly import SearchSpace
        >>> optimizer = SubsetOptimizer(SearchSpace({"lr": Real(1e-4, 1e-1, log=True)}), seed=1)
        >>> for _ in range(9):
        ...     ask = optimizer.ask()
        ...     fraction = ask.fidelities["fraction"]
        ...     value = -(abs(math.log10(ask.config["lr"] / 1e-2)) + 0.3 * (1 - fraction))
        ...     _ = optimizer.tell(ask, value, cost=fraction)
        >>> 3e-3 < optimizer.best()["lr"] < 3e-2
        True
    """

    records: ClassVar = (SubsetDecision, SubsetObservation)
    predicts: bool = True

    _strategy: SubsetStrategy
    _kinds_of_costs: frozenset[bool] = frozenset()  # whether costs were not told, in this process
    _missing: ClassVar = {"reward": None, "cost": None, "failed": False, "seconds": None}

    def __init__(
        self,
        space: SearchSpace,
        fidelities: SearchSpace | None = None,
        *,
        tasks: Sequence[Task] = (),
        fill: Mapping[str, Any] | None = None,
        candidates: Sequence[Candidate] | None = None,
        start: Mapping[str, Plain] | None = None,
        horizon: int | None = None,
        seconds: float | None = None,
        maximize: bool = True,
        overhead: float = 0.0,
        sampling: Sampling = _SAMPLING,
        fabolas: Fabolas | None = None,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        check(isinstance(sampling, Sampling), "sampling", "a Sampling", sampling)
        published = fabolas is None or isinstance(fabolas, Fabolas)
        check(published, "fabolas", "a Fabolas or None", fabolas)
        self.fidelities = _fraction() if fidelities is None else fidelities
        domain = Domain(space, self.fidelities, candidates=candidates, dtype=dtype, device=device)
        listed, overhead = domain.listed, check_nonnegative("overhead", overhead)
        earlier = EarlierStudies(
            space,
            tasks,
            sign_of(maximize),
            fill=fill,
            tkwargs=domain.tkwargs,
            fidelities=self.fidelities,
        )
        none = fabolas is None or not len(tasks)
        check(none, "tasks", "none beside fabolas", f"{len(tasks)} tasks")
        options: dict[str, Any] = {
            "tasks": earlier.digest,
            "costs": earlier.digest_of_costs,
            "fidelities": self.fidelities.fingerprint(),
            FIDELITIES: json.dumps(self.fidelities.to_dict()),
            "candidates": None if listed is None else digest_of([listed], "evaluations"),
            "maximize": maximize,
            "overhead": overhead,
            "sampling": sampling,
            "seed": check_seed(seed),
            "dtype": dtype,
        }
        if fabolas is not None:  # states of older versions do not name it
            options["fabolas"] = fabolas
        strategy = SubsetStrategy(
            domain, sampling, float(overhead), generator_of(seed), earlier, fabolas
        )
        super().__init__(
            domain,
            strategy,
            horizon=horizon,
            maximize=maximize,
            options=options,
            start=start,
            clocks=Clocks(seconds),
        )
        self._earlier = earlier.values

    @classmethod
    def as_published(
        cls, space: SearchSpace, fidelities: SearchSpace | None = None, **options: Any
    ) -> "SubsetOptimizer":
        """Return Fabolas as published: its model of values and costs, first evaluations and incumbent.

        Ours remain, because they change no idea of the paper: information is computed in closed form, all
        draws of hyperparameters share their points, extreme values are tempered, and what was measured at
        the target keeps a configuration from being the incumbent.

        Args:
            space: Search space of the configurations.
            fidelities: Space of the fidelities, as in the constructor.
            **options: Further arguments of the constructor, without ``tasks``; ``overhead`` is the
                measured time of a decision in the paper.

        Example:
            >>> optimizer = SubsetOptimizer.as_published(SearchSpace({"lr": Real(0.0, 1.0)}))
            >>> [round(1 / optimizer.ask().fidelities["fraction"]) for _ in range(7)]
            [512, 256, 128, 64, 32, 16, 512]
        """
        return cls(space, fidelities, **{"fabolas": Fabolas(), **options})

    def _price(self, suggestion: SubsetDecision, cost: float | None) -> float:
        """Return the cost told, or else the product of the fidelities as shares of the target."""
        share = self._domain.share(self._ledger.suggestion(suggestion.round).fidelities)
        price = share if cost is None else check_positive("cost", cost)
        kinds = self._kinds_of_costs | {cost is None}
        if len(kinds) > len(self._kinds_of_costs) > 0:
            message = "No cost was told for some evaluations: they count as shares of the target."
            _logger.warning(message)
        self._kinds_of_costs = kinds
        return price

    def _hint(self, latest: SubsetObservation) -> None:
        """Warn once, too, of doubtful costs; those of enqueued evaluations may be of any kind."""
        super()._hint(latest)
        warn_of_units(self._ledger.outcomes, latest, self._earlier)
        finite = [
            (self._ledger.suggestion(o.round), o) for o in self._ledger.outcomes if not o.failed
        ]
        asked = [(decision, o) for decision, o in finite if decision.reason != ENQUEUED]
        if latest not in [o for _, o in asked]:
            return
        if len(asked) == EVALUATIONS:
            self._check_direction(asked)
        if len(asked) in LATER and self._kinds_of_costs == {False}:
            self._check_flatness(asked)

    def _check_direction(self, asked: Sequence[tuple[SubsetDecision, SubsetObservation]]) -> None:
        """Warn if costs fall toward the target."""
        costs = [outcome.cost for _, outcome in asked]
        names = falling_fidelities([decision.fidelities for decision, _ in asked], costs)
        if names:
            _logger.warning(
                "The costs of the first %d evaluations fall toward the target, the upper bound of "
                "%s: is the fidelity declared the right way round, and is the cost what was paid?",
                *(EVALUATIONS, " and ".join(names)),
            )

    def _check_flatness(self, asked: Sequence[tuple[SubsetDecision, SubsetObservation]]) -> None:
        """Warn if costs do not depend on the fidelities, unless a part of them has shown it before."""
        costs = [outcome.cost for _, outcome in asked]
        shares = [self._domain.share(decision.fidelities) for decision, _ in asked]
        configs = torch.stack([self.space.encode(decision.config) for decision, _ in asked])
        flat = [
            n for n in LATER if n <= len(asked) and are_flat(shares[:n], costs[:n], configs[:n])
        ]
        if flat == [len(asked)]:
            _logger.warning(
                "The costs of the first %d evaluations, %.3g to %.3g, do not depend on %s, from %.3g to "
                "%.3g of the target: does your evaluation read decision.fidelities, and is the cost what "
                "was paid? If so, the smallest parts are not cheaper than others: raise the lower bound.",
                *(len(asked), min(costs), max(costs), " and ".join(asked[0][0].fidelities)),
                *(min(shares), max(shares)),
            )

    @property
    def incumbent(self) -> FrozenConfig | None:
        """The configuration that is surely good at the target; None before the first finite value.

        Of those evaluated, at any fidelity, it has the best mean, less half a standard deviation. It is
        none that failed at the highest fidelity it was tried at, and none whose value at the target is in
        the lower half of the values there. It is one of the third, and of at least sixteen, that were
        tried at the highest fidelities, or ahead of four fifths of the values at fidelities no higher
        than its own. As published, it has the best mean of those that have not failed or proved low.
        """
        best = self._strategy.best(self._seen)
        return None if best is None else FrozenConfig(best)

    def best(self) -> dict[str, Plain] | None:
        """Return ``incumbent``, the configuration that is surely good at the target."""
        best = self.incumbent
        return None if best is None else dict(best)

    def _value_of(self, best: Mapping[str, Plain]) -> str:
        """Return a phrase on the told values of the best configuration, nearest to the target."""
        highest, nearest = self._nearest_to_target(best)
        return f"{text_of_values(nearest, best)} at {_levels(highest)}" if nearest else ""

    def _nearest_to_target(
        self, config: Mapping[str, Plain] | None
    ) -> tuple[Mapping[str, float], list[SubsetObservation]]:
        """Return a configuration's highest fidelities with a value, and the evaluations at these."""
        told = [o for o in self.observations if o.reward is not None and o.config == config]
        pairs = [(self._ledger.suggestion(o.round).fidelities, o) for o in told]
        if not pairs:
            return {}, []
        highest = max((fidelities for fidelities, _ in pairs), key=self._domain.share)
        return highest, [outcome for fidelities, outcome in pairs if fidelities == highest]

    def _remarks(self) -> list[str]:
        """Return how far the evaluations of the incumbent are from the target."""
        highest, nearest = self._nearest_to_target(self.incumbent)
        if not nearest or self._domain.share(highest) > 1 - SAME:
            return []
        return [
            f"best() was evaluated up to {_levels(highest)}, and what it is worth at the target is "
            "predicted: evaluate it there before you rely on it (enqueue takes the target's fidelities)."
        ]

    def believed(self, configs: Sequence[Mapping[str, Plain]]) -> list[float]:
        """Return the means of ``predict`` as a list, as earlier versions did."""
        warn_of("believed", "predict")
        posterior = self.predict(configs)
        check(posterior is not None, "believed", "a finite value that was told", "none")
        return [] if posterior is None else posterior[0].tolist()


def _fraction() -> SearchSpace:
    return SearchSpace({"fraction": Real(_LEAST_FRACTION, 1.0, log=True)})


def _levels(fidelities: Mapping[str, float]) -> str:
    return ", ".join(f"{name}={value:.3g}" for name, value in fidelities.items())
