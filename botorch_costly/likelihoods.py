"""Noise that depends on the inputs: the variance that comes from training on a part of the data."""

from typing import Any

import torch
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.likelihoods.noise_models import Noise
from gpytorch.priors import LogNormalPrior
from linear_operator.operators import DiagLinearOperator
from torch import Tensor

from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.positive import PositiveNumber

LEAST_NOISE = 1e-6


class SubsetNoise(Noise):
    """The variances of ``SubsetNoiseLikelihood``.

    Args:
        column: Of the share of the data.
        as_printed: Whether the noise grows with the share.
        batch_shape: Of the hyperparameters.
    """

    noise = PositiveNumber("Variance that all observations have, ``batch_shape x 1``.")
    alpha = PositiveNumber(
        "Variance that the choice of a subset adds at most, ``batch_shape x 1``."
    )
    beta = PositiveNumber(
        "Exponent by which that variance changes with the share, ``batch_shape x 1``."
    )

    def __init__(self, column: int, as_printed: bool, batch_shape: torch.Size) -> None:
        super().__init__()
        self.column, self.as_printed = column, as_printed
        shape = torch.Size([*batch_shape, 1])
        kind = type(self)
        kind.noise.add(self, 1e-3, shape, prior=LogNormalPrior(-6.0, 2.0), least=LEAST_NOISE)
        kind.alpha.add(self, 0.05, shape, prior=LogNormalPrior(-3.0, 1.0))
        kind.beta.add(self, 20.0, shape, prior=LogNormalPrior(3.0, 1.0))

    def forward(
        self,
        *params: Any,
        shape: torch.Size | None = None,
        noise: Tensor | None = None,
        **kwargs: Any,
    ) -> DiagLinearOperator:
        """Return the variances at inputs ``... x n x d``."""
        if not params:
            raise InvalidArgumentError("params", "the inputs, which the noise depends on", params)
        inputs = params[0] if isinstance(params[0], Tensor) else params[0][0]
        share = inputs[..., self.column].clamp(0, 1)
        base = share if self.as_printed else 1 - share
        return DiagLinearOperator(self.noise + self.alpha * base.pow(self.beta))


class SubsetNoiseLikelihood(GaussianLikelihood):
    r"""Gaussian noise that falls with the share of the data, to a constant on all of the data.

    ``variance(s) = noise + alpha (1 - s)^beta``

    The supplement prints ``alpha s^beta``, which grows, while its text and its Figure 3 say that this
    part falls and vanishes at ``s = 1``. In measured curves it falls.

    References:
        A. Klein, S. Falkner, S. Bartels, P. Hennig, F. Hutter. Fast Bayesian optimization of machine
        learning hyperparameters on large datasets. AISTATS 2017, supplement C, with the priors
        log N(-3, 1) of alpha and log N(3, 1) of beta.

    Args:
        column: Of the share of the data, in [0, 1], among the inputs; the last by default.
        as_printed: Whether to use the printed form, which grows.
        batch_shape: Of the hyperparameters.

    Example:
        >>> likelihood = SubsetNoiseLikelihood()
        >>> X = torch.tensor([[0.3, 0.0], [0.3, 1.0]])
        >>> likelihood.noise_covar(X).diagonal()
        tensor([0.0510, 0.0010], grad_fn=...)
    """

    def __init__(
        self,
        column: int = -1,
        *,
        as_printed: bool = False,
        batch_shape: torch.Size = torch.Size(),
    ) -> None:
        super().__init__(batch_shape=batch_shape)
        check(isinstance(as_printed, bool), "as_printed", "a bool", as_printed)
        self.noise_covar = SubsetNoise(column, as_printed, batch_shape)
