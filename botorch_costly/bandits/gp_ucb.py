"""GP-UCB for arms with drifting rewards."""

from dataclasses import KW_ONLY, dataclass, field

import torch
from torch import Tensor

from botorch_costly.acquisition.beta import BetaSchedule, ConstantBeta
from botorch_costly.bandits.arm_fitting import ArmPrior, FitSchedule, refitted
from botorch_costly.bandits.arm_process import ArmRows, appended, belief_at, no_rows
from botorch_costly.bandits.strategy import Advice, Strategy, Told, among_best
from botorch_costly.calls import advised
from botorch_costly.errors import InvalidShapeError, check, check_count


@advised
@dataclass(frozen=True)
class GPUCB(Strategy[ArmRows]):
    """Play the arm with the largest ``mean + sqrt(beta) std`` of a Gaussian process over arms and rounds.

    The query rule decides which rounds are queried, and with the time kernel which method of the paper
    this is: GP-UCB has an RBF kernel and ``BernoulliQuery``, TV-GP-UCB the forgetting kernel
    (``"matern12"``) and ``BernoulliQuery`` or ``AlwaysQuery``, CE-GP-UCB an RBF kernel and
    ``ConfidenceQuery``.

    References:
        - N. Srinivas, A. Krause, S. Kakade, M. Seeger. Gaussian process optimization in the bandit
          setting: no regret and experimental design. ICML 2010.
        - J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
          optimization. 2021, section E.1.

    Args:
        prior: The time kernel with the prior of its hyperparameters.
        beta: Exploration by round, from 1.
        arms: Prior covariance of the arms, a nested tuple of ``n x n`` numbers with a diagonal near 1;
            ``None`` for independent arms.
        fit: Schedule for fitting the hyperparameters; ``None`` for never.
        capacity: Largest number of observations of a trial; beyond it the oldest quarter is dropped.

    Raises:
        InvalidArgumentError: If an argument has another type or is out of range, or ``arms`` is no
            covariance.
        InvalidShapeError: If ``arms`` is not square.

    Example:
        >>> strategy = GPUCB(ArmPrior("rbf", lengthscale=50.0))
        >>> strategy.advise(strategy.begin(trials=1, arms=3), 0, torch.tensor([0.5])).arm
        tensor([1])
    """

    prior: ArmPrior = field(default_factory=ArmPrior)
    _: KW_ONLY
    beta: BetaSchedule = field(default_factory=ConstantBeta)
    arms: tuple[tuple[float, ...], ...] | None = None
    fit: FitSchedule | None = field(default_factory=FitSchedule)
    capacity: int = 256

    def __post_init__(self) -> None:
        check(isinstance(self.prior, ArmPrior), "prior", "an ArmPrior", self.prior)
        check(callable(self.beta), "beta", "a BetaSchedule, such as ConstantBeta(1.0)", self.beta)
        is_schedule = self.fit is None or isinstance(self.fit, FitSchedule)
        check(is_schedule, "fit", "a FitSchedule or None", self.fit)
        check_count("capacity", self.capacity, minimum=4)
        if self.arms is not None:
            self._check_arms()

    def _check_arms(self) -> None:
        try:
            cov = torch.tensor(self.arms, dtype=torch.float64)
        except (ValueError, TypeError) as error:
            raise InvalidShapeError("arms", "n x n numbers", self.arms) from error
        is_square = cov.dim() == 2 and cov.shape[0] == cov.shape[1]
        check(is_square, "arms", "n x n numbers", tuple(cov.shape), InvalidShapeError)
        is_valid = bool(cov.isfinite().all()) and torch.equal(cov, cov.mT)
        is_valid = is_valid and not bool(torch.linalg.cholesky_ex(cov).info)
        check(is_valid, "arms", "a symmetric positive definite covariance", self.arms)

    @property
    def assumes_range(self) -> bool:
        """Whether a number is in units of the range: the prior, where it is not fitted to rewards."""
        return self.fit is None

    def begin(self, trials: int, arms: int, device: torch.device | str = "cpu") -> ArmRows:
        """Return trials without observations.

        Raises:
            InvalidShapeError: If the covariance has another number of arms.
        """
        size = arms if self.arms is None else len(self.arms)
        check(size == arms, "arms", f"a covariance of {arms} arms", size, InvalidShapeError)
        theta = self.prior.center().to(device)
        eye = torch.eye(arms, dtype=theta.dtype, device=device)
        return no_rows(trials, eye if self.arms is None else theta.new_tensor(self.arms), theta)

    def refresh(self, state: ArmRows, now: int) -> ArmRows:
        """Return the state with the hyperparameters of all trials that are due fitted."""
        if self.fit is None:
            return state
        trials = self.fit.due(state, now)
        return refitted(state, self.prior, trials) if len(trials) else state

    def advise(self, state: ArmRows, now: int, luck: Tensor) -> Advice:
        """Return the arm with the largest upper confidence bound."""
        belief = belief_at(state, self.prior.family, now)
        variance = belief.cov.diagonal(dim1=-2, dim2=-1)
        arm = among_best(belief.mean + self.beta(now + 1) ** 0.5 * variance.sqrt(), luck)
        explored = torch.zeros_like(arm, dtype=torch.bool)
        return Advice(arm, torch.ones_like(belief.noise), explored, belief)

    def learn(self, state: ArmRows, told: Told) -> ArmRows:
        """Return the state with the observations of queries."""
        return appended(state, self.prior.family, told, self.capacity)
