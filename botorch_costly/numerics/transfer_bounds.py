r"""Bounds of the regret of RM-GP-UCB, whatever the tasks are.

With function gaps ``d_i`` of tasks with ``N_i`` observations, weights ``w_i`` and shares ``nu_t``,

    error = sum_i w_i (N_i / noise) (d_i + 2 sqrt(2 noise log(6 N_i / delta)))
    beta_t = norm + sqrt(2 noise (gamma_{t-1} + 1 + log(3 / delta)))
    regret <= 2 (error + tau) sum_t nu_t + beta_T sqrt(8 T gamma_T / log(1 + 1 / noise))     Theorem 1

with probability ``1 - delta``, for a function whose norm in the space of the kernel is at most ``norm``.
``gamma_t`` is the maximum information gain of ``t`` evaluations (``numerics.information_gain``). If the
shares vanish, the first term grows more slowly than ``T``: no set of tasks can mislead for ever.

The constants follow from the steps of the proof (Lemmas 3, 8 and 10): the bound of task ``i`` is wrong by
``error`` at the optimum and at the evaluation, and its standard deviation is at most 1 in both. The first
term has no use of tasks that resemble the target, as the authors say.

References:
    Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
    UAI 2022, Theorem 1 and appendix A.
"""

import math

from torch import Tensor

from botorch_costly.errors import (
    InvalidShapeError,
    check,
    check_nonnegative,
    check_positive,
    check_probability,
)


def task_error(
    weights: Tensor,  # shape: (tasks,)
    gaps: Tensor,  # shape: (tasks,)
    counts: Tensor,  # numbers of observations, shape: (tasks,)
    noise: float,
    delta: float = 0.1,
) -> float:
    """Return by how much the weighted bound of the tasks may be wrong, ``alpha`` in the paper.

    Args:
        weights: Weights of the tasks.
        gaps: Largest distance of each task from the target at its inputs, in prior standard deviations.
        counts: Number of observations of each task, at least 1.
        noise: Noise variance, in prior variances, positive.
        delta: The bound holds with probability ``1 - delta``.

    Raises:
        InvalidShapeError: If shapes differ.
        InvalidArgumentError: If a number is out of range.
    """
    same = weights.shape == gaps.shape == counts.shape and weights.dim() == 1
    shapes = tuple(weights.shape), tuple(gaps.shape), tuple(counts.shape)
    check(same, "weights, gaps, counts", "three vectors of one length", shapes, InvalidShapeError)
    check_positive("noise", noise)
    check_probability("delta", delta)
    check(bool((counts >= 1).all()), "counts", "numbers >= 1", counts)
    by_noise = 2 * (2 * noise * (6 * counts / delta).log()).sqrt()
    return float((weights * counts / noise * (gaps + by_noise)).sum())


def width_of_bounds(norm: float, noise: float, gain: float, delta: float = 0.1) -> float:
    """Return the factor ``beta_t`` of the standard deviation of Theorem 1.

    Args:
        norm: Bound of the function's norm in the space of the kernel.
        noise: Noise variance, in prior variances, positive.
        gain: Maximum information gain of the evaluations so far, in nats.
        delta: The bounds hold with probability ``1 - delta``.

    Raises:
        InvalidArgumentError: If a number is out of range.
    """
    check_nonnegative("norm", norm)
    check_positive("noise", noise)
    check_nonnegative("gain", gain)
    check_probability("delta", delta)
    return norm + math.sqrt(2 * noise * (gain + 1 + math.log(3 / delta)))


def transfer_regret_bound(
    shares: Tensor,  # shape: (T,)
    error: float,
    tau: float,
    beta: float,
    noise: float,
    gain: float,
) -> float:
    """Return the bound of the sum of regrets of RM-GP-UCB, Theorem 1.

    Args:
        shares: Share ``nu_t`` of the tasks in each evaluation, in [0, 1], not increasing.
        error: Result of ``task_error``.
        tau: Factor of the tasks' standard deviations.
        beta: Result of ``width_of_bounds`` for the last evaluation.
        noise: Noise variance, in prior variances, positive.
        gain: Maximum information gain of all evaluations, in nats.

    Raises:
        InvalidShapeError: If ``shares`` is not a vector with at least one entry.
        InvalidArgumentError: If a number is out of range, or the shares increase.
    """
    is_vector = shares.dim() == 1 and len(shares) > 0
    check(is_vector, "shares", "shape (T,)", tuple(shares.shape), InvalidShapeError)
    in_range = bool(((shares >= 0) & (shares <= 1)).all()) and bool((shares.diff() <= 0).all())
    check(in_range, "shares", "numbers in [0, 1] that do not increase", shares)
    for name, number in (("error", error), ("tau", tau), ("beta", beta), ("gain", gain)):
        check_nonnegative(name, number)
    check_positive("noise", noise)
    explored = math.sqrt(8 * len(shares) * gain / math.log1p(1 / noise))
    return 2 * (error + tau) * float(shares.sum()) + beta * explored


def tasks_explore(
    weights: Tensor, std: Tensor, target_std: Tensor, tau: float, beta: float
) -> Tensor:
    """Return where tasks without gaps make the regret's bound smaller than GP-UCB's, equation 20.

    Args:
        weights: Weights of the tasks, shape ``(tasks,)``.
        std: Posterior standard deviations of the tasks, ``(tasks, m)``.
        target_std: Those of the target, ``(m,)``.
        tau: Factor of the tasks' standard deviations.
        beta: Factor of the target's standard deviation.

    Returns:
        Whether ``tau sum_i w_i std_i <= beta target_std``, bool, ``(m,)``.
    """
    return tau * (weights @ std) <= beta * target_std
