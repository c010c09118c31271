r"""A Gaussian process of a target that resembles a weighted sum of earlier tasks, in closed form.

With ``f_i`` the standardized posterior mean of task ``i`` of ``T`` and ``f`` their average,

    y(x) = a + s z(x),    z(x) = h f(x) + sum_i w_i f_i(x) + delta(x) + noise,
    h ~ N(level, common),    w_i ~ N(0, spread / T),    delta ~ GP(0, (own + u(x) u(x')) phi(x, x')),
    u(x)^2 = (spread / T + (level / T)^2) sum_i std_i(x)^2.

So ``z`` is a Gaussian process whose kernel is a linear kernel over the tasks' posterior means, plus a
kernel of the target's own deviation, plus the tasks' posterior uncertainty. An observation needs no
search. As ``h`` may be negative, with small probability, even tasks that all mislead are informative.
The priors of offset ``a`` and scale ``s`` are as wide as these vary among tasks; see ``numerics.units``.

*Level, spread, own variance, its lengthscales and noise* are learnt before the first evaluation: each
task in turn is the target of all others, and the sum of their log evidences is maximized. So if the
tasks do not resemble each other, the target is not assumed to resemble them.

The form is that of ScaML-GP, but its optimized weights are replaced by Gaussian weights, which are
integrated out.

References:
    P. Tighineanu et al. Scalable meta-learning with Gaussian processes. AISTATS 2024.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.models import transfer_slopes
from botorch_costly.models.joint_gaussian import JointGaussian, JointMoments, check_observations
from botorch_costly.models.promises import check_further
from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.models.transfer_slopes import LEAST_UNKNOWN, LEAST_VARIANCE, Conditioned
from botorch_costly.numerics.padded import MomentsAndVJP
from botorch_costly.numerics.stationary import Stationary, covariance
from botorch_costly.numerics.units import Scaled, Units, most_probable

COMMON = 0.5  # prior variance of ``h``: all tasks may mislead together
_WIDER, _LEAST_SPREAD = 1.2, 0.3  # factor and lower bound of the standard deviation of log scales
_LEAST_OFFSET = 0.1  # lower bound of the standard deviation of offsets, relative to the scale


class Similarity(NamedTuple):
    """How a task resembles others."""

    level: Tensor  # prior mean of the factor of their average, shape: ()
    spread: Tensor  # total prior variance of the weights of single tasks, shape: ()
    own: Tensor  # variance of the task's own deviation, shape: ()
    noise: Tensor  # shape: ()
    lengthscale: Tensor  # of the task's own deviation, shape: (d,)


class Features(NamedTuple):
    """Posterior moments of the earlier tasks at points."""

    means: Tensor  # shape: (*batch, m, tasks)
    variance: Tensor  # summed over all tasks, shape: (*batch, m)


class _Update(NamedTuple):
    """Effect of the target's ``n`` values on the moments at ``m`` points."""

    white: Tensor  # L^{-1} k, shape: (*batch, n, m)
    shift: Tensor  # of the mean, in units, shape: (*batch, m)
    offset: Tensor  # shape: ()
    offset_variance: Tensor  # in units, shape: ()
    scale: Tensor  # shape: ()


class _Prior(NamedTuple):
    """Prior moments of the target at points, in units."""

    mean: Tensor  # shape: (*batch, m)
    cov: Tensor  # shape: (*batch, m, m)


def features(tasks: TaskEnsemble, X: Tensor) -> Features:
    """Return the posterior moments of the tasks at points ``batch_shape x m x d``."""
    mean, std = tasks.moments(X.reshape(-1, X.shape[-1]))
    variance = std.square().sum(0)
    return Features(mean.mT.reshape(*X.shape[:-1], tasks.count), variance.reshape(X.shape[:-1]))


def _unknown(similarity: Similarity, tasks: Features) -> Tensor:
    """Return ``u``, shape ``(*batch, m)``."""
    count = tasks.means.shape[-1]
    factor = similarity.spread / count + (similarity.level / count).square()
    return (factor * tasks.variance).clamp_min(LEAST_UNKNOWN).sqrt()


def prior_mean(similarity: Similarity, tasks: Features) -> Tensor:
    """Return the mean of ``z``, shape ``(*batch, m)``."""
    return similarity.level * tasks.means.mean(-1)


