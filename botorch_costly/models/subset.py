"""A GP over configurations and fidelities, such as the share of the data."""

from collections.abc import Sequence
from typing import Any

import torch
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from botorch.utils.datasets import SupervisedDataset
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import Likelihood
from gpytorch.means import ConstantMean, Mean
from gpytorch.priors import LogNormalPrior, NormalPrior
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.kernels.shift import ShiftKernel
from botorch_costly.kernels.subset import SubsetKernel
from botorch_costly.likelihoods import SubsetNoiseLikelihood
from botorch_costly.models.asked_anew import AskedAnewGP
from botorch_costly.models.earlier_means import EarlierMean, earlier_kernel
from botorch_costly.priors import made


def subset_kernel(
    dim: int,
    fidelities: Sequence[int],
    basis: str,
    batch_shape: torch.Size,
    *,
    level: bool = False,
    moving: Sequence[int] = (),
    earlier: Sequence[int] = (),
) -> Kernel:
    """Return the product of a Matérn-5/2 kernel over configurations and one kernel for each fidelity.

    Lengthscales of configurations have BoTorch's dimension-scaled log-normal prior. ``level`` adds a
    scaled RBF kernel over the fidelities: a gain that all configurations share. Columns of means of
    earlier tasks add a weighted sum of them, the same at all fidelities (``earlier_kernel``).

    Args:
        dim: Number of columns of the inputs.
        fidelities: The columns of the fidelities.
        basis: Basis of the ``SubsetKernel``, ``"loss"`` or ``"cost"``.
        batch_shape: Batch shape of the hyperparameters.
        level: Whether to add the shared gain.
        moving: Columns of configurations whose optimum moves with the fidelities, as in ``ShiftKernel``.
        earlier: Columns of the means of earlier tasks.
    """
    configs = tuple(c for c in range(dim) if c not in {*fidelities, *earlier})
    kernel = _over_configs(configs, fidelities, moving, batch_shape)
    for column in fidelities:
        kernel = kernel * SubsetKernel(basis, active_dims=(column,), batch_shape=batch_shape)
    if level:
        kernel = kernel + _level(fidelities, batch_shape)
    return kernel + earlier_kernel(earlier, batch_shape) if earlier else kernel


def _level(fidelities: Sequence[int], batch_shape: torch.Size) -> Kernel:
    shared = RBFKernel(
        ard_num_dims=len(fidelities),
        active_dims=tuple(fidelities),
        batch_shape=batch_shape,
        lengthscale_prior=made(LogNormalPrior, 0.5, 1.0),
    )
    scale = made(LogNormalPrior, 0.0, 1.0)
    return ScaleKernel(shared, outputscale_prior=scale, batch_shape=batch_shape)


def _over_configs(
    configs: Sequence[int],
    fidelities: Sequence[int],
    moving: Sequence[int],
    batch_shape: torch.Size,
) -> Kernel:
    usual = get_covar_module_with_dim_scaled_prior(ard_num_dims=len(configs)).lengthscale_prior
    kernel: Kernel = MaternKernel(
        2.5,
        ard_num_dims=len(configs),
        active_dims=None if moving else configs,
        batch_shape=batch_shape,
        lengthscale_prior=made(LogNormalPrior, usual.loc, usual.scale),
    )
    kernel.lengthscale = 0.5 * len(configs) ** 0.5
    if not moving:
        return kernel
    return ShiftKernel(kernel, configs=configs, fidelities=fidelities, moving=moving)


class SubsetGP(AskedAnewGP):
    r"""A GP over ``[configuration, fidelities]``: Matérn-5/2 times a ``SubsetKernel`` for each fidelity.

    ``fit_gpytorch_mll`` fits it, ``sample_hyperparameters`` draws its hyperparameters. Outcomes should be
    standardized. For positive losses and costs it is better to model the logarithms.

    References:
        A. Klein, S. Falkner, S. Bartels, P. Hennig, F. Hutter. Fast Bayesian optimization of machine
        learning hyperparameters on large datasets. AISTATS 2017, section 3.

    Args:
        train_X: Configurations in the unit cube and fidelities in [0, 1], ``batch_shape x n x d``.
        train_Y: Outcomes, ``batch_shape x n x 1``.
        fidelities: Columns of the fidelities; the last column by default.
        basis: Basis of the ``SubsetKernel``, ``"loss"`` or ``"cost"``.
        likelihood: The noise; a ``SubsetNoiseLikelihood`` of all fidelities if omitted.
        level: Whether to add a gain over the fidelities that all configurations share.
        moving: Columns of configurations whose optimum moves with the fidelities, as in ``ShiftKernel``.
        earlier: Columns of the posterior means of earlier tasks at the configuration; see
            ``models.earlier_means``.

    Raises:
        InvalidShapeError: If shapes do not fit, or no column is left for the configuration.
        InvalidArgumentError: If a fidelity is outside [0, 1], or the basis unknown.
    """

    def __init__(
        self,
        train_X: Tensor,
        train_Y: Tensor,
        *,
        fidelities: Sequence[int] = (-1,),
        basis: str = "loss",
        likelihood: Likelihood | None = None,
        level: bool = False,
        moving: Sequence[int] = (),
        earlier: Sequence[int] = (),
    ) -> None:
        dim = train_X.shape[-1]
        columns = sorted({column % dim for column in fidelities})
        of_tasks = sorted({column % dim for column in earlier} - set(columns))
        expected = f"some but not all of {dim} columns"
        check(
            0 < len(columns) < dim - len(of_tasks),
            "fidelities",
            expected,
            fidelities,
            InvalidShapeError,
        )
        shape, received = (*train_X.shape[:-1], 1), tuple(train_Y.shape)
        check(received == shape, "train_Y", f"shape {shape}", received, InvalidShapeError)
        shares = train_X[..., columns]
        inside = bool(((shares >= 0) & (shares <= 1)).all())
        check(inside, "train_X", "fidelities in [0, 1]", shares)
        batch = train_X.shape[:-2]
        noise = likelihood or SubsetNoiseLikelihood(columns, batch_shape=batch)
        super().__init__(
            train_X,
            train_Y,
            likelihood=noise,
            covar_module=subset_kernel(
                dim, columns, basis, batch, level=level, moving=moving, earlier=of_tasks
            ),
            mean_module=_mean(of_tasks, batch),
            outcome_transform=None,
        )
        self.fidelities = tuple(columns)
        self.to(train_X)

    @classmethod
    def construct_inputs(
        cls,
        training_data: SupervisedDataset,
        *,
        fidelity_features: Sequence[int] = (-1,),
        **options: Any,
    ) -> dict[str, Any]:
        """Return the keyword arguments of the constructor for training data, as in BoTorch.

        Args:
            training_data: Inputs and outcomes; known noise is ignored, as the noise is learnt.
            fidelity_features: Columns of the fidelities.
            **options: Further arguments, such as ``basis``.
        """
        data = {"train_X": training_data.X, "train_Y": training_data.Y}
        return {**data, "fidelities": tuple(fidelity_features), **options}


def _mean(earlier: Sequence[int], batch_shape: torch.Size) -> Mean:
    constant: dict[str, Any] = {
        "constant_prior": NormalPrior(0.0, 1.0),
        "batch_shape": batch_shape,
    }
    return EarlierMean(earlier, **constant) if earlier else ConstantMean(**constant)
