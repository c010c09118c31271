"""Learning rates: which hyperparameters are, and what a round plays of the peak that is tuned."""

from botorch_costly.parameters import BASES, Plain, Real, Scheduled
from botorch_costly.space import SearchSpace


def rate_columns(space: SearchSpace) -> list[int]:
    """Return the columns of learning rates.

    Learning rates need a search of their own: late in a run, comparisons favour small ones, even where
    larger ones end better.
    """
    return [space.columns[name].start for name in space.rates]


def as_played(space: SearchSpace, peak: dict[str, Plain], share: float) -> dict[str, Plain]:
    """Return what a round plays of a configuration when a share of the run is over.

    A learning rate without a schedule of its own falls in the last fifth, too, within its range: the end
    of a run profits from small steps, and a tuner that may set the rate may set it to that.

    Args:
        space: Of the configurations.
        peak: The configuration that is tuned.
        share: Of the run, in [0, 1].
    """
    played = space.scheduled(peak, share)
    parameters, factor = dict(space.parameters), BASES["wsd"](share)
    for name in space.rates:
        rate = parameters[name]
        if isinstance(rate, Real) and not isinstance(rate, Scheduled):
            played[name] = max(rate.low, rate.canonical(name, peak[name]) * factor)
    return played
