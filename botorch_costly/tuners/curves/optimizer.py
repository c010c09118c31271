"""Trainings that are begun, paused and continued as they promise: ask for a stretch, tell its curve."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.protocol import Tells
from botorch_costly.ask_tell.recorded import Withdrawable
from botorch_costly.ask_tell.search import Search
from botorch_costly.ask_tell.state import (
    check_header,
    header,
    taking_over,
    unchanged_on_error,
    undone_on_error,
)
from botorch_costly.curve_records import CurveDecision, CurveObservation
from botorch_costly.device import check_tkwargs
from botorch_costly.errors import (
    InvalidSpaceError,
    check,
    check_count,
    check_rate,
    is_power_of_two,
)
from botorch_costly.parameters import Plain
from botorch_costly.randomness import check_seed, generator_of
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.curves.choice import Chooser, EndChooser, NewPoints
from botorch_costly.tuners.curves.lengths import Lengths
from botorch_costly.tuners.curves.scores import Compression, ScoreChooser
from botorch_costly.tuners.curves.told import observation_of
from botorch_costly.tuners.curves.trainings import Training, Trainings, stretch_of

_SEARCH = Search(num_restarts=8)
_logger = logging.getLogger(__name__)


class CurveOptimizer(Withdrawable[CurveDecision, CurveObservation]):
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
        >>> optimizer.best_seen()["lr"] > 1e-3
        True
    """

    tells: ClassVar[Tells] = "curve"
    records: ClassVar = (CurveDecision, CurveObservation)

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
        tunable = isinstance(space, SearchSpace) and space.dim > 0
        check(tunable, "space", "a SearchSpace with something to tune", space, InvalidSpaceError)
        self.space = space
        self._tkwargs = check_tkwargs(dtype, device)
        self.horizon = None if horizon is None else check_count("horizon", horizon, minimum=1)
        self._lengths = Lengths(space, iterations, candidates, lengths)
        for name, value in (("resumes", resumes), ("maximize", maximize)):
            check(isinstance(value, bool), name, "a bool", value)
        self.maximize = maximize
        self._sign = 1.0 if maximize else -1.0
        check(isinstance(search, Search), "search", "a Search", search)
        compressed = compression is None or isinstance(compression, Compression)
        check(compressed, "compression", "a Compression or None", compression)
        self._ladder = self._lengths.ladder(shortest)
        options = {
            "iterations": self._lengths.told,
            "candidates": self._lengths.digest,
            "shortest": shortest,
            "resumes": resumes,
            "horizon": self.horizon,
            "maximize": maximize,
            "compression": compression,
            "search": search,
            "seed": check_seed(seed),
            "dtype": dtype,
        }
        self._header = header(type(self), space, options)
        self._ledger = Ledger(*self.records)
        self._trainings = Trainings(self._encode, self._lengths.of, self._sign)
        self.resumes = resumes
        self._chooser = self._chooser_of(compression, search, seed)
        self._priced: bool | None = None  # whether costs are told
        self._warned = False

    def _chooser_of(self, compression: Compression | None, search: Search, seed: int) -> Chooser:
        generator = generator_of(seed)
        new = NewPoints(self.space, self._lengths.points, search, generator, self._tkwargs)
        parts = (new, self._ladder, generator)
        if compression is not None:
            return ScoreChooser(*parts, compression, resumes=self.resumes)
        return EndChooser(*parts, resumes=self.resumes)

    def _encode(self, config: Mapping[str, Plain]) -> Tensor:
        return self.space.encode(config).to(**self._tkwargs)

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

    _missing: ClassVar = dict.fromkeys(("reward", "cost", "curve"))
    _missing |= {"broken": False, "failed": False}

    # -- the face ---------------------------------------------------------------------------------

    def ask(self) -> CurveDecision:
        """Decide on the next stretch. An error or an interrupt changes nothing.

        Raises:
            HorizonExceededError: If all stretches of the horizon have been asked for, or every
                configuration of a finite space has been trained to its end, is in training or is left.
        """
        number = self._ledger.next_within(self.horizon)
        with unchanged_on_error(self._chooser), undone_on_error(self._ledger, self._trainings):
            choice = self._chooser.choose(self._trainings)
            again = self.resumes
            return self._asked(choice.stretch(number, self._lengths, self._ladder, resumes=again))

    def _asked(self, decision: CurveDecision) -> CurveDecision:
        with undone_on_error(self._ledger, self._trainings):
            self._ledger.suggest(decision)
            self._trainings.asked(decision)
        return decision

    def adopt(
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
            >>> optimizer.tell(optimizer.adopt({"lr": 0.5}, 3), [0.2, 0.3, 0.35]).reward
            0.35
        """
        number = self._ledger.next_within(self.horizon)
        known = self._lengths.canonical(config)
        before = None if training is None else self._trainings.going_on_with(training, known)
        done, length = 0 if before is None else before.done, self._lengths.of(known)
        end = length if until is None else check_count("until", until)
        check(done < end <= length, "until", f"more than {done}, at most {length}", until)
        return self._asked(
            stretch_of(number, known, before, end, "not asked for", resumes=self.resumes)
        )

    def withdraw(self, decision: CurveDecision) -> None:
        """Take back a stretch; see ``Withdrawable``. Its training is as it was before."""
        with undone_on_error(self._ledger, self._trainings):
            super().withdraw(decision)
            self._trainings.withdrawn(decision)

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
        told = observation_of(decision, curve, cost=cost, broken=broken, priced=self._priced)
        with undone_on_error(self, self._ledger, self._trainings):
            self._priced = cost is not None
            self._trainings.told(decision, told)
            self._ledger.tell(told)
        so_far = self._trainings.broken
        if told.broken and not told.failed and is_power_of_two(so_far):
            _logger.warning("Training %d diverged (%d so far).", decision.training, so_far)
        self._warn_of_losses()
        return told

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
        told = observation_of(decision, curve, cost=cost, broken=None, priced=self._priced)
        after = self._trainings.after(decision, told)
        if told.broken or not after.may_go_on:
            return True
        state = self._chooser.state_dict()
        try:
            choice = self._chooser.choose(self._trainings.with_one(after))
        finally:
            self._chooser.load_state_dict(state)
        return choice.training is None or choice.training.number != after.number

    def best_seen(self) -> dict[str, Plain] | None:
        """Return the configuration of ``best_training``; None without one."""
        best = self.best_training
        return None if best is None else dict(best.config)

    @property
    def best_training(self) -> Training | None:
        """The training whose latest value is best: the network at hand.

        None of those that diverged, whose weights may be lost; None if there is no other with a value.
        """
        return self._trainings.best

    @property
    def trainings(self) -> tuple[Training, ...]:
        """All trainings, in the order in which they were begun."""
        return tuple(self._trainings)

    @property
    def paid(self) -> float:
        """What all stretches told have cost."""
        return self._trainings.paid

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
        return self._chooser.early_signal(share)

    def summary(self) -> str:
        """Return a few lines on what was trained, paid and found."""
        unit = "" if self._priced else " iterations"
        return self._trainings.summary(len(self.pending), unit, self.early_signal(0.25))

    # -- what is told -----------------------------------------------------------------------------

    def _warn_of_losses(self) -> None:
        """Warn once if most curves fall."""
        if self._warned or not self._trainings.fall:
            return
        self._warned = True
        better = "larger" if self._sign > 0 else "smaller"
        _logger.warning("Most curves grow worse, if %s is better: is maximize right?", better)

    # -- the state --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values from which the run continues identically."""
        return {
            "header": dict(self._header),
            "ledger": self._ledger.state_dict(),
            "chooser": self._chooser.state_dict(),
            "priced": self._priced,
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
            trainings = Trainings(self._encode, self._lengths.of, self._sign)
            trainings.replay(self._ledger.suggestions, self._ledger.outcomes)
            told = len(self._ledger.outcomes) > 0
            known = isinstance(state["priced"], bool) if told else state["priced"] is None
            check(known, "priced", "a bool once a cost may have been told", state["priced"])
        self._trainings, self._priced = trainings, state["priced"]
