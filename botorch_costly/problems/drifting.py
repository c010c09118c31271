"""A drifting function on a finite domain: the synthetic setting of Bogunovic et al. and Wang et al."""

from collections.abc import Iterator

import torch
from torch import Tensor

from botorch_costly.errors import (
    InvalidShapeError,
    check,
    check_count,
    check_positive,
    check_rate,
)
from botorch_costly.numerics.cholesky import sure_root
from botorch_costly.numerics.drift import retention_float
from botorch_costly.numerics.radial import check_family
from botorch_costly.numerics.stationary import Stationary, covariance
from botorch_costly.randomness import check_generator

# In units of the prior variance. On 1,000 points a Matérn covariance is singular in double precision.
_JITTER = 1e-10


class DriftingFunction:
    r"""A drifting function on finitely many points: ``f_{t+1} = sqrt(1-eps) f_t + sqrt(eps) g``.

    References:
        I. Bogunovic, J. Scarlett, V. Cevher. Time-varying Gaussian process bandit optimization.
        AISTATS 2016, section 4.

    Args:
        points: Points of the domain, shape ``(n, d)``.
        kernel: Covariance of ``f`` and of every innovation ``g``.
        forgetting: Forgetting rate ``eps`` in [0, 1], per round.
        noise: Noise variance of an observation, positive.

    Raises:
        InvalidArgumentError: If a number is outside its range.
        InvalidShapeError: If ``points`` is not a matrix.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> truth = DriftingFunction.on_unit_interval(100, forgetting=0.01)
        >>> truth.paths(horizon=5, trials=2, generator=generator).shape
        torch.Size([2, 5, 100])
    """

    def __init__(self, points: Tensor, kernel: Stationary, forgetting: float, noise: float) -> None:
        matrix = points.dim() == 2 and points.shape[0] > 0
        check(matrix, "points", "shape (n, d)", tuple(points.shape), InvalidShapeError)
        check_family(kernel.family)
        self.points = points
        self.forgetting = check_rate("forgetting", forgetting)
        self.noise = check_positive("noise", noise)
        self.prior_cov = covariance(kernel, points, points)
        jitter = _JITTER * self.prior_cov.diagonal().mean()
        eye = torch.eye(len(points), dtype=points.dtype, device=points.device)
        self._root = sure_root(self.prior_cov + jitter * eye)

    @classmethod
    def on_unit_interval(
        cls,
        num_points: int = 1000,
        forgetting: float = 0.01,
        noise: float = 0.01,
        lengthscale: float = 0.2,
        family: str = "matern32",
    ) -> "DriftingFunction":
        """Return the function of the papers' experiments: Matérn-3/2 on a grid over [0, 1]."""
        points = torch.linspace(0, 1, num_points, dtype=torch.float64).unsqueeze(-1)
        scales = (
            torch.tensor([lengthscale], dtype=torch.float64),
            torch.ones((), dtype=torch.float64),
        )
        return cls(points, Stationary(family, *scales), forgetting, noise)

    def rounds(self, trials: int, generator: torch.Generator) -> Iterator[Tensor]:
        """Yield ``f_t`` for t = 1, 2, ..., endlessly, each of shape ``(trials, n)``."""
        trials = check_count("trials", trials, minimum=1)
        keep = retention_float(self.forgetting, 1)
        values = self._draw(trials, check_generator(generator))
        while True:
            yield values
            values = keep * values + (1 - keep**2) ** 0.5 * self._draw(trials, generator)

    def paths(self, horizon: int, trials: int, generator: torch.Generator) -> Tensor:
        """Return ``f_1`` to ``f_horizon`` of each trial, shape ``(trials, horizon, n)``."""
        horizon = check_count("horizon", horizon, minimum=1)
        rounds = self.rounds(trials, generator)
        return torch.stack([next(rounds) for _ in range(horizon)], 1)

    def observe(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Return noisy observations of ``values``, in their shape."""
        check_generator(generator)
        noise = torch.randn(
            values.shape, generator=generator, dtype=values.dtype, device=values.device
        )
        return values + self.noise**0.5 * noise

    def of_normal(self, normal: Tensor) -> Tensor:
        """Transform standard normal numbers into samples of the prior, ``(k, n) -> (k, n)``."""
        return normal @ self._root.mT

    def _draw(self, trials: int, generator: torch.Generator) -> Tensor:
        like = self.points
        normal = torch.randn(
            trials, len(like), generator=generator, dtype=like.dtype, device=like.device
        )
        return self.of_normal(normal)
