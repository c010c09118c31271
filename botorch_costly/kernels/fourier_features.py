r"""Random Fourier features of a function that forgets, for BoTorch's pathwise sampling.

A stationary kernel is the mean of ``cos(w.(x - x'))`` over frequencies ``w`` of its spectral density.
With ``c = -log(1 - forgetting) / 2``, the kernel over rounds is ``prod_j exp(-c |t_j - t'_j|)``. Its
frequencies are independent Cauchy variables of scale ``c``, one for each column. The spectral density of
a product of kernels is the convolution of the factors' densities: its frequencies are sums of independent
ones, or their concatenation if the factors depend on different columns.

Importing ``botorch_costly.kernels`` registers both with BoTorch, so that ``draw_matheron_paths`` accepts
a ``TimeVaryingGP``. As in BoTorch, the draws come from the global generator.

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
    """Multiply rounds by ``c = -log(1 - forgetting) / 2``, so that frequencies have scale 1."""

    def __init__(self, kernel: ForgettingKernel) -> None:
        super().__init__()
        self.kernel = kernel

    def forward(self, values: Tensor) -> Tensor:
        """Return the rounds ``... x n x d``, multiplied by ``c``."""
        return -0.5 * torch.log1p(-self.kernel.forgetting) * values


class SideBySide(TensorTransform):
    """Apply several transforms to the same inputs, and concatenate their columns."""

    def __init__(self, *transforms: nn.Module) -> None:
        super().__init__()
        self.transforms = nn.ModuleList(transforms)

    def forward(self, values: Tensor) -> Tensor:
        """Return the columns of all transforms, ``batch_shape x n x (d_1 + d_2 + ..)``."""
        return _concatenated([transform(values) for transform in self.transforms])


def forgetting_features(
    kernel: ForgettingKernel, *, num_inputs: int, num_outputs: int
) -> KernelFeatureMap:
    """Return Fourier features of a kernel over rounds.

    Args:
        kernel: The kernel, with a rate below 1.
        num_inputs: Number of columns of the inputs.
        num_outputs: Even number of features, half of them sines and half cosines.

    Raises:
        InvalidArgumentError: If the rate is 1, where frequencies are infinite, or ``num_outputs`` is odd.
    """
    valid = bool((kernel.forgetting < 1).all())
    check(valid, "forgetting", "a rate below 1", kernel.forgetting, InvalidArgumentError)
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
    """Return Fourier features of a product of stationary kernels, from the features of its factors.

    Args:
        kernel: The product.
        num_inputs: Number of columns of the inputs.
        num_outputs: Even number of features, half of them sines and half cosines.

    Raises:
        InvalidArgumentError: If a factor has features other than sines and cosines, or ``num_outputs`` is
            odd.
        NotImplementedError: If BoTorch has no features for a factor.
    """
    _check_even(num_outputs)
    columns = num_inputs if kernel.active_dims is None else len(kernel.active_dims)
    sizes = {"num_inputs": columns, "num_outputs": num_outputs}
    factors = [gen_kernel_features(_sharing_columns(k), **sizes) for k in kernel.kernels]
    scales = [scale for factor in factors for scale in _scales(factor)]
    transform: TensorTransform = SideBySide(*(factor.input_transform for factor in factors))
    if kernel.active_dims is not None:
        transform = ChainedTransform(transform, FeatureSelector(kernel.active_dims))
    weight = _concatenated([_shuffled(factor.weight) for factor in factors])
    waves = ChainedTransform(*scales, _waves(kernel, num_outputs))
    return KernelFeatureMap(kernel, weight, None, transform, waves)


def _sharing_columns(kernel: Kernel) -> Kernel:
    """Let a scaled kernel share its ``active_dims`` tensor with its base kernel, and return it.

    BoTorch compares the two by identity, and would select columns twice after a move to another device,
    which copies both tensors.
    """
    scaled = kernel
    while isinstance(scaled, ScaleKernel):
        base, columns = scaled.base_kernel, scaled.active_dims
        both_select = columns is not None and base.active_dims is not None
        if both_select and torch.equal(columns, base.active_dims):
            base.active_dims = columns
        scaled = base
    return kernel


def _waves(kernel: Kernel, num_outputs: int) -> SineCosineTransform:
    """Return sines and cosines whose squares sum to 1."""
    scale = torch.tensor((2 / num_outputs) ** 0.5, dtype=kernel.dtype, device=kernel.device)
    return SineCosineTransform(scale)


def _cauchy(count: int, dim: int) -> Tensor:
    """Draw quasi-random standard Cauchy variables, ``count x dim``."""
    bounds = torch.tensor([[-0.5], [0.5]], dtype=torch.float64).expand(2, dim)
    return (math.pi * draw_sobol_samples(bounds, n=count, q=1).squeeze(-2)).tan()


def _shuffled(weight: Tensor) -> Tensor:
    """Return frequencies in random order, since Sobol points of two factors are dependent by row."""
    return weight[..., torch.randperm(weight.shape[-2], device=weight.device), :]


def _concatenated(blocks: list[Tensor]) -> Tensor:
    """Return the columns of all blocks, with their batch shapes broadcast."""
    rows = torch.broadcast_shapes(*(block.shape[:-1] for block in blocks))
    return torch.cat([block.expand(*rows, block.shape[-1]) for block in blocks], -1)


def _scales(features: Any) -> list[OutputscaleTransform]:
    """Return the transforms that scale the sines and cosines of a factor."""
    scales, pending = [], [features.output_transform]
    while pending:
        transform = pending.pop()
        if isinstance(transform, ChainedTransform):
            pending += transform.transforms
        elif isinstance(transform, OutputscaleTransform):
            scales.append(transform)
        else:
            is_fourier = isinstance(transform, SineCosineTransform)
            check(is_fourier, "kernel", "factors with Fourier features", features.kernel)
    return scales


def _check_even(num_outputs: int) -> None:
    check(num_outputs % 2 == 0, "num_outputs", "an even number of features", num_outputs)


GenKernelFeatures.register(ForgettingKernel)(forgetting_features)
if (ProductKernel,) not in GenKernelFeatures.funcs:  # a future BoTorch may have its own features
    GenKernelFeatures.register(ProductKernel)(product_features)
