"""A posterior frozen at one round, for one belief or a batch of them, and its upper confidence bound."""

from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.numerics.closed_form import (
    ClosedForm,
    Moments,
    moments,
    upper_bound_at,
    upper_bound_with_gradient,
)
from botorch_costly.numerics.expansion import Expansion, Quadratic, expand, expanded_upper_bound
from botorch_costly.numerics.radial import FAMILIES
from botorch_costly.optim.smooth import SecondOrder, ValueAndGradient

_ANSWERS = 4  # moments that are stored for tensors asked about again


@runtime_checkable
class HasSnapshots(Protocol):
    """A model over ``[configuration, round]`` whose posterior has a closed form in each round."""

    @property
    def num_rows(self) -> int:
        """Observations; there is no snapshot before the first."""

    def snapshot(self, now: float) -> "Snapshot":
        """Return the posterior in round ``now``."""


class _Stored:
    """What snapshots of one closed form have computed already."""

    def __init__(self) -> None:
        self.rough: ClosedForm | None = None
        self.answers: list[tuple[Tensor, int, Moments]] = []


@dataclass(frozen=True)
class Snapshot:
    r"""The posterior ``reward = center + scale * f`` in one round, in closed form.

    Until the next observation posteriors differ in the retention ``a`` only, by which the mean of ``f``
    is multiplied, and in ``a^2``, by which the explained variance is: see ``numerics.closed_form``. So
    the snapshots of all those rounds share one closed form, and what was computed from it.

    Each posterior of a batch has its own observations; all share a kernel.

    Args:
        form: About ``f``, in some round.
        retained: Retention ``a`` since that round, in [0, 1].
        least_variance: Floor of the variance of ``f``, positive.
        center: Reward that the prior expects.
        scale: What a unit of ``f`` is in rewards, positive.

    Example:
        >>> from botorch_costly.numerics.closed_form import closed_form
        >>> from botorch_costly.numerics.stationary import Stationary
        >>> one = torch.ones(1, 1)
        >>> kernel = Stationary("rbf", one[0], torch.tensor(1.0))
        >>> form = closed_form(kernel, one, one[0], inverse=0.5 * one, whitened=one)
        >>> mean, variance = Snapshot(form).mean_and_variance(one)
        >>> float(mean), float(variance)
        (0.5, 0.75)
    """

    form: ClosedForm
    retained: float = 1.0
    least_variance: float = 1e-10
    center: float = 0.0
    scale: float = 1.0
    _stored: _Stored = field(default_factory=_Stored, repr=False, compare=False)

    @property
    def has_gradient(self) -> bool:
        """Whether it has gradients: arms are no points of a space."""
        return self.form.family in FAMILIES

    @property
    def has_hessian(self) -> bool:
        """Whether it has Hessians: Matérn-1/2 has a kink at every observation."""
        return self.has_gradient and self.form.family != "matern12"

    def to(self, dtype: torch.dtype) -> "Snapshot":
        """Return it in another precision, which is computed once."""
        if dtype == self.form.rows.dtype:
            return self
        stored = self._stored
        if stored.rough is None or stored.rough.rows.dtype != dtype:
            with torch.inference_mode(False):
                stored.rough = self.form.to(dtype)
        return replace(self, form=stored.rough, _stored=_Stored())

    def configurations(self, X: Tensor) -> Tensor:
        """Return configurations of any batch shape as rows ``m x d``, in the precision of the posterior.

        Raises:
            InvalidShapeError: If they have not the columns of a configuration.
        """
        columns = self.form.rows.shape[-1]
        fits = X.dim() >= 1 and X.shape[-1] == columns
        check(fits, "X", f"{columns} columns", tuple(X.shape), InvalidShapeError)
        return X.reshape(-1, columns).to(self.form.rows)

    def moments(self, X: Tensor) -> Moments:
        """Return mean and *explained* variance of ``f``, both before waiting for ``retained``.

        Args:
            X: Configurations, ``*batch x q x d``.

        Returns:
            Each of shape ``(*batch, q)``.
        """
        return moments(self.form, X)

    def moments_at_fixed_points(self, X: Tensor) -> Moments:
        """Return the moments at a tensor that is asked about in every round, and store the last few.

        Args:
            X: Configurations, ``batch_shape x d`` in any shape; the moments have one dimension. A change
                of the tensor that torch does not count, as through NumPy, is not noticed.

        Raises:
            InvalidShapeError: If ``X`` has not the columns of a configuration.
        """
        with torch.no_grad():
            rows, answers = self.configurations(X), self._stored.answers
            if torch.is_inference_mode_enabled() or X.is_inference():
                return moments(self.form, rows)  # what is stored must be good outside, too
            for asked, version, answer in answers:
                if asked is X and version == X._version:
                    return answer
            answer = moments(self.form, rows)
            answers[:] = [*answers[1 - _ANSWERS :], (X, X._version, answer)]
            return answer

    def mean_and_variance(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and variance of the function at ``X``, in the units of the rewards.

        Args:
            X: Configurations, ``*batch x q x d``.

        Returns:
            Each of shape ``(*batch, q)``.
        """
        found, retained = moments(self.form, X), self.retained
        raw = torch.add(self.form.prior, found.explained, alpha=-(retained * retained))
        mean = self.center + self.scale * retained * found.mean
        return mean, self.scale**2 * raw.clamp_min(self.least_variance)

    def expand(self, X: Tensor) -> Expansion:
        """Return the moments around configurations ``*batch x j x d``, to second order."""
        return expand(self.form, X)

    def upper_bound(self, width: Tensor) -> "UpperBound":
        """Return ``mean + width std`` as a function of configurations.

        Args:
            width: Standard deviations to add, shape ``()``.
        """
        return UpperBound(self, width)


@dataclass(frozen=True)
class UpperBound:
    """``mean + width std`` of a snapshot: a ``SmoothFunction``, of one belief or of a batch.

    Each belief of a batch has its own bound over the same configurations.

    Args:
        snapshot: The posterior.
        width: Standard deviations to add, shape ``()``.
    """

    snapshot: Snapshot
    width: Tensor

    def __call__(self, X: Tensor, /) -> Tensor:
        """Return the bounds at configurations ``batch_shape x n x 1 x d``, ``batch_shape x n``."""
        return self.at(self.snapshot.moments(X.squeeze(-2)))

    @property
    def retained(self) -> float | None:
        """What is retained of the newest observation, in [0, 1]."""
        return self.snapshot.retained

    def at(self, known: Moments) -> Tensor:
        """Return the bounds where the moments are known, of their shape."""
        seen = self.snapshot
        prior = seen.form.prior
        value = upper_bound_at(prior, known, seen.retained, self.width, seen.least_variance)
        return self._in_units(value)

    def at_fixed_points(self, X: Tensor) -> Tensor:
        """Return the bounds of one belief at a tensor that is asked about in every round."""
        return self.at(self.snapshot.moments_at_fixed_points(X)).reshape(X.shape[:-2])

    def with_gradient(self, like: Tensor, *, sign: float = 1.0) -> ValueAndGradient:
        """Return the bounds at ``batch_shape x n x d`` as a function with a gradient.

        Args:
            like: In the precision of this.
            sign: Multiplies the bounds; -1 makes losses of them.
        """
        seen = self.snapshot.to(like.dtype)
        center, scale = sign * seen.center, sign * seen.scale
        bound = upper_bound_with_gradient(
            seen.form, seen.retained, self.width.to(like), seen.least_variance, scale
        )
        if center == 0:
            return bound

        def in_units(X: Tensor) -> tuple[Tensor, Tensor]:
            value, gradient = bound(X)
            return value + center, gradient

        return in_units

    @property
    def second_order(self) -> SecondOrder | None:
        """Values, gradients and Hessians at ``batch_shape x n x d``; None where there is no Hessian."""
        return self.quadratic if self.snapshot.has_hessian else None

    def quadratic(self, X: Tensor) -> Quadratic:
        """Return what ``second_order`` does, where there is a Hessian."""
        seen = self.snapshot
        terms = seen.form.prior, seen.retained, self.width, seen.least_variance
        found = expanded_upper_bound(seen.expand(X.detach()), *terms)
        if seen.center == 0 and seen.scale == 1:
            return found
        value, *slopes = found
        return Quadratic(self._in_units(value), *(seen.scale * part for part in slopes))

    def _in_units(self, value: Tensor) -> Tensor:
        seen = self.snapshot
        plain = seen.center == 0 and seen.scale == 1
        return value if plain else seen.center + seen.scale * value
