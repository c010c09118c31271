"""An ensemble of the GPs of earlier tasks and the target, weighted by how well they rank observations."""

from typing import Any

import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms.outcome import Standardize
from torch import Tensor

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, check, check_count
from botorch_costly.models.joint_gaussian import JointGaussian, JointMoments, check_observations
from botorch_costly.models.promises import check_options
from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.numerics import ranking
from botorch_costly.randomness import check_seed, generator_of

_FEWEST = 3  # smallest number of observations of a target for ranking


class RankWeightedGP(JointGaussian):
    r"""Ranking-weighted Gaussian process ensemble (RGPE).

    With weights ``w`` of the GPs of the tasks and of the target, all in standardized units,

        mean = sum_i w_i mu_i,    covariance = sum_i w_i^2 Sigma_i.

    A weight is the share of joint posterior draws at the target's inputs in which that GP has the
    smallest ranking loss; see ``numerics.ranking``. With fewer than three observations all GPs have the
    same weight; without observations there is no GP of the target.

    References:
        M. Feurer, B. Letham, E. Bakshy. Scalable meta-learning for Bayesian optimization using
        ranking-weighted Gaussian process ensembles. AutoML workshop at ICML 2018.

    Args:
        tasks: The earlier tasks, fitted.
        target: The GP of the target, fitted, with standardized values (``Standardize`` or by hand),
            over the inputs of the tasks; ``None`` before the first observation.
        draws: Number of posterior draws of each GP.
        seed: Seed of the draws.

    Attributes:
        weights: Weights of the tasks and, last, of the target, shape ``(tasks + 1,)``.

    Raises:
        InvalidShapeError: If the target is batched, has several outcomes, or its columns or dtype differ
            from those of the tasks.
        InvalidArgumentError: If the target transforms its inputs, or its values other than by
            ``Standardize``, or ``draws < 1``.

    Example:
        >>> X = torch.linspace(0, 1, 9, dtype=torch.float64).unsqueeze(-1)
        >>> Y = (6 * X).sin()
        >>> tasks = TaskEnsemble([X, X], [Y.squeeze(-1), -Y.squeeze(-1)]).fit()
        >>> model = RankWeightedGP(tasks, SingleTaskGP(X[:5], Y[:5]))
        >>> float(model.weights[1])  # the second task ranks the wrong way round
        0.0
    """

    weights: Tensor

    def __init__(
        self, tasks: TaskEnsemble, target: SingleTaskGP | None, *, draws: int = 256, seed: int = 0
    ) -> None:
        super().__init__()
        self.draws, self.seed = check_count("draws", draws, 1), check_seed(seed)
        if target is not None:
            _check_target(tasks, target)
        self.tasks, self.target, self.dim = tasks, target, tasks.inputs.shape[-1]
        self.register_buffer("weights", _weights(tasks, target, self.draws, self.seed))
        self.register_load_state_dict_post_hook(_choose_again)
        self._choose()

    def _choose(self) -> None:
        """Select the tasks of nonzero weight; only the weights are in the state."""
        used = self.weights[:-1].nonzero().squeeze(-1)
        self._chosen = (used, self.tasks.subset(used) if len(used) else None)
        if self.target is not None:
            self.target.train().eval()  # drops GPyTorch's stale caches

    def _apply(self, *args: Any, **kwargs: Any) -> "RankWeightedGP":
        super()._apply(*args, **kwargs)
        self._choose()
        return self

    def joint(self, X: Tensor) -> JointMoments:
        """Return the moments in units of the target's values; in standardized units without a target."""
        offset, scale = _units(self.target, X)
        mean, cov = X.new_zeros(X.shape[:-1]), X.new_zeros(*X.shape[:-1], X.shape[-2])
        noise = 0.0
        used, tasks = self._chosen
        if tasks is not None:
            weights = self.weights[used]
            means, covs = tasks.joint(X)
            mean = mean + torch.tensordot(weights, offset + scale * means, 1)
            cov = cov + scale.square() * torch.tensordot(weights.square(), covs, 1)
            noise = float(tasks.noise.mean())
        if self.target is not None:
            posterior = self.target.posterior(X)
            mean = mean + self.weights[-1] * posterior.mean.squeeze(-1)
            cov = cov + self.weights[-1].square() * posterior.distribution.covariance_matrix
            noise = float(self.target.likelihood.noise.detach().mean() * scale.square())
        return JointMoments(mean, cov, noise)

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> "RankWeightedGP":
        """Return the model conditioned on further observations, with weights recomputed from all.

        The target's GP keeps its hyperparameters and units, the tasks are unchanged, and the draws have
        the same seed.

        Args:
            X: Inputs of the target, ``n x d``.
            Y: Their values, ``n x 1``, in units of the target's values.
            **kwargs: ``noise``, if the target's noise is known.

        Raises:
            InvalidArgumentError: If the target has no GP yet, a number is not finite, or an option would
                be ignored.
            InvalidShapeError: If shapes do not fit.
        """
        if self.target is None:
            raise InvalidArgumentError("target", "a process of the target, to be conditioned", None)
        check_observations(X, Y, self.dim)
        check_options(kwargs, self.target.likelihood)
        with torch.no_grad():
            self.target.posterior(X)  # BoTorch can condition only a model with prediction caches
            target = self.target.condition_on_observations(X, Y, **kwargs)
        return RankWeightedGP(self.tasks, target, draws=self.draws, seed=self.seed)


