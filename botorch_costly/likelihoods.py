"""Gaussian noise whose variance depends on the fraction of the data used for training."""

from collections.abc import Sequence
from typing import Any

import torch
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.likelihoods.noise_models import Noise
from gpytorch.priors import LogNormalPrior
from linear_operator.operators import DiagLinearOperator
from torch import Tensor

from botorch_costly.device import columns_of
from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.learnt import PositiveNumber
from botorch_costly.priors import made

LEAST_NOISE = 1e-6


class SubsetNoise(Noise):
    """The noise model of ``SubsetNoiseLikelihood``.

    Args:
        columns: Columns of the inputs that hold the fraction of the data.
        as_printed: Whether the noise grows with the fraction.
        batch_shape: Batch shape of the hyperparameters.
        beta_prior: Prior of the exponent, which starts at its median.
    """

    noise = PositiveNumber("Noise variance on all data, ``batch_shape x 1``.", least=LEAST_NOISE)
    alpha = PositiveNumber(
        "Largest additional variance from the choice of a subset, ``batch_shape x 1``."
    )
    beta = PositiveNumber(
        "Exponent of that variance as a function of the fraction, ``batch_shape x 1``."
    )

    def __init__(
        self,
        columns: tuple[int, ...],
        as_printed: bool,
        batch_shape: torch.Size,
        beta_prior: LogNormalPrior,
    ) -> None:
        super().__init__()
        self.columns, self.as_printed = columns, as_printed
        shape = torch.Size([*batch_shape, 1])
        kind = type(self)
        kind.noise.add(self, 1e-3, shape, prior=made(LogNormalPrior, -6.0, 2.0))
        kind.alpha.add(self, 0.05, shape, prior=made(LogNormalPrior, -3.0, 1.0))
        kind.beta.add(self, beta_prior.loc.exp(), shape, prior=beta_prior)

    def forward(
        self,
        *params: Any,
        shape: torch.Size | None = None,
        noise: Tensor | None = None,
        **kwargs: Any,
    ) -> DiagLinearOperator:
        """Return the variances at inputs ``... x n x d``, or those in ``noise`` if they are given."""
        if noise is not None:
            return DiagLinearOperator(noise)
        if not params:
            raise InvalidArgumentError("params", "the inputs, which the noise depends on", params)
        inputs = params[0] if isinstance(params[0], Tensor) else params[0][0]
        fraction = columns_of(inputs, self.columns).mean(-1).clamp(0, 1)
        base = fraction if self.as_printed else 1 - fraction
        return DiagLinearOperator(self.noise + self.alpha * base.pow(self.beta))


class SubsetNoiseLikelihood(GaussianLikelihood):
    r"""Gaussian noise whose variance falls with the fraction of the data, to a constant on all data.

    ``variance(s) = noise + alpha (1 - s)^beta``

    The supplement prints ``alpha s^beta``, which grows, but its text and Figure 3 say that this term
    falls and vanishes at ``s = 1``. In measured curves it falls.

    References:
        A. Klein, S. Falkner, S. Bartels, P. Hennig, F. Hutter. Fast Bayesian optimization of machine
        learning hyperparameters on large datasets. AISTATS 2017, supplement C, with the priors
        log N(-3, 1) of alpha and log N(3, 1) of beta.

    Args:
        columns: Input columns with the fraction of the data, in [0, 1]; the last by default. Of several
            fidelities the mean counts.
        as_printed: Whether to use the printed form.
        batch_shape: Batch shape of the hyperparameters.
        beta_prior: Prior of the exponent; the supplement's if omitted. With logarithmic encodings of the
            fraction, as in ``SubsetOptimizer``, smaller exponents are likely.

    Example:
        >>> likelihood = SubsetNoiseLikelihood()
        >>> X = torch.tensor([[0.3, 0.0], [0.3, 1.0]])
        >>> likelihood.noise_covar(X).diagonal()
        tensor([0.0510, 0.0010], grad_fn=...)
    """

    def __init__(
        self,
        columns: int | Sequence[int] = -1,
        *,
        as_printed: bool = False,
        batch_shape: torch.Size = torch.Size(),
        beta_prior: LogNormalPrior | None = None,
    ) -> None:
        super().__init__(batch_shape=batch_shape)
        check(isinstance(as_printed, bool), "as_printed", "a bool", as_printed)
        indices = (columns,) if isinstance(columns, int) else tuple(columns)
        check(len(indices) > 0, "columns", "at least one", columns)
        prior = beta_prior or made(LogNormalPrior, 3.0, 1.0)
        self.noise_covar = SubsetNoise(indices, as_printed, batch_shape, prior)
