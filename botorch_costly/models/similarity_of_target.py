r"""The log evidence of a target's values as a function of its similarity, with analytic gradient.

With ``theta = [log level, log spread, log own, log noise, log l_1 .. log l_d]``, ``M`` (``n x T``) the
posterior means of ``T`` tasks at the target's inputs, ``m`` their averages, ``v`` the sums of the
variances and ``f = spread / T + (level / T)^2``, the target has, as in ``models.transfer``, the prior
mean ``level m`` and covariance

    K = common m m' + spread / T M M' + A o phi + noise I,    A_ik = own + f sqrt(v_i v_k),
    dK / d log level  = 2 (level / T)^2 sqrt(v v') o phi,
    dK / d log spread = spread / T (M M' + sqrt(v v') o phi),
    dK / d log own    = own phi,    dK / d log noise = noise I,
    dK / d log l_j    = A o psi o (u_ij - u_kj)^2,    u_ij = c x_ij / l_j.

The gradient is ``sum_ik W_ik dK_ik``, ``W`` from ``numerics.units``, and the expected information of the
values is ``tr(P dK P dK) / 2``, ``P = K^{-1}``.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.models.transfer import COMMON, Features
from botorch_costly.numerics.cholesky import sure_root
from botorch_costly.numerics.radial import PROFILES
from botorch_costly.numerics.units import Units, evidence_and_slopes


class Target(NamedTuple):
    """A target's values, and all terms that do not depend on its similarity."""

    x: Tensor  # shape: (n, d)
    values: Tensor  # shape: (n,)
    average: Tensor  # m, shape: (n,)
    each: Tensor  # M M' / T, shape: (n, n)
    unknown: Tensor  # sqrt(v v'), shape: (n, n)
    apart: Tensor  # (x_ij - x_kj)^2, shape: (d, n, n)
    tasks: int  # T
    kernel: str
    units: Units


class _Expected(NamedTuple):
    """Prior moments of the values, and the derivatives of the covariance."""

    mean: Tensor  # shape: (n,)
    cov: Tensor  # K, shape: (n, n)
    changes: Tensor  # dK / d theta, shape: (p, n, n)


def target_of(x: Tensor, values: Tensor, features: Features, kernel: str, units: Units) -> Target:
    """Return the target in float64.

    Args:
        x: Its inputs, ``n x d``.
        values: Its values, shape ``(n,)``.
        features: Moments of the tasks at the inputs.
        kernel: Kernel family of the tasks.
        units: Prior of offset and scale.
    """
    x, values = x.double(), values.double()
    means, variance = (moment.double() for moment in features)
    deviation = variance.sqrt()
    return Target(
        x,
        values,
        means.mean(-1),
        means @ means.mT / means.shape[-1],
        deviation.unsqueeze(-1) * deviation,
        (x.mT.unsqueeze(-1) - x.mT.unsqueeze(-2)).square(),
        means.shape[-1],
        kernel,
        units,
    )


def log_evidence(target: Target, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log evidence and its gradient, shapes ``()`` and ``(d + 4,)``."""
    return _with_gradient(target, _expected(target, theta))


def with_information(target: Target, theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log evidence, its gradient, and the expected information, ``(d + 4, d + 4)``.

    The information is positive semidefinite, conditional on offset and scale, and 0 where ``K`` is
    singular.
    """
    expected = _expected(target, theta)
    mean, cov, changes = expected
    value, gradient = _with_gradient(target, expected)
    if not bool(value > -torch.inf):
        return value, gradient, gradient.new_zeros(len(theta), len(theta))
    inverse = torch.cholesky_inverse(sure_root(cov))
    solved = inverse @ changes
    information = 0.5 * solved.flatten(1) @ solved.mT.flatten(1).mT
    information[0, 0] += mean @ inverse @ mean
    return value, gradient, information


def _with_gradient(target: Target, expected: _Expected) -> tuple[Tensor, Tensor]:
    mean, cov, changes = expected
    value, by_mean, by_cov = evidence_and_slopes(target.values, mean, cov, target.units)
    gradient = changes.flatten(1) @ by_cov.flatten()
    gradient[0] += by_mean @ mean
    return value, gradient


def _expected(target: Target, theta: Tensor) -> _Expected:
    level, spread, own, noise = theta[:4].exp()
    profile, count = PROFILES[target.kernel], target.tasks
    unit = profile.constant / theta[4:].exp()
    distance = (target.apart * unit.square()[:, None, None]).sum(0).sqrt()
    phi, psi = profile.slope(distance)
    joint, leveled = target.unknown, (level / count).square()
    amplitude = own + (spread / count + leveled) * joint
    shared = joint * phi
    eye = torch.eye(len(phi)).to(phi) * noise
    weighted = spread * target.each
    common = COMMON * target.average.unsqueeze(-1) * target.average
    cov = common + weighted + amplitude * phi + eye
    first = [2 * leveled * shared, weighted + (spread / count) * shared, own * phi, eye]
    by_lengthscale = target.apart * (amplitude * psi) * unit.square()[:, None, None]
    return _Expected(level * target.average, cov, torch.cat([torch.stack(first), by_lengthscale]))
