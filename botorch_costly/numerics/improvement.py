"""The expected improvement of a Gaussian in closed form, and its logarithm, accurate in the tails."""

import math

import torch
from torch import Tensor

_TAIL = -1.0  # below it the closed form of the excess loses digits


def excess(u: Tensor) -> Tensor:
    """Return ``E max(u + z, 0)`` with a standard normal ``z``, elementwise."""
    density = torch.exp(-0.5 * u.square()) / math.sqrt(2 * math.pi)
    return (u * torch.special.ndtr(u) + density).clamp_min(0)


def expected_improvement(mean: Tensor, sd: Tensor, best: float | Tensor) -> Tensor:
    """Return ``E max(y - best, 0)`` of normals ``y``, elementwise.

    Args:
        mean: Means, any shape.
        sd: Standard deviations, same shape; may be 0.
        best: Best value so far; a tensor is broadcast.
    """
    certain = sd <= 0
    u = (mean - best) / sd.masked_fill(certain, 1.0)
    return torch.where(certain, (mean - best).clamp_min(0), sd * excess(u))


def log_expected_improvement(mean: Tensor, sd: Tensor, best: float | Tensor) -> Tensor:
    """Return ``log E max(y - best, 0)`` of normals ``y``, elementwise.

    Args:
        mean: Means, any shape.
        sd: Standard deviations > 0, same shape.
        best: Best value so far; a tensor is broadcast.
    """
    return sd.log() + log_excess((mean - best) / sd)


def log_excess(u: Tensor) -> Tensor:
    r"""Return ``log E max(u + z, 0)`` with a standard normal ``z``, elementwise, accurate for all ``u``.

    For negative ``u`` it is ``log phi(u) + log(1 - |u| M(|u|))`` with the Mills ratio
    ``M(v) = Phi(-v) / phi(v) = sqrt(pi / 2) erfcx(v / sqrt 2)``.

    References:
        S. Ament, S. Daulton, D. Eriksson, M. Balandat, E. Bakshy. Unexpected improvements to expected
        improvement for Bayesian optimization. NeurIPS 2023, section 4.1.
    """
    # Below it 1 - |u| M(|u|), which is about 1 / u^2, is rounded by more than 3 / u^4, the next term.
    limit = -((3.0 / torch.finfo(u.dtype).eps) ** 0.25)
    near = u.clamp_min(_TAIL)
    tail, far = u.clamp(limit, _TAIL), u.clamp_max(limit)
    log_density = -0.5 * u.square() - 0.5 * math.log(2 * math.pi)
    log_ratio = torch.where(u > limit, torch.log1p(tail * mills_ratio(-tail)), -2 * (-far).log())
    return torch.where(u > _TAIL, excess(near).log(), log_density + log_ratio)


def mills_ratio(v: Tensor) -> Tensor:
    """Return ``Phi(-v) / phi(v)``, elementwise."""
    return math.sqrt(math.pi / 2) * torch.special.erfcx(v / math.sqrt(2))
