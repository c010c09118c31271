r"""Exploration schedules of the upper confidence bound ``mean + sqrt(beta) std``.

A schedule is called with the round ``t = 1, 2, ..`` and returns ``beta_t``, not its root. ``log`` is the
natural logarithm.
"""

import math
from dataclasses import dataclass
from typing import Protocol

from botorch_costly.errors import (
    check,
    check_count,
    check_nonnegative,
    check_positive,
    check_probability,
)


class BetaSchedule(Protocol):
    """A callable that returns ``beta`` for a round counted from 1.

    It must depend on the round alone, since a waiting tuner calls it for later rounds of its horizon.
    """

    def __call__(self, t: int) -> float:
        """Return ``beta_t``."""


@dataclass(frozen=True)
class ConstantBeta:
    """The same ``beta`` for every round.

    Args:
        beta: Number of at least 0; the paper uses 1 when training networks.
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        check_nonnegative("beta", self.beta)

    def __call__(self, t: int) -> float:
        """Return ``beta_t``."""
        return self.beta


@dataclass(frozen=True)
class LogBeta:
    """``beta_t = c1 log(c2 t)``, as in the experiments of Bogunovic et al. (2016).

    The defaults reproduce TV-GP-UCB in Table A2 of Wang et al. (2021).

    Args:
        c1: Positive factor.
        c2: Number of at least 1, so that no ``beta`` is negative.
    """

    c1: float = 0.8
    c2: float = 4.0

    def __post_init__(self) -> None:
        check_positive("c1", self.c1)
        check_positive("c2", self.c2)
        check(self.c2 >= 1, "c2", "a number >= 1", self.c2)

    def __call__(self, t: int) -> float:
        """Return ``beta_t``."""
        return self.c1 * math.log(self.c2 * t)


@dataclass(frozen=True)
class FiniteDomainBeta:
    """``beta_t = 2 log(|D| t^2 pi^2 / (6 delta))``, with which the bounds hold on a finite domain.

    References:
        J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
        optimization. 2021, Theorem 4.

    Args:
        num_points: Size of the domain ``|D|``.
        delta: The bounds hold jointly with probability ``1 - delta``.
    """

    num_points: int
    delta: float = 0.1

    def __post_init__(self) -> None:
        check_count("num_points", self.num_points, minimum=1)
        check_probability("delta", self.delta)

    def __call__(self, t: int) -> float:
        """Return ``beta_t``."""
        return 2 * math.log(self.num_points * t**2 * math.pi**2 / (6 * self.delta))


@dataclass(frozen=True)
class CompactDomainBeta:
    """The schedule with which the bounds hold on a compact, convex domain ``[0, r]^d``.

    ``beta_t = 2 log(t^2 2 pi^2 / (3 delta)) + 2 d log(t^2 d b r sqrt(log(4 d a / delta)))``

    References:
        J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
        optimization. 2021, Theorem 7.

    Args:
        dim: Dimension ``d``.
        delta: The bounds hold jointly with probability ``1 - delta``.
        a: Scale of the tail bound on the derivatives of samples (eq. 45).
        b: Width of that tail bound.
        r: Side of the domain.
    """

    dim: int
    delta: float = 0.1
    a: float = 1.0
    b: float = 1.0
    r: float = 1.0

    def __post_init__(self) -> None:
        check_count("dim", self.dim, minimum=1)
        check_probability("delta", self.delta)
        for name in ("a", "b", "r"):
            check_positive(name, getattr(self, name))

    def __call__(self, t: int) -> float:
        """Return ``beta_t``."""
        tail = max(math.log(4 * self.dim * self.a / self.delta), 0.0)
        slope = t**2 * self.dim * self.b * self.r * math.sqrt(tail)
        cover = 2 * self.dim * math.log(max(slope, 1.0))
        return 2 * math.log(t**2 * 2 * math.pi**2 / (3 * self.delta)) + cover
