"""From mean and covariance to a BoTorch posterior."""

from typing import Any

import torch
from botorch.posteriors import GPyTorchPosterior
from gpytorch.distributions import MultivariateNormal
from linear_operator import to_linear_operator
from torch import Tensor


def gaussian_posterior(
    mean: Tensor,
    cov: Tensor,
    observation_noise: bool | Tensor,
    noise: float,
    posterior_transform: Any = None,
) -> Any:
    """Return the posterior of ``q`` values, with observation noise if asked for.

    Args:
        mean: Shape ``(*batch, q)``.
        cov: Shape ``(*batch, q, q)``.
        observation_noise: BoTorch's argument: whether to add noise, or the variances to add,
            ``batch_shape x q x 1``.
        noise: The model's own noise variance.
        posterior_transform: BoTorch's argument, applied last.
    """
    if observation_noise is not False:
        added = noise if observation_noise is True else observation_noise
        diagonal = torch.as_tensor(added, dtype=cov.dtype, device=cov.device)
        if diagonal.dim() > mean.dim():  # BoTorch's batch_shape x q x 1
            diagonal = diagonal.squeeze(-1)
        cov = cov + torch.diag_embed(diagonal.expand(mean.shape))
    # Lazily: a plain tensor would be factorized here and now, singular or not.
    posterior = GPyTorchPosterior(MultivariateNormal(mean, to_linear_operator(cov)))
    return posterior if posterior_transform is None else posterior_transform(posterior)
