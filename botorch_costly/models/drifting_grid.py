r"""The exact posterior of a drifting function on a finite domain, at constant cost per round.

The posterior covariance is stored as a downdate of the prior,

    cov = K - sum_i w_i v_i v_i^T,

one rank-one term per query. Querying at point j with ``c = cov[:, j]`` and ``s = c[j] + noise`` adds
``v = c / sqrt(s)`` with weight one and changes the mean by ``c (y - mean[j]) / s``. A round of waiting
multiplies the mean by ``a`` and every weight by ``a^2 = 1 - forgetting``, because

    a^2 (K - V) + (1 - a^2) K = K - a^2 V.

So waiting costs O(n), a query O(n) per live term, and the number of terms is bounded for any horizon; see
``downdate.py``.

Rounding. Where queries have determined the function, ``K - V`` is rounding error alone, and a query turns
an error ``-e`` into ``-e - e^2 / s``, which would diverge after ``noise / e`` queries. So a column is
clamped to the Cauchy-Schwarz bound of a covariance, with a slack ``d`` of a few rounding errors of the
prior variance,

    |c_i|^2 <= (var_j + d) (var_i + d),

and a query at a point of variance at most ``d`` changes nothing. A query at point j then lowers a
variance below zero by at most ``2 d var_j / (var_j + noise)``, and a run by 4 d times its information
gain: errors no longer grow. While all variances are far above rounding errors, neither rule applies.

Convention: trials lie in leading batch dimensions, which are flattened to one internally.
"""

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from botorch.posteriors import GPyTorchPosterior
from torch import Tensor

from botorch_costly.device import is_near, moved
from botorch_costly.errors import (
    InvalidArgumentError,
    InvalidShapeError,
    NumericalError,
    StateMismatchError,
    check,
    check_count,
    check_positive,
    check_probability,
)
from botorch_costly.models.downdate import Downdate
from botorch_costly.models.drift_rates import DriftRates
from botorch_costly.models.posterior import check_inputs, gaussian_posterior
from botorch_costly.models.promises import OneOutcome
from botorch_costly.numerics.drift import log_density

_FIRST_SLOTS = 16
# In rounding errors of the largest prior variance:
_LEAST_NOISE = 100  # rounding errors grow under a smaller noise
_SLACK = 8  # error of a covariance
_FAR = 1000  # multiple of the slack that variances exceed if no clamping is needed


