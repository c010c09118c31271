"""Options of the rules that decide the share of earlier tasks: by evidence, or by the paper's gaps."""

import math
from dataclasses import dataclass

from botorch_costly.acquisition import BetaSchedule
from botorch_costly.calls import advised
from botorch_costly.errors import (
    InvalidArgumentError,
    check,
    check_count,
    check_nonnegative,
    check_rate,
)


@advised
@dataclass(frozen=True)
class ByEvidence:
    """The share is the probability that the target resembles a weighted sum of the tasks.

    A ``TransferGP`` models the target by the tasks and by its own values, and its similarity to the
    tasks is fitted. Its log evidence is compared with that of a Gaussian process of the target alone. The
    share never grows, and is multiplied by ``decay`` after each evaluation, so that the regret is
    sublinear whatever the tasks are.

    Args:
        log_odds: Prior log odds that the target resembles the tasks.
        decay: Factor of the share after each evaluation.
        tau: Factor of the standard deviation of the ``TransferGP``.
        beta: Factor of the standard deviation of the target alone.

    Raises:
        InvalidArgumentError: If a number is outside its range.
    """

    log_odds: float = 4.0
    decay: float = 0.97
    tau: float = 0.5
    beta: float = 1.0

    def __post_init__(self) -> None:
        finite = isinstance(self.log_odds, int | float) and abs(self.log_odds) < float("inf")
        check(finite, "log_odds", "a finite number", self.log_odds, InvalidArgumentError)
        check_rate("decay", self.decay)
        check_nonnegative("tau", self.tau)
        check_nonnegative("beta", self.beta)


@advised
@dataclass(frozen=True)
class ByGaps:
    """Weights and share follow the gaps between the tasks' values and the target's bounds: RM-GP-UCB.

    References:
        Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
        UAI 2022, sections 3 and 5.

    Args:
        rate: Learning rate ``eta`` of the weights.
        decay: Largest factor of the share after an evaluation.
        power: Strength of the further decay by large gaps.
        tau: Factor of the tasks' standard deviations.
        beta: Factor of the target's standard deviation; or a schedule of its square by evaluation, as
            ``LogBeta(0.2 * d, 2.0)`` in the authors' program in ``d`` dimensions.
        largest: Whether a gap is the largest over a task's observations, as in Lemma 1, or their mean.
        own_units: Whether tasks are compared up to shift and scale, each standardized by its own mean
            and standard deviation.
        thompson: Whether sampled functions replace the bounds: RM-GP-TS.
        paths: Number of functions sampled of each task, for ``thompson``.
        summed: Whether, for ``thompson``, functions of all tasks are summed by their weights, as in the
            authors' program; by default one task is drawn by its weight, as equation (3) says.

    Raises:
        InvalidArgumentError: If a number is outside its range.
    """

    rate: float = 1.0
    decay: float = 0.7
    power: float = 0.7
    tau: float = 1.0
    beta: float | BetaSchedule = 2.0
    largest: bool = False
    own_units: bool = False
    thompson: bool = False
    paths: int = 64
    summed: bool = False

    def __post_init__(self) -> None:
        for name in ("rate", "power", "tau"):
            check_nonnegative(name, getattr(self, name))
        self.factor(1)
        check_rate("decay", self.decay)
        for name in ("largest", "own_units", "thompson", "summed"):
            check(isinstance(getattr(self, name), bool), name, "a bool", getattr(self, name))
        check_count("paths", self.paths, minimum=1)
        # Functions of tasks in different units have no sum.
        fits = not self.summed or (self.thompson and not self.own_units)
        check(fits, "summed", "False without thompson or with own_units", self.summed)

    def factor(self, evaluation: int) -> float:
        """Return the factor of the target's standard deviation for an evaluation, counted from 1."""
        if isinstance(self.beta, int | float):
            return check_nonnegative("beta", self.beta)
        check(callable(self.beta), "beta", "a number >= 0 or a schedule", self.beta)
        return math.sqrt(check_nonnegative("beta", self.beta(evaluation)))


Robustness = ByEvidence | ByGaps
