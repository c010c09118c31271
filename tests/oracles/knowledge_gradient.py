"""The knowledge gradient line by line, and the priced query round by round, in plain numbers."""

import math
from functools import cache

FEW = (-2.0, -1.2, -0.6, 0.0, 0.6, 1.2, 2.0)
MORE = (-2.2, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.2)
ROUGH = (-3.2, -2.2, -1.2, -0.4, 0.4, 1.2, 2.2, 3.2)


def _excess(u):
    """E max(u + z, 0), ``f`` of the paper."""
    density = math.exp(-0.5 * u * u) / math.sqrt(2 * math.pi)
    return u * 0.5 * math.erfc(-u / math.sqrt(2)) + density


def expected_rise(intercepts, slopes):
    """E max_i (a_i + b_i z) - max_i a_i: Frazier, Powell & Dayanik (2009), Algorithm 1, eq. (14)."""
    highest = {}  # by slope: of parallel lines only the highest counts
    for a, b in zip(intercepts, slopes, strict=True):
        highest[b] = max(a, highest.get(b, -math.inf))
    lines = [(a, b) for b, a in sorted(highest.items())]
    kept, starts = [lines[0]], [-math.inf]  # line i is the highest from starts[i] on
    for a, b in lines[1:]:
        while True:
            meets = (kept[-1][0] - a) / (b - kept[-1][1])
            if meets > starts[-1]:
                break
            kept.pop()
            starts.pop()
        kept.append((a, b))
        starts.append(meets)
    pairs = zip(kept, kept[1:], starts[1:], strict=False)
    return math.fsum((b - before) * _excess(-abs(at)) for (_, before), (_, b), at in pairs)


def _slopes(cov, at, noise):
    """How far a query that turns out one deviation high raises each mean."""
    spread = math.sqrt(max(cov[at][at], 0.0) + noise)
    return [c / spread if spread > 0 else 0.0 for c in cov[at]]


def knowledge_gradient(mean, cov, at, noise):
    """What a query at point ``at`` adds to the largest mean of a Gaussian belief (lists of numbers)."""
    return expected_rise(mean, _slopes(cov, at, noise))


@cache
def strata(between):
    """Conditional mean and probability of a standard normal number between these bounds."""
    below = [0.0, *(0.5 * math.erfc(-b / math.sqrt(2)) for b in between), 1.0]
    density = [0.0, *(math.exp(-0.5 * b * b) / math.sqrt(2 * math.pi) for b in between), 0.0]
    found = []
    for i in range(len(between) + 1):
        share = below[i + 1] - below[i]
        found.append(((density[i] - density[i + 1]) / share, share))
    return found


def rough_knowledge_gradient(mean, cov, at, noise, outcomes):
    """The knowledge gradient, its expectation over these strata."""
    slopes = _slopes(cov, at, noise)
    highest = (
        w * max(m + s * z for m, s in zip(mean, slopes, strict=True)) for z, w in strata(outcomes)
    )
    return math.fsum(highest) - max(mean)


def _next_earns(mean, cov, noise, effective_horizon, price, outcomes):
    """[max_y value(y) - price]^+; the knowledge gradients are exact if ``outcomes`` is None."""
    query_values = []
    for y in range(len(mean)):
        gain = (
            knowledge_gradient(mean, cov, y, noise)
            if outcomes is None
            else rough_knowledge_gradient(mean, cov, y, noise, outcomes)
        )
        query_values.append(mean[y] - max(mean) + effective_horizon * gain)
    return max(max(query_values) - price, 0.0)


def _aged(mean, cov, prior_cov, keep):
    """The belief a round later, without a query."""
    cells = [
        [keep**2 * c + (1 - keep**2) * k for c, k in zip(row, prior, strict=True)]
        for row, prior in zip(cov, prior_cov, strict=True)
    ]
    return [keep * m for m in mean], cells


def lookahead(
    mean,
    cov,
    prior_cov,
    at,
    noise,
    keep,
    effective_horizon,
    price,
    outcomes=FEW,
    next_outcomes=MORE,
):
    """What the next query earns more after one at ``at``: the head of ``numerics/lookahead.py``."""
    terms = noise, effective_horizon, price, next_outcomes
    slopes = _slopes(cov, at, noise)
    told = [
        [c - a * b for c, b in zip(row, slopes, strict=True)]
        for row, a in zip(cov, slopes, strict=True)
    ]
    earned = []
    for z, w in strata(outcomes):
        turned_out = [m + s * z for m, s in zip(mean, slopes, strict=True)]
        earned.append(w * _next_earns(*_aged(turned_out, told, prior_cov, keep), *terms))
    return math.fsum(earned) - _next_earns(*_aged(mean, cov, prior_cov, keep), *terms)


def effective_queries(rounds, now, forgetting):
    """The sum of past queries, each by the share that it still weighs."""
    return sum((1 - forgetting) ** (now - t) for t in rounds)


def effective_horizon(
    left, forgetting, effective_queries=0.0, information_share=1.0, discount=1.0, *, supersession
):
    """``H = sum_s b^s`` over the rounds left, as the head of ``query/priced.py`` has it."""
    rate = forgetting * effective_queries
    replaced = min(supersession * information_share * rate, 1.0)
    b = discount * math.sqrt(1 - forgetting) * (1 - replaced)
    total, weight = 0.0, 1.0
    for _ in range(left):
        weight *= b
        total += weight
    return total


def price_of_budget(queries_left, rounds_left, query_values, effective_horizon, even):
    """What the queries that can be afforded would earn, by the values of recent ones."""
    need = queries_left / rounds_left
    recent = query_values[
        -min(max(12, math.ceil(3 / need)), 30) :
    ]  # in which three queries are due
    known = sorted(value for value in recent if not math.isnan(value))
    due = len(known) * min(need**2 / even, 1.0)
    dearer = known[min(math.floor(len(known) - due), len(known) - 1)]
    return effective_horizon * max(dearer, 0.0) / math.sqrt(min(due, 1.0))


def wants_query(
    best, mean, gain, effective_horizon, price, queries, lookahead=0.0, lookahead_weight=0.0
):
    """Whether the best query beats the best play by more than its price, in rewards."""
    return (
        queries == 0
        or mean + effective_horizon * gain + lookahead_weight * lookahead > best + price
    )


def promises(mean, cov, noise, effective_horizon):
    """``mean + effective horizon KG`` of a query at each point."""
    gains = (knowledge_gradient(mean, cov, i, noise) for i in range(len(mean)))
    return [m + effective_horizon * gain for m, gain in zip(mean, gains, strict=True)]


def information_share(cov):
    """One over the number of contrasts: (sum l_i)^2 / sum l_i^2 of the pairwise differences.

    In plain sums over pairs and points (lists of numbers), from c_ij - c_i. - c_.j + c_..
    """
    n = len(cov)
    row = [math.fsum(line) / n for line in cov]
    every = math.fsum(row) / n
    centred = [[cov[i][j] - row[i] - row[j] + every for j in range(n)] for i in range(n)]
    squares = math.fsum(c * c for line in centred for c in line)
    return squares / math.fsum(centred[i][i] for i in range(n)) ** 2
