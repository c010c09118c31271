"""Models of the cost of an evaluation: linear, log-linear, and a GP of the logarithm."""

from typing import Any

import torch
from botorch.models import SingleTaskGP
from botorch.models.deterministic import DeterministicModel
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from botorch_costly.errors import InvalidShapeError, check

_SHARP = 10.0  # of the softplus
_RIDGE = 1e-6  # per row, for standardized columns, which may be collinear
_LOG_RIDGE = 0.5  # for log costs over the unit cube: as informative as about six rows
_FEWEST = 4  # costs per outlier: at most a fourth of the costs are outliers
_FAR, _FAR_SCALES = (
    3.0,
    5.0,
)  # smallest residual of an outlier: absolute, and in robust standard deviations
_HUBER, _ITERATIONS = 1.0, 30  # threshold of the Huber loss of log costs; reweighted least squares
_CONSTANT = 1e-6  # relative spread of a column that may be rounding alone


def _solved(gram: Tensor, right: Tensor) -> Tensor:
    """Return the solution, or that of minimal norm where rounding of huge inputs removes the ridge."""
    solution, info = torch.linalg.solve_ex(gram, right)
    return torch.linalg.pinv(gram, hermitian=True) @ right if bool(info) else solution


def check_costs(train_X: Tensor, train_cost: Tensor) -> None:
    """Raise an error unless the inputs are ``n x d`` and the costs ``n x 1`` finite numbers > 0."""
    shape = tuple(train_X.shape)
    rows = train_X.dim() == 2 and shape[0] >= 1
    check(rows, "train_X", "shape n x d, n >= 1", shape, InvalidShapeError)
    fits, expected = train_cost.shape == (shape[0], 1), f"shape ({shape[0]}, 1)"
    check(fits, "train_cost", expected, tuple(train_cost.shape), InvalidShapeError)
    check(bool(train_X.isfinite().all()), "train_X", "finite numbers", train_X)
    good = train_cost.isfinite() & (train_cost > 0)
    check(bool(good.all()), "train_cost", "finite numbers > 0", train_cost[~good])


