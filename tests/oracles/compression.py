"""Scores of learning curves, term by term as in the paper; the freeze-thaw covariance by integration."""

import math


def score(curve, t, midpoint, growth):
    """Equation 4 for ``curve[0 .. t - 1]``; what is missing counts as the mean of what is known."""
    longest = len(curve)
    weights, rewards = [], []
    for u in range(1, t + 1):
        scaled = -6 + 12 * (u - 1) / (longest - 1)
        weights.append(1 / (1 + math.exp(-growth * (scaled - midpoint))))
        rewards.append(curve[u - 1])
    known = [(w, r) for w, r in zip(weights, rewards, strict=True) if not math.isnan(r)]
    if not known:
        return math.nan
    mean = sum(w * r for w, r in known) / sum(w for w, _ in known)
    return sum(w * (mean if math.isnan(r) else r) for w, r in zip(weights, rewards, strict=True))


def freeze_thaw(t, other, alpha, beta, steps=200_000, largest=80.0):
    """``E exp(-rate (t + t'))`` over a Gamma(alpha, beta) distribution, by the midpoint rule."""
    width, total = largest / steps, 0.0
    for i in range(steps):
        rate = (i + 0.5) * width
        density = beta**alpha * rate ** (alpha - 1) * math.exp(-beta * rate) / math.gamma(alpha)
        total += density * math.exp(-rate * (t + other)) * width
    return total
