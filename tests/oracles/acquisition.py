"""Acquisition values of one Gaussian belief in plain numbers."""

import math


def _pdf(z):
    return math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


def _cdf(z):
    return 0.5 * math.erfc(-z / math.sqrt(2))


def ucb(mean, variance, beta):
    """Algorithm 1, line 3 of Wang et al. (2021)."""
    return mean + math.sqrt(beta) * math.sqrt(variance)


def pi(mean, variance, best):
    return _cdf((mean - best) / math.sqrt(variance))


def ei(mean, variance, best):
    z = (mean - best) / math.sqrt(variance)
    return (mean - best) * _cdf(z) + math.sqrt(variance) * _pdf(z)


def log_ei(mean, variance, best):
    return math.log(ei(mean, variance, best))
