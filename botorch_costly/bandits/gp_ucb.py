"""GP-UCB over arms whose rewards drift."""

from dataclasses import KW_ONLY, dataclass, field

import torch
from torch import Tensor

from botorch_costly.acquisition.beta import BetaSchedule, ConstantBeta
from botorch_costly.bandits.arm_fitting import ArmPrior, FitSchedule, refitted
from botorch_costly.bandits.arm_process import ArmRows, appended, belief_at, no_rows
from botorch_costly.bandits.strategy import Advice, Strategy, Told, among_best
from botorch_costly.errors import InvalidShapeError, check, check_count


@dataclass(frozen=True)
class GPUCB(Strategy[ArmRows]):
    """Play the arm with the largest ``mean + sqrt(beta) std`` of a Gaussian process over arms and rounds.

    Which rounds are queried, and so which method of the paper it is, is up to the query rule: GP-UCB is
    an RBF time kernel under ``BernoulliQuery``, TV-GP-UCB the forgetting kernel (``"matern12"``) under
    that or ``AlwaysQuery``, CE-GP-UCB an RBF time kernel under ``ConfidenceQuery``.

    References:
        - N. Srinivas, A. Krause, S. Kakade, M. Seeger. Gaussian process optimization in the bandit
          setting: no regret and experimental design. ICML 2010.
        - J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
          optimization. 2021, section E.1.

    Args:
        prior: The time kernel, and what is believed of its hyperparameters.
        beta: Exploration by round, from 1.
        arms: Prior covariance of the arms, a nested tuple of ``n x n`` numbers with a diagonal near 1;
            ``None`` where arms are independent.
        fit: When hyperparameters are learnt; ``None`` for never.
        capacity: Queries of a trial that are kept; of more, the oldest quarter is dropped.

    Raises:
        InvalidArgumentError: If a part is none of its kind or out of range, or ``arms`` no covariance.
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
        schedule = self.fit is None or isinstance(self.fit, FitSchedule)
        check(schedule, "fit", "a FitSchedule or None", self.fit)
        check_count("capacity", self.capacity, minimum=4)
        if self.arms is not None:
            self._check_arms()

    def _check_arms(self) -> None:
        try:
            cov = torch.tensor(self.arms, dtype=torch.float64)
        except (ValueError, TypeError) as error:
            raise InvalidShapeError("arms", "n x n numbers", self.arms) from error
        square = cov.dim() == 2 and cov.shape[0] == cov.shape[1]
        check(square, "arms", "n x n numbers", tuple(cov.shape), InvalidShapeError)
        good = bool(cov.isfinite().all()) and torch.equal(cov, cov.mT)
        good = good and not bool(torch.linalg.cholesky_ex(cov).info)
        check(good, "arms", "a symmetric positive definite covariance", self.arms)

    def begin(self, trials: int, arms: int, device: torch.device | str = "cpu") -> ArmRows:
        """Return trials without an observation.

        Raises:
            InvalidShapeError: If the covariance is of another number of arms.
        """
        given = arms if self.arms is None else len(self.arms)
        check(given == arms, "arms", f"a covariance of {arms} arms", given, InvalidShapeError)
        theta = self.prior.center().to(device)
        eye = torch.eye(arms, dtype=theta.dtype, device=device)
        return no_rows(trials, eye if self.arms is None else theta.new_tensor(self.arms), theta)

    def refresh(self, state: ArmRows, now: int) -> ArmRows:
        """Return the rows with the hyperparameters that are due learnt anew."""
        if self.fit is None:
            return state
        some = self.fit.due(state, now)
        return refitted(state, self.prior, some) if len(some) else state

    def advise(self, state: ArmRows, now: int, luck: Tensor) -> Advice:
        """Return the arm with the largest upper confidence bound."""
        belief = belief_at(state, self.prior.family, now)
        variance = belief.cov.diagonal(dim1=-2, dim2=-1)
        arm = among_best(belief.mean + self.beta(now + 1) ** 0.5 * variance.sqrt(), luck)
        sure = torch.ones_like(belief.noise)
        return Advice(arm, sure, torch.zeros_like(arm, dtype=torch.bool), belief)

    def learn(self, state: ArmRows, told: Told) -> ArmRows:
        """Return the rows with what queries told."""
        return appended(state, self.prior.family, told, self.capacity)
