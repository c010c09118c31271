"""Transfer acquisition function: the target's expected improvement, averaged with the tasks'."""

from collections.abc import Hashable
from typing import Any

import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.models.model import Model
from botorch.utils.datasets import SupervisedDataset
from botorch.utils.transforms import average_over_ensemble_models, t_batch_mode_transform
from torch import Tensor

from botorch_costly.acquisition.improvement import only_data
from botorch_costly.errors import InvalidShapeError, check, check_positive
from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.numerics.improvement import excess
from botorch_costly.numerics.ranking import discordance


class TAF(AnalyticAcquisitionFunction):
    r"""Transfer acquisition function with weights by ranking (TAF-R).

    With the standardized posterior means ``m_i`` of the tasks and the target's inputs ``x_1 .. x_n``,

        a(x) = [w EI(x) + sum_i w_i max(m_i(x) - max_j m_i(x_j), 0)] / (w + sum_i w_i),
        w_i = 3/4 (1 - (d_i / bandwidth)^2) if d_i <= bandwidth, else 0;    w = 3/4,

    where ``d_i`` is the fraction of ordered pairs of observations that ``m_i`` ranks in the wrong order.
    The target's improvement is over its best observation, in standard deviations of its values (1 if they
    are constant), so that all terms are in standardized units. The function is deterministic.

    References:
        M. Wistuba, N. Schilling, L. Schmidt-Thieme. Scalable Gaussian process-based transfer
        surrogates for hyperparameter optimization. Machine Learning 107, 2018.

    Args:
        model: The target's single-outcome Gaussian process.
        tasks: The earlier tasks, fitted, over the inputs of the target.
        X: Inputs of the target, ``n x d``, ``n >= 1``.
        Y: Values of the target, ``n x 1``, in the units of the model.
        bandwidth: Fraction of wrongly ranked pairs from which on a task has weight 0.

    Attributes:
        task_weights: ``w_i``, shape ``(tasks,)``.

    Raises:
        InvalidShapeError: If shapes do not fit, or there is no observation.
        InvalidArgumentError: If a value is not finite, or the bandwidth is not positive.

    Example:
        >>> from botorch.models import SingleTaskGP
        >>> X = torch.linspace(0, 1, 9, dtype=torch.float64).unsqueeze(-1)
        >>> Y = (6 * X).sin()
        >>> tasks = TaskEnsemble([X, X], [Y.squeeze(-1), -Y.squeeze(-1)]).fit()
        >>> TAF(SingleTaskGP(X[:5], Y[:5]), tasks, X[:5], Y[:5]).task_weights.tolist()
        [0.75, 0.0]
    """

    _TARGET_WEIGHT = 0.75  # the kernel at distance 0

    def __init__(
        self, model: Model, tasks: TaskEnsemble, X: Tensor, Y: Tensor, *, bandwidth: float = 0.1
    ) -> None:
        super().__init__(model)
        dim, n = tasks.inputs.shape[-1], X.shape[0]
        fits = X.shape == (n, dim) and Y.shape == (n, 1) and n > 0
        shapes = tuple(X.shape), tuple(Y.shape)
        check(fits, "X, Y", f"n x {dim} and n x 1, n >= 1", shapes, InvalidShapeError)
        finite = bool(X.isfinite().all() & Y.isfinite().all())
        check(finite, "X, Y", "finite numbers", "NaN or infinite ones")
        check_positive("bandwidth", bandwidth)
        self.tasks, values = tasks, Y.squeeze(-1)
        with torch.no_grad():
            means = tasks.means(X)
        weights = epanechnikov(discordance(means, values) / bandwidth)
        self.register_buffer("task_weights", weights.to(X))
        self.register_buffer("task_best", means.amax(-1))
        self.register_buffer("best", values.max())
        spread = values.std(correction=0)
        self.register_buffer("scale", torch.where(spread > 0, spread, 1.0).to(X))

    @t_batch_mode_transform(expected_q=1)
    @average_over_ensemble_models
    def forward(self, X: Tensor) -> Tensor:
        """Return the values at ``batch_shape x 1 x d`` points."""
        mean, sigma = (moment.squeeze(-1) for moment in self._mean_and_sigma(X))
        by_target = self._TARGET_WEIGHT * sigma * excess((mean - self.best) / sigma) / self.scale
        predicted = self.tasks.means(X.reshape(-1, X.shape[-1]))
        improvement = (predicted - self.task_best.unsqueeze(-1)).clamp_min(0)
        by_tasks = (self.task_weights @ improvement).reshape(X.shape[:-2])
        return (by_target + by_tasks) / (self._TARGET_WEIGHT + self.task_weights.sum())


def epanechnikov(distance: Tensor) -> Tensor:
    """Return ``3/4 (1 - t^2)`` for distances ``t`` in bandwidths, and 0 beyond 1."""
    return 0.75 * (1 - distance.square()).clamp_min(0)


@acqf_input_constructor(TAF)
def construct_inputs_taf(
    model: Model,
    training_data: SupervisedDataset | dict[Hashable, SupervisedDataset],
    tasks: TaskEnsemble,
    *,
    bandwidth: float = 0.1,
) -> dict[str, Any]:
    """Return the keyword arguments; the training data are the target's, in the units of the model."""
    data = only_data(training_data)
    return {"model": model, "tasks": tasks, "X": data.X, "Y": data.Y, "bandwidth": bandwidth}
