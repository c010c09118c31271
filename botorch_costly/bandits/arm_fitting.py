r"""Hyperparameters of arms that drift, learnt by their marginal likelihood, all trials at once.

What is maximized is the log evidence of the rewards less their level, plus the log densities of the
prior: normal in the logarithms of the lengthscale, of the standard deviation of the rewards of an arm,
and of that of the noise. Of few queries, of one arm or in a row, the evidence says next to nothing, and
without a prior a long lengthscale would end all doubt, and with it all queries.

The gradient is in closed form (``numerics.evidence``), and all trials climb together.
"""

from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from botorch_costly.bandits.arm_process import ArmRows, arms_of_pairs, put, refactored
from botorch_costly.errors import check, check_count, check_nonnegative, check_positive
from botorch_costly.numerics import evidence
from botorch_costly.numerics.evidence import Rows
from botorch_costly.numerics.padded import without_padding
from botorch_costly.numerics.radial import FAMILIES
from botorch_costly.optim.lbfgs import minimize_batch

_REACH = 3.0  # standard deviations of the prior to which a hyperparameter may go
_STEPS = 30
_TOLERANCE = 1e-5


@dataclass(frozen=True)
class ArmPrior:
    """What is believed beforehand of how arms drift: medians, and standard deviations of logarithms.

    Args:
        family: Of the time kernel: ``"rbf"``, ``"matern52"``, ``"matern32"``, or ``"matern12"``, which is
            the forgetting kernel of time-varying GP-UCB.
        lengthscale: Median, in rounds.
        std: Median of the standard deviation of an arm's rewards, in units of the reward range.
        noise_std: Median of the standard deviation that a query adds, likewise.
        lengthscale_spread: Standard deviation of the logarithm of the lengthscale; 0 keeps the median.
        std_spread: Of ``std``, likewise.
        noise_spread: Of ``noise_std``, likewise.

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
        """Return their standard deviations."""
        spreads = [self.lengthscale_spread, 2 * self.std_spread, 2 * self.noise_spread]
        return torch.tensor(spreads, dtype=torch.float64)


@dataclass(frozen=True)
class FitSchedule:
    """When hyperparameters are learnt: each time a trial has a share more queries than the last time.

    Args:
        first: Queries before the first time, at least 1.
        growth: By which their number grows until the next time, more than 1.
        every: Rounds between two occasions, so that many trials learn together.

    Raises:
        InvalidArgumentError: If a number is out of range.
    """

    first: int = 6
    growth: float = 1.25
    every: int = 5

    def __post_init__(self) -> None:
        check_count("first", self.first, minimum=1)
        more = check_positive("growth", self.growth) > 1
        check(more, "growth", "a finite number > 1", self.growth)
        check_count("every", self.every, minimum=1)

    def due(self, rows: ArmRows, now: int) -> Tensor:
        """Return the trials whose time has come, long, ``(k,)``."""
        if now % self.every:
            return rows.told.new_zeros(0)
        least = (self.growth * rows.fitted.double()).clamp_min(self.first)
        return (rows.told >= least).nonzero().squeeze(-1)


def refitted(rows: ArmRows, prior: ArmPrior, some: Tensor) -> ArmRows:
    """Return the rows with the hyperparameters of some trials learnt anew.

    Args:
        rows: The observations.
        prior: Of the hyperparameters.
        some: Numbers of the trials, long, ``(k,)``.
    """
    part = ArmRows(*(field[some] for field in rows))
    narrow = _without_free_places(part)
    center, spread = prior.center().to(part.reward), prior.spread().to(part.reward)
    bounds = torch.stack([center - _REACH * spread, center + _REACH * spread])
    starts = torch.stack([part.theta, center.expand_as(part.theta)], -2)  # (k, 2, 3)
    loss = _Loss(_explained(narrow), narrow.seen.unsqueeze(-2), prior)
    end = minimize_batch(loss, starts, bounds, max_iter=_STEPS, gradient_tolerance=_TOLERANCE)
    best = end.value.nan_to_num(torch.inf).argmin(-1)
    theta = end.point[torch.arange(len(best), device=best.device), best]
    part = part._replace(theta=theta, fitted=part.told)
    return put(rows, some, refactored(part, prior.family))


def _without_free_places(rows: ArmRows) -> ArmRows:
    used = int(rows.taken.max())
    fields = {name: getattr(rows, name)[:, :used] for name in ("arm", "round", "reward")}
    return rows._replace(**fields)


def _explained(rows: ArmRows) -> Rows:
    """Return what the evidence is of: rewards less their level, in rounds."""
    seen = rows.seen
    count = rows.taken[:, None].clamp_min(1)
    center = torch.where(seen, rows.round, 0.0).sum(-1, keepdim=True) / count
    rounds = torch.where(seen, rows.round - center, 0.0)
    reward = torch.where(seen, rows.reward - rows.level[:, None], 0.0)
    alike = arms_of_pairs(rows)
    lag = torch.zeros_like(alike)  # not read: what is given beside the kernel is ``alike``
    return Rows(rounds[:, None, :, None], reward[:, None], lag[:, None], alike[:, None])


@dataclass(frozen=True)
class _Loss:
    """Minus the log density of hyperparameters, and its gradient."""

    rows: Rows
    seen: Tensor
    prior: ArmPrior

    def __call__(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        told = evidence.log_evidence(self.prior.family, self.rows, theta)
        value, gradient = without_padding(self.seen, theta, *told)
        spread = self.prior.spread().to(theta)
        # A spread of 0 keeps a hyperparameter where it is: the bounds do.
        away = torch.where(spread > 0, (theta - self.prior.center().to(theta)) / spread, 0.0)
        value = value - 0.5 * away.square().sum(-1)
        gradient = gradient - torch.where(spread > 0, away / spread, 0.0)
        return -value, -gradient
