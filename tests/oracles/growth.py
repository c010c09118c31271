"""Curves that grow from where they begin, number by number, as the text has it."""

import math
from itertools import pairwise

import numpy as np
from scipy import stats

from tests.oracles.ends import expected_improvement

POWERS = (0.0, 0.1, 0.3, 1.0, 3.0)
STRENGTHS = (0.0, 0.3, 1.0)
JITTER = 1e-6


def likeness(x, z, lengthscales):
    """Return the Matérn-5/2 correlation with a tenth that belongs to each configuration alone."""
    r = math.sqrt(sum(((a - b) / unit) ** 2 for a, b, unit in zip(x, z, lengthscales, strict=True)))
    s = math.sqrt(5) * r
    return 0.9 * (1 + s + s * s / 3) * math.exp(-s) + 0.1 * (list(x) == list(z))


def hypotheses_of(rows):
    """Return the pairs of a power and a strength."""
    strengths = STRENGTHS if len(rows[0][2]) else (0.0,)
    return [(power, strength) for power in POWERS for strength in strengths]


def prior_mean(row, hypothesis):
    """Return that of the value of a row ``(point, share, means of the tasks)``."""
    power, strength = hypothesis
    return row[1] ** power * strength * (float(np.mean(row[2])) if len(row[2]) else 0.0)


def by_tasks(a, b, strength):
    """Return the covariance of what the tasks explain of the growth of two rows."""
    if not len(a[2]):
        return 0.0
    common = 0.25 * np.mean(a[2]) * np.mean(b[2])
    single = sum(f * g for f, g in zip(a[2], b[2], strict=True)) / (2 * len(a[2]))
    return float(strength**2 * (common + single))


def covariance(a, b, hypothesis, theta):
    """Return that of two rows ``(point, share, means of the tasks)`` without noise."""
    power, strength = hypothesis
    *lengthscales, growth, offset, rate, _ = (math.exp(value) for value in theta)
    alike = likeness(a[0], b[0], lengthscales)
    gap = abs(math.log(a[1]) - math.log(b[1]))
    own = (alike + (list(a[0]) == list(b[0]))) / 2
    grown = (a[1] * b[1]) ** power * (growth**2 * alike + 1 + by_tasks(a, b, strength))
    return grown + offset**2 * own * math.exp(-rate * gap)


def gram_of(rows, hypothesis, theta):
    """Return the covariance of values with their noise."""
    gram = np.array([[covariance(a, b, hypothesis, theta) for b in rows] for a in rows])
    return gram + (math.exp(2 * theta[-1]) + JITTER) * np.eye(len(rows))


def log_evidences(rows, y, theta):
    """Return the log density of the values for each hypothesis, without the normal constant."""
    constant = len(y) / 2 * math.log(2 * math.pi)
    laws = (
        stats.multivariate_normal([prior_mean(row, h) for row in rows], gram_of(rows, h, theta))
        for h in hypotheses_of(rows)
    )
    return [law.logpdf(y) + constant for law in laws]


def shares(rows, y, theta):
    """Return the posterior probability of each hypothesis."""
    weights = np.exp(np.array(log_evidences(rows, y, theta)))
    return weights / weights.sum()


def posterior(rows, y, asked, hypothesis, theta):
    """Return mean and variance of the value without noise at a row."""
    gram = gram_of(rows, hypothesis, theta)
    cross = np.array([covariance(row, asked, hypothesis, theta) for row in rows])
    rest = np.array(y) - [prior_mean(row, hypothesis) for row in rows]
    mean = prior_mean(asked, hypothesis) + cross @ np.linalg.solve(gram, rest)
    return mean, covariance(asked, asked, hypothesis, theta) - cross @ np.linalg.solve(gram, cross)


def improvement(rows, y, point, best, theta, tasks=()):
    """Return the expected improvement of the end of a training."""
    end, each = (point, 1.0, tasks), []
    for hypothesis in hypotheses_of(rows):
        each.append(expected_improvement(*posterior(rows, y, end, hypothesis, theta), best))
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
