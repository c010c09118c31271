r"""A Gaussian process over arms and fractions of the data, for arms that say nothing about one another.

``k((i, u), (j, u')) = 1 + level(u, u') + [i = j] (phi(u)' Sigma phi(u') + deviation(u, u'))``

with ``phi(u) = (1, 1 - u)``, ``u`` the fraction on a logarithmic scale in [0, 1], and squared
exponentials for what all arms gain (``level``) and for how one departs from its line (``deviation``).
Noise is ``noise + alpha (1 - u)^beta``. Beside ``SubsetGP``: no kernel over the columns of the
encoding, a line in place of ``(1 - u)^2``, and the deviation.

Hyperparameters are drawn from a prior once and weighed by the evidence.
"""

from typing import NamedTuple

import torch
from torch import Tensor

_JITTER = 1e-8
_LEAST = 1e-9  # of a variance
_PRIOR = {
    # Mean and standard deviation of the logarithm: fits to the data sets that choose.
    "end": (-0.06, 0.4),
    "change": (-1.07, 0.6),
    "deviation": (-0.5, 0.5),
    "deviation_scale": (-1.0, 0.4),
    "level": (0.2, 0.4),
    "level_scale": (-0.3, 0.5),
    "noise": (-5.5, 1.0),
    "alpha": (-3.4, 1.0),
    "beta": (1.0, 0.7),
}
_LINK = (-0.55, 0.5)  # not a logarithm


class Hyperparameters(NamedTuple):
    """One of each for each draw, all of shape ``(k, 1)``."""

    end: Tensor  # standard deviation of arms on all of the data
    change: Tensor  # of the slope by itself
    deviation: Tensor  # of the departure from the line
    deviation_scale: Tensor
    level: Tensor  # of what all arms gain
    level_scale: Tensor
    noise: Tensor  # variance on all of the data
    alpha: Tensor  # variance that is added on the least part
    beta: Tensor
    link: Tensor  # by how much the slope goes with the end

    def at(self, places: Tensor) -> "Hyperparameters":
        """Return some of the draws."""
        return Hyperparameters(*(part[places] for part in self))


class Points(NamedTuple):
    """Evaluations: the number of the arm, and the fraction on a logarithmic scale, ``(n,)`` each."""

    arm: Tensor
    fraction: Tensor


class Belief(NamedTuple):
    """What is believed after some evaluations, by each of the draws that are left."""

    weight: Tensor  # shape: (k,)
    mean: Tensor  # of the targets, shape: (k, t)
    covariance: Tensor  # of the targets, shape: (k, t, t)
    across: Tensor  # covariance of candidates with the targets, shape: (k, c, t)
    variance: Tensor  # of observations of the candidates, shape: (k, c)


def drawn(count: int, generator: torch.Generator) -> Hyperparameters:
    """Return draws of the prior."""

    def normal(mean: float, sd: float) -> Tensor:
        return mean + sd * torch.randn(count, 1, generator=generator, dtype=torch.float64)

    logs = {name: normal(*moments).exp() for name, moments in _PRIOR.items()}
    return Hyperparameters(**logs, link=normal(*_LINK))


def believed(
    draws: Hyperparameters,
    kept: int,
    known: Points,
    values: Tensor,  # in units of the prior, shape: (n,)
    targets: Points,
    candidates: Points,
) -> Belief:
    """Return what the most probable draws believe of the targets and of candidates."""
    root, scaled = _factored(draws, known, values)
    evidence = -0.5 * scaled.square().sum((-2, -1)) - root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    weight = evidence.softmax(0)
    likely = weight.topk(min(kept, len(weight))).indices
    weight, draws = weight[likely] / weight[likely].sum(), draws.at(likely)
    root, scaled = root[likely], scaled[likely]
    of_targets = torch.linalg.solve_triangular(
        root, _covariance(draws, known, targets), upper=False
    )
    of_rest = torch.linalg.solve_triangular(
        root, _covariance(draws, known, candidates), upper=False
    )
    prior = _variance(draws, candidates.fraction) + _noise(draws, candidates.fraction)
    return Belief(
        weight,
        (of_targets.mT @ scaled).squeeze(-1),
        _covariance(draws, targets, targets) - of_targets.mT @ of_targets,
        _covariance(draws, candidates, targets) - of_rest.mT @ of_targets,
        (prior - of_rest.square().sum(-2)).clamp_min(_LEAST),
    )


def _factored(draws: Hyperparameters, known: Points, values: Tensor) -> tuple[Tensor, Tensor]:
    noise = _noise(draws, known.fraction) + _JITTER
    root = torch.linalg.cholesky(_covariance(draws, known, known) + torch.diag_embed(noise))
    right = values.expand(len(root), -1).unsqueeze(-1)
    return root, torch.linalg.solve_triangular(root, right, upper=False)


def _covariance(draws: Hyperparameters, a: Points, b: Points) -> Tensor:  # shape: (k, n, m)
    line = _line(draws, a.fraction) @ _line(draws, b.fraction).mT
    apart = (a.fraction.unsqueeze(-1) - b.fraction).square()
    one = line + _smooth(draws.deviation, draws.deviation_scale, apart)
    same = a.arm.unsqueeze(-1) == b.arm
    return 1 + _smooth(draws.level, draws.level_scale, apart) + one * same


def _variance(draws: Hyperparameters, fraction: Tensor) -> Tensor:  # shape: (k, n)
    line = _line(draws, fraction).square().sum(-1)
    return 1 + draws.level.square() + draws.deviation.square() + line


def _line(draws: Hyperparameters, fraction: Tensor) -> Tensor:  # shape: (k, n, 2)
    rest = 1 - fraction
    return torch.stack([draws.end + rest * draws.link, rest * draws.change], -1)


def _smooth(amplitude: Tensor, scale: Tensor, squares: Tensor) -> Tensor:
    """Return squared exponentials of squared distances (``n x m``), ``k x n x m``."""
    return amplitude.unsqueeze(-1).square() * (-0.5 * squares / scale.unsqueeze(-1).square()).exp()


def _noise(draws: Hyperparameters, fraction: Tensor) -> Tensor:  # shape: (k, n)
    return draws.noise + draws.alpha * (1 - fraction).clamp_min(0).pow(draws.beta)
