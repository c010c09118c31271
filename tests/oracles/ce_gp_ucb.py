"""One run of CE-GP-UCB on a line of points, round by round, from the paper's Algorithm 1.

The belief of every round is computed anew from all queries so far, by one dense solve.
"""

import math

import torch

from tests.oracles import dense_gp


def normal_cdf(z):
    return 0.5 * math.erfc(-z / math.sqrt(2))


def local_maxima(score):
    """Points higher than each of their neighbours; the ends have one."""
    n = len(score)
    return [
        i
        for i in range(n)
        if all(score[i] > score[j] for j in (i - 1, i + 1) if 0 <= j < n)
    ]  # fmt: skip


def belief(prior, forgetting, noise, queries, now):
    """Mean vector and covariance matrix; queries are (round, point, reward)."""
    if not queries:
        return torch.zeros(len(prior), dtype=prior.dtype), prior
    times, points, rewards = zip(*queries, strict=True)
    points = list(points)
    mean, cov, _ = dense_gp.posterior(
        prior[points][:, points], times, prior.new_tensor(rewards), noise,
        prior[:, points], prior, now, forgetting,
    )  # fmt: skip
    return mean, cov


def rivals_of(score, choice, points, bandwidth):
    """The other local maxima; for a lone one, the best point beyond the bandwidth, if wanted."""
    rivals = [i for i in local_maxima(score) if i != choice]
    if rivals or bandwidth is None:
        return rivals
    far = [i for i in range(len(score)) if abs(points[i] - points[choice]) > bandwidth]
    return [max(far, key=lambda i: score[i])] if far else []


def wants_query(rule, mean, cov, choice, rivals, beta, coin):
    kind, level = rule
    if kind == "always":
        return True
    if kind == "coin":
        return coin < level
    if kind == "bounds":
        lower = mean[choice] - math.sqrt(beta * cov[choice, choice])
        return any(mean[i] + math.sqrt(beta * cov[i, i]) > lower for i in rivals)
    for i in rivals:
        spread = cov[choice, choice] + cov[i, i] - (2 * cov[choice, i] if kind == "joint" else 0)
        if normal_cdf(float((mean[choice] - mean[i]) / spread.sqrt())) < level:
            return True
    return False


def run(
    path, noise, points, prior, forgetting, noise_variance, rule, beta, opening, coins,
    bandwidth=0.2, restart_every=None, clock_counts_queries=False,
):  # fmt: skip
    """Choices, queries and regrets of one run; `path` is (T, n), bandwidth None the literal rule."""
    queries, clock, history = [], 0, []
    for t in range(len(path)):
        if restart_every and t % restart_every == 0:
            queries = []
        mean, cov = belief(prior, forgetting, noise_variance, queries, clock)
        score = [
            float(m + math.sqrt(beta(t + 1) * v)) for m, v in zip(mean, cov.diagonal(), strict=True)
        ]
        if queries:
            choice = max(range(len(score)), key=lambda i: score[i])
            rivals = rivals_of(score, choice, points, bandwidth)
        else:  # nothing is known: any other point is as good
            choice, rivals = opening, [i for i in range(len(score)) if i != opening][:1]
        queried = wants_query(rule, mean, cov, choice, rivals, beta(t + 1), coins[t])
        value = float(path[t, choice])
        if queried:
            queries.append((clock, choice, value + float(noise[t])))
        history.append((choice, queried, float(path[t].max()) - value))
        clock += queried if clock_counts_queries else 1
    return history
