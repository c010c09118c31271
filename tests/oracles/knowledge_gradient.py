"""The knowledge gradient line by line, and the priced look round by round, in plain numbers."""

import math


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


def knowledge_gradient(mean, cov, at, noise):
    """What a look at point ``at`` adds to the largest mean of a Gaussian belief (lists of numbers)."""
    spread = math.sqrt(cov[at][at] + noise)
    slopes = [c / spread if spread > 0 else 0.0 for c in cov[at]]
    return expected_rise(mean, slopes)


def live(rounds, now, forgetting):
    """What is still remembered of looks in past rounds."""
    return sum((1 - forgetting) ** (now - t) for t in rounds)


def reach(left, forgetting, live=0.0, coverage=1.0, discount=1.0, supersession=0.4):
    """``H = sum_s b^s`` over the rounds left, as the head of ``query/priced.py`` has it."""
    rate = forgetting * live
    replaced = min(supersession * coverage * rate, 1.0)
    b = discount * math.sqrt(1 - forgetting) * (1 - replaced)
    total, weight = 0.0, 1.0
    for _ in range(left):
        weight *= b
        total += weight
    return total


def price_of_budget(looks_left, rounds_left, worths):
    """What the looks that can be afforded have lately been worth; looks are not paid for."""
    dearer = math.floor(len(worths) * (1 - looks_left / rounds_left))
    return max(sorted(worths)[dearer], 0.0)


def wants_look(best, mean, gain, reach, price, looks):
    """Whether the best look beats the best play by more than its price, in rewards."""
    return looks == 0 or mean + reach * gain > best + price


def best_look(mean, cov, noise, reach):
    """The point of which ``mean + reach KG`` is largest, and its knowledge gradient."""
    gains = [knowledge_gradient(mean, cov, i, noise) for i in range(len(mean))]
    at = max(range(len(mean)), key=lambda i: mean[i] + reach * gains[i])
    return at, gains[at]
