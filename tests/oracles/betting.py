"""The capital of a bettor against the mean of a finite population, value by value, from the paper."""

import math


def log_capital(values, null, population, lower, upper, pilot=0, largest=0.75):
    """Return the logarithm of the capital after each value, of numbers, drawn without replacement."""
    capital, result, excluded = 0.0, [], False
    drawn, means, squares = [], [], 0.0
    middle, width = (lower + upper) / 2, upper - lower
    for t, value in enumerate(values):
        expected = (population * null - sum(drawn)) / (population - t)
        mean = (middle + sum(drawn)) / (t + 1)
        variance = (width**2 / 4 + squares) / (t + 1)
        ahead = mean - expected
        bet = 0.0
        if t >= pilot:
            bet = max(ahead / (variance + ahead**2), 0.0)
            bet = min(bet, largest / (expected - lower)) if expected > lower else bet
        gain = 1 + bet * (value - expected)
        capital += math.log(gain) if gain > 0 else -math.inf
        drawn.append(value)
        means.append((middle + sum(drawn)) / (t + 2))
        squares += (value - means[-1]) ** 2
        rest = (population - len(drawn)) * lower
        excluded = excluded or sum(drawn) + rest > population * null
        result.append(math.inf if excluded else capital)
    return result
