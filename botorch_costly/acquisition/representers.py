"""Points that stand for the whole space: where an optimum may be."""

from collections.abc import Mapping

import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.models.model import Model
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check, check_count
from botorch_costly.numerics.ensemble_sampling import walk
from botorch_costly.numerics.gumbel import without_replacement

MEASURES = ("improvement", "uniform")
_SCREENED = 20  # uniform draws for each point
_STEPS = 20  # of the walk


def representers(
    model: Model,
    bounds: Tensor,
    num: int,
    best_f: float | Tensor,
    generator: torch.Generator,
    *,
    maximize: bool = True,
    measure: str = "improvement",
    fixed: Mapping[int, float] | None = None,
) -> Tensor:
    """Draw points in proportion to the expected improvement, or uniformly.

    Some of many uniform draws are kept, in proportion to their expected improvement. Then they walk as an
    ensemble, so that no point is bound to where it was first drawn.

    References:
        P. Hennig, C. J. Schuler. Entropy search for information-efficient global optimization. JMLR 13,
        2012, section 2.2.

    Args:
        model: A single-outcome model, or an ensemble.
        bounds: Lower and upper bounds of the columns, ``2 x d``.
        num: How many points.
        best_f: The value to be improved on.
        generator: The source of the draws.
        maximize: Whether larger values are better.
        measure: ``"improvement"`` or ``"uniform"``.
        fixed: Columns that have one value in all points, such as the share of the data.

    Returns:
        The points, ``num x d``.

    Raises:
        InvalidShapeError: If the bounds are not two rows.
        InvalidArgumentError: If ``num`` is less than 1, or the measure unknown.
    """
    shape = tuple(bounds.shape)
    check(len(shape) == 2 and shape[0] == 2, "bounds", "2 x d", shape, InvalidShapeError)
    check(measure in MEASURES, "measure", f"one of {MEASURES}", measure)
    check_count("num", num, minimum=1)
    values = dict(fixed or {})
    free = [column for column in range(shape[1]) if column not in values]

    def completed(x: Tensor) -> Tensor:
        rows = bounds.new_empty(*x.shape[:-1], shape[1])
        rows[..., free] = bounds[0, free] + (bounds[1] - bounds[0])[free] * x
        for column, value in values.items():
            rows[..., column] = value
        return rows

    def uniform(count: int) -> Tensor:
        size = (count, len(free))
        drawn = torch.rand(size, generator=generator, device=generator.device, dtype=bounds.dtype)
        return drawn.to(bounds.device)

    if measure == "uniform" or not free:
        return completed(uniform(num))
    improvement = LogExpectedImprovement(
        model, torch.as_tensor(best_f).to(bounds), maximize=maximize
    )

    @torch.no_grad()
    def log_density(x: Tensor) -> Tensor:
        inside = ((x >= 0) & (x <= 1)).all(-1)
        return torch.where(inside, improvement(completed(x.clamp(0, 1)).unsqueeze(-2)), -torch.inf)

    walkers = num + num % 2
    screened = uniform(_SCREENED * walkers)
    coins = uniform(len(screened))[:, 0]
    kept = without_replacement(log_density(screened), walkers, coins)
    walked = walk(log_density, screened[kept], _STEPS, generator)
    return completed(walked.points[-1][:num])
