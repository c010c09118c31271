r"""Prediction and update of a belief about a drifting function, exact and in closed form.

The function drifts as an Ornstein-Uhlenbeck process with the stationary distribution ``GP(0, K)``,

    f_{t+s} = a f_t + sqrt(1 - a^2) g,    a = (1 - forgetting)^(s / 2),    g ~ GP(0, K),

which is the GP with covariance ``K(x, x') (1 - forgetting)^(|t - t'| / 2)`` [Bogunovic2016]_. Between
queries the belief relaxes to the prior: ``mean -> a mean``, ``cov -> a^2 cov + (1 - a^2) K``.

Convention: ``retention`` is ``a``, not ``a^2``; time is counted in rounds.

References:
    .. [Bogunovic2016] I. Bogunovic, J. Scarlett, V. Cevher. Time-varying Gaussian process bandit
        optimization. AISTATS 2016.
    .. [Wang2021] J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online
        hyperparameter optimization. 2021.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Belief(NamedTuple):
    """A Gaussian belief about the function on ``n`` points."""

    mean: Tensor  # shape: (*batch, n)
    cov: Tensor  # shape: (*batch, n, n)


def retention(forgetting: Tensor | float, elapsed: Tensor) -> Tensor:
    """Return ``a = (1 - forgetting)^(elapsed / 2)``, exact at forgetting 0 and 1.

    The gradient is finite everywhere, and 0 at forgetting 1, where ``a`` jumps.

    Args:
        forgetting: Rate in [0, 1] per round, any shape.
        elapsed: Rounds, at least 0, broadcastable with ``forgetting``.
    """
    if not isinstance(forgetting, Tensor):
        if forgetting == 1:
            return (elapsed == 0).to(elapsed)
        return (elapsed * (0.5 * math.log1p(-forgetting))).exp_()
    # At forgetting 1 the logarithm is -inf and would make the value or the gradients NaN.
    forgets_all = forgetting == 1
    log_rate = torch.log1p(-torch.where(forgets_all, torch.zeros_like(forgetting), forgetting))
    retained = (log_rate * elapsed / 2).exp()
    return torch.where(forgets_all, (elapsed == 0).to(retained), retained)


def retention_float(forgetting: float, elapsed: float) -> float:
    """Return ``retention`` for two floats."""
    if elapsed == 0:
        return 1.0
    return 0.0 if forgetting == 1 else math.exp(0.5 * elapsed * math.log1p(-forgetting))


def memory(forgetting: float, tolerance: float) -> float:
    """Return the rounds after which an observation's influence is less than ``tolerance``.

    The influence is the weight ``a^2`` of its rank-one term in the covariance. Infinite at forgetting 0.
    """
    if forgetting == 0:
        return math.inf
    return 0.0 if forgetting == 1 else math.log(tolerance) / math.log1p(-forgetting)


def predict(belief: Belief, prior_cov: Tensor, forgetting: Tensor, elapsed: Tensor) -> Belief:
    """Return the belief ``elapsed`` rounds later.

    Args:
        belief: Belief before.
        prior_cov: ``K``, shape ``(*batch, n, n)``.
        forgetting: Rate in [0, 1] per round, shape ``(*batch,)``.
        elapsed: Rounds, at least 0, shape ``(*batch,)``.
    """
    retained = retention(forgetting, elapsed)[..., None]
    squared = retained.square()[..., None]
    return Belief(retained * belief.mean, squared * belief.cov + (1 - squared) * prior_cov)


def update(belief: Belief, index: Tensor, y: Tensor, noise: Tensor) -> tuple[Belief, Tensor]:
    """Return the belief given ``y = f[index] + N(0, noise)``, and ``log p(y | past)``.

    Args:
        belief: Belief before.
        index: Index of the queried point among the ``n`` points, shape ``(*batch,)``.
        y: Observation, shape ``(*batch,)``.
        noise: Noise variance of the observation, shape ``(*batch,)``.
    """
    n = belief.mean.shape[-1]
    place = index[..., None]
    column = belief.cov.gather(-1, place[..., None].expand(*belief.mean.shape, 1)).squeeze(-1)
    variance = column.gather(-1, place).squeeze(-1) + noise
    residual = y - belief.mean.gather(-1, place).squeeze(-1)
    gain = column / variance[..., None]
    mean = belief.mean + gain * residual[..., None]
    cov = belief.cov - gain.unsqueeze(-1) * column.unsqueeze(-2).expand(*belief.mean.shape, n)
    return Belief(mean, cov), log_density(residual, variance)


def log_density(residual: Tensor, variance: Tensor) -> Tensor:
    """Return ``log N(residual; 0, variance)``."""
    return -0.5 * (residual.square() / variance + (2 * math.pi * variance).log())


def information_gain(variance: Tensor, noise: Tensor) -> Tensor:
    r"""Return the information gain of the queried points in nats, shape ``(*batch,)``.

    ``I(f; y) = 1/2 sum_i log(1 + variance_i / noise)``, where ``variance_i`` is the posterior
    variance at the i-th queried point just before its observation ([Wang2021]_,
    Lemma 3, eq. 17).

    Args:
        variance: Shape ``(*batch, queries)``.
        noise: Observation noise variance, broadcastable to ``(*batch, queries)``.
    """
    return 0.5 * torch.log1p(variance / noise).sum(-1)


def regret_bound(
    gain: Tensor, beta: Tensor, noise: Tensor, horizon: int, queries: Tensor
) -> Tensor:
    r"""Return the bound on the expected cumulative regret under Bernoulli queries.

    ``E[R_T] <= sqrt(C_1 beta_T (T^2 / B_1) gain)`` with ``C_1 = 8 / log(1 + 1/noise)`` ([Wang2021]_,
    Theorem 4, eq. 31). It assumes prior variances of at most 1 and the finite-domain schedule of beta.

    The bound is a scale, not a guarantee: the proof keeps the point while waiting because of Lemma 1,
    which is false in general (rankings by the upper confidence bound can swap), and (28) replaces the
    mean of a product (waits times variances, which grow with them) by the product of the means.

    Args:
        gain: Maximum information gain of B_1 points in nats, ``(*batch,)``.
        beta: Last and largest exploration coefficient beta_T, ``(*batch,)``.
        noise: Observation noise variance, ``(*batch,)``.
        horizon: Rounds T.
        queries: Expected queries B_1, ``(*batch,)``.

    Returns:
        Bound on the regret summed over the horizon, in units of the reward, ``(*batch,)``.
    """
    constant = 8 / torch.log1p(1 / noise)
    return (constant * beta * horizon**2 / queries * gain).sqrt()
