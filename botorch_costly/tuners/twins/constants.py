"""Constants of the twins, in one place; ``benchmarks/README.md`` says on which programs they were chosen.

Units: A level is minus the logarithm of a loss. An *advantage* is a difference of levels, divided by
the slope of the run or by ``typical_slope``, whichever is larger. A *decade* multiplies a learning rate
by ten.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class TwinConstants:
    """Constants of the twins; each line states meaning and unit."""

    first_rounds: float = 0.5  # first rounds of a rate, as a multiple of the horizon's cube root
    search_rounds: int = 8  # rounds that a search may give back, as a multiple of its first rounds
    rate_noise: float = 0.3  # decades; error of a rate found by short trainings
    rate_spread: float = 0.5  # decades; distance of most users' rates from the best
    level_noise: float = 0.03  # difference of levels that may be chance
    strong: float = 1 / 3  # share of its range from which a strength may be weakened
    weak: float = 0.1  # share of its range to which it is weakened
    typical_slope: float = 0.1  # levels per log-time of a run that compute binds
    exploring: float = 0.004  # levels that trials without success may cost at the end
    trial_rounds: float = 0.05  # rounds of a trial, as a share of the rounds trained
    box: float = 0.3  # largest step of a candidate, edge of the unit cube
    lasting_share: float = 0.8  # share of a lead that is left after as many rounds again


CONSTANTS = TwinConstants()
