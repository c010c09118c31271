"""``CurveOptimizer``: trainings are started, paused and continued by their expected improvement."""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from botorch_costly.ask_tell.clocks import Clocks
from botorch_costly.ask_tell.domain import Domain
from botorch_costly.ask_tell.evaluations import sign_of
from botorch_costly.ask_tell.frame import Frame
from botorch_costly.ask_tell.protocol import Tells
from botorch_costly.ask_tell.search import Search
from botorch_costly.curve_records import CurveDecision, CurveObservation
from botorch_costly.errors import check, check_rate, is_power_of_two
from botorch_costly.parameters import Plain
from botorch_costly.randomness import check_seed, generator_of
from botorch_costly.rewards.running_best import RunningBest
from botorch_costly.space import SearchSpace
from botorch_costly.task_records import Task
from botorch_costly.tuners.curves.choice import Chooser, EndChooser, NewPoints
from botorch_costly.tuners.curves.lengths import Lengths
from botorch_costly.tuners.curves.outcomes import curve_observation_of
from botorch_costly.tuners.curves.restarts import begin_anew, cost_sums
from botorch_costly.tuners.curves.scores import Compression, ScoreChooser
from botorch_costly.tuners.curves.sparse import CURVES, seem_sparse
from botorch_costly.tuners.curves.strategy import CurveStrategy
from botorch_costly.tuners.curves.trainings import Training
from botorch_costly.tuners.earlier.percent import warn_of_units
from botorch_costly.tuners.earlier.studies import EarlierStudies

_SEARCH = Search(num_restarts=8)
_logger = logging.getLogger(__name__)


