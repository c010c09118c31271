r"""Drifting functions on the unit cube whose value is known everywhere and whose maximum is searched.

A landscape is drawn as a *path*, one run of it. All randomness of a path is drawn when it is made;
value and maximum of a round do not depend on the order of the calls.

Convention: rounds count from 0, as those of a ``Decision`` do.
"""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_costly.errors import (
    InvalidShapeError,
    check,
    check_count,
    check_positive,
    check_rate,
)
from botorch_costly.numerics.drift import retention_float
from botorch_costly.numerics.radial import FAMILIES, SMOOTHNESS
from botorch_costly.optim import Optima, ascend, distinct
from botorch_costly.randomness import check_generator

_SCANNED, _CLIMBED = 2000, 24  # points of a round that are evaluated, and that are climbed from
_FIRST = 10  # times as many in the first round, which has no round before it
_KEPT = 24  # optima of a round that the next one starts from, too
_APART = 0.05  # optima closer than this, times sqrt(d), are one
_STANDARD = 1024  # points over which a landscape is standardized
_SHARPNESS = (4.0, 10.0)  # of a bump, over all coordinates together


class DriftingPath(ABC):
    """One run of a drifting function on ``[0, 1]^d``, in double precision.

    The maximum of a round is the best end of many ascents: from the best of a Sobol sequence, another
    one every round, and from the optima of the round before. So an optimum, once found, is followed
    while it drifts, and one that was missed may be found later. Rounds are searched in order, each
    once, when its maximum or that of a later round is first asked for.
    """

    def __init__(self, dim: int, horizon: int) -> None:
        self.dim, self.horizon = dim, horizon
        self._optima: list[Optima] = []  # of the rounds searched so far, best first

    def value(self, t: int, X: Tensor) -> Tensor:
        """Return ``f_t`` at points, ``(m, d) -> (m,)``, differentiable.

        Raises:
            InvalidArgumentError: If there is no such round.
            InvalidShapeError: If ``X`` has another number of columns.
        """
        self._check_round(t)
        fits = X.dim() == 2 and X.shape[-1] == self.dim
        check(fits, "X", f"shape (m, {self.dim})", tuple(X.shape), InvalidShapeError)
        return self._value(t, X.double())

    def maximum(self, t: int) -> float:
        """Return ``max f_t`` over the cube, as found by the search."""
        return float(self._searched(t).values[0])

    def maximizer(self, t: int) -> Tensor:
        """Return the point of the maximum, shape ``(d,)``."""
        return self._searched(t).points[0]

    @abstractmethod
    def _value(self, t: int, X: Tensor) -> Tensor:
        """Return ``f_t`` at ``(m, d)`` points in double precision, shape ``(m,)``."""

    def _searched(self, t: int) -> Optima:
        self._check_round(t)
        while len(self._optima) <= t:
            self._optima.append(self._search(len(self._optima)))
        return self._optima[t]

    def _search(self, t: int) -> Optima:
        effort = _FIRST if t == 0 else 1
        scan = _sobol(effort * _SCANNED, self.dim, seed=t)
        with torch.no_grad():
            best = self._value(t, scan).topk(effort * _CLIMBED).indices
        starts = [scan[best], *(former.points[:_KEPT] for former in self._optima[-1:])]
        bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, self.dim)
        ascent = ascend(
            lambda X: self._value(t, X.squeeze(-2)),
            bounds,
            num_restarts=0,
            bandwidth=0.0,  # each start to its own end: a rough truth has many close to each other
            warm_starts=torch.cat(starts),
        )
        return distinct(ascent, bounds, _APART * self.dim**0.5)

    def _check_round(self, t: int) -> None:
        check_count("t", t)
        check(t < self.horizon, "t", f"a round before {self.horizon}", t)


