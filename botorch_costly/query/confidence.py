"""Query rules for uncertainty about whether the candidate is best."""

import math
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from botorch_costly.calls import advised
from botorch_costly.errors import (
    InvalidArgumentError,
    check_nonnegative,
    check_probability,
    warn_caller,
)
from botorch_costly.query.rule import Cause, Comparison, Progress, QueryRule, Verdict, choose

# Levels of significance, between which a confidence seems one: it leaves hardly any query.
_LEVELS = (0.001, 0.25)


def confidence(comparison: Comparison, *, joint: bool = False) -> Tensor:
    r"""Return the least probability with which the candidate beats a rival.

    ``min_x P(y(x_t) > y(x))``, ``P = Phi((mu_t - mu_x) / sqrt(sigma_t^2 + sigma_x^2 - 2 cov))``

    The paper omits the covariance (``joint=False``), which understates the confidence for positively
    correlated values.

    Returns:
        Probability, shape ``(*batch,)``; 1 where there is no rival, NaN where a moment is NaN.

    Raises:
        InvalidArgumentError: If ``joint`` is true and the comparison has no covariances.
    """
    spread = comparison.variance.unsqueeze(-1) + comparison.rival_variance
    precision = torch.finfo(spread.dtype)
    if joint:
        if comparison.rival_covariance is None:
            raise InvalidArgumentError("rival_covariance", "a tensor, for joint=True", None)
        # The variance of the difference of two highly correlated values is at least the rounding error.
        rounding = precision.eps * spread
        spread = torch.maximum(spread - 2 * comparison.rival_covariance, rounding)
    lead = comparison.mean.unsqueeze(-1) - comparison.rival_mean
    if lead.shape[-1] == 0:
        return torch.ones_like(comparison.mean)
    # The floor avoids 0 / 0: two certain and equal values have probability 1/2.
    z = lead / spread.clamp_min(precision.tiny).sqrt()
    return torch.special.ndtr(z.masked_fill(~comparison.exists, torch.inf).amin(-1))


@advised
@dataclass(frozen=True)
class ConfidenceQuery(QueryRule):
    """Query if some rival beats the candidate with probability above ``1 - kappa``.

    This is the cost-efficient rule of CE-GP-UCB. Without rivals it never queries, so callers add a
    distant rival if there is a single optimum. If a moment of the posterior is NaN, the rule queries.

    References:
        J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
        optimization. 2021, section 3.2.

    Args:
        kappa: Confidence threshold in (0, 1); higher queries more often.
        joint: Whether to use the covariance of candidate and rival, which the paper drops.

    Raises:
        InvalidArgumentError: If ``kappa`` is outside (0, 1).
    """

    kappa: float = 0.9
    _: KW_ONLY
    joint: bool = False
    needs_rivals = True

    @property
    def reads_covariances(self) -> bool:
        """Whether the rule is ``joint``."""
        return self.joint

    def __post_init__(self) -> None:
        check_probability("kappa", self.kappa)
        if _LEVELS[0] <= self.kappa < _LEVELS[1]:
            warn_caller(
                f"ConfidenceQuery({self.kappa:g}) asks for a query only where some configuration is "
                f"better with a probability above {1 - self.kappa:g}: hardly ever. A level of "
                f"{self.kappa:g} is ConfidenceQuery({1 - self.kappa:g})."
            )

    def __call__(
        self, comparison: Comparison, progress: Progress, generator: torch.Generator
    ) -> Verdict:
        """Decide for a comparison of any batch shape."""
        sure = confidence(comparison, joint=self.joint)
        query = ~(sure >= self.kappa)  # also where the confidence is NaN
        return Verdict(query, sure, choose(query, Cause.UNSURE, Cause.SURE))


@advised
@dataclass(frozen=True)
class ConfidenceBoundQuery(QueryRule):
    """Query if some rival's upper confidence bound exceeds the candidate's lower one (rule ``@*``).

    References:
        J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
        optimization. 2021, Lemma 8.
    """

    needs_rivals = True
    reads_covariances = False

    def __call__(
        self, comparison: Comparison, progress: Progress, generator: torch.Generator
    ) -> Verdict:
        """Decide for a comparison of any batch shape."""
        width = comparison.beta.sqrt()
        lower = comparison.mean - width * comparison.variance.sqrt()
        upper = comparison.rival_mean + width.unsqueeze(-1) * comparison.rival_variance.sqrt()
        # The negation counts NaN bounds as overlapping.
        query = (comparison.exists & ~(upper <= lower.unsqueeze(-1))).any(-1)
        return Verdict(query, confidence(comparison), choose(query, Cause.OVERLAP, Cause.APART))


def kappa_of_bounds(beta: float, *, as_printed: bool = False) -> float:
    """Return a ``kappa`` above which ``ConfidenceQuery`` leaves no regret by the confidence bounds.

    By eq. (58) the remaining regret is at most ``(sqrt(beta) - Phi^{-1}(kappa) / sqrt(2)) (s_1 + s_2)``,
    which vanishes at ``kappa = Phi(sqrt(2 beta))``. The paper prints ``Phi(sqrt(2) beta)``, which does
    not follow from it; ``as_printed=True`` returns that value.

    In float64 the result is 1 for ``beta`` above about 34.4, too large for ``ConfidenceQuery``;
    ``ConfidenceBoundQuery`` compares the bounds directly.

    Args:
        beta: Parameter of the confidence bounds ``mean +- sqrt(beta) std``, >= 0.
        as_printed: Whether to return the formula that the paper prints.

    Raises:
        InvalidArgumentError: If ``beta`` is negative or not finite.
    """
    check_nonnegative("beta", beta)
    z = math.sqrt(2) * beta if as_printed else math.sqrt(2 * beta)
    return 0.5 * math.erfc(-z / math.sqrt(2))