def _choose_again(model: RankWeightedGP, _: object) -> None:
    """Select the tasks again after a state was loaded."""
    model._choose()


def _check_target(tasks: TaskEnsemble, target: SingleTaskGP) -> None:
    single = target.num_outputs == 1 and not target.batch_shape
    shape = tuple(target.batch_shape), target.num_outputs
    check(single, "target", "one outcome without a batch", shape, InvalidShapeError)
    plain = not hasattr(target, "input_transform")
    expected = "inputs as the tasks have them"
    check(plain, "target", expected, "an input transform", InvalidArgumentError)
    transform = getattr(target, "outcome_transform", None)
    is_valid = transform is None or isinstance(transform, Standardize)
    check(is_valid, "target", "values standardized by Standardize or by hand", transform)
    X = target.train_inputs[0]
    fits = X.shape[-1] == tasks.inputs.shape[-1] and X.dtype == tasks.inputs.dtype
    expected = f"{tasks.inputs.shape[-1]} columns of {tasks.inputs.dtype}"
    check(fits, "target", expected, (X.shape[-1], X.dtype), InvalidShapeError)


def _units(target: SingleTaskGP | None, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return offset and scale of the target's values."""
    transform = getattr(target, "outcome_transform", None)
    if transform is None:
        return like.new_zeros(()), like.new_ones(())
    return transform.means.reshape(()).to(like), transform.stdvs.reshape(()).to(like)


@torch.no_grad()
def _weights(tasks: TaskEnsemble, target: SingleTaskGP | None, draws: int, seed: int) -> Tensor:
    equal = tasks.theta.new_ones(tasks.count + 1)
    if target is None:
        equal[-1] = 0.0
    if target is None or len(target.train_targets) < _FEWEST:
        return equal / equal.sum()
    X, values = target.train_inputs[0], target.train_targets
    n = len(values)
    prior = target.forward(X)
    noisy = target.likelihood(prior, [X]).covariance_matrix
    left = ranking.leave_one_out(ranking.Prior(prior.mean, prior.covariance_matrix, noisy), values)
    generator = generator_of(seed, X.device)
    options = {"generator": generator, "dtype": X.dtype, "device": X.device}
    left_out = ranking.draw_left_out(left, torch.randn(draws, n, n + 1, **options))
    samples = ranking.draw(*tasks.joint(X), torch.randn(tasks.count, draws, n, **options))
    losses = ranking.ranking_loss(samples, values)
    return ranking.ensemble_weights(losses, ranking.left_out_loss(left_out, values)).to(equal)
