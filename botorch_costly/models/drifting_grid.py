r"""The exact belief about a drifting function on a finite domain, at constant cost per round.

The posterior covariance is stored as a downdate of the prior,

    cov = K - sum_i w_i v_i v_i^T,

one rank-one term per query. Querying at point j with ``c = cov[:, j]`` and ``s = c[j] + noise`` adds
``v = c / sqrt(s)`` with weight one and changes the mean by ``c (y - mean[j]) / s``. A round of waiting
multiplies the mean by ``a`` and every weight by ``a^2 = 1 - forgetting``, because

    a^2 (K - V) + (1 - a^2) K = K - a^2 V.

So waiting costs O(n), a query O(n) per live term, and the terms are bounded whatever the horizon; see
``downdate.py``.

Rounding. Where queries have told everything, ``K - V`` is rounding error alone, and of an error
``-e`` a query makes ``-e - e^2 / s``: left to itself it reaches infinity after ``noise / e`` queries.
So a column is held to what a covariance may be (Cauchy-Schwarz, with a slack of ``d``, some rounding
errors of the prior variance),

    |c_i|^2 <= (var_j + d) (var_i + d),

and a query at a point of variance at most ``d`` teaches nothing. A query at point j then oversteps a
variance of zero by at most ``2 d var_j / (var_j + noise)``, and a run by 4 d times its information gain:
an error no longer feeds on itself. While all variances are far larger than rounding neither can bind.

Convention: many trials run side by side in a leading batch dimension, flattened to one inside.
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
# In rounding errors of the largest prior variance: rounding feeds on itself under a smaller noise.
_LEAST_NOISE = 100
_SLACK = 8  # rounding errors of the largest prior variance by which a covariance may be off
_FAR = 1000  # times the slack: variances beyond which no error has come that far


class DriftingGrid(OneOutcome):
    """The belief about a drifting function on ``n`` points, for a batch of trials.

    References:
        I. Bogunovic, J. Scarlett, V. Cevher. Time-varying Gaussian process bandit optimization.
        AISTATS 2016, with the costly feedback of J. Wang et al., 2021.

    Args:
        prior_cov: Covariance of the function on the points, shape ``(n, n)``.
        forgetting: Rate in [0, 1] per round, a number or one for each trial, of shape ``batch_shape``.
        noise: Noise variance of an observation, positive and above rounding (100 machine epsilons of
            the prior variance).
        batch_shape: Shape of the trials run side by side.
        prior_mean: What the function relaxes to.
        tolerance: A term is dropped when its weight falls below this.
        capacity: Queries of a trial for which memory is set aside at once; more comes as it is needed.
        term_dtype: Of the terms, which are nearly all of the memory and of the work of a query; that of
            ``prior_cov`` if omitted. Means and variances are always in that of ``prior_cov``.

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

    _rates: DriftRates

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
        received = tuple(prior_cov.shape)
        check(square, "prior_cov", "a square matrix", received, InvalidShapeError)
        self.prior_cov = prior_cov
        self._batch_shape = torch.Size(batch_shape)
        self.forgetting = forgetting
        self.noise = check_positive("noise", noise)
        self._slack = self._checked_slack(term_dtype or prior_cov.dtype)
        self.prior_mean = prior_mean
        self._is_shared = False  # with the belief that this one was selected from
        self.tolerance = check_probability("tolerance", tolerance)
        slots = check_count("capacity", capacity, minimum=1)
        self._mean = prior_cov.new_zeros(self._batch_shape.numel(), self.num_points)
        self._variance = self._prior_variance.expand_as(self._mean).clone()
        self._downdate = Downdate(
            prior_cov, len(self._mean), self.num_points, tolerance, slots, term_dtype
        )

    def _checked_slack(self, dtype: torch.dtype) -> float:
        """Return by how much covariances may be off, under a noise that is larger than that."""
        precision = torch.finfo(dtype)
        rounding = precision.eps * float(self.prior_cov.diagonal().max())
        least = _LEAST_NOISE * rounding
        enough = self.noise >= least
        check(enough, "noise", f"at least {least:.1e} in {precision.dtype}", self.noise)
        return _SLACK * rounding

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "DriftingGrid":
        """Move or convert all tensors: ``float``, ``double`` and ``to`` end here.

        The noise must be above the rounding of another dtype, or the belief stays as it is.
        """
        slack = self._checked_slack(fn(self._downdate.terms[:0]).dtype)
        super()._apply(fn, recurse)
        self.prior_cov, self._slack, self._rates = fn(self.prior_cov), slack, self._rates.map(fn)
        self._mean, self._variance = fn(self._mean), fn(self._variance)
        self._downdate = self._downdate.map(fn)
        return self

    @property
    def forgetting(self) -> float | Tensor:
        """Rate per round, of all trials or of each, which has the shape ``batch_shape``."""
        return self._rates.forgetting

    @forgetting.setter
    def forgetting(self, forgetting: float | Tensor) -> None:
        self._rates = DriftRates(forgetting, self._batch_shape, self.prior_cov.device)

    @property
    def num_points(self) -> int:
        """Size of the domain."""
        return self.prior_cov.shape[-1]

    @property
    def batch_shape(self) -> torch.Size:
        """Shape of the trials."""
        return self._batch_shape

    @property
    def num_terms(self) -> int:
        """Live rank-one terms of the trial that has most of them."""
        return int(self._downdate.active.sum(-1).max())

    @property
    def mean(self) -> Tensor:
        """Posterior mean on every point, shape ``(*batch, n)``."""
        return (self._mean + self.prior_mean).view(*self._batch_shape, self.num_points)

    @property
    def variance(self) -> Tensor:
        """Posterior variance on every point, shape ``(*batch, n)``."""
        # A copy, as the mean is: the belief goes on in place.
        return self._variance.clone().view(*self._batch_shape, self.num_points)

    @property
    def _prior_variance(self) -> Tensor:
        return self.prior_cov.diagonal()

    def wait(self, rounds: float = 1, which: Tensor | None = None) -> None:
        """Let rounds pass without a query, in O(n).

        Args:
            rounds: How many, in any part of a round.
            which: Trials for which they pass, shape ``(*batch,)``; all of them if omitted.

        Raises:
            InvalidArgumentError: If ``rounds`` is negative or not finite; the belief is unchanged.
        """
        passes = 0 <= rounds < math.inf
        check(passes, "rounds", "a finite number >= 0", rounds, InvalidArgumentError)
        self._own()
        retained, squared, most = self._rates.over(rounds)
        if which is None and isinstance(squared, float):
            self._mean.mul_(retained)
            self._variance.mul_(squared).add_(self._prior_variance, alpha=1 - squared)
            self._downdate.decay(squared, most)
            return
        # Numbers by themselves would become tensors of single precision.
        retained, squared = (
            moved(torch.as_tensor(part, dtype=self._mean.dtype), self._mean)
            for part in (retained, squared)
        )
        if which is not None:
            mask, most = which.reshape(-1, 1).bool(), 1.0
            retained, squared = (torch.where(mask, part, 1.0) for part in (retained, squared))
        self._mean.mul_(retained)
        self._variance.mul_(squared).addcmul_(1 - squared, self._prior_variance)
        self._downdate.decay(squared, most)

    def covariance(self, index: Tensor) -> Tensor:
        """Return the posterior covariance between one point a trial and all points.

        Args:
            index: A point for each trial, shape ``(*batch,)``; only on a CPU it is checked.

        Returns:
            Shape ``(*batch, n)``.
        """
        at = self._check_index(index) if is_near(index) else index.expand(self._batch_shape)
        at = at.reshape(-1)
        column = self.prior_cov[at] - self._downdate.column(at)
        return column.view(*self._batch_shape, self.num_points)

    def covariance_between(self, index: Tensor, others: Tensor) -> Tensor:
        """Return the posterior covariance between some points of each trial and some of all trials.

        Args:
            index: ``m`` points for each trial, shape ``(*batch, m)``; only on a CPU they are checked.
            others: ``k`` points, shape ``(k,)``, likewise.

        Returns:
            Shape ``(*batch, m, k)``.
        """
        here, there = (
            self._check_points(part) if is_near(part) else part for part in (index, others)
        )
        here = here.expand(*self._batch_shape, -1).reshape(self._batch_shape.numel(), -1)
        weights, left = self._downdate.at(here)
        _, right = self._downdate.at(there)
        cov = self.prior_cov[:, there][here] - (weights * left).mT @ right
        return cov.view(*self._batch_shape, *cov.shape[1:])

    def observe(self, index: Tensor, y: Tensor, query: Tensor | None = None) -> Tensor:
        """Condition on ``y = f[index] + N(0, noise)`` in the trials that query.

        Args:
            index: The point queried, shape ``(*batch,)``.
            y: What was seen, shape ``(*batch,)``; ignored where ``query`` is false.
            query: Which trials query, shape ``(*batch,)``; all of them if omitted.

        Returns:
            ``log p(y | past)``, zero where a trial does not query, shape ``(*batch,)``.

        Raises:
            InvalidArgumentError: If the value of a query is not finite, or an index is not one
                of the points; the belief is unchanged.
            NumericalError: If the belief holds numbers that are not finite; it is unchanged. On a device
                other than a CPU, which is not waited for, they show in what is read.
            InvalidShapeError: If ``y`` or ``query`` is not one value or one a trial.
        """
        at = self._check_index(index)
        y = self._per_trial("y", torch.as_tensor(y).to(self._mean))
        query = torch.ones_like(at, dtype=torch.bool) if query is None else query
        querying = self._per_trial("query", query).bool()
        finite = bool(y[querying].isfinite().all())
        check(finite, "y", "finite values where a trial queries", y, InvalidArgumentError)
        if not bool(querying.any()):
            return torch.zeros_like(y).view(self._batch_shape)
        residual, variance = self._condition(at, y, querying)
        log_prob = torch.where(querying, log_density(residual, variance), 0.0)
        return log_prob.view(self._batch_shape)

    def take_in(self, index: Tensor, y: Tensor, query: Tensor) -> None:
        """Condition as ``observe`` does, on what is known to be right: nothing is checked or returned.

        That saves waiting for a device.

        Args:
            index: Shape ``(*batch,)``.
            y: Shape ``(*batch,)``, finite where ``query`` is true.
            query: Shape ``(*batch,)``.
        """
        if not is_near(query) or query.any():  # no other device is waited for
            self._condition(index.reshape(-1), y.reshape(-1), query.reshape(-1))

    def _condition(self, at: Tensor, y: Tensor, querying: Tensor) -> tuple[Tensor, Tensor]:
        """Return how far ``y`` (``(m,)``) was from what was expected, and the variance of that."""
        self._own()
        column = self.prior_cov[at] - self._downdate.column(at, querying)
        known = column.gather(-1, at[:, None]).squeeze(-1)
        column = self._held_to_covariances(column, known)
        variance = known.clamp_min(0) + self.noise
        expected = self._mean.gather(-1, at[:, None]).squeeze(-1) + self.prior_mean
        residual = torch.where(querying, y - expected, 0.0)
        if is_near(querying):  # no other device is waited for
            sound = bool((column.sum(-1) + residual).isfinite().all())
            check(sound, "belief", "finite covariances", "NaN or infinity", NumericalError)
        deviation = variance.sqrt()
        teaches = querying & (known > self._slack)
        shape = column.mul_((teaches / deviation)[:, None])
        self._mean.addcmul_(shape, (residual / deviation)[:, None])
        self._variance.addcmul_(shape, shape, value=-1).clamp_min_(0)
        self._downdate.push(shape, querying)
        return residual, variance

    def _held_to_covariances(self, column: Tensor, known: Tensor) -> Tensor:
        """Return covariances with a point that are no larger than Cauchy-Schwarz allows.

        Args:
            column: Shape ``(m, n)``.
            known: The variance of the point itself, shape ``(m,)``.
        """
        if is_near(column) and self._variance.amin() > _FAR * self._slack:
            return column
        bound = (self._variance + self._slack).mul_(known.clamp_min(0).add(self._slack)[:, None])
        bound = bound.sqrt_()
        return column.minimum(bound).maximum(-bound)

    def restart(self, which: Tensor | None = None) -> None:
        """Forget everything, in all trials or in those marked in ``which`` (``(*batch,)``)."""
        self._own()
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
        """Return the belief of one entry of the leading batch dimension, for reading at once.

        Its memory is shared until it is changed itself; it is stale after the next change of this one.
        """
        leading, *rest = self._batch_shape
        inside = 0 <= index < leading
        check(inside, "index", f"a number in 0..{leading - 1}", index)
        trials = torch.Size(rest).numel()
        rows = slice(index * trials, (index + 1) * trials)
        part = copy.copy(self)
        part._batch_shape, part._is_shared = torch.Size(rest), True
        part._mean, part._variance = self._mean[rows], self._variance[rows]
        part._downdate = self._downdate.rows(rows)
        part._rates = self._rates.map(lambda rates: rates[index])
        return part

    def _own(self) -> None:
        """Take a copy of memory that is another belief's, before it is changed."""
        if self._is_shared:
            self._mean, self._variance = self._mean.clone(), self._variance.clone()
            self._downdate, self._is_shared = copy.deepcopy(self._downdate), False

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: Any = None,
    ) -> GPyTorchPosterior:
        """Return the joint posterior at point numbers ``X``, ``batch_shape x q x 1``.

        This is for inspection and interoperability. The hot path reads ``mean``, ``variance`` and
        ``covariance``.

        Raises:
            InvalidShapeError: If ``X`` has not one column.
        """
        check_inputs(X, 1)
        batch, n = self._batch_shape, self.num_points
        shape = torch.broadcast_shapes(X.shape[:-2], batch)
        index = self._check_points(X.squeeze(-1).long()).expand(*shape, -1)
        weights, terms = self._downdate.at(torch.arange(n, device=index.device))
        held = terms.shape[-2]
        picks = index.unsqueeze(-2).expand(*shape, held, -1)
        terms = terms.view(*batch, held, n).expand(*shape, held, n).gather(-1, picks)
        weighted = weights.view(*batch, held, 1) * terms
        cov = self.prior_cov[index.unsqueeze(-1), index.unsqueeze(-2)] - weighted.mT @ terms
        mean = self.mean.expand(*shape, n).gather(-1, index)
        return gaussian_posterior(mean, cov, observation_noise, self.noise, posterior_transform)

    def get_extra_state(self) -> dict[str, Any]:
        """Return everything needed to continue bit by bit, as tensors."""
        moments = {"mean": self._mean, "variance": self._variance}
        return {**moments, **self._downdate.state()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take over a state from ``get_extra_state``."""
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
        at = torch.as_tensor(index, device=self.prior_cov.device)
        return self._check_points(at).expand(self._batch_shape).reshape(-1)

    def _check_points(self, index: Tensor) -> Tensor:
        inside = bool(((index >= 0) & (index < self.num_points)).all())
        check(inside, "index", f"points in 0..{self.num_points - 1}", index, InvalidArgumentError)
        return index
