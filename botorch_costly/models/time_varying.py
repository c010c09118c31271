"""The time-varying Gaussian process, as a BoTorch model over [configuration, round]."""

import torch
from botorch.models.transforms.input import InputTransform
from botorch.models.transforms.outcome import OutcomeTransform, Standardize
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from botorch.utils.types import DEFAULT, _DefaultType
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel, MaternKernel, ProductKernel, ScaleKernel
from gpytorch.likelihoods import Likelihood
from gpytorch.means import Mean, ZeroMean
from gpytorch.priors import GammaPrior, LogNormalPrior
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.kernels import ForgettingKernel
from botorch_costly.models.asked_anew import AskedAnewGP


def default_space_kernel(dim: int, batch_shape: torch.Size) -> Kernel:
    """Return the default kernel over configurations: Matérn-5/2 with one lengthscale per column.

    Lengthscales have BoTorch's dimension-scaled log-normal prior. The variance has a Gamma(2, 0.15)
    prior as in BoTorch's classical models: with drift, the empirical variance of the rewards may be below
    the prior variance, so it cannot replace the variance parameter.
    """
    template = get_covar_module_with_dim_scaled_prior(ard_num_dims=dim, batch_shape=batch_shape)
    matern = MaternKernel(
        nu=2.5,
        ard_num_dims=dim,
        batch_shape=batch_shape,
        lengthscale_prior=template.lengthscale_prior,
        lengthscale_constraint=GreaterThan(1e-2),
        active_dims=tuple(range(dim)),
    )
    matern.lengthscale = template.lengthscale.detach()
    return ScaleKernel(matern, batch_shape=batch_shape, outputscale_prior=GammaPrior(2.0, 0.15))


def default_forgetting_prior() -> LogNormalPrior:
    """Return a broad prior on the forgetting rate: median 0.01, 95 % between 0.0005 and 0.2."""
    return LogNormalPrior(loc=-4.605, scale=1.5)


def _check_numbers(**data: Tensor | None) -> None:
    for name, values in data.items():
        if values is not None:
            is_valid, expected = values.isfinite(), "finite numbers"
            if name == "train_Yvar":
                is_valid, expected = is_valid & (values >= 0), "finite numbers >= 0"
            check(bool(is_valid.all()), name, expected, values[~is_valid])


class TimeVaryingGP(AskedAnewGP):
    r"""A GP whose function drifts: ``k((x, t), (x', t')) = k_x(x, x') (1 - forgetting)^(|t - t'|/2)``.

    The last column of the inputs is the round. Unlike ``SingleTaskGP``, the mean of standardized rewards
    is zero, configurations have a *scaled* Matérn-5/2 kernel, and ``fit_gpytorch_mll`` also learns the
    forgetting rate unless it is fixed.

    References:
        I. Bogunovic, J. Scarlett, V. Cevher. Time-varying Gaussian process bandit optimization.
        AISTATS 2016.

    Args:
        train_X: Configurations and rounds, ``batch_shape x n x (d + 1)``; configurations in the
            unit cube, rounds in rounds.
        train_Y: Rewards, ``batch_shape x n x 1``.
        train_Yvar: Known noise variances, of the shape of ``train_Y``; learnt if omitted.
        forgetting: A fixed rate in [0, 1] per round, or ``None`` to learn it.
        space_kernel: A kernel over the first ``d`` columns; ``default_space_kernel`` if omitted.
        likelihood: Likelihood; that of ``SingleTaskGP`` if omitted.
        mean_module: Prior mean; zero if omitted.
        outcome_transform: ``Standardize`` by default; ``None`` models untransformed rewards.
        input_transform: Transform of the inputs; none if omitted.

    Raises:
        InvalidShapeError: If ``train_X`` has no configuration column before the round.
        InvalidArgumentError: If ``forgetting`` is outside [0, 1], a number is NaN or infinite, or a
            known noise variance is negative.

    Example:
        >>> X = torch.tensor([[0.1, 0.0], [0.9, 1.0]], dtype=torch.float64)
        >>> model = TimeVaryingGP(X, X[:, :1], forgetting=0.01)
        >>> tuple(model.posterior(X).mean.shape)
        (2, 1)
    """

    def __init__(
        self,
        train_X: Tensor,
        train_Y: Tensor,
        train_Yvar: Tensor | None = None,
        forgetting: float | None = None,
        space_kernel: Kernel | None = None,
        likelihood: Likelihood | None = None,
        mean_module: Mean | None = None,
        outcome_transform: OutcomeTransform | _DefaultType | None = DEFAULT,
        input_transform: InputTransform | None = None,
    ) -> None:
        dim = train_X.shape[-1] - 1
        received = tuple(train_X.shape)
        check(dim >= 1, "train_X", "columns [x_1 .. x_d, round]", received, InvalidShapeError)
        _check_numbers(train_X=train_X, train_Y=train_Y, train_Yvar=train_Yvar)
        batch_shape = train_X.shape[:-2]
        rate = 0.01 if forgetting is None else forgetting
        time_kernel = ForgettingKernel(
            forgetting=rate,
            forgetting_prior=default_forgetting_prior() if forgetting is None else None,
            learn=forgetting is None,
            batch_shape=batch_shape,
            active_dims=(dim,),
        ).to(train_X)
        time_kernel.forgetting = rate  # set again, in the dtype of the data
        space = space_kernel or default_space_kernel(dim, batch_shape)
        if space.active_dims is None:  # without this the kernel would act on the round, too
            space.active_dims = torch.arange(dim, device=train_X.device)
        if outcome_transform is DEFAULT:
            outcome_transform = Standardize(m=1, batch_shape=batch_shape)
        super().__init__(
            train_X,
            train_Y,
            train_Yvar,
            likelihood=likelihood,
            # `space * time_kernel` would flatten a space kernel that is itself a product.
            covar_module=ProductKernel(space, time_kernel),
            mean_module=mean_module or ZeroMean(batch_shape=batch_shape),
            outcome_transform=outcome_transform,
            input_transform=input_transform,
        )

    @property
    def space_kernel(self) -> Kernel:
        """The kernel over configurations."""
        return self.covar_module.kernels[0]

    @property
    def time_kernel(self) -> ForgettingKernel:
        """The kernel over rounds."""
        return self.covar_module.kernels[1]
