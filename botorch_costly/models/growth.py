"""A Gaussian process of learning curves that grow: its fit, and its prediction for each hypothesis."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.models.hyperparameter_search import NormalPrior, most_probable, posterior
from botorch_costly.numerics.growth import (
    POWERS,
    Marks,
    Solved,
    covariance,
    log_evidence,
    pairs_of,
    prior_mean,
    prior_variance,
    scales_of,
    solve,
)
from botorch_costly.numerics.spread_rows import evenly_spread

# Medians and log standard deviations of the log-normal priors.
_LENGTHSCALE = (0.5, 1.0)
_GROWTH = (1.0, 0.25)  # of the same size as the mean growth, for targets have a scale of 1
_OFFSET = (0.2, 1.5)
_RATE = (0.3, 1.0)
_NOISE = (0.05, 1.5)
_BOUNDS = (-6.0, 3.0)  # of all logarithms
_SLOPE = 1e-2  # gradient tolerance of a search, nats per log unit
_GAIN = 1e-5  # relative decrease of the loss below which a search ends
_STEPS = 25  # evaluations of a search after the first
_LEAST_VARIANCE = 1e-8
_MOST_FITTED = 150  # rows


def prior_of_growth(dim: int, like: Tensor) -> NormalPrior:
    """Return the prior of the parameters for ``dim`` columns, which are logarithms."""
    scales = [*[_LENGTHSCALE] * dim, _GROWTH, _OFFSET, _RATE, _NOISE]
    medians, spreads = zip(*scales, strict=True)
    means = [math.log(median) for median in medians]
    return NormalPrior(like.new_tensor(means), like.new_tensor(spreads))


def fit_growth(marks: Marks, y: Tensor, theta: Tensor) -> Tensor:
    """Return the most probable parameters (MAP), searched from the current ones.

    Args:
        marks: Configurations and shares of ``n`` values.
        y: The values, about 1 in size, shape ``(n,)``.
        theta: Current parameters, as in ``numerics.growth``, shape ``(d + 4,)``.

    Returns:
        Parameters, never less probable than the current ones, shape ``(d + 4,)``.
    """
    pairs, dim, rest = pairs_of(marks, marks), marks.x.shape[-1], y - prior_mean(marks)
    density = posterior(lambda t: log_evidence(pairs, rest, t), prior_of_growth(dim, theta))
    bounds = theta.new_tensor(_BOUNDS)[:, None].expand(2, len(theta))
    end = most_probable(
        density,
        theta.unsqueeze(0),
        bounds,
        max_iter=_STEPS,
        gradient_tolerance=_SLOPE,
        value_tolerance=_GAIN,
    )
    return torch.where(end.log_density.isfinite(), end.theta, theta)


def thinned(marks: Marks, y: Tensor, most: int = _MOST_FITTED) -> tuple[Marks, Tensor]:
    """Return at most some number of rows, evenly spread over their order."""
    if len(y) <= most:
        return marks, y
    kept = evenly_spread(len(y), most).to(y.device)
    return Marks(*(column[kept] for column in marks)), y[kept]


def early_correlation(theta: Tensor, log_shares: Tensor, share: float) -> float:
    """Return the correlation, over configurations, of a noisy value after a share with the end.

    Args:
        theta: Parameters, shape ``(d + 4,)``.
        log_shares: Log probabilities of the hypotheses, shape ``(j,)``.
        share: Share of a training, in (0, 1].
    """
    scales, log_share = scales_of(theta), math.log(share)
    grown = (theta.new_tensor(POWERS) * log_share).exp()  # s^q
    together = grown * scales.growth + scales.offset * (scales.rate * log_share).exp()
    early = grown.square() * scales.growth + scales.offset + scales.noise
    each = together / (early * (scales.growth + scales.offset)).sqrt()
    of_powers = log_shares.reshape(len(POWERS), -1).exp().sum(-1)
    return float(of_powers @ each)


class GrowthModel(NamedTuple):
    """The posterior of each hypothesis, and the posterior probabilities of the hypotheses."""

    marks: Marks
    targets: Tensor  # values less their prior means, shape: (j, n)
    theta: Tensor  # parameters, shape: (d + 4,)
    solved: Solved
    log_shares: Tensor  # log p(j | y), shape: (j,)

    @classmethod
    def conditioned(cls, marks: Marks, y: Tensor, theta: Tensor) -> "GrowthModel":
        """Return the posterior given values, shape ``(n,)``."""
        rest = y - prior_mean(marks)
        solved = solve(pairs_of(marks, marks), rest, scales_of(theta))
        return cls(marks, rest, theta, solved, solved.log_evidence.log_softmax(-1))

    def mean_and_variance(self, marks: Marks) -> tuple[Tensor, Tensor]:
        """Return means and variances of values without their noise, each ``(j, m)``."""
        scales = scales_of(self.theta)
        cross = covariance(pairs_of(marks, self.marks), scales)
        rest = (cross @ self.solved.weights.unsqueeze(-1)).squeeze(-1)
        known = torch.linalg.solve_triangular(self.solved.root, cross.mT, upper=False)
        variance = prior_variance(marks, scales) - known.square().sum(-2)
        return prior_mean(marks) + rest, variance.clamp_min(_LEAST_VARIANCE)

    def chance(self, marks: Marks, value: float) -> Tensor:  # shape: (m,)
        """Return the probabilities that noisy values exceed a value."""
        mean, variance = self.mean_and_variance(marks)
        noise = scales_of(self.theta).noise
        each = torch.special.ndtr((mean - value) / (variance + noise).sqrt())
        return self.log_shares.exp() @ each

    def with_means(self, marks: Marks) -> tuple["GrowthModel", Tensor]:
        """Return the posterior if further values were at their means, and the means, ``(j, m)``.

        The probabilities of the hypotheses are kept.
        """
        mean, _ = self.mean_and_variance(marks)
        both = Marks(*(torch.cat(pair) for pair in zip(self.marks, marks, strict=True)))
        scales = scales_of(self.theta)
        targets = torch.cat([self.targets, mean - prior_mean(marks)], -1)
        solved = solve(pairs_of(both, both), targets, scales)
        return self._replace(marks=both, targets=targets, solved=solved), mean
