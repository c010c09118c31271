r"""RM-GP-UCB: upper confidence bounds that mix in the bounds of earlier tasks.

    a_t(x) = nu_t sum_i w_i [mean_i(x) + tau std_i(x)]
             + (1 - nu_t) [mean_{t-1}(x) + beta_t std_{t-1}(x)]                                 (2)

With weights on the simplex and a share ``nu_t`` that tends to 0, the regret is sublinear even with
misleading tasks (Theorem 1). This holds for any bounded function in place of the sum, and ``Blend`` takes
any function.
"""

from typing import Any

from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import UpperConfidenceBound
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check, check_nonnegative, check_rate
from botorch_costly.models.task_ensemble import Moments, TaskEnsemble

_ROUNDING = 1e-4  # tolerance of the sum of weights


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


class Blend(AcquisitionFunction):
    """``share * first + (1 - share) * second``; a function of weight 0 is not evaluated.

    Args:
        first: Function with weight ``share``.
        second: Function with weight ``1 - share``.
        share: Weight in [0, 1].

    Raises:
        InvalidArgumentError: If the share is outside [0, 1].
    """

    def __init__(
        self, first: AcquisitionFunction, second: AcquisitionFunction, share: float
    ) -> None:
        super().__init__(model=second.model)
        self.first, self.second = first, second
        self.share = check_rate("share", share)

    def forward(self, X: Tensor) -> Tensor:
        """Return the values at points ``batch_shape x 1 x d``, shape ``batch_shape``."""
        value: Tensor
        if self.share == 0.0:
            value = self.second(X)
        elif self.share == 1.0:
            value = self.first(X)
        else:
            value = self.share * self.first(X) + (1 - self.share) * self.second(X)
        return value


class RMGPUCB(Blend):
    """Upper confidence bound of a target, mixed with the bounds of earlier tasks.

    References:
        Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
        UAI 2022, equation (2).

    Args:
        model: The target's single-outcome model.
        tasks: The earlier tasks, fitted, whose values are in the target's units.
        weights: Weights of the tasks on the simplex, shape ``(tasks,)``; see ``numerics.online_weights``.
        share: ``nu_t``, in [0, 1]; with 0 this is ``UpperConfidenceBound``.
        beta: Factor of the target's variance, as in BoTorch: the square of the paper's.
        tau: Factor of the tasks' standard deviations.

    Raises:
        InvalidShapeError: If there is not one weight for each task.
        InvalidArgumentError: If a number is out of range.
    """

    def __init__(
        self,
        model: Model,
        tasks: TaskEnsemble,
        weights: Tensor,
        share: float,
        *,
        beta: float = 4.0,
        tau: float = 1.0,
    ) -> None:
        bound = UpperConfidenceBound(model, check_nonnegative("beta", beta))
        super().__init__(TaskUCB(tasks, weights, tau), bound, share)


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