def prior_covariance(
    similarity: Similarity, x1: Tensor, f1: Features, x2: Tensor, f2: Features, *, kernel: str
) -> Tensor:
    """Return the covariance of ``z`` without noise between two sets of points, ``(*batch, m1, m2)``."""
    count = f1.means.shape[-1]
    average = f1.means.mean(-1).unsqueeze(-1) * f2.means.mean(-1).unsqueeze(-2)
    weights = (similarity.spread / count) * (f1.means @ f2.means.mT)
    phi = covariance(Stationary(kernel, similarity.lengthscale, x1.new_ones(())), x1, x2)
    unknown = _unknown(similarity, f1).unsqueeze(-1) * _unknown(similarity, f2).unsqueeze(-2)
    return COMMON * average + weights + (similarity.own + unknown) * phi


def units_of(tasks: TaskEnsemble) -> Units:
    """Return the prior of a target's offset and scale, estimated from earlier tasks."""
    offset, log_scale = tasks.offset.double(), tasks.scale.double().log()
    typical = float(log_scale.mean().exp())
    if tasks.count == 1:
        return Units(float(offset), typical, float(log_scale), 1.0)
    return Units(
        float(offset.mean()),
        max(float(offset.std()), _LEAST_OFFSET * typical),
        float(log_scale.mean()),
        max(_WIDER * float(log_scale.std()), _LEAST_SPREAD),
    )


