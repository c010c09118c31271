"""What earlier tasks say of a new one, written out entry by entry."""

import numpy as np


def prior(means, slope, constant, variance):
    """Return prior mean and covariance of the part that earlier tasks explain.

    Args:
        means: Their posterior means, ``n x T``.
        slope: Multiple of their average.
        constant: Constant of the mean.
        variance: Variance of each weight.
    """
    n, tasks = means.shape
    mean, cov = np.zeros(n), np.zeros((n, n))
    for a in range(n):
        mean[a] = constant + slope * sum(means[a]) / tasks
        for b in range(n):
            for task in range(tasks):
                cov[a, b] += variance * means[a, task] * means[b, task]
    return mean, cov
