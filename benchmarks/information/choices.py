"""Which point is evaluated next: acquisition functions of BoTorch, and ours."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import LogExpectedImprovement, UpperConfidenceBound
from botorch.acquisition.joint_entropy_search import qJointEntropySearch
from botorch.acquisition.knowledge_gradient import qKnowledgeGradient
from botorch.acquisition.max_value_entropy_search import qLowerBoundMaxValueEntropy
from botorch.acquisition.utils import get_optimal_samples
from botorch.exceptions.warnings import BotorchWarning
from botorch.optim import optimize_acqf
from torch import Tensor

from botorch_costly.acquisition import EntropySearch, representers
from botorch_costly.optim import maximize

_RESTARTS, _RAW = 5, 256  # of optimize_acqf
_BETA = 2.0
_FANTASIES = 8
_CANDIDATES, _MAXIMA = 1000, 10  # of the maximum that max-value entropy search draws
_NEAR = 0.1  # how far around the representers is looked
_CLIMBED, _STEPS = 4, 15


class Situation(NamedTuple):
    """What a choice depends on."""

    model: Any
    X: Tensor  # what was evaluated, n x d
    best: Tensor  # largest posterior mean of these
    generator: torch.Generator  # of our draws; those of BoTorch come from the global generator

    @property
    def cube(self) -> Tensor:
        """Bounds, ``2 x d``."""
        corner = torch.zeros_like(self.X[:1])
        return torch.cat([corner, corner + 1])


Choice = Callable[[Situation], Tensor]
"""From a situation to a point, ``(d,)``."""


def at_random(now: Situation) -> Tensor:
    """Return a uniform draw."""
    return torch.rand(now.X.shape[-1], generator=now.generator, dtype=now.X.dtype)


def improvement(now: Situation) -> Tensor:
    """Return the point of largest expected improvement."""
    return _optimized(LogExpectedImprovement(now.model, now.best), now)


def bound(now: Situation) -> Tensor:
    """Return the point of largest upper confidence bound."""
    return _optimized(UpperConfidenceBound(now.model, _BETA), now)


def gradient(now: Situation) -> Tensor:
    """Return the point of largest knowledge gradient, in one shot with its fantasies."""
    acquisition = qKnowledgeGradient(now.model, num_fantasies=_FANTASIES)
    return _optimized(acquisition, now, raw=64, options={"maxiter": 20})


def max_value(now: Situation) -> Tensor:
    """Return the point that tells most of the maximum."""
    drawn = torch.rand(_CANDIDATES, now.X.shape[-1], generator=now.generator, dtype=now.X.dtype)
    return _optimized(qLowerBoundMaxValueEntropy(now.model, drawn, num_mv_samples=_MAXIMA), now)


@dataclass(frozen=True)
class Joint:
    """Joint entropy search: the point that tells most of optima of drawn paths, and of their values."""

    optima: int = 12  # how many
    raw: int = 1024  # points of each path that are looked at first
    restarts: int = 20  # of each path

    def __call__(self, now: Situation) -> Tensor:
        inputs, outputs = get_optimal_samples(
            now.model,
            bounds=now.cube,
            num_optima=self.optima,
            raw_samples=self.raw,
            num_restarts=self.restarts,
        )
        return _optimized(qJointEntropySearch(now.model, inputs, outputs), now)


def _optimized(
    acquisition: AcquisitionFunction,
    now: Situation,
    raw: int = _RAW,
    options: dict[str, int] | None = None,
) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)
        warnings.simplefilter("ignore", RuntimeWarning)  # line searches that end early
        point, _ = optimize_acqf(
            acquisition, now.cube, q=1, num_restarts=_RESTARTS, raw_samples=raw, options=options
        )
    return point.squeeze(0).detach()


@dataclass(frozen=True)
class Information:
    """Entropy search: the point that tells most of which representer is the optimum.

    The outcomes of an observation are integrated in closed form if None. The point is found by
    ``optimize_acqf``, as for all others, or, without ``library``, by a random pool of ``candidates`` and
    a few steps from its best.
    """

    points: int = 30
    measure: str = "improvement"
    outcomes: int | None = None
    candidates: int = 500
    library: bool = True

    def __call__(self, now: Situation) -> Tensor:
        points = self._points(now)
        acquisition = EntropySearch(now.model, points, outcomes=self.outcomes)
        if self.library:
            return _optimized(acquisition, now)
        # Points everywhere, and around the representers.
        half, dim = self.candidates // 2, acquisition.points.shape[-1]
        anywhere = torch.rand(half, dim, generator=now.generator, dtype=acquisition.points.dtype)
        rows = torch.randint(
            len(acquisition.points), (self.candidates - half,), generator=now.generator
        )
        near = acquisition.points[rows]
        near = near + _NEAR * torch.randn(near.shape, generator=now.generator, dtype=near.dtype)
        pool = torch.cat([anywhere, near.clamp(0, 1)])
        return maximize(acquisition, pool, num_starts=_CLIMBED, max_iter=_STEPS).point

    def _points(self, now: Situation) -> Tensor:
        return representers(
            now.model, now.cube, self.points, now.best, now.generator, measure=self.measure
        )
