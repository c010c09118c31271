"""Systematic resampling, from its definition: one comb of equally spaced teeth over the weights."""

import math


def resample(log_weights, coin):
    """Return which walker each tooth falls on; the weights may be of any scale."""
    largest = max(log_weights)
    weights = [math.exp(w - largest) for w in log_weights]
    total, count = sum(weights), len(weights)
    found, walker, passed = [], 0, weights[0]
    for tooth in range(count):
        place = (tooth + coin) / count * total
        while passed < place:
            walker += 1
            passed += weights[walker]
        found.append(walker)
    return found


def counted(log_weights):
    """Return how many walkers count: the squared sum of weights by the sum of their squares."""
    largest = max(log_weights)
    weights = [math.exp(w - largest) for w in log_weights]
    return sum(weights) ** 2 / sum(w**2 for w in weights)
