"""Whether metrics are shares of one number of examples, as accuracies and error rates are."""

from collections.abc import Sequence

import torch

_MOST = 20_000  # examples; of more, any number is a share within its rounding
_ROUNDING = 2.0**-22  # of a share that was computed in single precision
TENS = (10, 100, 1000, 10_000)  # examples of which a rounded loss is a share, too
_FEWEST = 5  # different values; fewer may be shares by coincidence


def examples_of(values: Sequence[float]) -> int | None:
    """Return the fewest examples of which all values are shares; None if they are no shares.

    The mean of a loss over examples is a share of their number by coincidence alone: five values at
    once less than once in a thousand times. A loss that was rounded to a few decimals is one, too, of
    a power of ten.

    Args:
        values: Numbers in [0, 1].

    Example:
        >>> examples_of([0.25, 0.5, 0.125, 0.375, 0.625])
        8
        >>> examples_of([2 ** -0.5, 3 ** -0.5, 5 ** -0.5, 6 ** -0.5, 7 ** -0.5])
    """
    different = torch.tensor(sorted(set(values)), dtype=torch.float64)
    if len(different) < _FEWEST or different[0] < 0 or different[-1] > 1:
        return None
    numbers = torch.arange(1, _MOST + 1, dtype=torch.float64).unsqueeze(-1)
    counts = numbers * different
    fits = ((counts - counts.round()).abs() <= _ROUNDING * numbers).all(-1).nonzero()
    return int(fits[0]) + 1 if len(fits) else None
