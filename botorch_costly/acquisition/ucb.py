"""Upper confidence bound of a drifting function."""

import math
from typing import Any

import torch
from botorch.acquisition.analytic import UpperConfidenceBound
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from torch import Tensor

from botorch_costly.acquisition.fixed_round import InRound, as_numbers
from botorch_costly.device import moved
from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.models.snapshot import HasSnapshots, Snapshot, UpperBound
from botorch_costly.optim.smooth import SecondOrder, ValueAndGradient, by_autograd


class TimeVaryingUCB(InRound, UpperConfidenceBound):
    """Upper confidence bound in round ``now``: ``mean(x, now) + sqrt(beta) std(x, now)``.

    References:
        I. Bogunovic, J. Scarlett, V. Cevher. Time-varying Gaussian process bandit optimization.
        AISTATS 2016, Algorithm 2.

    Args:
        model: A single-outcome model over ``[configuration, round]``. If it ``HasSnapshots``, the bound
            is computed in closed form.
        beta: Factor of the variance, at least 0; see ``acquisition.beta`` for schedules.
        now: The round of the decision.
        posterior_transform: Posterior transform of ``UpperConfidenceBound``.
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
        *,
        maximize: bool = True,
    ) -> None:
        numbers = as_numbers("beta", beta)
        if isinstance(beta, (int, float)):
            valid = 0 <= beta < math.inf
        else:
            valid = bool(((numbers >= 0) & numbers.isfinite()).all())
        check(valid, "beta", "finite numbers >= 0", beta, InvalidArgumentError)
        super().__init__(model, numbers, posterior_transform, maximize)
        self.fix_round(now)
        plain = posterior_transform is None and numbers.numel() == 1 and maximize
        self._has_snapshots = plain and isinstance(model, HasSnapshots)

    @property
    def is_closed_form(self) -> bool:
        """Whether values come from the closed form of the posterior, without an autograd graph."""
        return self._has_snapshots and self.model.num_rows > 0

    @property
    def retained(self) -> float | None:
        """The fraction of the newest observation retained; None without a closed form."""
        return self.model.snapshot(self.round).retained if self.is_closed_form else None

    def forward(self, X: Tensor) -> Tensor:
        """Return the bound at configurations ``batch_shape x 1 x d``, shape ``batch_shape``."""
        if not self.is_closed_form or X.requires_grad or X.dim() < 3 or X.shape[-2] != 1:
            return super().forward(X)
        bound = self._bound()
        rows = bound.snapshot.configurations(X)
        return bound(rows.unsqueeze(-2)).reshape(X.shape[:-2])

    def at_fixed_points(self, X: Tensor) -> Tensor:
        """Return ``forward`` of a tensor that is the same in every round, and is never modified."""
        return self._bound().at_fixed_points(X) if self.is_closed_form else self(X)

    def with_gradient(self, like: Tensor, *, sign: float = 1.0) -> ValueAndGradient:
        """Return the bound together with its gradient, with all constants computed beforehand.

        The result maps configurations ``batch_shape x n x d`` to values ``batch_shape x n`` and
        gradients; each configuration is evaluated separately. Without a closed form the gradient comes
        from autograd.

        Args:
            like: Tensor of configurations, whose dtype the result uses.
            sign: Factor of values and gradients; -1 turns the bound into a loss.

        Raises:
            InvalidShapeError: If ``like`` does not have the columns of a configuration.
        """
        if not (self.is_closed_form and self.model.snapshot(self.round).has_gradient):
            return by_autograd(lambda X: sign * self(X.unsqueeze(-2)))
        bound = self._bound(like.dtype)
        bound.snapshot.configurations(like)
        return bound.with_gradient(like, sign=sign)

    @property
    def second_order(self) -> SecondOrder | None:
        """Values, gradients and Hessians at ``batch_shape x n x d``, or None without a closed form."""
        return self._bound().second_order if self.is_closed_form else None

    def _bound(self, dtype: torch.dtype | None = None) -> UpperBound:
        """Return the bound in the round, in the dtype of the belief unless another is given."""
        snapshot: Snapshot = self.model.snapshot(self.round)
        snapshot = snapshot if dtype is None else snapshot.to(dtype)
        return snapshot.upper_bound(moved(self.beta, snapshot.form.rows).sqrt())


@acqf_input_constructor(TimeVaryingUCB)
def construct_inputs_time_varying_ucb(
    model: Model,
    now: float,
    beta: float | Tensor = 1.0,
    posterior_transform: PosteriorTransform | None = None,
    *,
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
