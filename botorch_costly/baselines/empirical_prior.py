r"""A Gaussian process over a finite list of points, with the empirical prior of earlier tasks."""

from typing import Any

import torch
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check, check_nonnegative
from botorch_costly.models.joint_gaussian import (
    JointGaussian,
    JointMoments,
    check_observations,
    raised,
)
from botorch_costly.models.promises import check_further

_SINGULAR = 1e-10  # relative eigenvalue below which observations determine nothing


class EmpiricalPriorGP(JointGaussian):
    r"""Gaussian process with the empirical mean and covariance of earlier tasks (PEM-BO).

    With the values ``Y`` of ``N`` tasks at the same ``m`` configurations and their average ``mu``,

        k = (Y - mu)' (Y - mu) / (N - 1),

    and after ``t`` observations ``y`` at ``D`` unbiased estimates of the posterior are

        mean = mu + k_.D k_DD^{-1} (y - mu_D),
        covariance = (N - 1) / (N - t - 1) (k - k_.D k_DD^{-1} k_D.).

    From ``t = N - 1`` on the factor is infinite, so more than ``N - 2`` observations are an error. A
    singular ``k_DD`` is pseudo-inverted. Computed in float64.

    A point is the number of a configuration: inputs have one column.

    References:
        Z. Wang, B. Kim, L. P. Kaelbling. Regret bounds for meta Bayesian optimization with an unknown
        Gaussian process prior. NeurIPS 2018.

    Args:
        values: Value of each task at each configuration, ``N x m``, ``N >= 2``, in units of the target.
            Missing values must be imputed before, for example by posterior means.
        train_X: Numbers of the observed configurations, ``t x 1``; ``t`` may be 0.
        train_Y: Their values, ``t x 1``.
        noise: Noise variance that ``values`` do not contain already; the paper's values contain it.

    Attributes:
        most: Largest number of observations, ``N - 2``.

    Raises:
        InvalidShapeError: If shapes do not fit.
        InvalidArgumentError: If a number is not finite, a configuration is not in the list, there
            are more than ``N - 2`` observations, or ``noise < 0``.

    Example:
        >>> values = torch.tensor([[0.0, 1.0, 2.0], [0.0, 2.0, 4.0], [0.0, 3.0, 6.0], [0.0, 4.0, 8.0]])
        >>> model = EmpiricalPriorGP(values, torch.tensor([[1.0]]), torch.tensor([[5.0]]))
        >>> model.posterior(torch.tensor([[0.0], [2.0]])).mean.squeeze(-1)
        tensor([ 0., 10.])
    """

    dim = 1
    values: Tensor
    inputs: Tensor
    targets: Tensor
    noise: Tensor
    average: Tensor
    root: Tensor
    precision: Tensor

    def __init__(
        self, values: Tensor, train_X: Tensor, train_Y: Tensor, *, noise: float = 0.0
    ) -> None:
        super().__init__()
        shape = tuple(values.shape)
        fits = values.dim() == 2 and len(values) >= 2
        check(fits, "values", "tasks x m, of two tasks at least", shape, InvalidShapeError)
        check(bool(values.isfinite().all()), "values", "finite numbers", "NaN or infinite ones")
        check_observations(train_X, train_Y, self.dim)
        self.most = len(values) - 2
        expected = f"at most {self.most} observations for {len(values)} tasks"
        check(len(train_X) <= self.most, "train_X", expected, len(train_X))
        double = values.double()
        self.register_buffer("values", values)
        self.register_buffer("inputs", train_X)
        self.register_buffer("targets", train_Y.squeeze(-1))
        self.register_buffer("noise", double.new_tensor(check_nonnegative("noise", noise)))
        self.register_buffer("average", double.mean(0))
        self.register_buffer("root", (double - self.average) / (len(values) - 1) ** 0.5)
        observed = self.root[:, self._numbers(train_X)]
        cov = observed.mT @ observed + self.noise * torch.eye(len(train_X)).to(observed)
        self.register_buffer("precision", torch.linalg.pinv(cov, rtol=_SINGULAR, hermitian=True))

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """Numbers of the observed configurations, ``t x 1``, in a tuple as in GPyTorch."""
        return (self.inputs,)

    @property
    def train_targets(self) -> Tensor:
        """Observed values, shape ``(t,)``."""
        return self.targets

    def joint(self, X: Tensor) -> JointMoments:
        """Return the moments of configurations with numbers ``batch_shape x q x 1``."""
        numbers, observed = self._numbers(X), self._numbers(self.inputs)
        root = self.root[:, numbers].movedim(0, -2)
        cross = root.mT @ self.root[:, observed]
        gain = cross @ self.precision
        mean = self.average[numbers] + gain @ (self.targets - self.average[observed])
        factor = (len(self.values) - 1) / (len(self.values) - len(observed) - 1)
        cov = raised(factor * (root.mT @ root - gain @ cross.mT), self.values.dtype)
        return JointMoments(mean.to(self.values), cov, float(self.noise))

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> "EmpiricalPriorGP":
        """Return the model after further observations, ``n x 1`` and ``n x 1``."""
        check_further(X, Y, self.dim, kwargs)
        inputs = torch.cat([self.inputs, X])
        values = torch.cat([self.targets.unsqueeze(-1), Y])
        return EmpiricalPriorGP(self.values, inputs, values, noise=float(self.noise))

    def _numbers(self, X: Tensor) -> Tensor:
        numbers, count = X.squeeze(-1).round().long(), self.values.shape[-1]
        inside = bool(((numbers >= 0) & (numbers < count)).all())
        check(inside, "X", f"numbers of {count} configurations", "others")
        return numbers
