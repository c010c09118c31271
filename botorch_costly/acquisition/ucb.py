"""Upper confidence bound of a drifting function."""

from typing import Any

from botorch.acquisition.analytic import UpperConfidenceBound
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from torch import Tensor

from botorch_costly.acquisition.present import InRound, as_numbers
from botorch_costly.errors import InvalidArgumentError, check


class TimeVaryingUCB(InRound, UpperConfidenceBound):
    """``mean(x, now) + sqrt(beta) std(x, now)``: where to look in round ``now``.

    References:
        I. Bogunovic, J. Scarlett, V. Cevher. Time-varying Gaussian process bandit optimization.
        AISTATS 2016, Algorithm 2.

    Args:
        model: A single-outcome model over ``[configuration, round]``.
        beta: Weight of the variance, at least 0; see ``acquisition.beta`` for schedules.
        now: The round to decide for.
        posterior_transform: As for ``UpperConfidenceBound``.
        maximize: Whether larger rewards are better.

    Raises:
        InvalidArgumentError: If ``beta`` is negative or not finite, or ``now`` is not a finite number.
    """

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        now: float | Tensor,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
    ) -> None:
        weight = as_numbers("beta", beta)
        valid = bool(((weight >= 0) & weight.isfinite()).all())
        check(valid, "beta", "finite numbers >= 0", beta, InvalidArgumentError)
        super().__init__(model, weight, posterior_transform, maximize)
        self.fix_round(now)


@acqf_input_constructor(TimeVaryingUCB)
def construct_inputs_time_varying_ucb(
    model: Model,
    now: float,
    beta: float | Tensor = 1.0,
    posterior_transform: PosteriorTransform | None = None,
    maximize: bool = True,
) -> dict[str, Any]:
    """Return the keyword arguments of ``TimeVaryingUCB``."""
    return {
        "model": model,
        "beta": beta,
        "now": now,
        "posterior_transform": posterior_transform,
        "maximize": maximize,
    }
