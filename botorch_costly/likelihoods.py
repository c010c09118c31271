"""Noise that depends on the inputs: the variance that comes from training on a part of the data."""

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
    """The variances of ``SubsetNoiseLikelihood``.

    Args:
        columns: Those of the inputs that hold the share of the data.
        as_printed: Whether the noise grows with the share.
        batch_shape: Of the hyperparameters.
        beta_prior: Of the exponent, whose median it starts from.
    """

    noise = PositiveNumber("Variance that all observations have, ``batch_shape x 1``.")
    alpha = PositiveNumber(
        "Variance that the choice of a subset adds at most, ``batch_shape x 1``."
    )
    beta = PositiveNumber(
        "Exponent by which that variance changes with the share, ``batch_shape x 1``."
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
        kind.noise.add(self, 1e-3, shape, prior=made(LogNormalPrior, -6.0, 2.0), least=LEAST_NOISE)
        kind.alpha.add(self, 0.05, shape, prior=made(LogNormalPrior, -3.0, 1.0))
        kind.beta.add(self, beta_prior.loc.exp(), shape, prior=beta_prior)

    def forward(
        self,
        *params: Any,
        shape: torch.Size | None = None,
        noise: Tensor | None = None,
        **kwargs: Any,
    ) -> DiagLinearOperator:
        """Return the variances at inputs ``... x n x d``; those in ``noise`` where they are known."""
        if noise is not None:
            return DiagLinearOperator(noise)
        if not params:
            raise InvalidArgumentError("params", "the inputs, which the noise depends on", params)
        inputs = params[0] if isinstance(params[0], Tensor) else params[0][0]
        share = columns_of(inputs, self.columns).mean(-1).clamp(0, 1)
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
        columns: Of the share of the data, in [0, 1], among the inputs, the last by default; of several
            fidelities the mean counts.
        as_printed: Whether to use the printed form.
        batch_shape: Of the hyperparameters.
        beta_prior: Of the power; the supplement's if omitted. Where shares are encoded by their
            logarithms, as ``SubsetOptimizer`` has them, smaller powers are likely.

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
        those = (columns,) if isinstance(columns, int) else tuple(columns)
        check(len(those) > 0, "columns", "at least one", columns)
        prior = beta_prior or made(LogNormalPrior, 3.0, 1.0)
        self.noise_covar = SubsetNoise(those, as_printed, batch_shape, prior)
