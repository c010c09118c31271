"""A posterior frozen at one round, for one model or a batch, and its upper confidence bound."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.numerics.closed_form import (
    ClosedForm,
    Moments,
    Slopes,
    moments,
    moments_and_slopes,
    upper_bound_at,
    upper_bound_with_gradient,
)
from botorch_costly.numerics.expansion import (
    Expansion,
    Quadratic,
    expand,
    upper_bound_with_hessian,
)
from botorch_costly.numerics.projection import Joint, Projection, joint, project
from botorch_costly.numerics.radial import FAMILIES
from botorch_costly.optim.smooth import SecondOrder, ValueAndGradient

Result = TypeVar("Result")
_ANSWERS = 4  # number of tensors for which moments are cached


@runtime_checkable
class HasSnapshots(Protocol):
    """A model over ``[configuration, round]`` whose posterior has a closed form in each round."""

    @property
    def num_rows(self) -> int:
        """Number of observations; without any there is no snapshot."""

    def snapshot(self, now: float) -> "Snapshot":
        """Return the posterior in round ``now``."""


class _Stored:
    """Cache that all snapshots of one closed form share."""

    def __init__(self) -> None:
        self.rough: tuple[ClosedForm, _Stored] | None = None
        self.answers: list[tuple[Tensor, int, Moments]] = []
        self.slopes: list[tuple[Tensor, int, tuple[Moments, Slopes]]] = []
        self.projections: list[tuple[Tensor, int, Projection]] = []


def _remembered(
    results: list[tuple[Tensor, int, Result]], X: Tensor, most: int, compute: Callable[[], Result]
) -> Result:
    """Return the result at a tensor that is the same in every round; the last ``most`` are kept."""
    if torch.is_inference_mode_enabled() or X.is_inference():
        return compute()  # cached tensors must also work outside of this mode
    for points, version, result in results:
        if points is X and version == X._version:
            return result
    result = compute()
    results[:] = [*results, (X, X._version, result)][-most:]
    return result


@dataclass(frozen=True)
class Snapshot:
    r"""The posterior ``reward = center + scale * f`` in one round, in closed form.

    Until the next observation, posteriors differ only in the retention ``a``, which multiplies the mean
    of ``f``, and in ``a^2``, which multiplies the explained variance: see ``numerics.closed_form``. So
    the snapshots of all those rounds share one closed form and its cached results.

    Each posterior of a batch has its own observations; all share a kernel.

    Args:
        form: Closed form of the posterior of ``f`` in a reference round.
        retained: Retention ``a`` since that round, in [0, 1].
        least_variance: Lower bound of the variance of ``f``, positive.
        center: Prior mean of the reward.
        scale: One unit of ``f`` in units of the reward, positive.

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
        """Whether it has gradients: arms do not lie in a continuous space."""
        return self.form.family in FAMILIES

    @property
    def has_hessian(self) -> bool:
        """Whether it has Hessians: Matérn-1/2 has a kink at every observation."""
        return self.has_gradient and self.form.family != "matern12"

    def to(self, dtype: torch.dtype) -> "Snapshot":
        """Return the snapshot in another dtype; the conversion is cached."""
        if dtype == self.form.rows.dtype:
            return self
        stored = self._stored
        if stored.rough is None or stored.rough[0].rows.dtype != dtype:
            with torch.inference_mode(False):
                stored.rough = self.form.to(dtype), _Stored()
        form, of_form = stored.rough
        return replace(self, form=form, _stored=of_form)

    def configurations(self, X: Tensor) -> Tensor:
        """Return configurations of any batch shape as rows ``m x d``, in the dtype of the posterior.

        Raises:
            InvalidShapeError: If they do not have the columns of a configuration.
        """
        columns = self.form.rows.shape[-1]
        fits = X.dim() >= 1 and X.shape[-1] == columns
        check(fits, "X", f"{columns} columns", tuple(X.shape), InvalidShapeError)
        return X.reshape(-1, columns).to(self.form.rows)

    def moments(self, X: Tensor) -> Moments:
        """Return mean and *explained* variance of ``f`` in the reference round, without ``retained``.

        Args:
            X: Configurations, ``*batch x q x d``.

        Returns:
            Moments of shape ``(*batch, q)``.
        """
        return moments(self.form, X)

    def project(self, X: Tensor, *, is_fixed: bool = False) -> Projection:
        """Return the projection of configurations ``q x d``, for means and covariances.

        Args:
            X: Configurations.
            is_fixed: Whether the tensor is the same in every round; the last such result is then cached.
        """
        with torch.no_grad():
            rows = self.configurations(X)
            if not is_fixed:
                return project(self.form, rows)
            return _remembered(self._stored.projections, X, 1, lambda: project(self.form, rows))

    def joint(self, X: Tensor) -> Joint:
        """Return the joint moments of the function at ``X``, ``q x d``."""
        projection = self.project(X)
        mean, cov, prior = joint(self.form, projection, self.retained)
        square = self.scale**2
        return Joint(self.center + self.scale * mean, square * cov, square * prior)

    def moments_at_fixed_points(self, X: Tensor) -> Moments:
        """Return ``moments`` at a tensor that is the same in every round; the last few are cached.

        Args:
            X: Configurations, ``batch_shape x d``; the moments are flattened to one dimension. An
                in-place change that torch does not count, as through NumPy, is not detected.

        Raises:
            InvalidShapeError: If ``X`` does not have the columns of a configuration.
        """
        with torch.no_grad():
            rows, answers = self.configurations(X), self._stored.answers
            return _remembered(answers, X, _ANSWERS, lambda: moments(self.form, rows))

    def moments_and_slopes(self, X: Tensor) -> tuple[Moments, Slopes]:
        """Return ``moments`` at ``q x d`` and their gradients, without ``retained``; cached."""
        return _remembered(self._stored.slopes, X, 1, lambda: moments_and_slopes(self.form, X))

    def mean_and_variance(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and variance of the function at ``X``, in units of the rewards.

        Args:
            X: Configurations, ``*batch x q x d``.

        Returns:
            Mean and variance, each of shape ``(*batch, q)``.
        """
        mean, explained = moments(self.form, X)
        retained = self.retained
        raw = torch.add(self.form.prior, explained, alpha=-(retained * retained))
        mean, variance = self.scale * retained * mean, raw.clamp_min(self.least_variance)
        if self.center == 0 and self.scale == 1:
            return mean, variance
        return self.center + mean, self.scale**2 * variance

    def expand(self, X: Tensor) -> Expansion:
        """Return the second-order expansion of the moments at configurations ``*batch x j x d``."""
        return expand(self.form, X)

    def upper_bound(self, width: Tensor) -> "UpperBound":
        """Return ``mean + width std`` as a function of configurations.

        Args:
            width: Number of standard deviations to add, shape ``()``.
        """
        return UpperBound(self, width)


@dataclass(frozen=True)
class UpperBound:
    """``mean + width std`` of a snapshot: a ``SmoothFunction``, of one posterior or of a batch.

    Each posterior of a batch has its own bound over the same configurations.

    Args:
        snapshot: The posterior.
        width: Number of standard deviations to add, shape ``()``.
    """

    snapshot: Snapshot
    width: Tensor

    @property
    def entry_bytes(self) -> int:
        """Memory of the posterior of one entry of the batch, which each evaluation reads."""
        solver = self.snapshot.form.solver
        return solver.shape[-2] * solver.shape[-1] * solver.element_size()

    def entries(self, rows: slice) -> "UpperBound":
        """Return the bounds of some posteriors of a batch."""
        form = self.snapshot.form.entries(rows)
        snapshot = replace(self.snapshot, form=form, _stored=_Stored())
        return UpperBound(snapshot, self.width[rows] if self.width.dim() else self.width)

    def __call__(self, X: Tensor, /) -> Tensor:
        """Return the bounds at configurations ``batch_shape x n x 1 x d``, ``batch_shape x n``."""
        return self.at(self.snapshot.moments(X.squeeze(-2)))

    @property
    def retained(self) -> float | None:
        """Retention since the reference round of the snapshot, in [0, 1]."""
        return self.snapshot.retained

    def at(self, known: Moments) -> Tensor:
        """Return the bounds for given moments, in the shape of these."""
        snapshot, prior = self.snapshot, self.snapshot.form.prior
        return self._in_units(
            upper_bound_at(prior, known, snapshot.retained, self.width, snapshot.least_variance)
        )

    def at_fixed_points(self, X: Tensor) -> Tensor:
        """Return the bounds of one posterior at a tensor that is the same in every round; cached."""
        return self.at(self.snapshot.moments_at_fixed_points(X)).reshape(X.shape[:-2])

    def with_gradient(self, like: Tensor, *, sign: float = 1.0) -> ValueAndGradient:
        """Return the bounds at ``batch_shape x n x d`` as a function with a gradient.

        Args:
            like: A tensor whose dtype the function computes in.
            sign: Factor of the bounds; -1 turns them into losses.
        """
        snapshot, width = self.snapshot.to(like.dtype), self.width.to(like)
        center, scale = sign * snapshot.center, sign * snapshot.scale
        bound = upper_bound_with_gradient(
            snapshot.form, snapshot.retained, width, snapshot.least_variance, scale
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
        snapshot = self.snapshot
        if not snapshot.has_hessian:
            return None
        terms = snapshot.retained, self.width, snapshot.least_variance, snapshot.scale
        bound, center = upper_bound_with_hessian(snapshot.form, *terms), snapshot.center
        if center == 0:
            return bound

        def in_units(X: Tensor) -> Quadratic:
            value, *slopes = bound(X)
            return Quadratic(value + center, *slopes)

        return in_units

    def _in_units(self, value: Tensor) -> Tensor:
        center, scale = self.snapshot.center, self.snapshot.scale
        return value if self._has_prior_units() else center + scale * value

    def _has_prior_units(self) -> bool:
        return self.snapshot.center == 0 and self.snapshot.scale == 1
