r"""The radial profiles of the Matérn and RBF families with their derivatives, for the whole package.

A stationary covariance is ``phi(s)`` of one scaled distance ``s = c |(x - x') / lengthscale|``. The
constant ``c`` of each family is absorbed into the lengthscale. With ``delta`` the scaled difference,

    psi(s) = -phi'(s) / s,    grad phi = -psi delta,
    chi(s) = -psi'(s) / s,    Hess phi = chi delta delta' - psi I,

    Matérn-1/2  c = 1        phi = e^-s                   psi = phi / s            chi = (phi + psi) / s^2
    Matérn-3/2  c = sqrt(3)  phi = (1 + s) e^-s           psi = e^-s               chi = psi / s
    Matérn-5/2  c = sqrt(5)  phi = (1 + s + s^2/3) e^-s   psi = (1 + s) e^-s / 3   chi = psi / (1 + s)
    RBF         c = 1        phi = e^(-s^2/2)             psi = phi                chi = phi

Matérn-5/2 also comes with a *nugget*: a share of the variance is independent for each configuration, such
as the effect of the seed of a training, so that ``phi`` jumps to ``1 - share`` next to it.

Convention: derivatives that are infinite at ``s = 0`` (Matérn-1/2 has a kink, Matérn-3/2 no third
derivative) are 0 there, and so close to 0 that they would only amplify rounding errors. Arms are
uncorrelated with each other; their ``s`` is the number of columns that differ. A nugget has no slope.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.errors import InvalidArgumentError, check

FAMILIES = ("matern12", "matern32", "matern52", "rbf")
NUGGET = "matern52_nugget"
SCALED = (*FAMILIES, NUGGET)  # families with a lengthscale
ARMS = "arms"  # independent
SMOOTHNESS = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}  # nu of the Matérn families

NUGGET_SHARE = 0.1  # share of the variance
_COINCIDENT = 1e-8  # largest scaled distance of points that count as equal


class Profile(NamedTuple):
    """Constant and elementwise functions of a family."""

    constant: float  # c
    value: Callable[[Tensor], tuple[Tensor, Tensor]]  # s -> phi and an intermediate result for psi
    bare: Callable[[Tensor, Tensor], Tensor]  # s, intermediate result -> psi without its factor
    chi: Callable[
        [Tensor, Tensor, Tensor], Tensor
    ]  # s, phi, psi -> chi; both without the factor too
    factor: float = 1.0  # of psi and chi

    def phi(self, s: Tensor) -> Tensor:
        """Return ``phi``, differentiable by autograd."""
        return self.value(s)[0]

    def slope(self, s: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``phi`` and ``psi``, which are the same tensor for RBF."""
        phi, psi = self.bare_slope(s)
        return phi, psi if self.factor == 1 else psi.mul_(self.factor)

    def bare_slope(self, s: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``phi``, and ``psi`` without its factor, by which a sum may be multiplied instead."""
        phi, intermediate = self.value(s)
        return phi, self.bare(s, intermediate)


def check_family(family: str) -> str:
    """Return ``family`` if it exists; raise InvalidArgumentError otherwise."""
    families = sorted(PROFILES)
    check(family in PROFILES, "kernel", f"one of {families}", family, InvalidArgumentError)
    return family


def _zero_at_origin(s: Tensor, value: Tensor) -> Tensor:
    return torch.where(s > _COINCIDENT, value, 0.0)


def _matern_half(s: Tensor) -> tuple[Tensor, Tensor]:
    phi = s.neg().exp_()
    return phi, phi


def _matern_three_halves(s: Tensor) -> tuple[Tensor, Tensor]:
    decay = s.neg().exp_()
    return torch.addcmul(decay, s, decay), decay


def _matern_five_halves(s: Tensor) -> tuple[Tensor, Tensor]:
    decay = s.neg().exp_()
    linear = torch.addcmul(decay, s, decay)  # (1 + s) e^-s
    return torch.addcmul(linear, s.square(), decay, value=1 / 3), linear


def _matern_and_nugget(s: Tensor) -> tuple[Tensor, Tensor]:
    smooth, linear = _matern_five_halves(s)
    nugget = NUGGET_SHARE * (s <= _COINCIDENT).to(s)
    return torch.add(nugget, smooth, alpha=1 - NUGGET_SHARE), (1 - NUGGET_SHARE) * linear


def _squared_exponential(s: Tensor) -> tuple[Tensor, Tensor]:
    phi = s.square().mul_(-0.5).exp_()
    return phi, phi


def _arms(s: Tensor) -> tuple[Tensor, Tensor]:
    phi = (s == 0).to(s)
    return phi, phi


PROFILES: dict[str, Profile] = {
    "matern12": Profile(
        1.0,
        _matern_half,
        bare=lambda s, phi: _zero_at_origin(s, phi / s),
        chi=lambda s, phi, psi: _zero_at_origin(s, (phi + psi) / s.square()),
    ),
    "matern32": Profile(
        math.sqrt(3),
        _matern_three_halves,
        bare=lambda s, decay: decay,
        chi=lambda s, phi, psi: _zero_at_origin(s, psi / s),
    ),
    "matern52": Profile(
        math.sqrt(5),
        _matern_five_halves,
        bare=lambda s, linear: linear,
        chi=lambda s, phi, psi: psi / (1 + s),
        factor=1 / 3,
    ),
    "rbf": Profile(1.0, _squared_exponential, bare=lambda s, phi: phi, chi=lambda s, phi, psi: phi),
    ARMS: Profile(1.0, _arms, bare=lambda s, phi: torch.zeros_like(s), chi=lambda s, phi, psi: psi),
}
PROFILES[NUGGET] = PROFILES["matern52"]._replace(value=_matern_and_nugget)
