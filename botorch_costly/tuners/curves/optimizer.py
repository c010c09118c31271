"""Trainings that are begun, paused and continued as they promise: ask for a segment, tell its curve."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from botorch_costly.ask_tell.domain import Domain
from botorch_costly.ask_tell.frame import Frame
from botorch_costly.ask_tell.protocol import Tells
from botorch_costly.ask_tell.search import Search
from botorch_costly.curve_records import CurveDecision, CurveObservation
from botorch_costly.errors import check, check_rate, is_power_of_two
from botorch_costly.parameters import Plain
from botorch_costly.randomness import check_seed, generator_of
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.curves.choice import Chooser, EndChooser, NewPoints
from botorch_costly.tuners.curves.lengths import Lengths
from botorch_costly.tuners.curves.scores import Compression, ScoreChooser
from botorch_costly.tuners.curves.strategy import CurveStrategy
from botorch_costly.tuners.curves.told import observation_of
from botorch_costly.tuners.curves.trainings import Training

_SEARCH = Search(num_restarts=8)
_logger = logging.getLogger(__name__)


class CurveOptimizer(Frame[CurveDecision, CurveObservation]):
    r"""Tune hyperparameters over many trainings, none of which is longer than it is worth.

    ``ask`` says which configuration to train, from which of its iterations to which; ``tell`` hands in
    what the stretch has shown and what it cost. A training is begun, goes on or is left as it promises:
    next is the one whose expected improvement at its *end* is largest by the cost until then.

    Several stretches may be asked for before one is told: none of them is of a training that is under
    way.

    References:
        V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020:
        configuration and length chosen together, by what they promise and cost.

    Args:
        space: Of the configurations.
        iterations: Of a whole training, such as its epochs: a number, or the name of the ``Integer``
            that says it.
        candidates: The configurations to choose from; all of the space if omitted.
        lengths: Iterations of a whole training of each candidate, in place of ``iterations``.
        shortest: Iterations of the shortest look at a configuration.
        resumes: Whether a training can go on from where it stopped. If not, each stretch begins anew.
        horizon: The most stretches that are asked for; ``None`` if unknown.
        maximize: Whether larger values are better.
        compression: Makes scores of curves, whose improvement by cost says what is next and for how long,
            as in BOIL; ranks and ends are what is believed in by default.
        search: How a large space is searched: from how many of the best points looked at.
        seed: The one source of randomness; the global generators are never touched.
        dtype: Of all computation, ``torch.float64`` or ``torch.float32``.
        device: Of all computation. Draws are made on the CPU, so that a state moves between devices.

    Raises:
        InvalidArgumentError: If an argument is outside its range, or there is no such device here.
        InvalidConfigError: If a candidate does not belong to the space.
        InvalidSpaceError: If the space holds a single configuration.

    Example:
        >>> import math
        >>> import numpy as np
        >>> from botorch_costly import Real
        >>> optimizer = CurveOptimizer(SearchSpace({"lr": Real(1e-4, 1e-1, log=True)}), 27)
        >>> for _ in range(12):
        ...     stretch = optimizer.ask()
        ...     at = np.arange(stretch.since + 1, stretch.until + 1)
        ...     curve = 1 - math.exp(-100 * stretch.config["lr"]) / at
        ...     _ = optimizer.tell(stretch, curve, cost=float(stretch.iterations))
        >>> optimizer.best()["lr"] > 1e-3
        True
    """

    tells: ClassVar[Tells] = "curve"
    predicts: ClassVar[bool] = True
    records: ClassVar = (CurveDecision, CurveObservation)

    _strategy: CurveStrategy
    _missing: ClassVar = {
        "reward": None,
        "cost": None,
        "curve": None,
        "broken": False,
        "failed": False,
    }

    def __init__(
        self,
        space: SearchSpace,
        iterations: int | str | None = None,
        *,
        candidates: Sequence[Mapping[str, Plain]] | None = None,
        lengths: Sequence[int] | None = None,
        shortest: int = 1,
        resumes: bool = True,
        horizon: int | None = None,
        maximize: bool = True,
        compression: Compression | None = None,
        search: Search = _SEARCH,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        domain = Domain(space, dtype=dtype, device=device)
        wholes = Lengths(space, iterations, candidates, lengths)
        check(isinstance(resumes, bool), "resumes", "a bool", resumes)
        check(isinstance(search, Search), "search", "a Search", search)
        compressed = compression is None or isinstance(compression, Compression)
        check(compressed, "compression", "a Compression or None", compression)
        options = {
            "iterations": wholes.told,
            "candidates": wholes.digest,
            "shortest": shortest,
            "resumes": resumes,
            "horizon": horizon,
            "maximize": maximize,
            "compression": compression,
            "search": search,
            "seed": check_seed(seed),
            "dtype": dtype,
        }
        ladder, generator, self.resumes = wholes.ladder(shortest), generator_of(seed), resumes
        new = NewPoints(space, wholes.points, search, generator, domain.tkwargs)
        chooser: Chooser = EndChooser(new, ladder, generator, resumes=resumes)
        if compression is not None:
            chooser = ScoreChooser(new, ladder, generator, compression, resumes=resumes)
        sign = -1.0 if maximize is False else 1.0
        strategy = CurveStrategy(domain, wholes, ladder, chooser, sign, resumes=resumes)
        super().__init__(domain, strategy, horizon=horizon, maximize=maximize, options=options)
        self._warned = False

    @classmethod
    def as_published(
        cls, space: SearchSpace, iterations: int | str | None = None, **options: Any
    ) -> "CurveOptimizer":
        """Return BOIL as published: a learnt sigmoid, and trainings that begin anew.

        Args:
            space: As above.
            iterations: As above.
            **options: As above, but ``compression`` and ``resumes``.
        """
        sigmoid = Compression(softplus=True)
        return cls(space, iterations, compression=sigmoid, resumes=False, **options)

    def enqueue(
        self,
        config: Mapping[str, Plain],
        until: int | None = None,
        *,
        training: int | None = None,
    ) -> CurveDecision:
        """Enter a stretch that was not asked for, such as that of another program, to be told.

        Args:
            config: Its configuration, of the space, or of the candidates where these have lengths.
            until: Iterations that it is trained for then; those of a whole training if omitted.
            training: Number of the training that goes on; a new one if omitted.

        Returns:
            The decision to tell. Until then it is under way, as one that was asked for.

        Raises:
            HorizonExceededError: If all stretches of the horizon have been asked for.
            InvalidConfigError: If the configuration does not belong to the space.
            InvalidArgumentError: If the training is of another configuration or cannot go on, or
                ``until`` is beyond a whole one, or no more than it has. The optimizer is unchanged.

        Example:
            >>> from botorch_costly import Real
            >>> optimizer = CurveOptimizer(SearchSpace({"lr": Real(0.0, 1.0)}), 9)
            >>> optimizer.tell(optimizer.enqueue({"lr": 0.5}, 3), [0.2, 0.3, 0.35]).reward
            0.35
        """
        number = self._ledger.next_within(self.horizon)
        proposal = self._strategy.segment(number, config, until, training)
        return self._enqueue(self._suggestion(number, proposal))

    def tell(
        self,
        decision: CurveDecision,
        curve: Sequence[float | None] | Tensor | None,
        *,
        cost: float | None = None,
        broken: bool | None = None,
    ) -> CurveObservation:
        """Hand in what a stretch has shown.

        Args:
            decision: What ``ask`` returned, once; in any order, late, or never.
            curve: A value for each iteration of the stretch, from ``decision.since + 1`` on; None where
                none was measured. A shorter curve is of a training that was stopped early, and may go on.
                None in its place if nothing came of the stretch: its training is as it was before.
                After two stretches in a row that did not bring it farther it is left.
            cost: Of the stretch, in any unit, such as seconds; its iterations, at least one, if omitted.
                Omit it always or never.
            broken: Whether the training has diverged and cannot go on; by default, whether its last
                value was measured and is not finite. What diverged counts as having ended at the lowest
                value seen.

        Returns:
            The record of the stretch, its ``reward`` the last value.

        Raises:
            UnknownDecisionError: If this optimizer never asked for the stretch.
            AlreadyToldError: If it was told before.
            InvalidShapeError: If the curve is empty, longer than the stretch, or no row of numbers.
            InvalidArgumentError: If a value is no number, or a cost not positive, or told at times only.
                In all cases the optimizer is unchanged.
        """
        self._ledger.check_open(decision)
        priced = self._strategy.priced
        outcome = observation_of(decision, curve, cost=cost, broken=broken, priced=priced)
        with self._strategy.noting():
            self._strategy.priced = cost is not None
            self._tell(outcome)
        diverged = self._strategy.trainings.broken
        if outcome.broken and not outcome.failed and is_power_of_two(diverged):
            _logger.warning("Training %d diverged (%d so far).", decision.training, diverged)
        self._warn_of_losses()
        return outcome

    def should_stop(
        self,
        decision: CurveDecision,
        curve: Sequence[float | None] | Tensor,
        *,
        cost: float | None = None,
    ) -> bool:
        """Return whether a stretch that is under way should be stopped, by the rule of ``ask``.

        It should if, told what it has shown so far, the next stretch would not be one of its training.
        Nothing is recorded. After a stop tell what there is.

        Args:
            decision: What ``ask`` returned.
            curve: A value for each iteration so far.
            cost: So far.

        Raises:
            CostlyError: Those of ``tell``, and of ``ask`` where all is trained or in training.
        """
        self._ledger.check_open(decision)
        priced = self._strategy.priced
        outcome = observation_of(decision, curve, cost=cost, broken=None, priced=priced)
        return outcome.broken or self._strategy.leaves(decision, outcome)

    def best(self) -> dict[str, Plain] | None:
        """Return the configuration of ``best_training``; None without one."""
        training = self.best_training
        return None if training is None else dict(training.config)

    @property
    def best_training(self) -> Training | None:
        """The training whose latest value is best: the network at hand.

        None of those that diverged, whose weights may be lost; None if there is no other with a value.
        """
        return self._strategy.trainings.best

    @property
    def trainings(self) -> tuple[Training, ...]:
        """All trainings, in the order in which they were begun."""
        return tuple(self._strategy.trainings)

    def early_signal(self, share: float) -> float | None:
        """Return how well ranks after a share of a training are believed to foretell those at its end.

        Near 0 early values carry no signal, and short looks are not worth their cost.

        Args:
            share: Of a whole training, in (0, 1].

        Returns:
            A correlation in [0, 1]; None before anything has been learnt of it.

        Raises:
            InvalidArgumentError: If the share is out of range.
        """
        check(check_rate("share", share) > 0, "share", "a number in (0, 1]", share)
        return self._strategy.early_signal(share)

    def summary(self) -> str:
        """Return a few lines on the trainings, their cost and the best configuration."""
        unit = "" if self._strategy.priced else " iterations"
        signal = self.early_signal(0.25)
        return self._strategy.trainings.summary(len(self.pending), unit, signal)

    def _warn_of_losses(self) -> None:
        """Warn once if most curves get worse."""
        if self._warned or not self._strategy.trainings.fall:
            return
        self._warned = True
        better = "larger" if self.maximize else "smaller"
        _logger.warning("Most curves grow worse, if %s is better: is maximize right?", better)
