"""A GP over configurations and training lengths, whose targets are learning curves made numbers."""

import copy
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
LEAST_LENGTHSCALE = 2.5e-2  # as that of BoTorch


def default_curve_kernel(dim: int) -> Kernel:
    """Return the default kernel over ``dim`` columns: a scaled product of squared exponentials.

    Its lengthscales carry BoTorch's dimension-scaled log-normal prior, its variance a Gamma(2, 0.15) one.
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
    r"""A GP over ``[configuration, t]`` of the scores of learning curves, ``t`` the share of the longest.

    Midpoint and growth of the compression are hyperparameters beside those of the kernel: the targets are
    computed, and standardized, inside the loss. What is predicted is the *standardized* score: its unit
    changes with the compression. ``fit_gpytorch_mll`` fits all of it; ``models.curve_fitting.fit_curves``
    is faster, and begins from several values.

    References:
        V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020,
        sections 3.1 and 3.2.

    Args:
        configs: Configurations in the unit cube, ``c x d``.
        curves: Rewards, larger is better, ``c x longest``; NaN where none is known, as after the end.
        marks: Which curve, and after how many iterations, each row of the data is about, integers of
            shape ``n x 2``; each curve at its last reward if omitted.
        compression: Makes scores of curves; a new ``CurveCompression`` if omitted.
        covar_module: A kernel over ``d + 1`` columns; ``default_curve_kernel`` if omitted.
        likelihood: As for ``SingleTaskGP``.

    Raises:
        InvalidShapeError: If shapes do not fit each other.
        InvalidArgumentError: If a number is infinite, or a mark is of no curve or before its first
            reward.

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
        marks = _last_marks(curves) if marks is None else _checked(marks, curves)
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
        """Return the score of each row of the data, shape ``n``: differentiable by the compression."""
        prefixes = self.compression(self.curves)
        return prefixes[self.marks[:, 0], self.marks[:, 1] - 1]

    def targets(self) -> Tensor:
        """Return the standardized scores, shape ``n``."""
        return standardized(self.scores())

    def compute_custom_loss(self, mll: MarginalLogLikelihood, **kwargs: Any) -> Tensor:
        """Return minus the marginal log likelihood of the targets as they are now: BoTorch's hook."""
        return -mll(self(*self.train_inputs), self.targets(), **kwargs)

    def train(self, mode: bool = True) -> "CurveGP":
        """Change the mode; a model that is asked explains the targets of its present compression.

        A model that is conditioned on further scores has targets of its own: they stay.
        """
        if not mode and self._has_own_targets():
            with torch.no_grad():
                targets = self.targets()
            if not torch.equal(targets, self.train_targets):
                self.set_train_data(targets=targets, strict=False)
        return super().train(mode)

    def _has_own_targets(self) -> bool:
        """Return whether the data are the marks of the curves, and no more."""
        marks, targets = getattr(self, "marks", None), getattr(self, "train_targets", None)
        if not isinstance(marks, Tensor) or not isinstance(targets, Tensor):
            return False
        return marks.shape[:1] == targets.shape

    def augmented(self, most: int = 15, largest_log_condition: float = 20.0) -> "CurveGP":
        """Return the model with further points of each curve among its data.

        Of each curve in turn, the newest first, points are added where the predictive standard deviation
        is largest, given all added before, while the logarithm of the condition number of the covariance
        stays within a bound. (That of the covariance itself: with the noise added no bound of 20 could
        be reached, see ``numerics.augmentation``.)

        Args:
            most: Points added of each curve, at most.
            largest_log_condition: The bound, natural logarithm.
        """
        marks = self.marks
        for curve in reversed(range(len(self.curves))):
            ours = marks[marks[:, 0] == curve]
            until = int(ours[:, 1].max()) if len(ours) else 0
            known = (~self.curves[curve, :until].isnan()).nonzero().squeeze(-1) + 1
            new = known[~torch.isin(known, ours[:, 1])]
            candidates = torch.stack([torch.full_like(new, curve), new], -1)
            with torch.no_grad():
                together = _inputs(
                    self.configs, torch.cat([marks, candidates]), self.curves.shape[1]
                )
                covariance = self.covar_module(together).to_dense().double()
            noise = self.likelihood.noise.detach().item()
            added = most_uncertain(covariance, len(marks), noise, most, largest_log_condition)
            marks = torch.cat([marks, candidates[added]])
        parts = copy.deepcopy((self.compression, self.covar_module, self.likelihood))
        return CurveGP(self.configs, self.curves, marks, *parts)


def standardized(scores: Tensor) -> Tensor:
    """Return scores (``batch_shape x n``) less their mean, over their spread; 0 where all are equal."""
    center = scores.mean(-1, keepdim=True)
    variance = (scores - center).square().mean(-1, keepdim=True)
    negligible = torch.finfo(scores.dtype).eps * center.abs().clamp_min(1e-30)
    flat = variance <= negligible.square() * scores.shape[-1]
    return (scores - center) / torch.where(flat, torch.inf, variance).sqrt()


def _inputs(configs: Tensor, marks: Tensor, longest: int) -> Tensor:
    """Return rows ``[configuration, share of the longest training]``."""
    share = marks[:, 1:].to(configs) / longest
    return torch.cat([configs[marks[:, 0]], share], -1)


def _last_marks(curves: Tensor) -> Tensor:
    known = ~curves.isnan()
    each = known.any(-1).nonzero().squeeze(-1)
    check(len(each) > 0, "curves", "at least one reward", "none")
    last = curves.shape[1] - known[each].flip(-1).int().argmax(-1)
    return torch.stack([each, last], -1)


def _checked(marks: Tensor, curves: Tensor) -> Tensor:
    shape = tuple(marks.shape)
    fits = marks.dim() == 2 and shape[-1] == 2 and shape[0] > 0 and not marks.is_floating_point()
    check(fits, "marks", "integers of shape (n, 2), n >= 1", shape, InvalidShapeError)
    number, longest = curves.shape
    curve, at = marks.unbind(-1)
    inside = bool(((curve >= 0) & (curve < number) & (at >= 1) & (at <= longest)).all())
    check(inside, "marks", f"curves 0 .. {number - 1}, iterations 1 .. {longest}", marks)
    first = (~curves.isnan()).int().argmax(-1)[curve] + 1
    known = (~curves.isnan()).any(-1)[curve]
    after = bool((known & (at >= first)).all())
    check(after, "marks", "iterations from the first reward of their curves on", marks)
    return marks