class DriftingGrid(OneOutcome):
    """The posterior of a drifting function on ``n`` points, for a batch of trials.

    References:
        I. Bogunovic, J. Scarlett, V. Cevher. Time-varying Gaussian process bandit optimization.
        AISTATS 2016, with the costly feedback of J. Wang et al., 2021.

    Args:
        prior_cov: Covariance of the function on the points, shape ``(n, n)``.
        forgetting: Rate in [0, 1] per round, a number or one for each trial, of shape ``batch_shape``.
        noise: Noise variance, positive and at least 100 machine epsilons of the prior variance.
        batch_shape: Shape of the trials.
        prior_mean: The mean that the function reverts to.
        tolerance: Weight below which a term is dropped.
        capacity: Number of queries of a trial for which memory is allocated at first; it grows.
        term_dtype: Dtype of the terms, which take nearly all memory and work of a query; that of
            ``prior_cov`` if omitted. Means and variances always have the dtype of ``prior_cov``.

    Raises:
        InvalidArgumentError: If a number is outside its range.
        InvalidShapeError: If ``prior_cov`` is not square or the rates are not one for each trial.

    Example:
        >>> belief = DriftingGrid(torch.eye(3), forgetting=0.1, noise=0.01)
        >>> _ = belief.observe(torch.tensor(1), torch.tensor(2.0))
        >>> belief.wait()
        >>> [round(m, 2) for m in belief.mean.tolist()]
        [0.0, 1.88, 0.0]
    """

    def __init__(
        self,
        prior_cov: Tensor,
        forgetting: float | Tensor,
        noise: float,
        batch_shape: torch.Size = torch.Size(),
        prior_mean: float = 0.0,
        tolerance: float = 1e-12,
        capacity: int = _FIRST_SLOTS,
        term_dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        square = prior_cov.dim() == 2 and prior_cov.shape[0] == prior_cov.shape[1] > 0
        check(square, "prior_cov", "a square matrix", tuple(prior_cov.shape), InvalidShapeError)
        self.prior_cov = prior_cov
        self._batch_shape = torch.Size(batch_shape)
        self._rates = DriftRates(forgetting, self._batch_shape, prior_cov.device)
        self.noise = check_positive("noise", noise)
        self._slack = self._checked_slack(term_dtype or prior_cov.dtype)
        self.prior_mean = prior_mean
        self._is_shared = False  # whether another grid owns the memory, see `select`
        self.tolerance = check_probability("tolerance", tolerance)
        slots = check_count("capacity", capacity, minimum=1)
        self._mean = prior_cov.new_zeros(self._batch_shape.numel(), self.num_points)
        self._variance = self._prior_variance.expand_as(self._mean).clone()
        self._downdate = Downdate(
            prior_cov, len(self._mean), self.num_points, tolerance, slots, term_dtype
        )

    def _checked_slack(self, dtype: torch.dtype) -> float:
        """Return the rounding error allowed in covariances; raise if the noise is not above rounding."""
        precision = torch.finfo(dtype)
        rounding = precision.eps * float(self.prior_cov.diagonal().max())
        least = _LEAST_NOISE * rounding
        expected = f"at least {least:.1e} in {precision.dtype}"
        check(self.noise >= least, "noise", expected, self.noise)
        return _SLACK * rounding

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "DriftingGrid":
        """Move or convert all tensors: ``float``, ``double`` and ``to`` call this.

        If the noise is not above the rounding of the new dtype, it raises and changes nothing.
        """
        slack = self._checked_slack(fn(self._downdate.terms[:0]).dtype)
        super()._apply(fn, recurse)
        self.prior_cov, self._slack, self._rates = fn(self.prior_cov), slack, self._rates.map(fn)
        self._mean, self._variance = fn(self._mean), fn(self._variance)
        self._downdate = self._downdate.map(fn)
        return self

    @property
    def forgetting(self) -> float | Tensor:
        """Rate per round: a number, or one for each trial, of shape ``batch_shape``."""
        return self._rates.forgetting

    @forgetting.setter
    def forgetting(self, forgetting: float | Tensor) -> None:
        self._rates = DriftRates(forgetting, self._batch_shape, self.prior_cov.device)

    @property
    def num_points(self) -> int:
        """Number of points of the domain."""
        return self.prior_cov.shape[-1]

    @property
    def batch_shape(self) -> torch.Size:
        """Shape of the trials."""
        return self._batch_shape

    @property
    def num_terms(self) -> int:
        """Largest number of live rank-one terms of a trial."""
        return int(self._downdate.active.sum(-1).max())

    @property
    def mean(self) -> Tensor:
        """Posterior mean on every point, shape ``(*batch, n)``."""
        return (self._mean + self.prior_mean).view(*self._batch_shape, self.num_points)

    @property
    def variance(self) -> Tensor:
        """Posterior variance on every point, shape ``(*batch, n)``."""
        # A copy, as the mean is: updates are in place.
        return self._variance.clone().view(*self._batch_shape, self.num_points)

    @property
    def _prior_variance(self) -> Tensor:
        return self.prior_cov.diagonal()

    def wait(self, rounds: float = 1, which: Tensor | None = None) -> None:
        """Let rounds pass without a query, in O(n).

        Args:
            rounds: Number of rounds, whole or not.
            which: Mask of the trials for which they pass, shape ``(*batch,)``; all if omitted.

        Raises:
            InvalidArgumentError: If ``rounds`` is negative or not finite; nothing is changed.
        """
        expected = "a finite number >= 0"
        check(0 <= rounds < math.inf, "rounds", expected, rounds, InvalidArgumentError)
        self._copy_if_shared()
        retained, squared, most = self._rates.over(rounds)
        if which is None and isinstance(squared, float):
            self._mean.mul_(retained)
            self._variance.mul_(squared).add_(self._prior_variance, alpha=1 - squared)
            self._downdate.decay(squared, most)
            return
        # Python numbers would become tensors of single precision.
        retained, squared = (
            moved(torch.as_tensor(factor, dtype=self._mean.dtype), self._mean)
            for factor in (retained, squared)
        )
        if which is not None:
            mask, most = which.reshape(-1, 1).bool(), 1.0
            retained, squared = (torch.where(mask, factor, 1.0) for factor in (retained, squared))
        self._mean.mul_(retained)
        self._variance.mul_(squared).addcmul_(1 - squared, self._prior_variance)
        self._downdate.decay(squared, most)

    def covariance(self, index: Tensor) -> Tensor:
        """Return the posterior covariance of one point of each trial with all points, ``(*batch, n)``.

        Args:
            index: A point for each trial, shape ``(*batch,)``; checked on a CPU only.
        """
        index = self._check_index(index) if is_near(index) else index.expand(self._batch_shape)
        index = index.reshape(-1)
        column = self.prior_cov[index] - self._downdate.column(index)
        return column.view(*self._batch_shape, self.num_points)

    def covariance_on_sublattice(self, index: Tensor, step: int) -> Tensor:
        """Return the posterior covariance between a few and all points of a sublattice, in float32.

        Args:
            index: ``k`` points of each trial as numbers of sublattice points, shape ``(*batch, k)``.
            step: Number of points from one point of the sublattice to the next.

        Returns:
            Covariances of shape ``(*batch, k, c)`` with the ``c`` points ``0, step, 2 step, ..``.
        """
        flat = index.reshape(self._batch_shape.numel(), -1)
        weights, terms = self._downdate.on_sublattice(step)
        picks = flat.unsqueeze(-2).expand(-1, terms.shape[-2], -1)
        left = weights * terms.gather(-1, picks)
        prior = self.prior_cov[::step, ::step].float()
        cov = torch.baddbmm(prior[flat], left.mT, terms, alpha=-1)
        return cov.view(*index.shape, -1)

    def covariance_among(self, index: Tensor) -> Tensor:
        """Return the posterior covariances of ``k`` points of each trial, ``*batch x k``, unchecked."""
        flat = index.reshape(self._batch_shape.numel(), -1)
        weights, terms = self._downdate.at(flat)
        prior = self.prior_cov[flat.unsqueeze(-1), flat.unsqueeze(-2)]
        cov = torch.baddbmm(prior, (weights * terms).mT, terms, alpha=-1)
        return cov.view(*index.shape, -1)

    def observe(self, index: Tensor, y: Tensor, query: Tensor | None = None) -> Tensor:
        """Condition on ``y = f[index] + N(0, noise)`` in the trials that query.

        Args:
            index: The point queried, shape ``(*batch,)``.
            y: The observed value, shape ``(*batch,)``; ignored where ``query`` is false.
            query: Mask of the trials that query, shape ``(*batch,)``; all if omitted.

        Returns:
            ``log p(y | past)``, zero where a trial does not query, shape ``(*batch,)``.

        Raises:
            InvalidArgumentError: If the value of a query is not finite, or an index is not one
                of the points; nothing is changed.
            NumericalError: If the posterior has numbers that are not finite; nothing is changed. On a
                device other than a CPU there is no such check, as it would synchronize.
            InvalidShapeError: If ``y`` or ``query`` has neither one value nor one for each trial.
        """
        index = self._check_index(index)
        y = self._per_trial("y", torch.as_tensor(y).to(self._mean))
        query = torch.ones_like(index, dtype=torch.bool) if query is None else query
        querying = self._per_trial("query", query).bool()
        finite = bool(y[querying].isfinite().all())
        check(finite, "y", "finite values where a trial queries", y, InvalidArgumentError)
        if not bool(querying.any()):
            return torch.zeros_like(y).view(self._batch_shape)
        residual, variance = self._condition(index, y, querying)
        log_prob = torch.where(querying, log_density(residual, variance), 0.0)
        return log_prob.view(self._batch_shape)

    def take_in(self, index: Tensor, y: Tensor, query: Tensor) -> None:
        """Condition as ``observe`` does, but without checks and results, which would synchronize.

        All have shape ``(*batch,)``; values are finite where the mask ``query`` is true.
        """
        if not is_near(query) or query.any():  # synchronizes with no device
            self._condition(index.reshape(-1), y.reshape(-1), query.reshape(-1))

    def _condition(self, index: Tensor, y: Tensor, querying: Tensor) -> tuple[Tensor, Tensor]:
        """Condition on ``y`` (``(m,)``) and return its residuals and their predictive variances."""
        self._copy_if_shared()
        column = self.prior_cov[index] - self._downdate.column(index, querying)
        latent = column.gather(-1, index[:, None]).squeeze(-1)
        column = self._clamped(column, latent)
        variance = latent.clamp_min(0) + self.noise
        expected = self._mean.gather(-1, index[:, None]).squeeze(-1) + self.prior_mean
        residual = torch.where(querying, y - expected, 0.0)
        if is_near(querying):  # synchronizes with no device
            finite = bool((column.sum(-1) + residual).isfinite().all())
            check(finite, "belief", "finite covariances", "NaN or infinity", NumericalError)
        deviation = variance.sqrt()
        is_informative = querying & (latent > self._slack)
        shape = column.mul_((is_informative / deviation)[:, None])
        self._mean.addcmul_(shape, (residual / deviation)[:, None])
        self._variance.addcmul_(shape, shape, value=-1).clamp_min_(0)
        self._downdate.push(shape, querying)
        return residual, variance

    def _clamped(self, column: Tensor, variance: Tensor) -> Tensor:
        """Return covariances with a point, ``(m, n)``, clamped by its variance, ``(m,)``."""
        if is_near(column) and self._variance.amin() > _FAR * self._slack:
            return column
        limit = variance.clamp_min(0).add(self._slack)[:, None]
        bound = (self._variance + self._slack).mul_(limit).sqrt_()
        return column.minimum(bound).maximum(-bound)

    def restart(self, which: Tensor | None = None) -> None:
        """Return to the prior, in all trials or in those of the mask ``which`` (``(*batch,)``)."""
        self._copy_if_shared()
        if which is None:
            self._mean.zero_()
            self._variance.copy_(self._prior_variance)
            self._downdate.clear()
            return
        mask = which.reshape(-1).bool()
        self._mean.masked_fill_(mask[:, None], 0)
        self._variance = torch.where(mask[:, None], self._prior_variance, self._variance)
        self._downdate.clear(mask)

    def select(self, index: int) -> "DriftingGrid":
        """Return a view of one entry of the leading batch dimension, to be read at once.

        It copies the shared memory before it changes itself, and is stale once this grid changes.
        """
        leading, shape = self._batch_shape[0], self._batch_shape[1:]
        check(0 <= index < leading, "index", f"a number in 0..{leading - 1}", index)
        rows = slice(index * shape.numel(), (index + 1) * shape.numel())
        view = copy.copy(self)
        view._batch_shape, view._is_shared = shape, True
        view._mean, view._variance = self._mean[rows], self._variance[rows]
        view._downdate = self._downdate.rows(rows)
        view._rates = self._rates.map(lambda rates: rates[index])
        return view

    def _copy_if_shared(self) -> None:
        if self._is_shared:
            self._mean, self._variance = self._mean.clone(), self._variance.clone()
            self._downdate, self._is_shared = self._downdate.map(torch.clone), False

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: Any = None,
    ) -> GPyTorchPosterior:
        """Return the joint posterior at point numbers ``X``, ``batch_shape x q x 1``; slow.

        Raises:
            InvalidShapeError: If ``X`` does not have one column.
        """
        check_inputs(X, 1)
        batch, n = self._batch_shape, self.num_points
        shape = torch.broadcast_shapes(X.shape[:-2], batch)
        index = self._check_points(X.squeeze(-1).long()).expand(*shape, -1)
        weights, terms = self._downdate.at(torch.arange(n, device=index.device))
        held = terms.shape[-2]  # number of terms
        picks = index.unsqueeze(-2).expand(*shape, held, -1)
        terms = terms.view(*batch, held, n).expand(*shape, held, n).gather(-1, picks)
        weighted = weights.view(*batch, held, 1) * terms
        cov = self.prior_cov[index.unsqueeze(-1), index.unsqueeze(-2)] - weighted.mT @ terms
        mean = self.mean.expand(*shape, n).gather(-1, index)
        return gaussian_posterior(mean, cov, observation_noise, self.noise, posterior_transform)

    def get_extra_state(self) -> dict[str, Any]:
        """Return all tensors needed to continue bit for bit."""
        return {"mean": self._mean, "variance": self._variance, **self._downdate.state()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Load a state of ``get_extra_state``."""
        shape, received = tuple(self._mean.shape), tuple(state["mean"].shape)
        expected = f"trials and points {shape}"
        check(received == shape, "state of DriftingGrid", expected, received, StateMismatchError)
        self._mean, self._variance = state["mean"].clone(), state["variance"].clone()
        self._downdate.load(state)

    def _per_trial(self, name: str, values: Tensor) -> Tensor:
        trials = self._batch_shape.numel()
        fits = values.numel() in (1, trials)
        expected = f"one value or shape {tuple(self._batch_shape)}"
        check(fits, name, expected, tuple(values.shape), InvalidShapeError)
        return values.reshape(-1).expand(trials)

    def _check_index(self, index: Tensor) -> Tensor:
        index = torch.as_tensor(index, device=self.prior_cov.device)
        return self._check_points(index).expand(self._batch_shape).reshape(-1)

    def _check_points(self, index: Tensor) -> Tensor:
        inside = bool(((index >= 0) & (index < self.num_points)).all())
        check(inside, "index", f"points in 0..{self.num_points - 1}", index, InvalidArgumentError)
        return index
