"""Two checkpoints on the same examples: which one is better, from as few examples as possible.

The paired differences of the examples' losses are drawn without replacement from those of the whole set;
their mean is tested after each shard by the martingales of ``numerics.betting``, so that looking early
costs nothing of the stated level. Losses have no bounds: differences are clipped at a multiple of the
largest one of the first shard, on which therefore nothing is bet.
"""

import math
from typing import Literal, NamedTuple

from torch import Tensor

from botorch_costly.numerics.betting import PILOT, bound_of, log_capital

Verdict = Literal["better", "worse", "close", "undecided"]


class Comparison(NamedTuple):
    """The result of comparing a checkpoint with an earlier one; lower losses are better."""

    verdict: Verdict
    difference: float  # mean of its losses minus those of the earlier one, on the same examples
    deviation: float  # standard deviation of the differences of single examples
    examples: int  # that were compared


def compared(
    losses: Tensor,  # of a checkpoint, in the order of drawing, shape: (n,)
    earlier: Tensor,  # of an earlier checkpoint, shape: (k,)
    *,
    population: int,  # examples of the whole set
    level: float,  # largest probability of a wrong verdict
    tolerance: float,  # largest difference of the means that is too close to matter
    is_score: bool = False,  # whether differences up to 1 are those of shares, which have bounds
) -> Comparison:
    """Compare two checkpoints on the examples that both have losses for.

    With all examples of the set, the means decide.
    """
    n = min(losses.shape[-1], earlier.shape[-1])
    differences = (losses[:n] - earlier[:n]).double()
    mean = float(differences.mean())
    deviation = float(differences.std()) if n > 1 else math.nan
    if n == population:
        exact: Verdict = "close" if abs(mean) <= tolerance else "better" if mean < 0 else "worse"
        return Comparison(exact, mean, deviation, n)
    bound = _bound_of(differences, is_score=is_score)
    verdict = _verdict(differences, bound, population, level, tolerance)
    return Comparison(verdict, mean, deviation, n)


def _bound_of(differences: Tensor, *, is_score: bool) -> float:
    """Return a bound of the differences: that of shares, or the one that the pilot suggests."""
    if is_score and float(differences.abs().max()) <= 1:
        return 1.0
    return bound_of(differences)


def _verdict(
    differences: Tensor, bound: float, population: int, level: float, tolerance: float
) -> Verdict:
    """Return the verdict of the test martingales, at most ``level`` of which are wrong."""
    if len(differences) <= PILOT or bound == 0:
        return "undecided"

    # Hypotheses: mean <= 0, mean >= 0, mean <= -tolerance, mean >= tolerance.
    clipped = differences.clamp(-bound, bound)
    values = clipped * clipped.new_tensor([[1.0], [-1.0], [1.0], [-1.0]])
    nulls = clipped.new_tensor([0.0, 0.0, -tolerance, -tolerance])
    capital = log_capital(
        values, nulls, population=population, lower=-bound, upper=bound, pilot=PILOT
    )
    above, below, not_lower, not_higher = (capital.amax(-1) >= -math.log(level)).tolist()
    if above != below:
        return "worse" if above else "better"
    return "close" if tolerance > 0 and not_lower and not_higher else "undecided"


def needed(difference: float, deviation: float, level: float, population: int) -> int:
    """Return about how many examples decide a difference of the means, at most the population.

    A normal approximation of the capital's growth, ``d^2 / (2 s^2)`` an example, corrected for sampling
    without replacement.
    """
    if not difference or not math.isfinite(deviation):
        return population
    unlimited = PILOT + 2 * math.log(1 / level) * (deviation / difference) ** 2
    return math.ceil(unlimited / (1 + unlimited / population)) if unlimited < 1e9 else population
