r"""Drifting functions on the unit cube: their values are exact, their maxima are searched numerically.

A *path* is one random run of a landscape. All random numbers of a path are drawn at construction, so
value and maximum of a round do not depend on the order of calls.

Convention: rounds count from 0, as in ``Decision``.
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

_SCANNED, _CLIMBED = 2000, 24  # points evaluated in a round, and those of them that start an ascent
_FIRST = 10  # factor of both in the first round, which has no optima of an earlier round
_KEPT = 24  # optima of the previous round that start an ascent, too
_APART = 0.05  # distance, times sqrt(d), below which two optima count as the same
_STANDARD = 1024  # points over which a landscape is standardized
_SHARPNESS = (4.0, 10.0)  # range of a bump's sharpness, summed over the coordinates


class DriftingPath(ABC):
    """One run of a drifting function on ``[0, 1]^d``, in double precision.

    The maximum of a round is the best result of many ascents. They start from the best points of a Sobol
    sequence, which differs by round, and from the optima of the previous round. So a drifting optimum is
    followed, and a missed one may be found later. Each round is searched once, after all earlier rounds,
    when its maximum is first needed.
    """

    def __init__(self, dim: int, horizon: int) -> None:
        self.dim, self.horizon = dim, horizon
        self._optima: list[Optima] = []  # one item for each searched round, best optimum first

    def value(self, t: int, X: Tensor) -> Tensor:
        """Return ``f_t`` at points, ``(m, d) -> (m,)``, differentiable.

        Raises:
            InvalidArgumentError: If ``t`` is not a round of the run.
            InvalidShapeError: If ``X`` does not have ``d`` columns.
        """
        self._check_round(t)
        fits = X.dim() == 2 and X.shape[-1] == self.dim
        check(fits, "X", f"shape (m, {self.dim})", tuple(X.shape), InvalidShapeError)
        return self._value(t, X.double())

    def maximum(self, t: int) -> float:
        """Return ``max f_t`` over the cube, as determined by the search."""
        return float(self._searched(t).values[0])

    def maximizer(self, t: int) -> Tensor:
        """Return the maximizer of ``f_t``, shape ``(d,)``."""
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
        starts = [scan[best], *(previous.points[:_KEPT] for previous in self._optima[-1:])]
        bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, self.dim)
        ascent = ascend(
            lambda X: self._value(t, X.squeeze(-2)),
            bounds,
            num_restarts=0,
            bandwidth=0.0,  # ascents are not merged: a rough function has many optima close together
            warm_starts=torch.cat(starts),
        )
        return distinct(ascent, bounds, _APART * self.dim**0.5)

    def _check_round(self, t: int) -> None:
        check_count("t", t)
        check(t < self.horizon, "t", f"a round before {self.horizon}", t)


class DriftingSample:
    r"""A drifting sample of a Gaussian process: ``f_{t+1} = sqrt(1-eps) f_t + sqrt(eps) g``.

    ``f_t(x) = w_t . phi(x)`` with random Fourier features. They are pairs of cosine and sine, so the
    prior variance is 1 at every point. Their frequencies are drawn, for every path, from the spectral
    density of the kernel, which is Student's t for the Matérn families. The weights drift:
    ``w_{t+1} = sqrt(1-eps) w_t + sqrt(eps) g``.

    References:
        - A. Rahimi, B. Recht. Random features for large-scale kernel machines. NeurIPS 2007.
        - I. Bogunovic, J. Scarlett, V. Cevher. Time-varying Gaussian process bandit optimization.
          AISTATS 2016, section 4.

    Args:
        dim: Dimension of the cube.
        lengthscale: Lengthscale of every coordinate.
        forgetting: Forgetting rate ``eps`` in [0, 1], per round.
        family: ``"matern12"``, ``"matern32"``, ``"matern52"`` or ``"rbf"``.
        num_features: Number of random features, even.

    Raises:
        InvalidArgumentError: If a number is outside its range, or the family is unknown.

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
        """Draw a path.

        Args:
            horizon: Rounds of the path, at least 1.
            generator: Random generator of the path.
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
            # Student's t with 2 nu degrees of freedom is a normal over the root of a mean square.
            freedom = round(2 * SMOOTHNESS[self.family])
            normal = normal / _normal((number, freedom), generator).square().mean(-1, True).sqrt()
        return normal.mT / self.lengthscale


class _SamplePath(DriftingPath):
    def __init__(self, frequencies: Tensor, weights: Tensor) -> None:
        super().__init__(len(frequencies), len(weights))
        self._frequencies = frequencies  # shape: (d, r)
        cosines, sines = (weights / frequencies.shape[-1] ** 0.5).chunk(2, -1)
        # a cos z + b sin z = c cos(z - angle) needs one cosine in place of a cosine and a sine.
        self._amplitudes, self._angles = torch.hypot(cosines, sines), torch.atan2(sines, cosines)

    def _value(self, t: int, X: Tensor) -> Tensor:
        return torch.cos(X @ self._frequencies - self._angles[t]) @ self._amplitudes[t]


class DriftingHartmann:
    r"""A drifting Hartmann-like function: bumps on a plain that grow, shrink and move.

    .. math::

        f_t(x) = \frac{1}{s} \Big(\sum_k h_{kt} \exp\Big(-\sum_j A_{kj} (x_j - c_{kjt})^2\Big) - m\Big)

    As in the Hartmann function, some coordinates of a bump matter much more than others: their shares of
    the sharpness ``sum_j A_kj`` differ by more than a factor of ten. Heights are ``exp(z / 2)`` and
    centres ``Phi(z)``, where each ``z`` drifts as ``z_{t+1} = sqrt(1-eps) z_t + sqrt(eps) g``. ``m`` and
    ``s`` standardize a path: its mean and variance over the cube and the rounds are 0 and 1.

    References:
        L. Dixon, G. Szegő. The global optimization problem: an introduction. Towards Global
        Optimization 2, 1978, for the static function.

    Args:
        dim: Dimension of the cube.
        forgetting: Forgetting rate of the heights in [0, 1], per round.
        wandering: Forgetting rate of the centres in [0, 1], per round; a tenth of ``forgetting`` if
            omitted.
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
        """Draw a path.

        Args:
            horizon: Rounds of the path, at least 1.
            generator: Random generator of the path.
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
        squares = (X.unsqueeze(-2) - self._centers[t]).square()
        bumps = torch.exp(-(self._sharpness * squares).sum(-1))
        return (bumps @ self._heights[t] - self._level) / self._spread


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _drift(
    horizon: int, shape: tuple[int, ...], forgetting: float, generator: torch.Generator
) -> Tensor:
    """Draw standard normal numbers that drift, shape ``(horizon, *shape)``."""
    keep = retention_float(forgetting, 1)
    state, path = _normal(shape, generator), []
    for _ in range(horizon):
        path.append(state)
        state = keep * state + math.sqrt(1 - keep**2) * _normal(shape, generator)
    return torch.stack(path)


def _sobol(number: int, dim: int, seed: int) -> Tensor:
    return SobolEngine(dim, scramble=True, seed=seed).draw(number, dtype=torch.float64)