class DriftingSample:
    r"""A sample of a Gaussian process that forgets: ``f_{t+1} = sqrt(1-eps) f_t + sqrt(eps) g``.

    ``f_t(x) = w_t . phi(x)`` with random Fourier features: pairs of cosine and sine, so that the prior
    variance is 1 at every point, and frequencies from the spectral density of the kernel, which is
    Student's t for the Matérn families. Its weights drift, ``w_{t+1} = sqrt(1-eps) w_t + sqrt(eps) g``;
    frequencies are drawn anew for every path.

    References:
        - A. Rahimi, B. Recht. Random features for large-scale kernel machines. NeurIPS 2007.
        - I. Bogunovic, J. Scarlett, V. Cevher. Time-varying Gaussian process bandit optimization.
          AISTATS 2016, section 4.

    Args:
        dim: Dimension of the cube.
        lengthscale: Lengthscale of every coordinate.
        forgetting: Rate in [0, 1] per round.
        family: ``"matern12"``, ``"matern32"``, ``"matern52"`` or ``"rbf"``.
        num_features: Number of random features, even.

    Raises:
        InvalidArgumentError: If a number is outside its range, or the family unknown.

    Example:
        >>> truth = DriftingSample(dim=2, lengthscale=0.5, forgetting=0.01)
        >>> path = truth.path(horizon=3, generator=torch.Generator().manual_seed(0))
        >>> anywhere = path.value(2, torch.rand(100, 2, generator=torch.Generator().manual_seed(1)))
        >>> bool(path.maximum(2) >= anywhere.max())
        True
    """

    def __init__(
        self,
        dim: int,
        lengthscale: float,
        forgetting: float,
        family: str = "matern52",
        num_features: int = 1000,
    ) -> None:
        self.dim = check_count("dim", dim, minimum=1)
        self.lengthscale = check_positive("lengthscale", lengthscale)
        self.forgetting = check_rate("forgetting", forgetting)
        check(family in FAMILIES, "family", f"one of {sorted(FAMILIES)}", family)
        even = check_count("num_features", num_features, minimum=2) % 2 == 0
        check(even, "num_features", "an even number", num_features)
        self.family, self.num_features = family, num_features

    def path(self, horizon: int, generator: torch.Generator) -> DriftingPath:
        """Draw a run.

        Args:
            horizon: Its rounds, at least 1.
            generator: Source of all of its randomness.
        """
        check_generator(generator)
        horizon = check_count("horizon", horizon, minimum=1)
        frequencies = self._frequencies(generator)
        weights = _drift(horizon, (self.num_features,), self.forgetting, generator)
        return _SamplePath(frequencies, weights)

    def _frequencies(self, generator: torch.Generator) -> Tensor:
        """Draw from the spectral density, shape ``(d, num_features / 2)``."""
        number = self.num_features // 2
        normal = _normal((number, self.dim), generator)
        if self.family in SMOOTHNESS:
            # Student's t with 2 nu degrees of freedom: a normal over the root of a mean square.
            freedom = round(2 * SMOOTHNESS[self.family])
            normal = normal / _normal((number, freedom), generator).square().mean(-1, True).sqrt()
        return normal.mT / self.lengthscale


class _SamplePath(DriftingPath):
    def __init__(self, frequencies: Tensor, weights: Tensor) -> None:
        super().__init__(len(frequencies), len(weights))
        self._frequencies = frequencies  # shape: (d, r)
        cosines, sines = (weights / frequencies.shape[-1] ** 0.5).chunk(2, -1)
        # a cos z + b sin z = c cos(z - angle): one function to evaluate where there were two
        self._amplitudes, self._angles = torch.hypot(cosines, sines), torch.atan2(sines, cosines)

    def _value(self, t: int, X: Tensor) -> Tensor:
        return torch.cos(X @ self._frequencies - self._angles[t]) @ self._amplitudes[t]


