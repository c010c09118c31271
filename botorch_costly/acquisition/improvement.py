r"""Expected and probable improvement of a drifting function.

The best reward *observed* says little if the function has drifted since. The threshold is therefore the
largest posterior mean in round ``now`` over the configurations observed.
"""

from collections.abc import Hashable
from typing import Any

import torch
from botorch.acquisition.analytic import (
    ExpectedImprovement,
    LogExpectedImprovement,
    ProbabilityOfImprovement,
)
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.utils.datasets import SupervisedDataset
from botorch.utils.transforms import is_ensemble
from torch import Tensor

from botorch_costly.acquisition.fixed_round import InRound, as_numbers, as_round, at_round
from botorch_costly.errors import InvalidShapeError, check


def best_mean(
    model: Model,
    X: Tensor,
    now: float | Tensor | None = None,
    *,
    maximize: bool = True,
    posterior_transform: PosteriorTransform | None = None,
) -> Tensor:
    """Return the best posterior mean over points ``X`` (``n x d``).

    Args:
        model: A single-outcome model.
        X: The points; configurations without the round if ``now`` is given.
        now: The round to append to them, for a model that drifts.
        maximize: Whether larger rewards are better.
        posterior_transform: Posterior transform of ``ExpectedImprovement``.

    Returns:
        A scalar; for a batched model or an ensemble ``batch_shape x 1``, one threshold for each of
        its members, as BoTorch's classes take it.

    Raises:
        InvalidShapeError: If there is no point.
    """
    shape = tuple(X.shape)
    check(X.shape[-2] > 0, "X", "at least one point", shape, InvalidShapeError)
    members = torch.Size() if is_ensemble(model) else model.batch_shape  # ensembles add their own
    X = X.expand(*torch.broadcast_shapes(X.shape[:-2], members), *X.shape[-2:])
    # Single points: their joint covariance is not needed, and close points make it singular.
    points = X.movedim(-2, 0).unsqueeze(-2)  # n x batch_shape x 1 x d
    points = points if now is None else at_round(points, as_round(now))
    with torch.no_grad():
        posterior = model.posterior(points, posterior_transform=posterior_transform)
    means = posterior.mean.squeeze(-1).squeeze(-1)
    best = means.amax(0) if maximize else means.amin(0)
    return best.unsqueeze(-1) if best.dim() else best


def only_data(
    training_data: SupervisedDataset | dict[Hashable, SupervisedDataset],
) -> SupervisedDataset:
    """Return the training data of an input constructor for one outcome."""
    if isinstance(training_data, dict):  # one data set for each outcome, at equal X
        return next(iter(training_data.values()))
    return training_data


class _Improvement(InRound):
    """Base of the three improvements: a threshold and a round."""

    def __init__(
        self,
        model: Model,
        best_f: float | Tensor,
        now: float | Tensor,
        posterior_transform: PosteriorTransform | None = None,
        *,
        maximize: bool = True,
    ) -> None:
        super().__init__(model, as_numbers("best_f", best_f), posterior_transform, maximize)
        self.fix_round(now)


class TimeVaryingEI(_Improvement, ExpectedImprovement):
    """Expected improvement over ``best_f`` in round ``now``.

    Args:
        model: A single-outcome model over ``[configuration, round]``.
        best_f: The threshold; ``best_mean`` gives the one this package uses.
        now: The round of the decision.
        posterior_transform: Posterior transform of ``ExpectedImprovement``.
        maximize: Whether larger rewards are better.

    Raises:
        InvalidArgumentError: If ``now`` is not a finite number.
    """


class TimeVaryingLogEI(_Improvement, LogExpectedImprovement):
    """Logarithm of ``TimeVaryingEI``, with useful gradients even if the improvement is tiny."""


class TimeVaryingPI(_Improvement, ProbabilityOfImprovement):
    """Probability of improvement over ``best_f`` in round ``now``, with ``TimeVaryingEI``'s arguments."""


@acqf_input_constructor(TimeVaryingEI, TimeVaryingLogEI, TimeVaryingPI)
def construct_inputs_time_varying_improvement(
    model: Model,
    training_data: SupervisedDataset | dict[Hashable, SupervisedDataset],
    now: float,
    best_f: float | Tensor | None = None,
    posterior_transform: PosteriorTransform | None = None,
    *,
    maximize: bool = True,
) -> dict[str, Any]:
    """Return the keyword arguments; ``best_f`` defaults to ``best_mean`` over the data."""
    if best_f is None:
        X = only_data(training_data).X[..., :-1]
        best_f = best_mean(
            model, X, now, maximize=maximize, posterior_transform=posterior_transform
        )
    return {
        "model": model,
        "best_f": best_f,
        "now": now,
        "posterior_transform": posterior_transform,
        "maximize": maximize,
    }
