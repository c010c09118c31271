"""Gains over an average of earlier metrics, from all of them each time."""

import itertools
import math


def gains(metrics, rounds, memory):
    """Gains of losses, in nats per round; None for the first."""
    found = [None]
    for now in range(1, len(metrics)):
        weights = [memory ** (rounds[now - 1] - r) for r in rounds[:now]]  # 0 ** 0 is 1
        earlier = [-math.log(m) for m in metrics[:now]]
        reference = sum(w * a for w, a in zip(weights, earlier, strict=True)) / sum(weights)
        lags = [rounds[now] - r for r in rounds[:now]]
        lag = sum(w * k for w, k in zip(weights, lags, strict=True)) / sum(weights)
        found.append((-math.log(metrics[now]) - reference) / lag)
    return found


def covariance_of_means(x, y, n, k, common):
    """Over all pairs of parts of n and k examples that have some in common, each pair equally likely."""
    pairs = [
        (sum(x[i] for i in a) / n, sum(y[i] for i in b) / k)
        for a in itertools.combinations(range(len(x)), n)
        for b in itertools.combinations(range(len(y)), k)
        if len(set(a) & set(b)) == common
    ]
    first, second = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    return sum((a - first) * (b - second) for a, b in pairs) / len(pairs)
