"""Query rules one trial and one rival at a time, as Wang et al. (2021) write them.

A trial is ``(mean, variance, rivals, beta)`` in plain numbers, and a rival
``(mean, variance, covariance with the candidate)``.
"""

import math


def win_probability(mean, variance, rival_mean, rival_variance, covariance):
    """Section 3.2 and eq. (53): ``1 - Phi(-lead / spread)``."""
    lead = mean - rival_mean
    spread = variance + rival_variance - 2 * covariance
    if spread <= 0:
        return 0.5 if lead == 0 else float(lead > 0)
    return 1 - 0.5 * math.erfc(lead / math.sqrt(spread) / math.sqrt(2))


def confidence(trial, joint=False):
    """The least of the probabilities; there is nothing to lose against without a rival."""
    mean, variance, rivals, _ = trial
    least = 1.0
    for rival_mean, rival_variance, covariance in rivals:
        shared = covariance if joint else 0.0
        wins = win_probability(mean, variance, rival_mean, rival_variance, shared)
        if wins < least:
            least = wins
    return least


def by_confidence(trial, kappa, joint=False):
    """Algorithm 1, line 8: some x with P(y(x_t) > y(x)) < kappa."""
    return confidence(trial, joint) < kappa


def by_bounds(trial):
    """Lemma 8: no regret, and so no query, if ucb(x) <= lcb(x_t) for all x."""
    mean, variance, rivals, beta = trial
    lower = mean - math.sqrt(beta) * math.sqrt(variance)
    for rival_mean, rival_variance, _ in rivals:
        if not rival_mean + math.sqrt(beta) * math.sqrt(rival_variance) <= lower:
            return True
    return False


def by_algorithm_1(trial, kappa, lower, upper, horizon, first, second):
    """Algorithm 1, lines 4 to 10, with its two coins thrown by uniform numbers."""
    if first < lower / horizon:
        return True
    return bool(by_confidence(trial, kappa) and second < (upper - lower) / horizon)


def trials(comparison):
    """Yield the plain trials of a comparison with one batch dimension; absent rivals are left out."""
    for i in range(len(comparison.mean)):
        rivals = []
        for j in range(comparison.rival_mean.shape[-1]):
            if comparison.exists[i, j]:
                shared = comparison.rival_covariance
                covariance = 0.0 if shared is None else shared[i, j].item()
                mean, variance = comparison.rival_mean[i, j], comparison.rival_variance[i, j]
                rivals.append((mean.item(), variance.item(), covariance))
        mean, variance = comparison.mean[i].item(), comparison.variance[i].item()
        yield mean, variance, rivals, comparison.beta[i].item()
