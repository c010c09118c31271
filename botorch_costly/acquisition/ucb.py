"""Upper confidence bound of a drifting function."""

from typing import Any

import torch
from botorch.acquisition.analytic import UpperConfidenceBound
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from torch import Tensor

from botorch_costly.acquisition.fixed_round import InRound, as_numbers
from botorch_costly.acquisition.snapshot_ucb import SnapshotUCB
from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.models import StreamingGP
from botorch_costly.numerics.expansion import Quadratic
from botorch_costly.optim.lbfgs import ValueAndGradient, from_callable


class TimeVaryingUCB(InRound, UpperConfidenceBound):
    """``mean(x, now) + sqrt(beta) std(x, now)``: where to query in round ``now``.

    References:
        I. Bogunovic, J. Scarlett, V. Cevher. Time-varying Gaussian process bandit optimization.
        AISTATS 2016, Algorithm 2.

    Args:
        model: A single-outcome model over ``[configuration, round]``.
        beta: Weight of the variance, at least 0; see ``acquisition.beta`` for schedules.
        now: The round to decide for.
        posterior_transform: As for ``UpperConfidenceBound``.
        maximize: Whether larger rewards are better.

    Raises:
        InvalidArgumentError: If ``beta`` is negative or not finite, or ``now`` is not a finite number.
    """

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        now: float | Tensor,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
    ) -> None:
        weight = as_numbers("beta", beta)
        valid = bool(((weight >= 0) & weight.isfinite()).all())
        check(valid, "beta", "finite numbers >= 0", beta, InvalidArgumentError)
        super().__init__(model, weight, posterior_transform, maximize)
        self.fix_round(now)
        plain = posterior_transform is None and weight.numel() == 1 and maximize
        self._streams = plain and isinstance(model, StreamingGP)

    @property
    def is_closed_form(self) -> bool:
        """Whether values come from a streaming belief's cached factor, without a graph."""
        return self._streams and self.model.num_rows > 0

    def forward(self, X: Tensor) -> Tensor:
        """Return the bound at configurations ``batch_shape x 1 x d``, shape ``batch_shape``."""
        if not self.is_closed_form or X.requires_grad or X.dim() < 3 or X.shape[-2] != 1:
            return super().forward(X)
        value = self._bound()(self.model.configurations(X).unsqueeze(-2))
        return self._in_units(value).reshape(X.shape[:-2])

    def at_fixed_points(self, X: Tensor) -> Tensor:
        """Return what ``forward`` does, of a tensor asked about in every round and never changed."""
        if not self.is_closed_form:
            return self(X)
        known = self.model.seen_from(self.round, X)
        return self._in_units(self._bound().at(known)).reshape(X.shape[:-2])

    def with_gradient(self, like: Tensor, sign: int = 1) -> ValueAndGradient:
        """Return the bound as a function with a gradient, everything but its argument worked out.

        It maps configurations ``batch_shape x n x d`` to values ``batch_shape x n`` and gradients; each
        configuration is a batch of its own, whatever ``n``. Without a streaming belief the gradient
        comes from autograd.

        Args:
            like: Configurations, in whose precision it computes.
            sign: -1 for a loss.

        Raises:
            InvalidShapeError: If these have not the columns of a configuration.
        """
        if not (self.is_closed_form and self.model.has_slopes):
            return from_callable(lambda X: sign * self(X.unsqueeze(-2)))
        model = self.model
        model.configurations(like)
        bound = self._bound(like.dtype).with_gradient(like, sign * model.scale)
        if model.center == 0:
            return bound

        def in_units(X: Tensor) -> tuple[Tensor, Tensor]:
            value, gradient = bound(X)
            return value + sign * model.center, gradient

        return in_units

    @property
    def is_smooth(self) -> bool:
        """Whether there is a Hessian in closed form: Matérn-1/2 has a kink at every observation."""
        smooth = self.is_closed_form and self.model.has_slopes
        return smooth and self.model.kernel.family != "matern12"

    @property
    def retained(self) -> float:
        """What is retained of the belief's newest observation."""
        return self.model.snapshot(self.round)[1]

    def second_order(self, X: Tensor) -> Quadratic:
        """Return values, gradients and Hessians at ``batch_shape x n x d``, if ``is_smooth``."""
        model, found = self.model, self._bound().second_order(X.detach())
        if model.center == 0 and model.scale == 1:
            return found
        value, *slopes = found
        return Quadratic(self._in_units(value), *(model.scale * part for part in slopes))

    def _bound(self, dtype: torch.dtype | None = None) -> SnapshotUCB:
        """Return this bound in units of the prior, in the belief's precision or another."""
        belief, keep = self.model.snapshot(self.round, dtype)
        return SnapshotUCB(
            belief, keep, self.beta.to(belief.rows).sqrt(), self.model.least_variance
        )

    def _in_units(self, value: Tensor) -> Tensor:
        return self.model.center + self.model.scale * value


@acqf_input_constructor(TimeVaryingUCB)
def construct_inputs_time_varying_ucb(
    model: Model,
    now: float,
    beta: float | Tensor = 1.0,
    posterior_transform: PosteriorTransform | None = None,
    maximize: bool = True,
) -> dict[str, Any]:
    """Return the keyword arguments of ``TimeVaryingUCB``."""
    return {
        "model": model,
        "beta": beta,
        "now": now,
        "posterior_transform": posterior_transform,
        "maximize": maximize,
    }
