"""Rivals of transfer as their papers write them: one task, one pair, one draw after the other."""

import math

import numpy as np
from scipy import stats


def task_posterior(cov, x, y, noise, X):
    """Mean and covariance at X of a process with covariance function cov, by dense solves."""
    K = np.array([[cov(a, b) for b in x] for a in x]) + noise * np.eye(len(x))
    cross = np.array([[cov(a, b) for b in x] for a in X])
    prior = np.array([[cov(a, b) for b in X] for a in X])
    return cross @ np.linalg.solve(K, y), prior - cross @ np.linalg.solve(K, cross.T)


def ranking_loss(f, y):
    """Feurer et al. (2018), equation 2."""
    n = len(y)
    return sum((f[j] < f[k]) != (y[j] < y[k]) for j in range(n) for k in range(n))


def left_out_loss(f, y):
    """Of functions f[j] that know all but observation j."""
    n = len(y)
    return sum((f[j][j] < f[j][k]) != (y[j] < y[k]) for j in range(n) for k in range(n))


def left_out_posterior(mean, cov, noise, y, j):
    """Posterior at all points of a prior N(mean, cov) after all values but y[j]."""
    rest = [k for k in range(len(y)) if k != j]
    K = cov[np.ix_(rest, rest)] + noise * np.eye(len(rest))
    gain = np.linalg.solve(K, cov[rest]).T
    return mean + gain @ (y[rest] - mean[rest]), cov - gain @ cov[rest]


def ensemble_weights(losses, own):
    """Section 4 of Feurer et al.: who ranks best how often, after tasks that only dilute are dropped."""
    limit = float(np.percentile(own, 95))
    kept = [i for i, row in enumerate(losses) if float(np.median(row)) <= limit]
    weights = [0.0] * (len(losses) + 1)
    for s in range(len(own)):
        entering = {i: losses[i][s] for i in kept} | {len(losses): own[s]}
        winners = [i for i, loss in entering.items() if loss == min(entering.values())]
        for i in winners:
            weights[i] += 1 / len(winners) / len(own)
    return weights


def ensemble_posterior(weights, means, covs):
    mean = sum(w * m for w, m in zip(weights, means, strict=True))
    return mean, sum(w * w * c for w, c in zip(weights, covs, strict=True))


def matern52(lengthscale, variance):
    def cov(a, b):
        r = math.sqrt(5) * math.sqrt(
            sum(((s - t) / u) ** 2 for s, t, u in zip(a, b, lengthscale, strict=True))
        )
        return variance * (1 + r + r * r / 3) * math.exp(-r)

    return cov


def pair_distance(f, y):
    """The share of ordered pairs that are ranked the wrong way round."""
    n = len(y)
    pairs = [(j, k) for j in range(n) for k in range(n) if j != k]
    return sum((f[j] > f[k]) != (y[j] > y[k]) for j, k in pairs) / max(1, len(pairs))


def taf(own_ei, task_means, task_means_seen, y, bandwidth):
    """Wistuba et al. (2018), of one point; task_means_seen are those at the observations."""
    above, below = 0.75 * own_ei, 0.75
    for mean, seen in zip(task_means, task_means_seen, strict=True):
        t = pair_distance(seen, y) / bandwidth
        weight = 0.75 * (1 - t * t) if t <= 1 else 0.0
        above += weight * max(mean - max(seen), 0.0)
        below += weight
    return above / below


def greedy_portfolio(values, count):
    """One candidate after the other, by trying each."""

    def regret(row, k):
        width = max(row) - min(row)
        return (max(row) - row[k]) / width if width else 0.0

    def mean_regret(chosen):
        return sum(min(regret(row, k) for k in chosen) for row in values) / len(values)

    chosen = []
    for _ in range(count):
        left = [k for k in range(len(values[0])) if k not in chosen]
        chosen.append(
            min(left, key=lambda k: (round(mean_regret([*chosen, k]), 6), mean_regret([k])))
        )
    return chosen


