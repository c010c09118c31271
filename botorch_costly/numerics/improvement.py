"""The expected improvement of a Gaussian in closed form."""

import math

import torch
from torch import Tensor


def excess(u: Tensor) -> Tensor:
    """Return ``E max(u + z, 0)`` of a standard normal ``z``, elementwise."""
    density = torch.exp(-0.5 * u.square()) / math.sqrt(2 * math.pi)
    return (u * torch.special.ndtr(u) + density).clamp_min(0)


def expected_improvement(mean: Tensor, sd: Tensor, best: float) -> Tensor:
    """Return by how much normals are expected to exceed a value, elementwise.

    Args:
        mean: Of any shape.
        sd: Standard deviations of that shape; 0 for what is known.
        best: The value.
    """
    known = sd <= 0
    u = (mean - best) / sd.masked_fill(known, 1.0)
    return torch.where(known, (mean - best).clamp_min(0), sd * excess(u))
