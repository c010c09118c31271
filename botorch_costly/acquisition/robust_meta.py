r"""RM-GP-UCB: upper confidence bounds that mix in the bounds of earlier tasks.

    a_t(x) = nu_t sum_i w_i [mean_i(x) + tau std_i(x)]
             + (1 - nu_t) [mean_{t-1}(x) + beta_t std_{t-1}(x)]                                 (2)

With weights on the simplex and a share ``nu_t`` that tends to 0, the regret is sublinear even with
misleading tasks (Theorem 1). This holds for any bounded function in place of the sum, and ``Blend`` takes
any function. All are smooth functions that a search can climb; see ``optim.smooth``.
"""

import math
from collections.abc import Callable
from typing import Any, Protocol

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import UpperConfidenceBound
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check, check_nonnegative, check_rate
from botorch_costly.models.task_ensemble import Moments, TaskEnsemble
from botorch_costly.numerics.padded import MomentsAndVJP
from botorch_costly.optim.smooth import SecondOrder, ValueAndGradient, from_callable

_ROUNDING = 1e-4  # tolerance of the sum of weights


class Marginals(Protocol):
    """A posterior whose moments at single points have gradients in closed form."""

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations at points ``m x d``, each of shape ``(m,)``."""

    def moments_and_vjp(self, columns: int) -> Callable[[Tensor], MomentsAndVJP]:
        """Return a function equal to ``moments`` with an analytic VJP, for about so many points."""


class TaskUCB(AcquisitionFunction):
    """Weighted sum of the upper bounds of tasks, the first sum of (2).

    Args:
        tasks: The earlier tasks, fitted.
        weights: Weights of the tasks, on the simplex, shape ``(tasks,)``.
        tau: Factor of their standard deviations.
        offset: Shift of each task's standardized bound; the task's mean if omitted.
        scale: Factor of each task's standardized bound; the task's standard deviation if omitted.

    Raises:
        InvalidShapeError: If there is not one weight for each task.
        InvalidArgumentError: If the weights are not on the simplex, or ``tau`` is negative.
    """

    second_order: SecondOrder | None = None

    def __init__(
        self,
        tasks: TaskEnsemble,
        weights: Tensor,
        tau: float = 1.0,
        offset: Tensor | None = None,
        scale: Tensor | None = None,
    ) -> None:
        super().__init__(model=None)
        shape, expected = tuple(weights.shape), (tasks.count,)
        check(shape == expected, "weights", f"shape {expected}", shape, InvalidShapeError)
        on_simplex = bool((weights >= 0).all()) and abs(float(weights.sum()) - 1) < _ROUNDING
        check(on_simplex, "weights", "numbers >= 0 that sum to 1", weights)
        self.tasks, self.tau = tasks, check_nonnegative("tau", tau)
        offset = tasks.offset if offset is None else offset
        scale = tasks.scale if scale is None else scale
        self.register_buffer("weights", weights * scale)
        self.register_buffer("level", (weights * offset).sum())

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X: Tensor) -> Tensor:
        """Return the values at points ``batch_shape x 1 x d``, shape ``batch_shape``."""
        moments = self.tasks.moments(X.reshape(-1, X.shape[-1]))
        return self.evaluate(moments).reshape(X.shape[:-2])

    def evaluate(self, moments: Moments) -> Tensor:
        """Return the values at ``m`` points from the tasks' moments there, ``(m,)``."""
        value: Tensor = self.level + self.weights @ (moments.mean + self.tau * moments.std)
        return value

    def with_gradient(self, like: Tensor, *, sign: float = 1.0) -> ValueAndGradient:
        """Return the values and gradients at points ``m x d`` in closed form; see ``SmoothFunction``."""
        moments, each = self.tasks.moments_and_vjp(len(like)), sign * self.weights.unsqueeze(-1)

        def value_and_gradient(X: Tensor) -> tuple[Tensor, Tensor]:
            value, gradient = _weighted_bounds(moments(X), self.tau, each)
            return sign * self.level + value, gradient

        return value_and_gradient


class MarginalUCB(AcquisitionFunction):
    """Upper confidence bound of a posterior with gradients in closed form.

    Args:
        posterior: The posterior.
        factor: Factor of its standard deviation.
    """

    second_order: SecondOrder | None = None

    def __init__(self, posterior: Marginals, factor: float) -> None:
        super().__init__(model=None)
        self.posterior, self.factor = posterior, factor

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X: Tensor) -> Tensor:
        """Return the values at points ``batch_shape x 1 x d``, shape ``batch_shape``."""
        moments = self.posterior.moments(X.reshape(-1, X.shape[-1]))
        return self.evaluate(moments).reshape(X.shape[:-2])

    def evaluate(self, moments: tuple[Tensor, Tensor]) -> Tensor:
        """Return the values at ``m`` points from means and standard deviations there, ``(m,)``."""
        mean, std = moments
        return mean + self.factor * std

    def with_gradient(self, like: Tensor, *, sign: float = 1.0) -> ValueAndGradient:
        """Return the values and gradients at points ``m x d`` in closed form; see ``SmoothFunction``."""
        moments, weight = self.posterior.moments_and_vjp(len(like)), like.new_tensor(sign)
        return lambda X: _weighted_bounds(moments(X), self.factor, weight)


