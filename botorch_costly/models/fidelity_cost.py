r"""A model of the cost of an evaluation at several fidelities: a floor plus a power law.

Notation: ``x`` is a configuration in the unit cube, ``v_j <= 0`` the logarithm of fidelity ``j`` as a
share of the target, ``r_j`` its range, and ``u_j = r_j + v_j``, which is 0 at the lowest fidelity:

    ``cost = floor + exp(m(x, u))``,    ``m ~ GP(level + sum_j v_j, k)``.

The prior mean is a cost in proportion to the share, or, where earlier studies tell costs, the level plus
``log e(x, v)`` with the cost ``e`` they let expect; the evidence says which. The covariance is a sum of
parts: linear effects of
the configuration and of ``u``, curvatures of the power law, and Matérn-5/2 effects of the configuration
on the level and on the exponents. Given the floor, ``log(cost - floor)`` is an observation of ``m``. Its
standard deviation is that of ``log cost`` divided by ``w = 1 - floor / cost``, the derivative of
``log cost`` by ``m``: costs at the floor say nothing about ``m``.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import torch
from botorch.models.deterministic import DeterministicModel
from torch import Tensor

from botorch_costly.models.cost import check_costs, outliers
from botorch_costly.numerics.radial import PROFILES
from botorch_costly.numerics.spread_rows import evenly_spread

_FLOORS = (0.0, 0.5, 0.8, 0.9, 0.95)  # shares of the lowest cost
_NOISES = (0.1, 0.3)  # standard deviation of log costs
_LENGTHSCALES = (0.3, 1.0)  # times the root of the number of columns
# Standard deviations of the configuration's effects on level and exponents, and of the curvature.
_LEVELS, _EXPONENTS, _CURVATURES = (0.3, 1.0), (0.1, 0.3), (0.1, 0.5)
_CONSTANT, _EXPONENT = 10.0, 0.5  # standard deviations of the constant and of the common exponents
_CONFIRMED = 0.1  # share of the variances of linear effects and exponents if costs are expected
_MATERN = PROFILES["matern52"]
_FEW, _MANY = 64, 256  # rows that hyperparameters are chosen by, and that costs are predicted from

LogShares = Callable[[Tensor], Tensor]
"""Maps encoded fidelities, ``(*batch, f)``, to the logarithms of their shares of the target."""


class Grid(NamedTuple):
    """Hyperparameters to choose from."""

    floors: Tensor  # shares of the lowest cost, shape: (g,)
    noises: Tensor  # shape: (g,)
    means: Tensor  # numbers of the prior means, shape: (g,)
    weights: Tensor  # of the parts of the covariance, shape: (g, p)


class FidelityCost(DeterministicModel):
    """A cost that is a floor plus a power law of the fidelities, ``floor + exp(m(x, u))``.

    A priori costs are in proportion to the fidelities as shares of the target. Hyperparameters maximize
    the marginal likelihood on a grid. Outliers, such as a cost in another unit, are dropped: at most one
    cost in four.

    Args:
        train_X: Configurations and then fidelities in the unit cube, ``n x d``.
        train_cost: Their costs, ``n x 1``, in any unit.
        log_shares: Returns the logarithms of encoded fidelities as shares of the target.
        fidelities: Number of fidelities.
        expected: Costs by earlier studies, up to a factor, as a model; none if omitted.

    Raises:
        InvalidShapeError: If shapes do not fit each other.
        InvalidArgumentError: If a cost is not a finite number > 0.

    Example:
        >>> X = torch.tensor([[0.3, 0.0], [0.5, 0.3], [0.7, 0.6]], dtype=torch.float64)
        >>> model = FidelityCost(X, 1 + 512 ** X[:, 1:], lambda unit: 6.24 * (unit - 1))
        >>> 300 < model(torch.ones(1, 2).double()).item() < 800
        True
    """

    def __init__(
        self,
        train_X: Tensor,
        train_cost: Tensor,
        log_shares: LogShares,
        fidelities: int = 1,
        expected: "FidelityCost | None" = None,
    ) -> None:
        super().__init__()
        self._expected = expected
        check_costs(train_X, train_cost)
        self._num_outputs, self._fidelities, self._log_shares = 1, fidelities, log_shares
        X, costs = train_X.double(), train_cost.double()
        self.register_buffer("_ranges", -log_shares(X.new_zeros(fidelities)))
        inliers = ~outliers(X, costs.log())
        X, costs = X[inliers], costs[inliers].squeeze(-1)
        few, grid = evenly_spread(len(X), _FEW), _grid(X, means=1 if expected is None else 2)
        evidence, *_ = self._fitted(X[few], costs[few], costs.min(), grid)
        chosen = Grid(*(values[evidence.argmax()].unsqueeze(0) for values in grid))
        many = evenly_spread(len(X), _MANY)
        X, costs = X[many], costs[many]
        _, level, solved = self._fitted(X, costs, costs.min(), chosen)
        fitted = {"X": X, "floor": chosen.floors * costs.min(), "weights": chosen.weights}
        fitted |= {"means": chosen.means}
        for name, value in {**fitted, "level": level, "solved": solved}.items():
            self.register_buffer(f"_{name}", value)

    def forward(self, X: Tensor) -> Tensor:
        """Return the costs of ``X`` (``batch_shape x q x d``), ``batch_shape x q x 1``."""
        rows = X.reshape(-1, X.shape[-1]).to(self._X)
        mean = self._level + self._prior_means(rows, self._means)[0]
        mean = mean + _combined(self._weights, self._parts(rows, self._X))[0] @ self._solved[0]
        return (self._floor + mean.exp()).reshape(*X.shape[:-1], 1).to(X)

    def _fitted(
        self, X: Tensor, costs: Tensor, lowest: Tensor, grid: Grid
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return log evidence ``(g,)``, levels ``(g, 1)``, and covariances solved for residuals."""
        shares = 1 - grid.floors.unsqueeze(-1) * lowest / costs  # w, shape: (g, n)
        # log(cost - floor) - prior mean
        values = costs.log() + shares.log() - self._prior_means(X, grid.means)
        level = values.median(-1, keepdim=True).values
        noise = (grid.noises.unsqueeze(-1) / shares).square()
        cov = _combined(grid.weights, self._parts(X, X)) + torch.diag_embed(noise)
        root = torch.linalg.cholesky(cov)
        solved = torch.cholesky_solve((values - level).unsqueeze(-1), root).squeeze(-1)
        log_det = root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        evidence = -0.5 * ((values - level) * solved).sum(-1) - log_det - shares.log().sum(-1)
        # Every cost at the floor has one parameter less, the level: the prior of floors makes up for it.
        return evidence + (1 - grid.floors).log(), level, solved

    def _prior_means(self, X: Tensor, numbers: Tensor) -> Tensor:  # shapes: (n, d), (g,) -> (g, n)
        means = [self._log_shares(X[:, -self._fidelities :]).sum(-1)]
        if self._expected is not None:
            means.append(self._expected(X).squeeze(-1).log())
        return torch.stack(means)[numbers]

    def _parts(self, X: Tensor, others: Tensor) -> Tensor:
        """Return the parts of the covariance, ``p x n x m``, in the order of the weights."""
        (x, u), (y, v) = self._split(X), self._split(others)
        common = u @ v.mT
        bends = (u.square() / self._ranges) @ (v.square() / self._ranges).mT
        linear = (x - 0.5) @ (y - 0.5).mT + _EXPONENT**2 * common
        parts = [torch.full_like(common, _CONSTANT**2), linear, bends]
        for scale in _LENGTHSCALES:
            unit = scale * x.shape[-1] ** 0.5 / _MATERN.constant
            alike = _MATERN.phi(torch.cdist(x / unit, y / unit))
            parts += [alike, alike * common]
        return torch.stack(parts)

    def _split(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return configurations, and the logarithms of fidelities above the lowest ones."""
        configs, fidelities = X.tensor_split([X.shape[-1] - self._fidelities], -1)
        return configs, self._log_shares(fidelities) + self._ranges


def _combined(weights: Tensor, parts: Tensor) -> Tensor:  # (g, p), (p, n, m) -> (g, n, m)
    return torch.einsum("gp,pnm->gnm", weights, parts)


def _grid(like: Tensor, means: int) -> Grid:
    """Return all combinations of hyperparameters and of so many prior means."""
    floors, noises, numbers, weights = [], [], [], []
    scales = range(len(_LENGTHSCALES))
    for number, floor, noise, scale, level, exponent, curvature in itertools.product(
        range(means), _FLOORS, _NOISES, scales, _LEVELS, _EXPONENTS, _CURVATURES
    ):
        effects = [0.0] * (2 * len(_LENGTHSCALES))
        effects[2 * scale : 2 * scale + 2] = level**2, exponent**2
        floors.append(floor)
        noises.append(noise)
        numbers.append(number)
        weights.append([1.0, _CONFIRMED if number else 1.0, curvature**2, *effects])
    chosen = torch.tensor(numbers, device=like.device)
    return Grid(like.new_tensor(floors), like.new_tensor(noises), chosen, like.new_tensor(weights))
