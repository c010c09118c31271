"""Factories that make a tuner's acquisition function for each round.

A tuner calls its factory in every round, with the belief and the round. Any callable
``(belief, now) -> AcquisitionFunction`` can be the factory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from botorch.acquisition import AcquisitionFunction

from botorch_costly.acquisition.beta import BetaSchedule, ConstantBeta
from botorch_costly.acquisition.improvement import TimeVaryingLogEI, TimeVaryingPI, best_mean
from botorch_costly.acquisition.ucb import TimeVaryingUCB
from botorch_costly.calls import advised
from botorch_costly.errors import check
from botorch_costly.models import StreamingGP

MakeAcquisition = Callable[[StreamingGP, int], AcquisitionFunction]


@runtime_checkable
class AcquisitionFactory(Protocol):
    """Makes an acquisition function over configurations for each round."""

    @property
    def schedule(self) -> BetaSchedule:
        """Schedule of ``beta`` for the confidence bounds that query rules read."""

    @property
    def is_bound(self) -> bool:
        """Whether it makes upper confidence bounds, whose optima the tuner follows between queries."""

    def __call__(self, belief: StreamingGP, now: int) -> AcquisitionFunction:
        """Return the acquisition function of round ``now`` (from 0), ``b x 1 x d -> b``."""


@dataclass(frozen=True)
class _Weighted:
    """Base of the factories of this package: a weight of the variance.

    Args:
        beta: A number of at least 0, or a schedule.

    Raises:
        InvalidArgumentError: If ``beta`` is neither.
    """

    beta: float | BetaSchedule = 1.0

    is_bound = False

    def __post_init__(self) -> None:
        if not callable(self.beta):
            ConstantBeta(self.beta)

    @property
    def schedule(self) -> BetaSchedule:
        """Schedule of ``beta`` for the confidence bounds that query rules read."""
        return self.beta if callable(self.beta) else ConstantBeta(self.beta)


@advised
@dataclass(frozen=True)
class UCB(_Weighted):
    """Makes ``TimeVaryingUCB``, the mean plus ``sqrt(beta)`` standard deviations.

    Args:
        beta: A number of at least 0, or a schedule such as ``LogBeta()``; the paper uses 1 when training
            networks.

    Raises:
        InvalidArgumentError: If ``beta`` is neither.
    """

    is_bound = True

    def __call__(self, belief: StreamingGP, now: int) -> TimeVaryingUCB:
        """Return the bound of round ``now``."""
        return TimeVaryingUCB(belief, self.schedule(now + 1), now)


class _OverBestMean(_Weighted):
    """Base of the improvements over the best posterior mean of the configurations observed."""

    improvement: ClassVar[type[AcquisitionFunction]]

    def __call__(self, belief: StreamingGP, now: int) -> AcquisitionFunction:
        """Return the improvement of round ``now``; the belief must have an observation."""
        best = best_mean(belief, belief.inputs[:, :-1], now)
        return self.improvement(belief, best, now)


@advised
@dataclass(frozen=True)
class LogEI(_OverBestMean):
    """Makes ``TimeVaryingLogEI`` over the best posterior mean of the configurations observed.

    Args:
        beta: Number or schedule for the confidence bounds that query rules read.
    """

    improvement = TimeVaryingLogEI


@advised
@dataclass(frozen=True)
class PI(_OverBestMean):
    """Makes ``TimeVaryingPI`` over the best posterior mean of the configurations observed.

    Args:
        beta: Number or schedule for the confidence bounds that query rules read.
    """

    improvement = TimeVaryingPI


@dataclass(frozen=True)
class CustomAcquisition(_Weighted):
    """A plain callable as a factory."""

    make: MakeAcquisition | None = None

    def __call__(self, belief: StreamingGP, now: int) -> AcquisitionFunction:
        """Return the acquisition function that the callable makes for round ``now``."""
        assert self.make is not None
        acquisition = self.make(belief, now)
        expected = "a callable that returns an acquisition function over configurations"
        check(callable(acquisition), "acquisition", expected, acquisition)
        return acquisition


def as_factory(acquisition: AcquisitionFactory | MakeAcquisition) -> AcquisitionFactory:
    """Return a factory unchanged, and a plain callable as a factory with a ``beta`` of 1.

    Raises:
        InvalidArgumentError: If it cannot be called, or is a class of acquisition functions.
    """
    expected = "UCB(), LogEI(), PI() or a callable (belief, round) -> AcquisitionFunction"
    check(callable(acquisition), "acquisition", expected, acquisition)
    is_class = isinstance(acquisition, type)
    check(not is_class, "acquisition", expected, f"the class {acquisition}; call it, or wrap it")
    if isinstance(acquisition, AcquisitionFactory):
        return acquisition
    return CustomAcquisition(make=acquisition)
