"""A GP over configurations and training lengths, whose targets are scores of learning curves."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood, Likelihood
from gpytorch.means import ZeroMean
from gpytorch.mlls import MarginalLogLikelihood
from gpytorch.priors import GammaPrior
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.models.asked_anew import AskedAnewGP
from botorch_costly.numerics.augmentation import most_uncertain
from botorch_costly.transforms import CurveCompression

LEAST_NOISE = 1e-4
LEAST_LENGTHSCALE = 2.5e-2  # BoTorch's bound


def default_curve_kernel(dim: int) -> Kernel:
    """Return the default kernel over ``dim`` columns: a scaled RBF kernel with ARD.

    Lengthscales have BoTorch's dimension-scaled log-normal prior, the variance a Gamma(2, 0.15) prior.
    """
    template = get_covar_module_with_dim_scaled_prior(ard_num_dims=dim)
    base = RBFKernel(
        ard_num_dims=dim,
        lengthscale_prior=template.lengthscale_prior,
        lengthscale_constraint=GreaterThan(LEAST_LENGTHSCALE),
    )
    base.lengthscale = template.lengthscale.detach()
    return ScaleKernel(base, outputscale_prior=GammaPrior(2.0, 0.15))


class CurveGP(AskedAnewGP):
    r"""A GP of the scores of learning curves over ``[configuration, t]``, ``t`` the share of the longest.

    Midpoint and growth of the compression are hyperparameters like those of the kernel: the loss computes
    and standardizes the targets. Predictions are *standardized* scores, whose unit changes with the
    compression. ``fit_gpytorch_mll`` fits all hyperparameters; ``models.curve_fitting.fit_curves`` is
    faster, and starts from several values.

    References:
        V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020,
        sections 3.1 and 3.2.

    Args:
        configs: Configurations in the unit cube, ``c x d``.
        curves: Rewards, larger is better, ``c x longest``; NaN where missing, as after the end.
        marks: Curve and number of iterations of each row of the data, integers of shape ``n x 2``;
            each curve at its last reward if omitted.
        compression: Turns curves into scores; a new ``CurveCompression`` if omitted.
        covar_module: A kernel over ``d + 1`` columns; ``default_curve_kernel`` if omitted.
        likelihood: The noise; Gaussian with a variance of at least 1e-4 if omitted.

    Raises:
        InvalidShapeError: If shapes do not fit each other.
        InvalidArgumentError: If a number is infinite, or a mark names no curve or precedes the first
            reward of its curve.

    Example:
        >>> configs = torch.rand(3, 2, dtype=torch.float64)
        >>> model = CurveGP(configs, configs[:, :1] * torch.arange(1, 6))
        >>> tuple(model.train_inputs[0].shape), tuple(model.posterior(model.train_inputs[0]).mean.shape)
        ((3, 3), (3, 1))
    """

    def __init__(
        self,
        configs: Tensor,
        curves: Tensor,
        marks: Tensor | None = None,
        compression: CurveCompression | None = None,
        covar_module: Kernel | None = None,
        likelihood: Likelihood | None = None,
    ) -> None:
        shape = tuple(curves.shape)
        rows = curves.dim() == 2 and min(shape) > 0
        check(rows, "curves", "shape (c, longest)", shape, InvalidShapeError)
        fits = configs.dim() == 2 and len(configs) == shape[0] and configs.shape[1] > 0
        check(fits, "configs", f"shape ({shape[0]}, d)", tuple(configs.shape), InvalidShapeError)
        check(bool(configs.isfinite().all()), "configs", "finite numbers", configs)
        check(not bool(curves.isinf().any()), "curves", "finite numbers or NaN", curves)
        marks = _last_marks(curves) if marks is None else _checked_marks(marks, curves)
        compression = compression or CurveCompression(shape[1]).to(curves)
        expected = f"a compression of {shape[1]} iterations"
        check(compression.longest == shape[1], "compression", expected, compression.longest)
        inputs = _inputs(configs, marks, shape[1])
        noise = likelihood or GaussianLikelihood(noise_constraint=GreaterThan(LEAST_NOISE))
        super().__init__(
            inputs,
            inputs.new_zeros(len(inputs), 1),
            likelihood=noise,
            covar_module=covar_module or default_curve_kernel(inputs.shape[-1]),
            mean_module=ZeroMean(),
            outcome_transform=None,
        )
        self.compression = compression
        self.register_buffer("configs", configs)
        self.register_buffer("curves", curves)
        self.register_buffer("marks", marks)
        self.to(inputs)
        self.eval()

    def scores(self) -> Tensor:
        """Return the score of each row, shape ``n``, differentiable in the compression's parameters."""
        prefixes = self.compression(self.curves)
        return prefixes[self.marks[:, 0], self.marks[:, 1] - 1]

    def targets(self) -> Tensor:
        """Return the standardized scores, shape ``n``."""
        return z_scores(self.scores())

    def compute_custom_loss(self, mll: MarginalLogLikelihood, **kwargs: Any) -> Tensor:
        """Return minus the marginal log likelihood of the present targets: a hook of BoTorch."""
        return -mll(self(*self.train_inputs), self.targets(), **kwargs)

    def train(self, mode: bool = True) -> "CurveGP":
        """Change the mode; ``eval`` updates the targets to the present compression.

        A model that was conditioned on further scores keeps its targets.
        """
        if not mode and self._explains_its_curves():
            with torch.no_grad():
                targets = self.targets()
            if not torch.equal(targets, self.train_targets):
                self.set_train_data(targets=targets, strict=False)
        return super().train(mode)

    def _explains_its_curves(self) -> bool:
        """Return whether the training data are exactly the marks of the curves."""
        marks, targets = getattr(self, "marks", None), getattr(self, "train_targets", None)
        if not isinstance(marks, Tensor) or not isinstance(targets, Tensor):
            return False
        return marks.shape[:1] == targets.shape

    def augmented(
        self,
        curves: Sequence[int] | None = None,
        most: int = 15,
        largest_log_condition: float = 20.0,
    ) -> "CurveGP":
        """Return the model with further points of some curves as data.

        For each of the curves in turn, it adds the points of largest predictive standard deviation, given
        the data and all points added before, while the log condition number of the covariance stays
        within a bound. The covariance has a small noise for that, which is fixed; see
        ``numerics.augmentation``.

        Args:
            curves: Numbers of the curves, from 0; all, from the first, if omitted. In a search, those
                that are new: points of earlier ones are among its ``marks``.
            most: Largest number of points added per curve.
            largest_log_condition: The bound, natural logarithm.
        """
        marks = self.marks
        for curve in range(len(self.curves)) if curves is None else curves:
            candidates = self._further(curve, marks)
            with torch.no_grad():
                rows = _inputs(self.configs, torch.cat([marks, candidates]), self.curves.shape[1])
                covariance = self.covar_module(rows).to_dense().double()
            noise = self.likelihood.noise.detach().double()
            added = most_uncertain(covariance, len(marks), noise, most, largest_log_condition)
            marks = torch.cat([marks, candidates[added]])
        modules = copy.deepcopy((self.compression, self.covar_module, self.likelihood))
        return CurveGP(self.configs, self.curves, marks, *modules)

    def _further(self, curve: int, marks: Tensor) -> Tensor:
        """Return the points of a curve, up to its last mark, that are no data yet, ``m x 2``."""
        used = marks[marks[:, 0] == curve][:, 1]
        until = int(used.max()) if len(used) else 0
        rewarded = (~self.curves[curve, :until].isnan()).nonzero().squeeze(-1) + 1
        new = rewarded[~torch.isin(rewarded, used)]
        return torch.stack([torch.full_like(new, curve), new], -1)


