"""An orthant's probability by separation of variables, one draw after another, conditionals by solves."""

import numpy as np
from scipy.stats import norm


def conditional(level, correlation, known, values, i):
    """Return mean and standard deviation of variable ``i`` given others."""
    if not known:
        return level[i], np.sqrt(correlation[i, i])
    block = correlation[np.ix_(known, known)]
    weights = np.linalg.solve(block, correlation[known, i])
    mean = level[i] + weights @ (np.array(values) - level[known])
    return mean, np.sqrt(correlation[i, i] - weights @ correlation[known, i])


def order(level, correlation, drawn):
    """Return which variables are drawn: the least likely to be positive first."""
    known, values = [], []
    for _ in range(drawn):
        left = [i for i in range(len(level)) if i not in known]
        moments = {i: conditional(level, correlation, known, values, i) for i in left}
        pick = min(left, key=lambda i: moments[i][0] / moments[i][1])
        mean, sd = moments[pick]
        known.append(pick)
        values.append(mean + sd * norm.pdf(mean / sd) / norm.cdf(mean / sd))
    return known


def probability(level, correlation, coins):
    """Return the mean weight of draws; ``coins`` are ``drawn x n``."""
    picks = order(level, correlation, len(coins))
    weights = []
    for each in coins.T:
        weight, known, values = 1.0, [], []
        for i, coin in zip(picks, each, strict=True):
            mean, sd = conditional(level, correlation, known, values, i)
            positive = norm.cdf(mean / sd)
            weight *= positive
            known.append(i)
            values.append(mean - sd * norm.ppf(coin * positive))
        for i in set(range(len(level))) - set(picks):
            mean, sd = conditional(level, correlation, known, values, i)
            weight *= norm.cdf(mean / sd)
        weights.append(weight)
    return np.mean(weights)
