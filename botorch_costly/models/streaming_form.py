"""What a streaming belief takes over from a fitted GPyTorch model."""

from typing import Any, NamedTuple

from botorch.models.transforms.outcome import Standardize
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ZeroMean

from botorch_costly.errors import check
from botorch_costly.models.time_varying import TimeVaryingGP
from botorch_costly.numerics.radial import SMOOTHNESS
from botorch_costly.numerics.stationary import Stationary

_MATERN_FAMILIES = {nu: family for family, nu in SMOOTHNESS.items()}


class StreamingForm(NamedTuple):
    """Hyperparameters of a fitted model, and how its rewards are standardized."""

    kernel: Stationary
    forgetting: float
    noise: float
    center: float
    scale: float


def streaming_form(model: TimeVaryingGP) -> StreamingForm:
    """Return what a streaming belief takes over from a fitted model.

    Raises:
        InvalidArgumentError: If a part of the model has no streaming form: another kernel over
            configurations, a mean, a transform other than ``Standardize``, uneven noise.
    """
    noise = model.likelihood.noise.detach()
    one, levels = noise.numel() == 1, f"{noise.numel()} of them"
    check(one, "model", "one noise variance for all observations", levels)
    # BoTorch's models have the attribute only where there is a transform.
    mean, transform = model.mean_module, getattr(model, "outcome_transform", None)
    check(isinstance(mean, ZeroMean), "model", "a zero mean", type(mean).__name__)
    check(not hasattr(model, "input_transform"), "model", "no input transform", "one")
    known = transform is None or isinstance(transform, Standardize)
    check(known, "model", "Standardize or no outcome transform", type(transform).__name__)
    columns, dim = model.space_kernel.active_dims.tolist(), model.train_inputs[0].shape[-1] - 1
    every = columns == list(range(dim))
    check(every, "model", f"a kernel over all {dim} configuration columns", columns)
    center, scale = (
        (0.0, 1.0) if transform is None else (transform.means.item(), transform.stdvs.item())
    )
    kernel, forgetting = stationary_of(model.space_kernel), model.time_kernel.forgetting.item()
    return StreamingForm(kernel, forgetting, noise.item(), center, scale)


def stationary_of(kernel: Any) -> Stationary:
    """Return the plain form of a scaled Matérn or RBF kernel.

    Raises:
        InvalidArgumentError: If it is another kernel.
    """
    base = kernel.base_kernel if isinstance(kernel, ScaleKernel) else kernel
    known = isinstance(base, MaternKernel | RBFKernel)
    check(known, "kernel", "a (scaled) Matérn or RBF kernel", type(base).__name__)
    family = _MATERN_FAMILIES[base.nu] if isinstance(base, MaternKernel) else "rbf"
    lengthscale = base.lengthscale.detach().reshape(-1)
    scale = kernel.outputscale.detach() if base is not kernel else lengthscale.new_ones(())
    return Stationary(family, lengthscale, scale.reshape(()))