class TransferGP(JointGaussian):
    """Gaussian process of a target after earlier tasks and its own observations.

    References:
        See the docstring of the module.

    Args:
        tasks: The earlier tasks, fitted.
        similarity: How a task resembles others; see ``learn_similarity``.
        train_X: Inputs of the target, ``n x d``; ``n`` may be 0.
        train_Y: Its values, ``n x 1``, in units of the tasks' values.
        known: The result of ``features`` at the inputs, if already computed.

    Attributes:
        log_evidence: Log evidence of the target's values; 0 without any.

    Raises:
        InvalidShapeError: If shapes do not fit.
        InvalidArgumentError: If a number is not finite.
    """

    def __init__(
        self,
        tasks: TaskEnsemble,
        similarity: Similarity,
        train_X: Tensor,
        train_Y: Tensor,
        known: Features | None = None,
    ) -> None:
        super().__init__()
        check_observations(train_X, train_Y, tasks.inputs.shape[-1])
        self.tasks, self.similarity, self.dim = tasks, similarity, tasks.inputs.shape[-1]
        self.train_inputs, self.train_targets = (train_X,), train_Y.squeeze(-1)
        self.units = units_of(tasks)
        self._known = features(tasks, train_X) if known is None else known
        self._solved = self._solve()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "TransferGP":
        """Move or convert all tensors: ``float``, ``double`` and ``to`` call this."""
        super()._apply(fn, recurse)
        self.train_inputs, self.train_targets = (fn(self.train_inputs[0]),), fn(self.train_targets)
        self.similarity = Similarity(*map(fn, self.similarity))
        self._known, self._solved = Features(*map(fn, self._known)), Scaled(*map(fn, self._solved))
        return self

    def get_extra_state(self) -> dict[str, Any]:
        """Return the state of the target, without the tasks, as tensors and plain values."""
        tuples = {"similarity": self.similarity, "known": self._known, "solved": self._solved}
        state = {name: [t.detach().clone() for t in tensors] for name, tensors in tuples.items()}
        data = [self.train_inputs[0].clone(), self.train_targets.clone()]
        return {**state, "data": data, "units": list(self.units)}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Load a state of ``get_extra_state``, in the dtype and on the device of this model."""
        like = self.train_targets
        moved = {name: [t.to(like) for t in state[name]] for name in state if name != "units"}
        inputs, self.train_targets = moved["data"]
        self.train_inputs = (inputs,)
        self.similarity = Similarity(*moved["similarity"])
        self._known, self._solved = Features(*moved["known"]), Scaled(*moved["solved"])
        self.units = Units(*state["units"])

    @property
    def log_evidence(self) -> float:
        """Log evidence of the target's values, marginal over offset and scale."""
        return float(self._solved.log_evidence) if len(self.train_targets) else 0.0

    @property
    def scale(self) -> Tensor:
        """The most probable scale of the target, shape ``()``."""
        return self._solved.scale

    @property
    def weights(self) -> Tensor:
        """Expected weight of each task in the target, of any sign, shape ``(tasks,)``."""
        count = self.tasks.count
        even = self.tasks.theta.new_full((count,), float(self.similarity.level) / count)
        alpha = torch.cholesky_solve(self._solved.residual.unsqueeze(-1), self._solved.root)
        means = self._known.means
        common = COMMON * (means.mean(-1) @ alpha) / count
        single = self.similarity.spread / count * (means.mT @ alpha).squeeze(-1)
        weights: Tensor = even + common + single
        return weights

    @property
    def left_out(self) -> Tensor:
        """Standardized leave-one-out residuals of the values, shape ``(n,)``."""
        inverse = torch.cholesky_inverse(self._solved.root)
        z: Tensor = (inverse @ self._solved.residual) / inverse.diagonal().sqrt()
        return z

    def _solve(self) -> Scaled:
        prior = self._prior(self.train_inputs[0], self._known)
        noise = torch.eye(len(prior.mean)).to(prior.cov) * self.similarity.noise
        return most_probable(self.train_targets, prior.mean, prior.cov + noise, self.units)

    def _prior(self, X: Tensor, tasks: Features) -> _Prior:
        mean = prior_mean(self.similarity, tasks)
        cov = prior_covariance(self.similarity, X, tasks, X, tasks, kernel=self.tasks.kernel)
        return _Prior(mean, cov)

    def moments(self, X: Tensor, known: Features | None = None) -> tuple[Tensor, Tensor]:
        """Return posterior means and standard deviations of ``m x d`` points, each of shape ``(m,)``.

        Args:
            X: The points.
            known: The result of ``features`` at the points, if already computed.
        """
        known = features(self.tasks, X) if known is None else known
        common = COMMON * known.means.mean(-1).square()
        prior = common + self.similarity.own + _unknown(self.similarity, known).square()
        prior = prior + self.similarity.spread / self.tasks.count * known.means.square().sum(-1)
        update = self._update_at(X, known)
        variance = prior + update.offset_variance - update.white.square().sum(-2)
        mean = prior_mean(self.similarity, known) + update.shift
        std = variance.clamp_min(LEAST_VARIANCE).sqrt()
        return update.offset + update.scale * mean, update.scale * std

    def moments_and_vjp(self, columns: int) -> Callable[[Tensor], MomentsAndVJP]:
        """Return what does as ``moments`` at ``m x d`` points, with slopes in closed form and no graph.

        Args:
            columns: About how many points will be asked about at once.
        """
        tasks = self.tasks.moments_and_vjp(columns)
        target = transfer_slopes.moments_and_vjp(self._conditioned())
        factor = self._solved.scale

        def ask(X: Tensor) -> MomentsAndVJP:
            means, stds, task_vjp = tasks(X)
            at = target(X, means.mT, stds.square().sum(0))

            def vjp(by_mean: Tensor, by_std: Tensor) -> Tensor:
                slopes = at.vjp(factor * by_mean, factor * by_std)
                by_stds = 2 * slopes.by_variance * stds
                return slopes.by_points + task_vjp(slopes.by_means.mT, by_stds)

            return MomentsAndVJP(self.units.offset + factor * at.mean, factor * at.std, vjp)

        return ask

    def _conditioned(self) -> Conditioned:
        similarity, solved = self.similarity, self._solved
        return Conditioned(
            self.tasks.kernel,
            self.train_inputs[0],
            self._known.means,
            _unknown(similarity, self._known),
            solved.root,
            solved.residual,
            similarity.level,
            similarity.spread,
            similarity.own,
            similarity.lengthscale,
            COMMON,
            solved.offset_variance,
        )

    def _update_at(self, X: Tensor, tasks: Features) -> _Update:
        offset = X.new_tensor(self.units.offset)
        solved, inputs = self._solved, self.train_inputs[0]
        cross = solved.offset_variance + prior_covariance(
            self.similarity, X, tasks, inputs, self._known, kernel=self.tasks.kernel
        )
        white = torch.linalg.solve_triangular(solved.root, cross.mT, upper=False)
        residual = solved.residual.unsqueeze(-1)
        residual = torch.linalg.solve_triangular(solved.root, residual, upper=False)
        shift = (white.mT @ residual).squeeze(-1)
        return _Update(white, shift, offset, solved.offset_variance, solved.scale)

    def joint(self, X: Tensor) -> JointMoments:
        """Return the moments at ``batch_shape x q x d`` points, in units of the values."""
        tasks = features(self.tasks, X)
        prior, update = self._prior(X, tasks), self._update_at(X, tasks)
        cov = prior.cov + update.offset_variance - update.white.mT @ update.white
        mean = update.offset + update.scale * (prior.mean + update.shift)
        factor = update.scale.square()
        return JointMoments(mean, factor * cov, float(factor * self.similarity.noise))

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> "TransferGP":
        """Return the model after further observations, ``n x d`` and ``n x 1``."""
        check_further(X, Y, self.dim, kwargs)
        inputs = torch.cat([self.train_inputs[0], X])
        values = torch.cat([self.train_targets.unsqueeze(-1), Y])
        return TransferGP(self.tasks, self.similarity, inputs, values)