def z_scores(scores: Tensor) -> Tensor:
    """Return ``(scores - mean) / std`` of scores ``batch_shape x n``; 0 where all are equal."""
    center = scores.mean(-1, keepdim=True)
    variance = (scores - center).square().mean(-1, keepdim=True)
    negligible = torch.finfo(scores.dtype).eps * center.abs().clamp_min(1e-30)
    flat = variance <= negligible.square() * scores.shape[-1]
    return (scores - center) / torch.where(flat, torch.inf, variance).sqrt()


def _inputs(configs: Tensor, marks: Tensor, longest: int) -> Tensor:
    """Return rows ``[configuration, share of the longest curve]``."""
    share = marks[:, 1:].to(configs) / longest
    return torch.cat([configs[marks[:, 0]], share], -1)


def _last_marks(curves: Tensor) -> Tensor:
    has_reward = ~curves.isnan()
    nonempty = has_reward.any(-1).nonzero().squeeze(-1)
    check(len(nonempty) > 0, "curves", "at least one reward", "none")
    last = curves.shape[1] - has_reward[nonempty].flip(-1).int().argmax(-1)
    return torch.stack([nonempty, last], -1)


def _checked_marks(marks: Tensor, curves: Tensor) -> Tensor:
    shape = tuple(marks.shape)
    fits = marks.dim() == 2 and shape[-1] == 2 and shape[0] > 0 and not marks.is_floating_point()
    check(fits, "marks", "integers of shape (n, 2), n >= 1", shape, InvalidShapeError)
    number, longest = curves.shape
    curve, iteration = marks.unbind(-1)
    is_valid = (curve >= 0) & (curve < number) & (iteration >= 1) & (iteration <= longest)
    expected = f"curves 0 .. {number - 1}, iterations 1 .. {longest}"
    check(bool(is_valid.all()), "marks", expected, marks)
    has_reward = ~curves.isnan()
    first = has_reward.int().argmax(-1)[curve] + 1
    is_valid = has_reward.any(-1)[curve] & (iteration >= first)
    check(
        bool(is_valid.all()), "marks", "iterations from the first reward of their curves on", marks
    )
    return marks
