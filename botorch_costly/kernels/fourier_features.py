r"""Random Fourier features of a function that forgets, for BoTorch's pathwise sampling.

A stationary kernel is the mean of ``cos(w.(x - x'))`` over frequencies ``w`` of its spectral density.
With ``c = -log(1 - forgetting) / 2``, the kernel over rounds is ``prod_j exp(-c |t_j - t'_j|)``, whose
frequencies are independent Cauchy numbers of scale ``c``, one for each column. The density of a product
of kernels is the convolution of theirs: its frequencies are sums of independent ones, and where the
factors see different columns, side by side.

Importing ``botorch_costly.kernels`` registers both with BoTorch, so that ``draw_matheron_paths`` and all
that builds on it take a ``TimeVaryingGP``. BoTorch draws from the global generator, and so does this.

References:
    - A. Rahimi, B. Recht. Random features for large-scale kernel machines. NeurIPS 2008.
    - J. T. Wilson et al. Pathwise conditioning of Gaussian processes. JMLR 22, 2021.
"""

import math
from typing import Any

import torch
from botorch.sampling.pathwise.features import gen_kernel_features
from botorch.sampling.pathwise.features.generators import GenKernelFeatures
from botorch.sampling.pathwise.features.maps import KernelFeatureMap
from botorch.sampling.pathwise.utils import (
    ChainedTransform,
    FeatureSelector,
    OutputscaleTransform,
    SineCosineTransform,
    TensorTransform,
)
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.kernels import Kernel, ProductKernel, ScaleKernel
from torch import Tensor, nn

from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.kernels.forgetting import ForgettingKernel


class DecayTransform(TensorTransform):
    """Multiply rounds by ``c = -log(1 - forgetting) / 2``, by which frequencies of scale 1 are read."""

    def __init__(self, kernel: ForgettingKernel) -> None:
        super().__init__()
        self.kernel = kernel

    def forward(self, values: Tensor) -> Tensor:
        """Return the rounds ``... x n x d`` in units of forgetting."""
        return -0.5 * torch.log1p(-self.kernel.forgetting) * values


class SideBySide(TensorTransform):
    """Apply several transforms to the same inputs, and put their columns side by side."""

    def __init__(self, *transforms: nn.Module) -> None:
        super().__init__()
        self.transforms = nn.ModuleList(transforms)

    def forward(self, values: Tensor) -> Tensor:
        """Return the columns of all transforms, ``batch_shape x n x (d_1 + d_2 + ..)``."""
        return _columns([transform(values) for transform in self.transforms])


def forgetting_features(
    kernel: ForgettingKernel, *, num_inputs: int, num_outputs: int
) -> KernelFeatureMap:
    """Return features of a kernel over rounds.

    Args:
        kernel: The kernel, with a rate below 1.
        num_inputs: Columns of the inputs.
        num_outputs: Number of features, even: as many sines as cosines.

    Raises:
        InvalidArgumentError: If the rate is 1, where frequencies are infinite, or ``num_outputs`` is odd.
    """
    below = bool((kernel.forgetting < 1).all())
    check(below, "forgetting", "a rate below 1", kernel.forgetting, InvalidArgumentError)
    _check_even(num_outputs)
    transform: TensorTransform = DecayTransform(kernel)
    if kernel.active_dims is not None:
        num_inputs = len(kernel.active_dims)
        transform = ChainedTransform(transform, FeatureSelector(kernel.active_dims))
    shape = *kernel.batch_shape, num_outputs // 2, num_inputs
    weight = _cauchy(kernel.batch_shape.numel() * shape[-2], num_inputs).reshape(shape)
    return KernelFeatureMap(
        kernel, weight.to(kernel.forgetting), None, transform, _waves(kernel, num_outputs)
    )


def product_features(
    kernel: ProductKernel, *, num_inputs: int, num_outputs: int
) -> KernelFeatureMap:
    """Return features of a product of stationary kernels that have Fourier features themselves.

    Args:
        kernel: The product.
        num_inputs: Columns of the inputs.
        num_outputs: Number of features, even: as many sines as cosines.

    Raises:
        InvalidArgumentError: If a factor has other features than sines and cosines, or ``num_outputs``
            is odd.
        NotImplementedError: If BoTorch knows no features of a factor.
    """
    _check_even(num_outputs)
    columns = num_inputs if kernel.active_dims is None else len(kernel.active_dims)
    sizes = {"num_inputs": columns, "num_outputs": num_outputs}
    factors = [gen_kernel_features(_sharing_columns(k), **sizes) for k in kernel.kernels]
    scales = [scale for factor in factors for scale in _scales(factor)]
    transform: TensorTransform = SideBySide(*(factor.input_transform for factor in factors))
    if kernel.active_dims is not None:
        transform = ChainedTransform(transform, FeatureSelector(kernel.active_dims))
    weight = _columns([_shuffled(factor.weight) for factor in factors])
    waves = ChainedTransform(*scales, _waves(kernel, num_outputs))
    return KernelFeatureMap(kernel, weight, None, transform, waves)


def _sharing_columns(kernel: Kernel) -> Kernel:
    """Return the kernel, whose base shares its columns if it is a scaled one.

    BoTorch tells by identity that a scaled kernel selects columns as its base does. A move to another
    device copies both, and columns would be selected twice.
    """
    scaled = kernel
    while isinstance(scaled, ScaleKernel):
        base, columns = scaled.base_kernel, scaled.active_dims
        both = columns is not None and base.active_dims is not None
        if both and torch.equal(columns, base.active_dims):
            base.active_dims = columns
        scaled = base
    return kernel


def _waves(kernel: Kernel, num_outputs: int) -> SineCosineTransform:
    """Return sines and cosines whose squares sum to 1."""
    scale = torch.tensor((2 / num_outputs) ** 0.5, dtype=kernel.dtype, device=kernel.device)
    return SineCosineTransform(scale)


def _cauchy(count: int, dim: int) -> Tensor:
    """Draw standard Cauchy numbers, evenly spread over their quantiles, ``count x dim``."""
    bounds = torch.tensor([[-0.5], [0.5]], dtype=torch.float64).expand(2, dim)
    return (math.pi * draw_sobol_samples(bounds, n=count, q=1).squeeze(-2)).tan()


def _shuffled(weight: Tensor) -> Tensor:
    """Return frequencies in another order: Sobol points of two factors depend on each other by row."""
    return weight[..., torch.randperm(weight.shape[-2], device=weight.device), :]


def _columns(parts: list[Tensor]) -> Tensor:
    """Return columns side by side, of which some may have no batch."""
    rows = torch.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return torch.cat([part.expand(*rows, part.shape[-1]) for part in parts], -1)


def _scales(features: Any) -> list[OutputscaleTransform]:
    """Return what multiplies the sines and cosines of a factor."""
    scales, pending = [], [features.output_transform]
    while pending:
        transform = pending.pop()
        if isinstance(transform, ChainedTransform):
            pending += transform.transforms
        elif isinstance(transform, OutputscaleTransform):
            scales.append(transform)
        else:
            waves = isinstance(transform, SineCosineTransform)
            check(waves, "kernel", "factors with Fourier features", features.kernel)
    return scales


def _check_even(num_outputs: int) -> None:
    check(num_outputs % 2 == 0, "num_outputs", "an even number of features", num_outputs)


GenKernelFeatures.register(ForgettingKernel)(forgetting_features)
if (ProductKernel,) not in GenKernelFeatures.funcs:  # BoTorch's own has priority
    GenKernelFeatures.register(ProductKernel)(product_features)
