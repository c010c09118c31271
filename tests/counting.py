"""How few of many successes are still no reason for doubt."""

from scipy.stats import binom


def least_successes(n: int, p: float, error: float = 1e-6) -> int:
    """Return the largest number that ``n`` trials rarely fall short of.

    A test that counts how often two computations agree, or a method wins, asks for so many. Where each
    trial succeeds with a probability of at least ``p``, the test is red once in ``1 / error`` times.

    Args:
        n: Number of trials.
        p: Probability of a success that the test claims, in [0, 1].
        error: Probability of a red test where the claim holds.

    Example:
        >>> least_successes(68, 0.99)  # 67 of 68 are no reason for doubt
        61
    """
    return int(binom.ppf(error, n, p))
