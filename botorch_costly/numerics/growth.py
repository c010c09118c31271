r"""A model of learning curves that grow, with an average over how they grow: covariance and evidence.

The value of configuration ``x`` after a share ``s`` of its training, in units in which trainings begin
near 0, is

    y(x, s) = s^q (m + g(x)) + o(x, s) + noise,
    m ~ N(0, 1),    g ~ GP(0, v k),    o ~ GP(0, u (k + 1[x = x']) / 2 e^{-r |log s - log s'|}),

with ``k`` the Matérn-5/2 kernel with its nugget. A large power ``q`` means that early values say little
of the growth still to come; with ``q = 0`` they differ from the end by the offsets ``o`` alone.

With the posterior means ``f_1 .. f_T`` of earlier tasks at their ends, whose average is ``f``, the growth
of a configuration is that of the above and

    t (h f(x) + sum_i w_i f_i(x)),    h ~ N(1, 1/4),    w_i ~ N(0, 1 / (2 T)),

for a strength ``t``; with ``t = 0`` the tasks count nothing. As ``h`` and ``w_i`` may be negative, tasks
that mislead are informative, too. (Without strengths it is the prior of ``models.transfer``.)

A *hypothesis* is a power and a strength. Hypotheses have equal prior probabilities and share all other
hyperparameters, so that with the evidence ``L_j`` of each

    p(j | y) = e^{L_j} / sum_k e^{L_k},
    d log sum_j e^{L_j} = sum_j p(j | y) 1/2 tr((a_j a_j' - K_j^{-1}) dK_j),
    a_j = K_j^{-1} (y - mean_j).

The gradient by all lengthscales needs a single ``n x n`` matrix besides the squared differences.

Parameters are ``theta = [log l_1 .. log l_d, log sqrt v, log sqrt u, log r, log noise sd]``.

References:
    C. E. Rasmussen, C. K. I. Williams. Gaussian processes for machine learning. MIT Press 2006,
    equation 5.9: the gradient of the evidence.
"""

from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.radial import NUGGET, PROFILES

POWERS = (0.0, 0.1, 0.3, 1.0, 3.0)
STRENGTHS = (0.0, 0.3, 1.0)
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)  # of a training, after which values are read
_COMMON, _SINGLE = 0.25, 0.5  # prior variance of h, and of all w_i together
_JITTER = 1e-6  # added to the noise variance
_LEAST = 1e-20  # squared scaled distance, so that its root has a gradient
_OTHERS = 4  # parameters besides the lengthscales


class Marks(NamedTuple):
    """Configurations, and the shares of their trainings that were done."""

    x: Tensor  # shape: (n, d)
    share: Tensor  # in (0, 1], shape: (n,)
    tasks: Tensor  # posterior means of the earlier tasks at x, shape: (n, T)

    @property
    def average(self) -> Tensor:
        """Average of the tasks, 0 without any, shape ``(n,)``."""
        return self.tasks.sum(-1) / max(self.tasks.shape[-1], 1)


class Hypotheses(NamedTuple):
    """All pairs of a power and a strength, power by power."""

    power: Tensor  # shape: (j, 1)
    strength: Tensor  # shape: (j, 1)


class Scales(NamedTuple):
    """Hyperparameters."""

    lengthscale: Tensor  # shape: (*batch, d)
    growth: Tensor  # v, shape: (*batch,)
    offset: Tensor  # u, shape: (*batch,)
    rate: Tensor  # r, shape: (*batch,)
    noise: Tensor  # variance, shape: (*batch,)


class Pairs(NamedTuple):
    """The parts of a covariance of rows and columns that no hyperparameter changes."""

    squares: Tensor  # of the differences in each column of x, shape: (d, n, m)
    lag: Tensor  # |log s - log s'|, shape: (n, m)
    power: Tensor  # (s s')^q, shape: (j, n, m)
    tasks: Tensor  # covariance of what the tasks explain, shape: (j, n, m)


class Solved(NamedTuple):
    """The evidence of each hypothesis, and what prediction needs."""

    log_evidence: Tensor  # NaN if a covariance is not positive definite, shape: (*batch, j)
    root: Tensor  # Cholesky factors, shape: (*batch, j, n, n)
    weights: Tensor  # a_j, shape: (*batch, j, n)


def scales_of(theta: Tensor) -> Scales:
    """Return the hyperparameters of ``*batch x (d + 4)`` parameters."""
    lengthscale, rest = theta[..., :-_OTHERS].exp(), theta[..., -_OTHERS:].unbind(-1)
    growth, offset, rate, noise = rest
    return Scales(
        lengthscale, (2 * growth).exp(), (2 * offset).exp(), rate.exp(), (2 * noise).exp()
    )


def hypotheses_of(marks: Marks) -> Hypotheses:
    """Return the hypotheses: only the powers if there are no tasks."""
    strengths = STRENGTHS if marks.tasks.shape[-1] else (0.0,)
    powers, strengths = zip(*product(POWERS, strengths), strict=True)
    columns = marks.share.new_tensor([powers, strengths]).unsqueeze(-1)
    return Hypotheses(*columns)


def pairs_of(rows: Marks, columns: Marks) -> Pairs:
    """Return the parts of the covariance of ``n`` rows and ``m`` columns."""
    squares = (rows.x.mT.unsqueeze(-1) - columns.x.mT.unsqueeze(-2)).square()
    a, b = rows.share.log().unsqueeze(-1), columns.share.log().unsqueeze(-2)
    powers, strengths = (column.unsqueeze(-1) for column in hypotheses_of(rows))
    power = (powers * (a + b)).exp()
    common = _COMMON * rows.average.unsqueeze(-1) * columns.average.unsqueeze(-2)
    single = _SINGLE * rows.tasks @ columns.tasks.mT / max(rows.tasks.shape[-1], 1)
    return Pairs(squares, (a - b).abs(), power, power * strengths.square() * (common + single))


