"""The kernel of learning curves that decay towards an end."""

from typing import Any

import torch
from gpytorch.constraints import Positive
from gpytorch.kernels import Kernel
from gpytorch.priors import Prior
from torch import Tensor, nn

from botorch_costly.errors import check
from botorch_costly.kernels.columns import refuse_last_dim_batch
from botorch_costly.priors import register_prior


class FreezeThawKernel(Kernel):
    r"""Covariance over time of a mixture of exponential decays.

    ``k(t, t') = beta^alpha / (t + t' + beta)^alpha``

    It is the mean of ``exp(-rate (t + t'))`` over rates from a Gamma(alpha, beta) distribution: the
    prior of a curve that decays to 0 at an unknown speed. It is 1 at time 0. Several input columns
    multiply.

    References:
        K. Swersky, J. Snoek, R. P. Adams. Freeze-thaw Bayesian optimization. 2014, equation 6.

    Args:
        alpha: Shape of the distribution of rates, > 0, scalar or ``batch_shape x 1 x 1``.
        beta: Its rate, in the unit of time, > 0, scalar or ``batch_shape x 1 x 1``.
        alpha_prior: A prior on ``alpha``.
        beta_prior: A prior on ``beta``.
        **kwargs: ``batch_shape``, ``active_dims`` and the like, for ``gpytorch.kernels.Kernel``.

    Raises:
        InvalidArgumentError: If ``alpha`` or ``beta`` is not positive.

    Example:
        >>> kernel = FreezeThawKernel(alpha=1.0, beta=2.0)
        >>> kernel(torch.tensor([[0.0], [2.0]])).to_dense()
        tensor([[1.0000, 0.5000],
                [0.5000, 0.3333]], grad_fn=...)
    """

    has_lengthscale = False

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
        for name in ("alpha", "beta"):
            raw = nn.Parameter(torch.zeros(*self.batch_shape, 1, 1))
            self.register_parameter(f"raw_{name}", raw)
            self.register_constraint(f"raw_{name}", Positive())
        register_prior(self, "alpha", alpha_prior)
        register_prior(self, "beta", beta_prior)
        self.alpha, self.beta = alpha, beta

    @property
    def alpha(self) -> Tensor:
        """Shape of the distribution of rates, ``batch_shape x 1 x 1``."""
        return self.raw_alpha_constraint.transform(self.raw_alpha)

    @alpha.setter
    def alpha(self, value: float | Tensor) -> None:
        self._set("alpha", value)

    @property
    def beta(self) -> Tensor:
        """Rate of the distribution of rates, ``batch_shape x 1 x 1``."""
        return self.raw_beta_constraint.transform(self.raw_beta)

    @beta.setter
    def beta(self, value: float | Tensor) -> None:
        self._set("beta", value)

    def _set(self, name: str, value: float | Tensor) -> None:
        raw = getattr(self, f"raw_{name}")
        wanted = torch.as_tensor(value, dtype=torch.float64, device=raw.device)
        check(bool((wanted > 0).all()), name, "a number > 0", value)
        constraint = getattr(self, f"raw_{name}_constraint")
        self.initialize(**{f"raw_{name}": constraint.inverse_transform(wanted).to(raw.dtype)})

    def forward(
        self,
        x1: Tensor,
        x2: Tensor,
        diag: bool = False,
        last_dim_is_batch: bool = False,
        **params: Any,
    ) -> Tensor:
        """Return the covariance of the times ``x1`` (``... x n x d``) and ``x2`` (``... x m x d``)."""
        refuse_last_dim_batch("times", last_dim_is_batch)
        alpha, beta = self.alpha, self.beta
        if diag:
            late = (x1 + x2) / beta
            return torch.exp(-alpha.squeeze(-1) * torch.log1p(late).sum(-1))
        late = (x1.unsqueeze(-2) + x2.unsqueeze(-3)) / beta.unsqueeze(-1)
        return torch.exp(-alpha * torch.log1p(late).sum(-1))