def _line(X: Tensor, logs: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
    """Return slopes and intercept of the ridge regression whose rows are weighted by ``shares``."""
    total = shares.sum()
    center, level = (shares * X).sum(0) / total, (shares * logs).sum() / total
    rows = X - center
    gram = rows.mT @ (shares * rows) + _LOG_RIDGE * torch.eye(rows.shape[-1]).to(rows)
    weights = _solved(gram, rows.mT @ (shares * (logs - level))).squeeze(-1)
    return weights, level - center @ weights


def outliers(X: Tensor, logs: Tensor) -> Tensor:
    """Return which log costs are outliers of a robust linear fit (Huber), at most a fourth, ``(n,)``."""
    shares = torch.ones_like(logs)
    if len(logs) < _FEWEST:
        return torch.zeros_like(shares, dtype=torch.bool).squeeze(-1)
    for _ in range(_ITERATIONS):
        weights, intercept = _line(X, logs, shares)
        distance = (logs - (X @ weights + intercept).unsqueeze(-1)).abs()
        shares = _HUBER / distance.clamp_min(_HUBER)
    threshold = max(_FAR, _FAR_SCALES * 1.4826 * float(distance.median()))
    largest = distance.flatten().topk(len(logs) // _FEWEST).values.min()
    return ((distance > threshold) & (distance >= largest)).squeeze(-1)


class LinearCost(DeterministicModel):
    r"""A cost that is linear in configuration and training length, kept positive by ``softplus``.

    ``cost(z) = s softplus((w'z + b) / s)`` with ``softplus(u) = log(1 + exp(10 u)) / 10`` and ``s`` the
    mean of the observed costs. The paper does not scale, and so would add up to 0.7 to small costs.

    References:
        V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020,
        section 3.1.

    Args:
        train_X: Configurations and lengths, ``n x d``.
        train_cost: Their costs, ``n x 1``, in any unit.

    Raises:
        InvalidShapeError: If shapes do not fit each other.
        InvalidArgumentError: If a cost is not a finite number > 0.

    Example:
        >>> X = torch.tensor([[0.0], [0.5], [1.0]], dtype=torch.float64)
        >>> LinearCost(X, 100 + 900 * X)(X).round().flatten().tolist()
        [108.0, 550.0, 1000.0]
    """

    def __init__(self, train_X: Tensor, train_cost: Tensor) -> None:
        super().__init__()
        check_costs(train_X, train_cost)
        self._num_outputs = 1
        level, center, spread = train_cost.mean(), train_X.mean(0), train_X.std(0, correction=0)
        constant = spread <= _CONSTANT * train_X.abs().amax(0)
        unit = torch.where(constant, torch.inf, spread)  # a constant column has weight 0
        rows = (train_X - center) / unit
        gram = rows.mT @ rows + _RIDGE * len(rows) * torch.eye(rows.shape[-1]).to(rows)
        weights = _solved(gram, rows.mT @ (train_cost - level)).squeeze(-1) / unit
        self.register_buffer("weights", weights)
        self.register_buffer("intercept", level - center @ weights)
        self.register_buffer("scale", level)

    def forward(self, X: Tensor) -> Tensor:
        """Return the costs of ``X`` (``batch_shape x q x d``), ``batch_shape x q x 1``."""
        linear = X @ self.weights.to(X) + self.intercept.to(X)
        scale = self.scale.to(X)
        return (scale * F.softplus(linear / scale, beta=_SHARP)).unsqueeze(-1)


class LogLinearCost(DeterministicModel):
    r"""A cost whose logarithm is linear in the configuration: ``cost(x) = exp(w'x + b)``.

    Multiplicative effects, such as those of batch size, width and depth, are additive in the logarithm.
    A ridge shrinks the weights towards 0, so that few costs determine little more than a mean. Outliers,
    such as a cost in another unit, are dropped: at most one cost in four.

    Args:
        train_X: Configurations in the unit cube, ``n x d``.
        train_cost: Their costs, ``n x 1``, in any unit.

    Raises:
        InvalidShapeError: If shapes do not fit each other.
        InvalidArgumentError: If a cost is not a finite number > 0.

    Example:
        >>> X = torch.linspace(0, 1, 50, dtype=torch.float64).unsqueeze(-1)
        >>> LogLinearCost(X, 100 * 2**X)(X[[0, -1]]).round().flatten().tolist()
        [104.0, 193.0]
    """

    def __init__(self, train_X: Tensor, train_cost: Tensor) -> None:
        super().__init__()
        check_costs(train_X, train_cost)
        self._num_outputs = 1
        logs = train_cost.log()
        inliers = ~outliers(train_X, logs)
        weights, intercept = _line(train_X[inliers], logs[inliers], torch.ones_like(logs[inliers]))
        self.register_buffer("weights", weights)
        self.register_buffer("intercept", intercept)

    def logarithm(self, X: Tensor) -> Tensor:
        """Return the logarithms of the costs of ``X`` (``batch_shape x d``), ``batch_shape``."""
        return X @ self.weights.to(X) + self.intercept.to(X)

    def forward(self, X: Tensor) -> Tensor:
        """Return the costs of ``X`` (``batch_shape x q x d``), ``batch_shape x q x 1``."""
        return self.logarithm(X).exp().unsqueeze(-1)


class LogCostGP(DeterministicModel):
    """The median of a cost whose logarithm is a Gaussian process.

    Multiplicative effects, such as those of batch size and width, are additive in the logarithm. Fit
    the attribute ``gp`` by ``fit_gpytorch_mll``, like any BoTorch model.

    Args:
        train_X: Configurations and lengths in the unit cube, ``n x d``.
        train_cost: Their costs, ``n x 1``, in any unit.
        **kwargs: Further arguments of the ``SingleTaskGP`` of the logarithms.

    Raises:
        InvalidShapeError: If shapes do not fit each other.
        InvalidArgumentError: If a cost is not a finite number > 0.
    """

    def __init__(self, train_X: Tensor, train_cost: Tensor, **kwargs: Any) -> None:
        super().__init__()
        check_costs(train_X, train_cost)
        self._num_outputs = 1
        self.gp = SingleTaskGP(train_X, train_cost.log(), **kwargs)

    def forward(self, X: Tensor) -> Tensor:
        """Return the costs of ``X`` (``batch_shape x q x d``), ``batch_shape x q x 1``."""
        return self.gp.posterior(X).mean.exp()
