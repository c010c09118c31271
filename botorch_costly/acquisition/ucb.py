"""Upper confidence bound of a drifting function."""

from typing import Any

from botorch.acquisition.analytic import UpperConfidenceBound
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from torch import Tensor

from botorch_costly.acquisition.present import InRound, as_numbers
from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.models import StreamingGP
from botorch_costly.numerics.expansion import Expansion, Quadratic, bound_of, expand
from botorch_costly.numerics.present import Moments, bound_at, moments, upper_bound
from botorch_costly.optim.lbfgs import ValueAndGradient, from_callable


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
        plain = posterior_transform is None and weight.numel() == 1 and maximize
        self._streams = plain and isinstance(model, StreamingGP)

    @property
    def is_closed_form(self) -> bool:
        """Whether values come from a streaming belief's cached factor, without a graph."""
        return self._streams and self.model.num_rows > 0

    def forward(self, X: Tensor) -> Tensor:
        """Return the bound at configurations ``batch_shape x 1 x d``, shape ``batch_shape``."""
        if not self.is_closed_form or X.requires_grad or X.dim() < 3 or X.shape[-2] != 1:
            return super().forward(X)
        found = moments(self.model.present(self.round)[0], self.model.configurations(X))
        return self.where(found).reshape(X.shape[:-2])

    def of_standing_questions(self, X: Tensor) -> Tensor:
        """Return what ``forward`` does, of a tensor asked about in every round and never changed."""
        if not self.is_closed_form:
            return self(X)
        return self.where(self.model.seen_from(self.round, X)).reshape(X.shape[:-2])

    def where(self, known: Moments) -> Tensor:
        """Return this round's bound where the belief's moments are known."""
        model, keep = self.model, self.model.present(self.round)[1]
        prior, width = model.kernel.outputscale, self._width(known.mean)
        return self._in_units(bound_at(prior, known, keep, width, model.least_variance))

    def with_gradient(self, like: Tensor, sign: int = 1) -> ValueAndGradient:
        """Return the bound as a function with a gradient, everything but its argument worked out.

        It maps configurations ``batch_shape x n x d`` to values ``batch_shape x n`` and gradients; each
        configuration is a batch of its own, whatever ``n``. Without a streaming belief the gradient
        comes from autograd.

        Args:
            like: Configurations, in whose precision it computes.
            sign: -1 for a loss.

        Raises:
            InvalidShapeError: If these have not the columns of a configuration.
        """
        if not (self.is_closed_form and self.model.has_slopes):
            return from_callable(lambda X: sign * self(X.unsqueeze(-2)))
        model, width = self.model, self._width(like)
        model.configurations(like)
        belief, keep = model.present(self.round, like.dtype)
        bound = upper_bound(belief, keep, width, model.least_variance, sign * model.scale)
        if model.center == 0:
            return bound

        def in_units(X: Tensor) -> tuple[Tensor, Tensor]:
            value, gradient = bound(X)
            return value + sign * model.center, gradient

        return in_units

    @property
    def is_smooth(self) -> bool:
        """Whether there is a Hessian in closed form: Matérn-1/2 has a kink at every observation."""
        smooth = self.is_closed_form and self.model.has_slopes
        return smooth and self.model.kernel.family != "matern12"

    @property
    def retained(self) -> float:
        """What is retained of the belief's newest observation."""
        return self.model.present(self.round)[1]

    def second_order(self, X: Tensor) -> Quadratic:
        """Return values, gradients and Hessians at ``batch_shape x n x d``, if ``is_smooth``."""
        return self.after(self.expand(X))

    def expand(self, X: Tensor) -> Expansion:
        """Return the belief around ``batch_shape x n x d``, good from its newest row to the next."""
        return expand(self.model.present(self.round)[0], X.detach())

    def after(self, around: Expansion) -> Quadratic:
        """Return this round's bound around some points from the belief's expansion around them."""
        model, keep = self.model, self.model.present(self.round)[1]
        prior, width = model.kernel.outputscale, self._width(around.points)
        found = bound_of(around, prior, keep, width, model.least_variance)
        if model.center == 0 and model.scale == 1:
            return found
        value, *slopes = found
        return Quadratic(self._in_units(value), *(model.scale * part for part in slopes))

    def _width(self, like: Tensor) -> Tensor:
        return self.beta.to(like).sqrt()

    def _in_units(self, value: Tensor) -> Tensor:
        return self.model.center + self.model.scale * value


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
