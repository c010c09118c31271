"""The kernel of a function that is slowly replaced by a fresh one."""

from typing import Any

import torch
from gpytorch.constraints import Interval
from gpytorch.kernels import Kernel
from gpytorch.priors import Prior
from torch import Tensor, nn

from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.kernels.columns import refuse_last_dim_batch
from botorch_costly.numerics.drift import retention
from botorch_costly.priors import register_prior


class ForgettingKernel(Kernel):
    r"""Covariance over time of a function that forgets at rate ``forgetting`` per round.

    ``k(t, t') = (1 - forgetting)^(|t - t'| / 2)``

    It is an exponential (Matérn-1/2) kernel with lengthscale ``-2 / log(1 - forgetting)``,
    parametrized by the rate: 0 is a function that never changes, 1 one that is drawn anew every
    round, and both are exact. Several input columns multiply (their lags add up). Multiply it with a
    kernel over the configuration to get the time-varying GP of Bogunovic et al.

    References:
        I. Bogunovic, J. Scarlett, V. Cevher. Time-varying Gaussian process bandit optimization.
        AISTATS 2016.

    Args:
        forgetting: The initial rate, in [0, 1], scalar or of shape ``batch_shape x 1 x 1``. At the
            limits 0 and 1 it is not learnable.
        forgetting_prior: A prior on the rate.
        learn: Whether the rate is a trainable parameter.
        **kwargs: ``batch_shape``, ``active_dims`` and the like, for ``gpytorch.kernels.Kernel``.

    Raises:
        InvalidArgumentError: If the rate is outside [0, 1].

    Example:
        >>> kernel = ForgettingKernel(forgetting=0.19)
        >>> rounds = torch.tensor([[0.0], [2.0]], dtype=torch.float64)
        >>> round(kernel(rounds).to_dense()[0, 1].item(), 3)
        0.81
    """

    has_lengthscale = False

    def __init__(
        self,
        forgetting: float | Tensor = 0.01,
        forgetting_prior: Prior | None = None,
        *,
        learn: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.register_parameter(
            "raw_forgetting", nn.Parameter(torch.zeros(*self.batch_shape, 1, 1))
        )
        self.register_constraint("raw_forgetting", Interval(0.0, 1.0))
        register_prior(self, "forgetting", forgetting_prior)
        self.forgetting = forgetting
        # The sigmoid of the raw parameter reaches 0 and 1 only at infinity, where nothing is learnt.
        learnable = learn and bool(self.raw_forgetting.isfinite().all())
        self.raw_forgetting.requires_grad_(learnable)

    @property
    def is_stationary(self) -> bool:
        """Only the lag matters."""
        return True

    @property
    def forgetting(self) -> Tensor:
        """The rate per round, shape ``batch_shape x 1 x 1``."""
        return self.raw_forgetting_constraint.transform(self.raw_forgetting)

    @forgetting.setter
    def forgetting(self, value: float | Tensor) -> None:
        # In double precision: a rate of 0.01 must not be rounded before its logit is taken.
        rate = torch.as_tensor(value, dtype=torch.float64, device=self.raw_forgetting.device)
        check(
            bool(((rate >= 0) & (rate <= 1)).all()),
            "forgetting",
            "a rate in [0, 1]",
            value,
            InvalidArgumentError,
        )
        self.initialize(raw_forgetting=torch.logit(rate).to(self.raw_forgetting.dtype))

    def transition(self, elapsed: Tensor) -> tuple[Tensor, Tensor]:
        """Return the state-space form ``f_{t+s} = a f_t + N(0, (1 - a^2) K)``.

        Args:
            elapsed: Rounds ``s``, at least 0.

        Returns:
            ``a`` and ``1 - a^2``, of the shape of ``elapsed`` broadcast with ``batch_shape``.
        """
        rate = self.forgetting.squeeze(-1).squeeze(-1)
        retained = retention(rate, elapsed)
        return retained, 1 - retained.square()

    def forward(
        self,
        x1: Tensor,
        x2: Tensor,
        diag: bool = False,
        last_dim_is_batch: bool = False,
        **params: Any,
    ) -> Tensor:
        """Return the covariance of the rounds ``x1`` (``... x n x d``) and ``x2`` (``... x m x d``)."""
        refuse_last_dim_batch("rounds", last_dim_is_batch)
        rate = self.forgetting
        if diag:
            return retention(rate.squeeze(-1), (x1 - x2).abs().sum(-1))
        return retention(rate, (x1.unsqueeze(-2) - x2.unsqueeze(-3)).abs().sum(-1))