def scaled_prior(posteriors, weights, cov, X):
    """Tighineanu et al. (2024): the prior of the target at X, entry by entry.

    posteriors: mean and covariance of each task at X; cov: covariance function of the residual.
    """
    n = len(X)
    mean, K = np.zeros(n), np.zeros((n, n))
    for i in range(n):
        mean[i] = sum(w * mu[i] for w, (mu, _) in zip(weights, posteriors, strict=True))
        for j in range(n):
            K[i, j] = cov(X[i], X[j])
            for w, (_, sigma) in zip(weights, posteriors, strict=True):
                K[i, j] += w * w * sigma[i, j]
    return mean, K


def conditioned(mean, K, noise, y):
    """Posterior of all points after the first of them had the values y."""
    n = len(y)
    gain = np.linalg.solve(K[:n, :n] + noise * np.eye(n), K[:n]).T
    return mean + gain @ (y - mean[:n]), K - gain @ K[:n]


def scaled_log_density(mean, K, y, weights, logs):
    """Log density of values and parameters, those of the residual (logs) with TaskEnsemble's priors."""
    *lengthscales, variance, noise = logs
    value = stats.multivariate_normal.logpdf(y, mean, K + math.exp(noise) * np.eye(len(y)))
    value += sum(stats.gamma.logpdf(w, 1.0) for w in weights)
    known = math.sqrt(2) + math.log(len(lengthscales)) / 2
    value += sum(stats.norm.logpdf(u, known, math.sqrt(3)) for u in lengthscales)
    return value + stats.norm.logpdf(variance, 0, 1) + stats.norm.logpdf(noise, -4, 1.5)


def empirical_posterior(values, rows, y):
    """Wang et al. (2018): estimates of the posterior from tasks (lists of values), entry by entry."""
    n, m, t = len(values), len(values[0]), len(rows)
    mean = np.array([sum(row[j] for row in values) / n for j in range(m)])
    k = np.array(
        [
            [sum((r[i] - mean[i]) * (r[j] - mean[j]) for r in values) / (n - 1) for j in range(m)]
            for i in range(m)
        ]
    )
    gain = np.linalg.solve(k[np.ix_(rows, rows)], k[rows]).T
    return mean + gain @ (y - mean[rows]), (n - 1) / (n - t - 1) * (k - gain @ k[rows])


def multi_task_posterior(cov, between, means, noises, x, tasks, y, X, target):
    """Bonilla et al. (2007), section 2: mean and variances of one task at X.

    between: covariances of tasks; means, noises: of each task; x, tasks, y: row by row.
    """
    n, m = len(x), len(X)
    K, cross = np.zeros((n, n)), np.zeros((m, n))
    for i in range(n):
        for j in range(n):
            K[i, j] = between[tasks[i]][tasks[j]] * cov(x[i], x[j])
        K[i, i] += noises[tasks[i]]
        for k in range(m):
            cross[k, i] = between[target][tasks[i]] * cov(X[k], x[i])
    residual = np.array([y[i] - means[tasks[i]] for i in range(n)])
    prior = np.array([between[target][target] * cov(p, p) for p in X])
    mean = means[target] + cross @ np.linalg.solve(K, residual)
    return mean, prior - np.array([row @ np.linalg.solve(K, row) for row in cross])


def squared_exponential(lengthscale):
    def cov(a, b):
        parts = [((s - t) / u) ** 2 for s, t, u in zip(a, b, lengthscale, strict=True)]
        return math.exp(-sum(parts) / 2)

    return cov


def fear(x, failed, sizes, valid, reach):
    """Return the odds of a failure near a point, with each failure weighted by a size, by loops."""

    def near(other):
        squared = sum(float(a - b) ** 2 for a, b in zip(x, other, strict=True))
        return math.exp(-squared / (2 * reach**2))

    weighted = sum(float(size) * near(f) for size, f in zip(sizes, failed, strict=True))
    return weighted / (1 + sum(near(v) for v in valid))