def prior_mean(marks: Marks) -> Tensor:  # shape: (j, n)
    """Return the prior means of ``y``, for each hypothesis."""
    powers, strengths = hypotheses_of(marks)
    return (powers * marks.share.log()).exp() * strengths * marks.average


def covariance(pairs: Pairs, scales: Scales) -> Tensor:  # shape: (*batch, j, n, m)
    """Return the covariances of ``y`` without its noise, for each hypothesis."""
    like, _ = _likeness(pairs, scales)
    return _assembled(pairs, scales, like, _offsets(pairs, _fading(pairs, scales), like))


def prior_variance(marks: Marks, scales: Scales) -> Tensor:  # shape: (*batch, j, n)
    """Return the variances of ``y`` without its noise, for each hypothesis."""
    powers, strengths = hypotheses_of(marks)
    single = _SINGLE * marks.tasks.square().sum(-1) / max(marks.tasks.shape[-1], 1)
    tasks = strengths.square() * (_COMMON * marks.average.square() + single)
    growth, offset = scales.growth[..., None, None], scales.offset[..., None, None]
    return (2 * powers * marks.share.log()).exp() * (growth + 1 + tasks) + offset


def solve(pairs: Pairs, y: Tensor, scales: Scales) -> Solved:
    """Return the evidence of targets less their prior means, shape ``(j, n)``, for each hypothesis."""
    return _solved(covariance(pairs, scales), y, scales)


def log_evidence(pairs: Pairs, y: Tensor, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logarithm of the evidence, summed over the hypotheses, and its gradient.

    Args:
        pairs: Pairs of ``n`` rows with themselves.
        y: Targets less their prior means, shape ``(j, n)``.
        theta: Parameters, ``*batch x (d + 4)``.

    Returns:
        Values ``*batch`` and gradients ``*batch x (d + 4)``; NaN where a covariance is singular.
    """
    scales = scales_of(theta)
    like, psi = _likeness(pairs, scales)
    fading = _fading(pairs, scales)
    offsets = _offsets(pairs, fading, like)
    solved = _solved(_assembled(pairs, scales, like, offsets), y, scales)
    value, shares = solved.log_evidence.logsumexp(-1), solved.log_evidence.softmax(-1)
    a = solved.weights
    slopes = a.unsqueeze(-1) * a.unsqueeze(-2) - torch.cholesky_inverse(solved.root)
    slopes = 0.5 * shares[..., None, None] * slopes  # derivative by each covariance
    of_all, of_growth = slopes.sum(-3), (slopes * pairs.power).sum(-3)
    growth, rate = (s[..., None, None] for s in (scales.growth, scales.rate))
    smooth = growth * of_growth + fading * of_all
    by_square = (smooth * psi).flatten(-2) @ pairs.squares.flatten(-2).mT
    constant = PROFILES[NUGGET].constant
    by_lengthscale = constant**2 * by_square / scales.lengthscale.square()
    others = (
        2 * (growth * of_growth * like).sum((-1, -2)),
        2 * (of_all * offsets).sum((-1, -2)),
        -(rate * pairs.lag * of_all * offsets).sum((-1, -2)),
        2 * scales.noise * of_all.diagonal(dim1=-2, dim2=-1).sum(-1),
    )
    return value, torch.cat([by_lengthscale, torch.stack(others, -1)], -1)


def _likeness(pairs: Pairs, scales: Scales) -> tuple[Tensor, Tensor]:
    """Return ``k`` and the slope ``psi`` of its profile, ``*batch x n x m``."""
    profile = PROFILES[NUGGET]
    units = scales.lengthscale.square().reciprocal()
    squares = (units @ pairs.squares.flatten(-2)).unflatten(-1, pairs.lag.shape)
    return profile.slope((profile.constant**2 * squares + _LEAST).sqrt())


def _fading(pairs: Pairs, scales: Scales) -> Tensor:
    """Return half the variance of the offsets times their correlation over time."""
    offset, rate = scales.offset[..., None, None], scales.rate[..., None, None]
    return 0.5 * offset * (-rate * pairs.lag).exp()


def _offsets(pairs: Pairs, fading: Tensor, like: Tensor) -> Tensor:
    """Return the covariance of the offsets."""
    return fading * (like + (pairs.squares.sum(0) == 0).to(like))


def _assembled(pairs: Pairs, scales: Scales, like: Tensor, offsets: Tensor) -> Tensor:
    growth = (scales.growth[..., None, None] * like + 1).unsqueeze(-3)
    return pairs.power * growth + pairs.tasks + offsets.unsqueeze(-3)


def _solved(covariances: Tensor, y: Tensor, scales: Scales) -> Solved:
    noise = scales.noise[..., None, None] + _JITTER
    noisy = covariances + torch.diag_embed(noise.expand(covariances.shape[:-1]))
    root, failed = torch.linalg.cholesky_ex(noisy)
    weights = torch.cholesky_solve(y.expand(noisy.shape[:-1]).unsqueeze(-1), root).squeeze(-1)
    fit = -0.5 * (y * weights).sum(-1)
    evidence = fit - root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return Solved(evidence.masked_fill(failed > 0, torch.nan), root, weights)
