"""The kernel of a function that a new random function slowly replaces."""

from typing import Any

import torch
from gpytorch.constraints import Interval
from gpytorch.priors import Prior
from torch import Tensor, nn

from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.kernels.columns import JointKernel
from botorch_costly.numerics.drift import retention
from botorch_costly.priors import register_prior


class ForgettingKernel(JointKernel):
    r"""Covariance over time of a function that forgets at rate ``forgetting`` per round.

    ``k(t, t') = (1 - forgetting)^(|t - t'| / 2)``

    It is an exponential (Matérn-1/2) kernel with lengthscale ``-2 / log(1 - forgetting)``, parametrized
    by the rate. With a rate of 0 the function never changes, with 1 it is drawn anew every round; both
    limits are exact. The lags of several input columns add up. The product with a kernel over the
    configuration is the time-varying GP of Bogunovic et al.

    References:
        I. Bogunovic, J. Scarlett, V. Cevher. Time-varying Gaussian process bandit optimization.
        AISTATS 2016.

    Args:
        forgetting: Initial rate in [0, 1], scalar or of shape ``batch_shape x 1 x 1``. A rate of 0 or 1
            cannot be learnt.
        forgetting_prior: Prior on the rate.
        learn: Whether the rate is a trainable parameter.
        **kwargs: Further arguments of ``gpytorch.kernels.Kernel``, such as ``batch_shape``.

    Raises:
        InvalidArgumentError: If the rate is outside [0, 1].

    Example:
        >>> kernel = ForgettingKernel(forgetting=0.19)
        >>> rounds = torch.tensor([[0.0], [2.0]], dtype=torch.float64)
        >>> round(kernel(rounds).to_dense()[0, 1].item(), 3)
        0.81
    """

    _inputs = "rounds"

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
        # The sigmoid of the raw parameter reaches 0 and 1 only at infinity, where the gradient vanishes.
        learnable = learn and bool(self.raw_forgetting.isfinite().all())
        self.raw_forgetting.requires_grad_(learnable)

    @property
    def is_stationary(self) -> bool:
        """True: the covariance depends only on the lag."""
        return True

    @property
    def forgetting(self) -> Tensor:
        """The rate per round, shape ``batch_shape x 1 x 1``."""
        return self.raw_forgetting_constraint.transform(self.raw_forgetting)

    @forgetting.setter
    def forgetting(self, value: float | Tensor) -> None:
        # In double precision, so that the rate is not rounded before the logit.
        rate = torch.as_tensor(value, dtype=torch.float64, device=self.raw_forgetting.device)
        valid = bool(((rate >= 0) & (rate <= 1)).all())
        check(valid, "forgetting", "a rate in [0, 1]", value, InvalidArgumentError)
        self.initialize(raw_forgetting=torch.logit(rate).to(self.raw_forgetting.dtype))

    def transition(self, elapsed: Tensor) -> tuple[Tensor, Tensor]:
        """Return the state-space form ``f_{t+s} = a f_t + N(0, (1 - a^2) K)``.

        Args:
            elapsed: Number of rounds ``s``, at least 0.

        Returns:
            ``a`` and ``1 - a^2``, of the shape of ``elapsed`` broadcast with ``batch_shape``.
        """
        retained = retention(self.forgetting.squeeze(-1).squeeze(-1), elapsed)
        return retained, 1 - retained.square()

    def _covariance(self, x1: Tensor, x2: Tensor, diag: bool, **params: Any) -> Tensor:
        rate = self.forgetting
        if diag:
            return retention(rate.squeeze(-1), (x1 - x2).abs().sum(-1))
        return retention(rate, (x1.unsqueeze(-2) - x2.unsqueeze(-3)).abs().sum(-1))
