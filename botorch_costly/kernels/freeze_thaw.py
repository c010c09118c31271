"""The kernel of learning curves that decay exponentially towards a limit."""

from typing import Any

import torch
from gpytorch.priors import Prior
from torch import Tensor

from botorch_costly.kernels.columns import JointKernel
from botorch_costly.learnt import PositiveNumber


class FreezeThawKernel(JointKernel):
    r"""Covariance over time of a mixture of exponential decays.

    ``k(t, t') = beta^alpha / (t + t' + beta)^alpha``

    It is the mean of ``exp(-rate (t + t'))`` over rates from a Gamma(alpha, beta) distribution: the
    prior of a curve that decays to 0 at an unknown rate. It is 1 at time 0. With several input columns
    it is the product over columns.

    References:
        K. Swersky, J. Snoek, R. P. Adams. Freeze-thaw Bayesian optimization. 2014, equation 6.

    Args:
        alpha: Shape of the Gamma distribution, > 0, scalar or ``batch_shape x 1 x 1``.
        beta: Rate of the Gamma distribution, in the unit of time, > 0, scalar or ``batch_shape x 1 x 1``.
        alpha_prior: Prior on ``alpha``.
        beta_prior: Prior on ``beta``.
        **kwargs: Further arguments of ``gpytorch.kernels.Kernel``, such as ``batch_shape``.

    Raises:
        InvalidArgumentError: If ``alpha`` or ``beta`` is not positive.

    Example:
        >>> kernel = FreezeThawKernel(alpha=1.0, beta=2.0)
        >>> kernel(torch.tensor([[0.0], [2.0]])).to_dense()
        tensor([[1.0000, 0.5000],
                [0.5000, 0.3333]], grad_fn=...)
    """

    _inputs = "times"
    alpha = PositiveNumber("Shape of the distribution of rates, ``batch_shape x 1 x 1``.")
    beta = PositiveNumber("Rate of the distribution of rates, ``batch_shape x 1 x 1``.")

    def __init__(
        self,
        alpha: float | Tensor = 1.0,
        beta: float | Tensor = 1.0,
        *,
        alpha_prior: Prior | None = None,
        beta_prior: Prior | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        shape = torch.Size([*self.batch_shape, 1, 1])
        type(self).alpha.add(self, alpha, shape, prior=alpha_prior)
        type(self).beta.add(self, beta, shape, prior=beta_prior)

    def _covariance(self, x1: Tensor, x2: Tensor, diag: bool, **params: Any) -> Tensor:
        alpha, beta = self.alpha, self.beta
        if diag:
            time = (x1 + x2) / beta
            return torch.exp(-alpha.squeeze(-1) * torch.log1p(time).sum(-1))
        time = (x1.unsqueeze(-2) + x2.unsqueeze(-3)) / beta.unsqueeze(-1)
        return torch.exp(-alpha * torch.log1p(time).sum(-1))
