r"""Stationary covariances with their slopes, as functions of one scaled distance.

``phi(s)`` with ``s = c |(x - x') / lengthscale|``: the constant ``c`` of each family moves into the
lengthscale, so that it costs nothing. With ``delta`` the scaled difference,

    psi(s) = -phi'(s) / s,    grad phi = -psi delta,
    chi(s) = -psi'(s) / s,    Hess phi = chi delta delta' - psi I.

What is infinite at ``s = 0``, where Matérn-1/2 has a kink and Matérn-3/2 no third derivative, is 0
there. Arms are alike only to themselves; their ``s`` is the number of columns that differ.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.stationary import ARMS


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


def _arms(s: Tensor) -> tuple[Tensor, Tensor]:
    return (s == 0).to(s), torch.zeros_like(s)


def _arms_bend(s: Tensor, phi: Tensor, psi: Tensor) -> Tensor:
    return psi


SHAPES: dict[str, Shape] = {
    "matern12": Shape(1.0, _matern_half, _matern_half_bend),
    "matern32": Shape(math.sqrt(3), _matern_three_halves, _matern_three_halves_bend),
    "matern52": Shape(math.sqrt(5), _matern_five_halves, _matern_five_halves_bend),
    ARMS: Shape(1.0, _arms, _arms_bend),
    "rbf": Shape(1.0, _squared_exponential, _squared_exponential_bend),
}