class CurveOptimizer(Frame[CurveDecision, CurveObservation]):
    r"""Tune hyperparameters over many trainings, and stop each training when it is not worth its cost.

    ``ask`` returns a segment of a training: a configuration, the iteration to continue from, and the one
    to stop at. ``tell`` takes the segment's curve and cost. The next training, new or paused, has the
    largest expected improvement at its *end* per unit of remaining cost.

    Several segments may be pending; they belong to different trainings.

    Values count by their ranks, and by their growth in units that a value far below all others does not
    set. A training that diverged counts as one that ended at the lowest value, and one far above all
    others counts as the best of these, until several confirm it.

    References:
        V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020:
        configuration and length are chosen together, by their expected improvement and cost.

    Args:
        space: Search space of the configurations.
        iterations: Iterations of a whole training, such as its epochs: a number, or the name of the
            ``Integer`` parameter that holds it.
        tasks: Earlier studies, with final values or curves of the same metric in the same direction. A
            search begins with three configurations that are good on them, and learns how much they say.
        fill: Values of parameters that the tasks lack, by name; see ``Task.in_space``.
        candidates: Configurations to choose from; the whole space if omitted.
        lengths: Iterations of a whole training of each candidate, in place of ``iterations``.
        shortest: Iterations of the shortest segment of a new training.
        resumes: Whether a training can be resumed where it stopped. If not, each segment restarts the
            training from scratch.
        start: Configuration whose training is begun first, if one is known to be good.
        horizon: Largest number of segments; ``None`` if unknown.
        seconds: Seconds that the run may take, from the first ``ask`` on; no limit if omitted.
        maximize: Whether larger values are better.
        compression: Scores of curves as in BOIL, whose improvement per cost decides on configuration and
            length. If omitted, models of the ranks and of the growth of rewards decide.
        search: Settings of the search of a large space; the number of starts is read.
        seed: Seed of all random draws; the global generators are never touched.
        dtype: ``torch.float64`` or ``torch.float32``, the type of all computation.
        device: Device of all computation. Draws are made on the CPU, so that a state moves between
            devices.

    Raises:
        InvalidArgumentError: If an argument is outside its range, there is no such device here, or there
            are tasks beside a compression.
        InvalidConfigError: If a candidate, the start, or all of a task, does not belong to the space.
        InvalidSpaceError: If the space holds a single configuration.

    Example:
        >>> import math
        >>> import numpy as np
        >>> from botorch_costly import Real
        >>> optimizer = CurveOptimizer(SearchSpace({"lr": Real(1e-4, 1e-1, log=True)}), 27)
        >>> for _ in range(12):
        ...     segment = optimizer.ask()
        ...     epochs = np.arange(segment.since + 1, segment.until + 1)
        ...     curve = 1 - math.exp(-100 * segment.config["lr"]) / epochs
        ...     _ = optimizer.tell(segment, curve, cost=float(segment.iterations))
        >>> optimizer.best()["lr"] > 1e-3
        True
    """

    tells: ClassVar[Tells] = "curve"
    predicts: bool = True
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
        tasks: Sequence[Task] = (),
        fill: Mapping[str, Any] | None = None,
        candidates: Sequence[Mapping[str, Plain]] | None = None,
        lengths: Sequence[int] | None = None,
        shortest: int = 1,
        resumes: bool = True,
        start: Mapping[str, Plain] | None = None,
        horizon: int | None = None,
        seconds: float | None = None,
        maximize: bool = True,
        compression: Compression | None = None,
        search: Search = _SEARCH,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        domain = Domain(space, dtype=dtype, device=device)
        wholes = Lengths(space, iterations, candidates, lengths)  # of whole trainings
        check(isinstance(resumes, bool), "resumes", "a bool", resumes)
        check(isinstance(search, Search), "search", "a Search", search)
        compressed = compression is None or isinstance(compression, Compression)
        check(compressed, "compression", "a Compression or None", compression)
        sign = sign_of(maximize)
        earlier = EarlierStudies(space, tasks, sign, fill=fill, tkwargs=domain.tkwargs)
        none = compression is None or not len(tasks)
        check(none, "tasks", "none beside a compression", f"{len(tasks)} tasks")
        options = {
            "iterations": wholes.described,
            "candidates": wholes.digest,
            "tasks": earlier.digest,
            "shortest": shortest,
            "resumes": resumes,
            "maximize": maximize,
            "compression": compression,
            "search": search,
            "seed": check_seed(seed),
            "dtype": dtype,
        }
        ladder, generator, self.resumes = wholes.ladder(shortest), generator_of(seed), resumes
        new = NewPoints(space, wholes.points, search, generator, domain.tkwargs, earlier)
        chooser: Chooser = EndChooser(new, ladder, generator, resumes=resumes, earlier=earlier)
        if compression is not None:
            chooser = ScoreChooser(new, ladder, generator, compression, resumes=resumes)
        strategy = CurveStrategy(domain, wholes, ladder, chooser, sign, resumes=resumes)
        first = None if start is None else wholes.canonical(start)
        super().__init__(
            domain,
            strategy,
            horizon=horizon,
            maximize=maximize,
            options=options,
            start=first,
            clocks=Clocks(seconds),
        )
        self.predicts = compression is None  # scores of curves are in no unit of the values
        self._warned = self._stops_early = False
        self._best = RunningBest("accuracy" if maximize else "loss")
        self._earlier = earlier.values

    @classmethod
    def as_published(
        cls, space: SearchSpace, iterations: int | str | None = None, **options: Any
    ) -> "CurveOptimizer":
        """Return BOIL as published: a fitted sigmoid, and trainings that restart from scratch.

        The unit of costs counts, for they pass through a softplus: it changes them little where a whole
        training costs ten or more, as in the paper's seconds. The paper's segments have at least
        ``shortest`` = 3/8 of a training on CartPole; without such a bound, the cost alone may decide, and
        only the shortest segments are asked for.

        Args:
            space: Search space of the configurations.
            iterations: Iterations of a whole training, as in the constructor.
            **options: Further arguments of the constructor, without ``compression`` and ``resumes``.
        """
        sigmoid = Compression(softplus=True)
        return cls(space, iterations, compression=sigmoid, resumes=False, **options)

    def enqueue(
        self, config: Mapping[str, Plain], until: int | None = None, *, training: int | None = None
    ) -> CurveDecision:
        """Enter a segment of your own, such as that of another program, in place of the next one.

        Args:
            config: Configuration of the space; one of the candidates if these have lengths.
            until: Last iteration of the segment; the end of the training if omitted.
            training: Number of the training to continue; a new one if omitted.

        Returns:
            The decision to tell. Until then it is pending, like one that was asked for.

        Raises:
            HorizonExceededError: If all segments of the horizon have been asked for.
            InvalidConfigError: If the configuration does not belong to the space.
            InvalidArgumentError: If the training has another configuration or cannot go on, or ``until``
                is beyond the end of the training, or not beyond its current iteration. The optimizer is
                unchanged.

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
        """Record the curve of a segment.

        Args:
            decision: A decision of ``ask`` or ``enqueue``, or a copy; once, in any order, or never.
            curve: A value for each iteration of the segment, from ``decision.since + 1`` on; None for an
                iteration without a measurement. A shorter curve means that the segment was stopped early;
                its training may go on. None in place of the curve if the segment failed: its training is
                as it was before. After two segments in a row without progress a training is abandoned.
            cost: Cost of the segment, in any unit, such as seconds; the number of its iterations, but at
                least one, if omitted. Omit it always or never.
            broken: Whether the training has diverged and cannot go on; by default, whether its last
                value was measured and is not finite. A diverged training counts as one that ended at the
                lowest value seen.

        Returns:
            The record of the segment; its ``reward`` is the last value.

        Raises:
            UnknownDecisionError: If this optimizer never asked for the segment.
            AlreadyToldError: If it was told before.
            InvalidShapeError: If the curve is empty, longer than the segment, or no row of numbers.
            InvalidArgumentError: If a value is no number, a cost is not positive, or only some segments
                have costs. In all cases the optimizer is unchanged.
        """
        self._ledger.check_open(decision)
        priced = self._strategy.priced
        outcome = curve_observation_of(decision, curve, cost=cost, broken=broken, priced=priced)
        self._tell(outcome, cost is not None)
        diverged = self._strategy.trainings.broken
        if outcome.broken and not outcome.failed and is_power_of_two(diverged):
            _logger.warning("Training %d diverged (%d so far).", decision.training, diverged)
        warn_of_units(self._ledger.outcomes, outcome, self._earlier)
        self._warn_of_losses()
        self._best.restart()
        for value in outcome.curve:
            self._best.watch(math.nan if value is None else value)
        self._warn_of_sparse_curves(outcome)
        self._warn_of_restarts(decision, outcome, priced=cost is not None)
        if cost is not None:
            self._warn_of_rising_costs(decision.round)
        return outcome

    def should_stop(
        self,
        decision: CurveDecision,
        curve: Sequence[float | None] | Tensor,
        *,
        cost: float | None = None,
    ) -> bool:
        """Return whether a pending segment should be stopped early, by the rule of ``ask``.

        It should if ``ask`` would choose another training after the curve so far. Nothing is recorded;
        after a stop, tell the curve so far.

        Args:
            decision: A decision of ``ask`` or ``enqueue``.
            curve: A value for each iteration so far.
            cost: Cost so far.

        Raises:
            CostlyError: An error of ``tell``, or of ``ask`` if no training is left to choose.
        """
        self._ledger.check_open(decision)
        priced = self._strategy.priced
        outcome = curve_observation_of(decision, curve, cost=cost, broken=None, priced=priced)
        stops = outcome.broken or self._strategy.leaves(decision, outcome)
        self._stops_early |= stops
        return stops

    def best(self) -> dict[str, Plain] | None:
        """Return the configuration of ``best_training``; None without one."""
        training = self.best_training
        return None if training is None else dict(training.config)

    @property
    def best_training(self) -> Training | None:
        """The training with the best latest value; None without one.

        Diverged trainings do not count, for their weights may be lost.
        """
        return self._strategy.trainings.best

    @property
    def trainings(self) -> tuple[Training, ...]:
        """All trainings, in the order of their start."""
        return tuple(self._strategy.trainings)

    def early_signal(self, share: float) -> float | None:
        """Return the estimated correlation of values after a share of a training with the final values.

        If it is near 0, early values carry no signal, and short segments are not worth their cost.

        Args:
            share: Share of a whole training, in (0, 1].

        Returns:
            A correlation in [0, 1]; None before it can be estimated.

        Raises:
            InvalidArgumentError: If the share is out of range.
        """
        check(check_rate("share", share) > 0, "share", "a number in (0, 1]", share)
        return self._strategy.early_signal(share)

    def summary(self) -> str:
        """Return a few lines on the trainings, their cost and the best configuration."""
        unit = "" if self._strategy.priced else " iterations"
        signal = self.early_signal(0.25)
        trainings = self._strategy.trainings.summary(len(self.pending), unit, signal)
        return "\n".join([trainings, *self._on_the_clock()])

    def _remarks(self) -> list[str]:
        signal = self.early_signal(0.25)
        sentence = "Values after a quarter of a training have a correlation of"
        return [] if signal is None else [f"{sentence} {signal:.2f} with those at its end."]

    def _warn_of_sparse_curves(self, latest: CurveObservation) -> None:
        """Warn if the first curves have a value for some iterations, which count for the first ones.

        Segments of one iteration and those that failed say nothing of it.
        """
        told = [(o, self._ledger.suggestion(o.round).iterations) for o in self._ledger.outcomes]
        telling = [(o, asked) for o, asked in told if asked > 1 and not o.failed]
        is_due = len(telling) == CURVES and latest in [outcome for outcome, _ in telling]
        lengths = [(len(outcome.curve), asked) for outcome, asked in telling]
        if is_due and not self._stops_early and seem_sparse(lengths):
            _logger.warning(
                "The first %d curves have fewer values than their segments have iterations (%s): they "
                "are taken for those of the first iterations, after which training was stopped. Tell a "
                "value for each iteration, None where there is no measurement: [None, None, value].",
                *(CURVES, ", ".join(f"{values} of {asked}" for values, asked in lengths)),
            )

    def _warn_of_restarts(
        self, decision: CurveDecision, latest: CurveObservation, *, priced: bool
    ) -> None:
        """Warn once if continued segments begin anew, or have the costs of their whole trainings."""
        if decision.since == 0:
            return
        told = [(self._ledger.suggestion(o.round), o) for o in self._ledger.outcomes]
        if begin_anew(told, latest):
            _logger.warning(
                "Several continued segments begin near the first values of their trainings, not near "
                "the latest: load the checkpoint of decision.training up to decision.since before you go "
                "on, or construct the optimizer with resumes=False."
            )

        if priced and cost_sums(told, latest):
            _logger.warning(
                "The costs of continued segments grow with all iterations of their trainings, not with "
                "those of the segment: tell what each segment has cost alone."
            )

    def _warn_of_losses(self) -> None:
        """Warn once if most curves get worse."""
        if self._warned or not self._strategy.trainings.fall:
            return
        self._warned = True
        better = "larger" if self.maximize else "smaller"
        _logger.warning("Most curves grow worse, if %s is better: is maximize right?", better)
