"""The expected improvement of a Gaussian in closed form, and its logarithm far out in the tail."""

import math

import torch
from torch import Tensor

_TAIL = -1.0  # below it the closed form would lose digits
_FAR = -1e5  # below it 1 - |u| M(|u|), of the Mills ratio M, is rounding, and 1 / u^2


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


def log_excess(u: Tensor) -> Tensor:
    r"""Return ``log E max(u + z, 0)`` of a standard normal ``z``, elementwise, however far out ``u`` is.

    With the Mills ratio ``M(v) = Phi(-v) / phi(v) = sqrt(pi / 2) erfcx(v / sqrt 2)`` it is
    ``log phi(u) + log(1 - |u| M(|u|))`` for negative ``u``.

    References:
        S. Ament, S. Daulton, D. Eriksson, M. Balandat, E. Bakshy. Unexpected improvements to expected
        improvement for Bayesian optimization. NeurIPS 2023, section 4.1.
    """
    near = u.clamp_min(_TAIL)
    tail, far = u.clamp(_FAR, _TAIL), u.clamp_max(_FAR)
    log_density = -0.5 * u.square() - 0.5 * math.log(2 * math.pi)
    rest = torch.where(u > _FAR, torch.log1p(tail * mills_ratio(-tail)), -2 * (-far).log())
    return torch.where(u > _TAIL, excess(near).log(), log_density + rest)


def mills_ratio(v: Tensor) -> Tensor:
    """Return ``Phi(-v) / phi(v)``, elementwise."""
    return math.sqrt(math.pi / 2) * torch.special.erfcx(v / math.sqrt(2))
