r"""The profiles of the Matérn and RBF families with their derivatives: the only place they are written.

A stationary covariance is ``phi(s)`` of one scaled distance ``s = c |(x - x') / lengthscale|``. The
constant ``c`` of each family goes into the lengthscale, so that it costs nothing. With ``delta`` the
scaled difference,

    psi(s) = -phi'(s) / s,    grad phi = -psi delta,
    chi(s) = -psi'(s) / s,    Hess phi = chi delta delta' - psi I,

    Matérn-1/2  c = 1        phi = e^-s                   psi = phi / s            chi = (phi + psi) / s^2
    Matérn-3/2  c = sqrt(3)  phi = (1 + s) e^-s           psi = e^-s               chi = psi / s
    Matérn-5/2  c = sqrt(5)  phi = (1 + s + s^2/3) e^-s   psi = (1 + s) e^-s / 3   chi = psi / (1 + s)
    RBF         c = 1        phi = e^(-s^2/2)             psi = phi                chi = phi

Matérn-5/2 also comes with a *nugget*: a share of the variance is each configuration's own, so that
``phi`` falls to ``1 - share`` right beside it. What a seed does to a training is of that kind.

Convention: what is infinite at ``s = 0``, where Matérn-1/2 has a kink and Matérn-3/2 no third derivative,
is 0 there and so near to 0 that it would only amplify rounding. Arms are correlated with nothing but
themselves; their ``s`` is the number of columns that differ. A nugget has no slope.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.errors import InvalidArgumentError, check

FAMILIES = ("matern12", "matern32", "matern52", "rbf")
NUGGET = "matern52_nugget"
SCALED = (*FAMILIES, NUGGET)  # those with a lengthscale
ARMS = "arms"  # independent: correlated with nothing but themselves
SMOOTHNESS = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}  # nu of the Matérn families

NUGGET_SHARE = 0.1  # of the variance
_COINCIDENT = 1e-8  # scaled distance up to which two points count as one


class Profile(NamedTuple):
    """A family: its constant and its functions, each elementwise."""

    constant: float  # c
    value: Callable[[Tensor], tuple[Tensor, Tensor]]  # s -> phi, and what psi is made from
    psi: Callable[[Tensor, Tensor], Tensor]  # s and that, which it may overwrite, -> psi
    chi: Callable[[Tensor, Tensor, Tensor], Tensor]  # s, phi, psi -> chi

    def phi(self, s: Tensor) -> Tensor:
        """Return the profile itself; autograd differentiates it."""
        return self.value(s)[0]

    def slope(self, s: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``phi`` and ``psi``, which for RBF are one tensor."""
        phi, part = self.value(s)
        return phi, self.psi(s, part)


def check_family(family: str) -> str:
    """Return ``family`` if it is known; raise InvalidArgumentError otherwise."""
    known = sorted(PROFILES)
    check(family in PROFILES, "kernel", f"one of {known}", family, InvalidArgumentError)
    return family


def _away(s: Tensor, value: Tensor) -> Tensor:
    return torch.where(s > _COINCIDENT, value, 0.0)


def _matern_half(s: Tensor) -> tuple[Tensor, Tensor]:
    phi = s.neg().exp_()
    return phi, phi


def _matern_three_halves(s: Tensor) -> tuple[Tensor, Tensor]:
    decay = s.neg().exp_()
    return torch.addcmul(decay, s, decay), decay


def _matern_five_halves(s: Tensor) -> tuple[Tensor, Tensor]:
    decay = s.neg().exp_()
    straight = torch.addcmul(decay, s, decay)  # (1 + s) e^-s
    return torch.addcmul(straight, s.square(), decay, value=1 / 3), straight


def _matern_and_nugget(s: Tensor) -> tuple[Tensor, Tensor]:
    smooth, straight = _matern_five_halves(s)
    own = NUGGET_SHARE * (s <= _COINCIDENT).to(s)
    return torch.add(own, smooth, alpha=1 - NUGGET_SHARE), (1 - NUGGET_SHARE) * straight


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
        psi=lambda s, phi: _away(s, phi / s),
        chi=lambda s, phi, psi: _away(s, (phi + psi) / s.square()),
    ),
    "matern32": Profile(
        math.sqrt(3),
        _matern_three_halves,
        psi=lambda s, decay: decay,
        chi=lambda s, phi, psi: _away(s, psi / s),
    ),
    "matern52": Profile(
        math.sqrt(5),
        _matern_five_halves,
        psi=lambda s, straight: straight.mul_(1 / 3),
        chi=lambda s, phi, psi: psi / (1 + s),
    ),
    "rbf": Profile(1.0, _squared_exponential, psi=lambda s, phi: phi, chi=lambda s, phi, psi: phi),
    ARMS: Profile(1.0, _arms, psi=lambda s, phi: torch.zeros_like(s), chi=lambda s, phi, psi: psi),
}
PROFILES[NUGGET] = PROFILES["matern52"]._replace(value=_matern_and_nugget)
