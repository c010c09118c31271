"""Curves that grow from where they begin, number by number, as the text has it."""

import math
from itertools import pairwise

import numpy as np
from scipy import stats

from tests.oracles.ends import expected_improvement

POWERS = (0.0, 0.1, 0.3, 1.0, 3.0)
JITTER = 1e-6


def likeness(x, z, lengthscales):
    """Return the Matérn-5/2 correlation with a tenth that belongs to each configuration alone."""
    r = math.sqrt(sum(((a - b) / unit) ** 2 for a, b, unit in zip(x, z, lengthscales, strict=True)))
    s = math.sqrt(5) * r
    return 0.9 * (1 + s + s * s / 3) * math.exp(-s) + 0.1 * (list(x) == list(z))


def covariance(a, b, power, theta):
    """Return that of two rows ``(point, share)`` without noise."""
    *lengthscales, growth, offset, rate, _ = (math.exp(value) for value in theta)
    alike = likeness(a[0], b[0], lengthscales)
    gap = abs(math.log(a[1]) - math.log(b[1]))
    own = (alike + (list(a[0]) == list(b[0]))) / 2
    grown = (a[1] * b[1]) ** power * (growth**2 * alike + 1)
    return grown + offset**2 * own * math.exp(-rate * gap)


def gram_of(rows, power, theta):
    """Return the covariance of values with their noise."""
    gram = np.array([[covariance(a, b, power, theta) for b in rows] for a in rows])
    return gram + (math.exp(2 * theta[-1]) + JITTER) * np.eye(len(rows))


def log_evidences(rows, y, theta):
    """Return the log density of the values for each power, without the constant of the normal law."""
    constant = len(y) / 2 * math.log(2 * math.pi)
    laws = (stats.multivariate_normal(cov=gram_of(rows, q, theta)) for q in POWERS)
    return [law.logpdf(y) + constant for law in laws]


def shares(rows, y, theta):
    """Return the posterior probability of each power."""
    weights = np.exp(np.array(log_evidences(rows, y, theta)))
    return weights / weights.sum()


def posterior(rows, y, asked, power, theta):
    """Return mean and variance of the value without noise at a row."""
    gram = gram_of(rows, power, theta)
    cross = np.array([covariance(row, asked, power, theta) for row in rows])
    mean = cross @ np.linalg.solve(gram, np.array(y))
    return mean, covariance(asked, asked, power, theta) - cross @ np.linalg.solve(gram, cross)


def improvement(rows, y, point, best, theta):
    """Return the expected improvement of the end of a training."""
    each = [expected_improvement(*posterior(rows, y, (point, 1.0), q, theta), best) for q in POWERS]
    return float(shares(rows, y, theta) @ each)


def in_units(values, firsts):
    """Return values in units of growth, cut as far below the beginning as the best is above it."""
    begin = sorted(firsts)[(len(firsts) - 1) // 2]
    low = min(begin, 2 * begin - max(values))
    size = math.sqrt(sum((max(v, low) - begin) ** 2 for v in values) / len(values))
    return lambda v: min(max((max(v, low) - begin) / size, -4.0), 4.0)


def chance_of_movement(segments, left):
    """Return it for a training that stands still.

    Args:
        segments: Whether each segment of each training stands still.
        left: Rungs that are left.
    """
    followers = [now for t in segments for before, now in pairwise(t) if before]
    moved = sum(not stood for stood in followers)
    stays = 1 - (moved + 1) / (len(followers) + 2)
    return 1 - stays**left
