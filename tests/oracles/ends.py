"""What trainings promise at their ends by the cost until then, number by number, as the text has it."""

import math

import numpy as np
from scipy import integrate, stats


def normal_score(value, among):
    """Return the normal quantile of the mean rank of a value among others."""
    below = sum(other < value for other in among)
    equal = sum(other == value for other in among)
    rank = min(max(below + equal / 2, 0.5), len(among) - 0.5)
    return stats.norm.ppf(rank / len(among))


def covariance(a, b, values, pace):
    """Return that of two rows ``(point, share)``."""
    r = math.sqrt(
        sum(((x - y) / unit) ** 2 for x, y, unit in zip(a[0], b[0], values[0], strict=True))
    )
    s = math.sqrt(5) * r
    lag = pace * abs(math.log(a[1]) - math.log(b[1]))
    own = 0.1 * (list(a[0]) == list(b[0]))
    like = 0.9 * (1 + s + s * s / 3) * math.exp(-s) + own
    return values[1] * like * (1 - values[3]) ** (lag / 2)


def posterior(rows, scores, point, values, pace):
    """Return mean and variance of the end of a training."""
    gram = np.array([[covariance(a, b, values, pace) for b in rows] for a in rows])
    gram += values[2] * np.eye(len(rows))
    cross = np.array([covariance(a, (point, 1.0), values, pace) for a in rows])
    mean = cross @ np.linalg.solve(gram, np.array(scores))
    return mean, values[1] - cross @ np.linalg.solve(gram, cross)


def expected_improvement(mean, variance, best):
    """Return the expectation, by quadrature."""
    normal = stats.norm(mean, math.sqrt(variance))
    upper = mean + 12 * math.sqrt(variance)
    found, _ = integrate.quad(lambda f: (f - best) * normal.pdf(f), best, max(upper, best))
    return found


def whole_costs(points, costs, asked, ridge=0.5):
    """Return the cost of a whole training at some points, log-linear with a ridge."""
    logs, X = np.log(costs), np.array(points)
    center = X.mean(0)
    A = np.vstack([X - center, math.sqrt(ridge) * np.eye(X.shape[1])])
    b = np.concatenate([logs - logs.mean(), np.zeros(X.shape[1])])
    weights = np.linalg.lstsq(A, b, rcond=None)[0]
    return np.exp(logs.mean() + (np.array(asked) - center) @ weights)
