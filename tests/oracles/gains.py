"""Gains over an average of earlier metrics, from all of them each time."""

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
