"""Compression of learning curves into scores that a Gaussian process can model."""

import math

import torch
from gpytorch import Module
from gpytorch.constraints import Interval
from gpytorch.priors import Prior
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from botorch_costly.errors import InvalidShapeError, check, check_count
from botorch_costly.numerics.compression import (
    HALF_WIDTH,
    latest_rewards,
    prefix_scores,
    sigmoid_weights,
)
from botorch_costly.priors import register_prior

MIDPOINTS = (-HALF_WIDTH, HALF_WIDTH)
GROWTHS = (0.1, 6.0)
WEIGHTINGS = ("sigmoid", "log", "average", "last")


class CurveCompression(Module):
    r"""Score learning curves by a weighted sum of their rewards, with learnt weights.

    ``score(t) = sum_{u <= t} r(u) / (1 + exp(-growth (s(u) - midpoint)))``

    The iterations ``u = 1 .. longest`` are scaled to ``s(u)`` in [-6, 6]. With a late midpoint, early
    iterations have almost no weight. Midpoint and growth are parameters, learnt together with a model's.

    References:
        V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020,
        equation 4 and appendix B (the other two weightings).

    Args:
        longest: Number of iterations of a whole training.
        weighting: ``"sigmoid"``; ``"log"``, in proportion to ``log(1 + u)``; ``"average"``, all equal; or
            ``"last"``: no compression, the score is the latest reward. Only the sigmoid depends on
            midpoint and growth.
        midpoint: Scaled iteration with weight 1/2, in [-6, 6], scalar or ``batch_shape x 1``.
        growth: Slope of the sigmoid, in [0.1, 6], scalar or ``batch_shape x 1``.
        midpoint_prior: Prior on the midpoint.
        growth_prior: Prior on the growth.
        batch_shape: Batch shape of the parameters.

    Raises:
        InvalidArgumentError: If a number is out of range, or the weighting is unknown.

    Example:
        >>> compress = CurveCompression(longest=4, weighting="average")
        >>> compress(torch.tensor([[1.0, 2.0, 3.0, torch.nan]]))
        tensor([[1., 3., 6., 8.]])
    """

    def __init__(
        self,
        longest: int,
        weighting: str = "sigmoid",
        *,
        midpoint: float | Tensor = 0.0,
        growth: float | Tensor = 1.0,
        midpoint_prior: Prior | None = None,
        growth_prior: Prior | None = None,
        batch_shape: torch.Size = torch.Size(),
    ) -> None:
        super().__init__()
        self.longest = check_count("longest", longest, minimum=1)
        check(weighting in WEIGHTINGS, "weighting", f"one of {WEIGHTINGS}", weighting)
        self.weighting = weighting
        for name, (low, high) in (("midpoint", MIDPOINTS), ("growth", GROWTHS)):
            raw = nn.Parameter(torch.zeros(*batch_shape, 1))
            raw.requires_grad_(weighting == "sigmoid")
            self.register_parameter(f"raw_{name}", raw)
            self.register_constraint(f"raw_{name}", Interval(low, high))
        register_prior(self, "midpoint", midpoint_prior)
        register_prior(self, "growth", growth_prior)
        self.midpoint, self.growth = midpoint, growth

    @property
    def midpoint(self) -> Tensor:
        """Scaled iteration with weight 1/2, shape ``batch_shape x 1``."""
        return self.raw_midpoint_constraint.transform(self.raw_midpoint)

    @midpoint.setter
    def midpoint(self, value: float | Tensor) -> None:
        self._set("midpoint", value, *MIDPOINTS)

    @property
    def growth(self) -> Tensor:
        """Slope of the sigmoid, shape ``batch_shape x 1``."""
        return self.raw_growth_constraint.transform(self.raw_growth)

    @growth.setter
    def growth(self, value: float | Tensor) -> None:
        self._set("growth", value, *GROWTHS)

    def _set(self, name: str, value: float | Tensor, low: float, high: float) -> None:
        raw, constraint = getattr(self, f"raw_{name}"), getattr(self, f"raw_{name}_constraint")
        # In double precision, since the raw value of a number near a bound is sensitive to rounding.
        number = torch.as_tensor(value, dtype=torch.float64, device=raw.device)
        inside = bool(((number >= low) & (number <= high)).all())
        check(inside, name, f"a number in [{low:g}, {high:g}]", value)
        # The inverse of the constraint's transform, whose bounds are in single precision; a bound itself
        # has no raw value.
        lower, upper = constraint.lower_bound.double(), constraint.upper_bound.double()
        share = ((number - lower) / (upper - lower)).clamp(1e-9, 1 - 1e-9)
        self.initialize(**{f"raw_{name}": torch.logit(share).to(raw).expand_as(raw)})

    @property
    def weights(self) -> Tensor:
        """The weight of each iteration in the score of a whole curve, shape ``batch_shape x longest``."""
        if self.weighting == "sigmoid":
            return sigmoid_weights(self.longest, self.midpoint, self.growth)
        ones = torch.ones_like(self.raw_midpoint).expand(
            *self.raw_midpoint.shape[:-1], self.longest
        )
        if self.weighting == "average":
            return ones
        if self.weighting == "last":
            return F.pad(torch.zeros_like(ones[..., 1:]), (0, 1), value=1.0)
        iterations = torch.arange(1, self.longest + 1).to(ones)
        return ones * (torch.log1p(iterations) / math.log1p(self.longest))

    def forward(self, curves: Tensor) -> Tensor:
        """Return the score of every prefix.

        Args:
            curves: Rewards, ``batch_shape x n x longest``, NaN where missing. A missing reward counts as
                the weighted mean of the rewards before it.

        Returns:
            Scores of the same shape, NaN before the first reward of a curve.

        Raises:
            InvalidShapeError: If curves do not have ``longest`` columns.
        """
        shape = tuple(curves.shape)
        fits = curves.dim() >= 2 and shape[-1] == self.longest
        check(fits, "curves", f"... x n x {self.longest}", shape, InvalidShapeError)
        if self.weighting == "last":
            return latest_rewards(curves)
        return prefix_scores(curves, self.weights.to(curves))