class Blend(AcquisitionFunction):
    """``share * first + (1 - share) * second``; a function of weight 0 is not evaluated.

    Args:
        first: Function with weight ``share``.
        second: Function with weight ``1 - share``; None only if this is 0.
        share: Weight in [0, 1].

    Raises:
        InvalidArgumentError: If the share is outside [0, 1], or a function with a weight is missing.
    """

    second_order: SecondOrder | None = None

    def __init__(
        self, first: AcquisitionFunction, second: AcquisitionFunction | None, share: float
    ) -> None:
        super().__init__(model=None if second is None else second.model)
        self.first, self.second = first, second
        self.share = check_rate("share", share)
        check(second is not None or share == 1.0, "share", "1 without a second function", share)

    def forward(self, X: Tensor) -> Tensor:
        """Return the values at points ``batch_shape x 1 x d``, shape ``batch_shape``."""
        return self.evaluate(self.first(X) if self.share > 0 else X.new_zeros(()), X)

    def evaluate(self, first: Tensor, X: Tensor) -> Tensor:
        """Return the values at points, given those of the first function there, ``batch_shape``."""
        if self.share == 1.0 or self.second is None:
            return first
        value: Tensor = self.share * first + (1 - self.share) * self.second(X)
        return value

    def with_gradient(self, like: Tensor, *, sign: float = 1.0) -> ValueAndGradient:
        """Return the values and gradients at points ``m x d``; see ``SmoothFunction``.

        They are in closed form if those of both functions are; others are differentiated by autograd.
        """
        weighted = ((self.share, self.first), (1 - self.share, self.second))
        terms = [
            from_callable(function).with_gradient(like, sign=sign * weight)
            for weight, function in weighted
            if function is not None and weight > 0
        ]
        if len(terms) == 1:
            return terms[0]
        first, second = terms

        def value_and_gradient(X: Tensor) -> tuple[Tensor, Tensor]:
            (value, gradient), (other, other_gradient) = first(X), second(X)
            return value + other, gradient + other_gradient

        return value_and_gradient


class RMGPUCB(Blend):
    """Upper confidence bound of a target, mixed with the bounds of earlier tasks.

    References:
        Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
        UAI 2022, equation (2).

    Args:
        model: The target's single-outcome model, or posterior in closed form; None only with share 1.
        tasks: The earlier tasks, fitted, whose values are in the target's units.
        weights: Weights of the tasks on the simplex, shape ``(tasks,)``; see ``numerics.online_weights``.
        share: ``nu_t``, in [0, 1]; with 0 this is ``UpperConfidenceBound``.
        beta: Factor of the target's variance, as in BoTorch: the square of the paper's.
        tau: Factor of the tasks' standard deviations.
        offset: Shift of each task's standardized bound, as in ``TaskUCB``.
        scale: Factor of each task's standardized bound, as in ``TaskUCB``.

    Raises:
        InvalidShapeError: If there is not one weight for each task.
        InvalidArgumentError: If a number is out of range.
    """

    first: TaskUCB

    def __init__(
        self,
        model: Model | Marginals | None,
        tasks: TaskEnsemble,
        weights: Tensor,
        share: float,
        *,
        beta: float = 4.0,
        tau: float = 1.0,
        offset: Tensor | None = None,
        scale: Tensor | None = None,
    ) -> None:
        check_nonnegative("beta", beta)
        bound: AcquisitionFunction | None = None
        if isinstance(model, Model):
            bound = UpperConfidenceBound(model, beta)
        elif model is not None:
            bound = MarginalUCB(model, math.sqrt(beta))
        super().__init__(TaskUCB(tasks, weights, tau, offset, scale), bound, share)


def _weighted_bounds(
    moments: MomentsAndVJP, factor: float, weight: Tensor
) -> tuple[Tensor, Tensor]:
    """Return a weighted sum of upper bounds, and its gradient with respect to the points.

    Args:
        moments: Moments at ``m`` points, of several tasks or of one posterior.
        factor: Factor of the standard deviations.
        weight: Weight of each task, shape ``(tasks, 1)``, or of the only posterior, shape ``()``.
    """
    each = weight.expand_as(moments.mean)
    value = each * torch.add(moments.mean, moments.spread, alpha=factor)
    total = value.sum(0) if value.dim() == 2 else value
    return total, moments.vjp(each, factor * each)


@acqf_input_constructor(RMGPUCB)
def construct_inputs_rm_gp_ucb(
    model: Model,
    tasks: TaskEnsemble,
    weights: Tensor,
    share: float,
    *,
    beta: float = 4.0,
    tau: float = 1.0,
) -> dict[str, Any]:
    """Return the keyword arguments of ``RMGPUCB``."""
    arguments = {"model": model, "tasks": tasks, "weights": weights}
    return {**arguments, "share": share, "beta": beta, "tau": tau}
