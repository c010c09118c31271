r"""MAP fits of the hyperparameters of drifting arms, for all trials at once.

The objective is the log evidence of the rewards minus their level, plus the log prior density: normal in
the logarithms of the lengthscale, of the standard deviation of an arm's rewards, and of that of the
noise. For few queries, of a single arm or in consecutive rounds, the evidence is almost flat, and without
a prior a long lengthscale would remove all uncertainty, after which no rule queries again.

The gradient is in closed form (``numerics.evidence``), and all trials are optimized as a batch.
"""

from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from botorch_costly.bandits.arm_process import ArmRows, arms_of_pairs, of_trials, put, refactored
from botorch_costly.calls import advised
from botorch_costly.errors import check, check_count, check_nonnegative, check_positive
from botorch_costly.models.hyperparameter_search import NormalPrior, most_probable, posterior
from botorch_costly.numerics import evidence
from botorch_costly.numerics.evidence import Rows
from botorch_costly.numerics.padded import without_padding
from botorch_costly.numerics.radial import FAMILIES
from botorch_costly.optim.smooth import ValueAndGradient

_REACH = 3.0  # standard deviations of the prior from the center to the bounds
_STEPS = 30
_TOLERANCE = 1e-5


@dataclass(frozen=True)
class ArmPrior:
    """The prior of the hyperparameters of drifting arms, normal in their logarithms.

    Args:
        family: Family of the time kernel: ``"rbf"``, ``"matern52"``, ``"matern32"``, or ``"matern12"``,
            the forgetting kernel of time-varying GP-UCB.
        lengthscale: Median of the lengthscale, in rounds.
        std: Median of the standard deviation of an arm's rewards, in units of the reward range.
        noise_std: Median of the standard deviation of the noise, in units of the reward range.
        lengthscale_spread: Standard deviation of the log lengthscale; 0 fixes the median.
        std_spread: Standard deviation of ``log(std)``; 0 fixes the median.
        noise_spread: Standard deviation of ``log(noise_std)``; 0 fixes the median.

    Raises:
        InvalidArgumentError: If the family is unknown, or a number out of range.
    """

    family: str = "rbf"
    lengthscale: float = 100.0
    _: KW_ONLY
    std: float = 0.3
    noise_std: float = 0.1
    lengthscale_spread: float = 1.0
    std_spread: float = 0.5
    noise_spread: float = 0.5

    def __post_init__(self) -> None:
        check(self.family in FAMILIES, "family", f"one of {sorted(FAMILIES)}", self.family)
        for name in ("lengthscale", "std", "noise_std"):
            check_positive(name, getattr(self, name))
        for name in ("lengthscale_spread", "std_spread", "noise_spread"):
            check_nonnegative(name, getattr(self, name))

    def center(self) -> Tensor:
        """Return the medians of ``[log lengthscale, log variance, log noise variance]``."""
        std, noise = self.std**2, self.noise_std**2
        return torch.tensor([self.lengthscale, std, noise], dtype=torch.float64).log()

    def spread(self) -> Tensor:
        """Return the standard deviations of ``[log lengthscale, log variance, log noise variance]``."""
        spreads = [self.lengthscale_spread, 2 * self.std_spread, 2 * self.noise_spread]
        return torch.tensor(spreads, dtype=torch.float64)


@advised
@dataclass(frozen=True)
class FitSchedule:
    """The schedule of fits: a trial is due when its number of queries has grown by a factor.

    Args:
        first: Queries before the first fit, at least 1.
        growth: Factor by which the number of queries grows until the next fit, more than 1.
        every: Rounds between checks, so that many trials are fitted together.

    Raises:
        InvalidArgumentError: If a number is out of range.
    """

    first: int = 6
    growth: float = 1.25
    every: int = 5

    def __post_init__(self) -> None:
        check_count("first", self.first, minimum=1)
        grows = check_positive("growth", self.growth) > 1
        check(grows, "growth", "a finite number > 1", self.growth)
        check_count("every", self.every, minimum=1)

    def due(self, rows: ArmRows, now: int) -> Tensor:
        """Return the numbers of the trials that are due, long, ``(k,)``."""
        if now % self.every:
            return rows.told.new_zeros(0)
        least = (self.growth * rows.fitted.double()).clamp_min(self.first)
        return (rows.told >= least).nonzero().squeeze(-1)


def refitted(rows: ArmRows, prior: ArmPrior, trials: Tensor) -> ArmRows:
    """Return the rows with fitted hyperparameters of some trials.

    Args:
        rows: Observations of all trials.
        prior: Prior of the hyperparameters.
        trials: Numbers of the trials to fit, long, ``(k,)``.
    """
    due = of_trials(rows, trials)
    used = int(due.taken.max())
    fields = {name: getattr(due, name)[:, :used] for name in ("arm", "round", "reward")}
    narrow = due._replace(**fields)
    center, spread = prior.center().to(due.reward), prior.spread().to(due.reward)
    bounds = torch.stack([center - _REACH * spread, center + _REACH * spread])
    starts = torch.stack([due.theta, center.expand_as(due.theta)], -2)  # (k, 2, 3)
    density = _log_density(narrow, prior)
    end = most_probable(density, starts, bounds, max_iter=_STEPS, gradient_tolerance=_TOLERANCE)
    due = due._replace(theta=end.theta, fitted=due.told)
    return put(rows, trials, refactored(due, prior.family))


def _log_density(rows: ArmRows, prior: ArmPrior) -> ValueAndGradient:
    """Return the log posterior density of ``m x k x 3`` hyperparameters."""
    seen = rows.seen
    count = rows.taken[:, None].clamp_min(1)
    middle = torch.where(seen, rows.round, 0.0).sum(-1, keepdim=True) / count
    rounds = torch.where(seen, rows.round - middle, 0.0)
    reward = torch.where(seen, rows.reward - rows.level[:, None], 0.0)[:, None]
    similarity = arms_of_pairs(rows)[:, None]
    unused_lag = torch.zeros_like(similarity)
    prepared = Rows(rounds[:, None, :, None], reward, unused_lag, similarity)

    def log_evidence(theta: Tensor) -> tuple[Tensor, Tensor]:
        padded = evidence.log_evidence(prior.family, prepared, theta)
        return without_padding(seen[:, None], theta, *padded)

    # With a spread of 0 the bounds fix a hyperparameter.
    center, spread = prior.center().to(reward), prior.spread().to(reward)
    return posterior(log_evidence, NormalPrior(center, torch.where(spread > 0, spread, torch.inf)))
