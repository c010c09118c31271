"""A BoTorch posterior from mean and covariance."""

from typing import Any

import torch
from botorch.posteriors import GPyTorchPosterior
from gpytorch.distributions import MultivariateNormal
from linear_operator import to_linear_operator
from torch import Tensor

from botorch_costly.device import is_near
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, check


def gaussian_posterior(
    mean: Tensor,
    cov: Tensor,
    observation_noise: bool | Tensor,
    noise: float,
    posterior_transform: Any = None,
) -> Any:
    """Return the posterior of ``q`` values, with observation noise on request.

    Args:
        mean: Mean of shape ``(*batch, q)``.
        cov: Covariance of shape ``(*batch, q, q)``.
        observation_noise: Whether to add noise, or the variances to add, ``batch_shape x q x 1``.
        noise: Noise variance of the model.
        posterior_transform: BoTorch's posterior transform, applied last.

    Raises:
        InvalidShapeError: If ``observation_noise`` does not have one variance for each value.
        InvalidArgumentError: If a variance is negative or not finite.
    """
    if observation_noise is not False:
        added = noise if observation_noise is True else observation_noise
        diagonal = torch.as_tensor(added, dtype=cov.dtype, device=cov.device)
        if diagonal.dim() > mean.dim():  # BoTorch's batch_shape x q x 1
            diagonal = diagonal.squeeze(-1)
        if isinstance(observation_noise, Tensor):
            check_noise(diagonal, mean.shape)
        cov = cov + torch.diag_embed(diagonal.expand(mean.shape))
    # A lazy operator: a plain tensor would be factorized at once, even if it is singular.
    posterior = GPyTorchPosterior(MultivariateNormal(mean, to_linear_operator(cov)))
    return posterior if posterior_transform is None else posterior_transform(posterior)


def check_inputs(X: object, columns: int | None = None) -> None:
    """Raise unless ``X`` is a tensor of shape ``batch_shape x q x columns``, any number if omitted.

    Raises:
        InvalidShapeError: If it is not.
    """
    fits = isinstance(X, Tensor) and X.dim() >= 2 and X.shape[-1] == (columns or X.shape[-1])
    received = tuple(X.shape) if isinstance(X, Tensor) else X
    width = "columns" if columns is None else columns
    check(fits, "X", f"a tensor of shape (.., q, {width})", received, InvalidShapeError)


def check_noise(variances: Tensor, values: torch.Size) -> None:
    """Raise unless variances are finite and >= 0, and broadcast to the shape of the values."""
    name, shape = "observation_noise", tuple(values)
    pairs = zip(reversed(variances.shape), reversed(shape), strict=False)
    fits = variances.dim() <= len(shape) and all(length in (1, size) for length, size in pairs)
    expected = f"variances of shape {(*shape, 1)}"
    check(fits, name, expected, tuple(variances.shape), InvalidShapeError)
    if is_near(variances):  # synchronizes with no device
        is_valid = bool((variances.isfinite() & (variances >= 0)).all())
        check(is_valid, name, "finite variances >= 0", variances, InvalidArgumentError)