class DriftingHartmann:
    r"""A Hartmann-like function that drifts: bumps on a plain, which grow, shrink and wander.

    .. math::

        f_t(x) = \frac{1}{s} \Big(\sum_k h_{kt} \exp\Big(-\sum_j A_{kj} (x_j - c_{kjt})^2\Big) - m\Big)

    As in the function of Hartmann, some coordinates of a bump matter much more than others: shares of
    its sharpness ``sum_j A_kj`` are spread over more than a decade. Heights are ``exp(z / 2)`` and
    centres ``Phi(z)``, each of a ``z`` that drifts as ``z_{t+1} = sqrt(1-eps) z_t + sqrt(eps) g``. Level
    ``m`` and spread ``s`` make mean and variance over the cube and the rounds of a path 0 and 1.

    References:
        L. Dixon, G. Szegő. The global optimization problem: an introduction. Towards Global
        Optimization 2, 1978, for the function that stands still.

    Args:
        dim: Dimension of the cube.
        forgetting: Rate in [0, 1] per round at which heights drift.
        wandering: Rate in [0, 1] per round at which centres drift; a tenth of ``forgetting`` if omitted.
        num_bumps: Number of bumps.

    Raises:
        InvalidArgumentError: If a number is outside its range.

    Example:
        >>> path = DriftingHartmann(dim=6).path(2, torch.Generator().manual_seed(0))
        >>> path.value(0, torch.zeros(5, 6)).shape
        torch.Size([5])
    """

    def __init__(
        self,
        dim: int,
        forgetting: float = 0.01,
        wandering: float | None = None,
        num_bumps: int = 6,
    ) -> None:
        self.dim = check_count("dim", dim, minimum=1)
        self.forgetting = check_rate("forgetting", forgetting)
        self.wandering = check_rate(
            "wandering", forgetting / 10 if wandering is None else wandering
        )
        self.num_bumps = check_count("num_bumps", num_bumps, minimum=1)

    def path(self, horizon: int, generator: torch.Generator) -> DriftingPath:
        """Draw a run.

        Args:
            horizon: Its rounds, at least 1.
            generator: Source of all of its randomness.
        """
        check_generator(generator)
        horizon = check_count("horizon", horizon, minimum=1)
        shape = self.num_bumps, self.dim
        share = torch.exp(1.5 * _normal(shape, generator))
        uniform = torch.rand(self.num_bumps, 1, generator=generator, dtype=torch.float64)
        low, high = _SHARPNESS
        sharpness = (low + (high - low) * uniform) * share / share.sum(-1, keepdim=True)
        heights = _drift(horizon, (self.num_bumps,), self.forgetting, generator)
        centers = _drift(horizon, shape, self.wandering, generator)
        return _BumpPath(sharpness, (heights / 2).exp(), torch.special.ndtr(centers))


class _BumpPath(DriftingPath):
    def __init__(self, sharpness: Tensor, heights: Tensor, centers: Tensor) -> None:
        super().__init__(sharpness.shape[-1], len(heights))
        self._sharpness, self._heights, self._centers = sharpness, heights, centers
        self._level, self._spread = 0.0, 1.0
        cube = _sobol(_STANDARD, self.dim, seed=0)
        values = torch.stack([self._value(t, cube) for t in range(self.horizon)])
        self._level, self._spread = float(values.mean()), float(values.std())

    def _value(self, t: int, X: Tensor) -> Tensor:
        apart = (X.unsqueeze(-2) - self._centers[t]).square()
        bumps = torch.exp(-(self._sharpness * apart).sum(-1))
        return (bumps @ self._heights[t] - self._level) / self._spread


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _drift(
    horizon: int, shape: tuple[int, ...], forgetting: float, generator: torch.Generator
) -> Tensor:
    """Draw standard normal numbers that forget, shape ``(horizon, *shape)``."""
    keep = retention_float(forgetting, 1)
    state, path = _normal(shape, generator), []
    for _ in range(horizon):
        path.append(state)
        state = keep * state + math.sqrt(1 - keep**2) * _normal(shape, generator)
    return torch.stack(path)


def _sobol(number: int, dim: int, seed: int) -> Tensor:
    engine = SobolEngine(dim, scramble=True, seed=seed)
    return engine.draw(number, dtype=torch.float64)
