r"""Stationary covariances with their slopes, as functions of one scaled distance.

``phi(s)`` with ``s = c |(x - x') / lengthscale|``: the constant ``c`` of each family moves into the
lengthscale, so that it costs nothing. From ``psi`` and ``chi``,

    psi(s) = -phi'(s) / s,    chi(s) = -psi'(s) / s,

with ``delta`` the scaled difference, ``grad phi = -psi delta`` and ``Hess phi = chi delta delta' - psi I``.
What is infinite at ``s = 0``, where Matérn-1/2 has a kink and Matérn-3/2 no third derivative, is 0
there.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Shape(NamedTuple):
    """A family: its constant and its functions."""

    constant: float  # c
    slope: Callable[[Tensor], tuple[Tensor, Tensor]]  # s -> phi, psi
    bend: Callable[[Tensor, Tensor, Tensor], Tensor]  # s, phi, psi -> chi


def _matern_half(s: Tensor) -> tuple[Tensor, Tensor]:
    phi = s.neg().exp_()
    return phi, torch.where(s > 0, phi / s, 0.0)


def _matern_half_bend(s: Tensor, phi: Tensor, psi: Tensor) -> Tensor:
    return torch.where(s > 0, (phi + psi) / s.square(), 0.0)


def _matern_three_halves(s: Tensor) -> tuple[Tensor, Tensor]:
    psi = s.neg().exp_()
    return torch.addcmul(psi, s, psi), psi


def _matern_three_halves_bend(s: Tensor, phi: Tensor, psi: Tensor) -> Tensor:
    return torch.where(s > 0, psi / s, 0.0)


def _matern_five_halves(s: Tensor) -> tuple[Tensor, Tensor]:
    decay = s.neg().exp_()
    straight = torch.addcmul(decay, s, decay)  # (1 + s) e^-s
    return torch.addcmul(straight, s.square(), decay, value=1 / 3), straight.mul_(1 / 3)


def _matern_five_halves_bend(s: Tensor, phi: Tensor, psi: Tensor) -> Tensor:
    return psi / (1 + s)


def _squared_exponential(s: Tensor) -> tuple[Tensor, Tensor]:
    phi = s.square().mul_(-0.5).exp_()
    return phi, phi


def _squared_exponential_bend(s: Tensor, phi: Tensor, psi: Tensor) -> Tensor:
    return phi


SHAPES: dict[str, Shape] = {
    "matern12": Shape(1.0, _matern_half, _matern_half_bend),
    "matern32": Shape(math.sqrt(3), _matern_three_halves, _matern_three_halves_bend),
    "matern52": Shape(math.sqrt(5), _matern_five_halves, _matern_five_halves_bend),
    "rbf": Shape(1.0, _squared_exponential, _squared_exponential_bend),
}
