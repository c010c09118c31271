"""The maximum of an acquisition function: the best candidate, or the best end of a local search."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.optim.lbfgs import minimize_batch
from botorch_costly.optim.smooth import Acquisition, SmoothFunction, from_callable
from botorch_costly.optim.starts import unit_cube


class Maximum(NamedTuple):
    """The best point of each batch entry, and its value."""

    point: Tensor  # shape: (*batch, d)
    value: Tensor  # shape: (*batch,): -inf if every point is excluded or has no finite value


@torch.no_grad()
def maximize(
    function: Acquisition | SmoothFunction,
    candidates: Tensor,  # shape: (*batch, n, d)
    *,
    num_starts: int | None = None,
    max_iter: int = 0,
    gradient_tolerance: float = 1e-6,
    value_tolerance: float = 0.0,
    minimize: Callable[[Tensor], Tensor] | None = None,
    round_points: Callable[[Tensor], Tensor] | None = None,
    excluded: Callable[[Tensor], Tensor] | None = None,
) -> Maximum:
    """Return the best candidate, or the best point of a local search that starts from the candidates.

    Rounding may undo the improvement of the local search, so its starts are compared with its ends. The
    first of equal points is returned. The host does not wait for a device.

    Args:
        function: Function to maximize, ``batch_shape x n x 1 x d -> batch_shape x n``.
        candidates: Points of the unit cube, ``batch_shape x n x d``, rounded already.
        num_starts: Number of best candidates from which the search starts; all of them if omitted.
        max_iter: Steps of the local search; with 0, only the candidates are compared.
        gradient_tolerance: Slope at which the local search ends; see ``minimize_batch``.
        value_tolerance: Relative gain of a step at which it ends; 0 for none.
        minimize: Another local search, which maps starts to ends, both ``batch_shape x k x d``.
        round_points: Function that returns the nearest points of the domain; none if all of the cube
            belongs to it. It also sets fixed columns, such as a fidelity.
        excluded: Function that returns which points, ``batch_shape x m x d``, are never the maximum. A
            search may start from them.

    Example:
        >>> hill = lambda X: -(X - 0.3).square().sum((-1, -2))
        >>> corners = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
        >>> maximize(hill, corners).point
        tensor([0., 0.])
        >>> maximize(hill, corners, max_iter=9, round_points=lambda X: X.round(decimals=1)).point
        tensor([0.3000, 0.3000])
    """

    def values_of(points: Tensor) -> Tensor:
        return function(points.unsqueeze(-2)).nan_to_num(-torch.inf, posinf=-torch.inf)

    points = candidates
    if minimize is not None or max_iter:
        starts = candidates
        if num_starts is not None:
            best = values_of(candidates).topk(min(num_starts, candidates.shape[-2])).indices
            starts = candidates.take_along_dim(best.unsqueeze(-1), -2)
        if minimize is None:
            loss = from_callable(function).with_gradient(starts, sign=-1.0)
            ends = minimize_batch(
                loss,
                starts,
                unit_cube(starts, "cpu"),
                max_iter=max_iter,
                gradient_tolerance=gradient_tolerance,
                value_tolerance=value_tolerance,
            ).point
        else:
            ends = minimize(starts)
        points = torch.cat([ends if round_points is None else round_points(ends), starts], -2)
    values = values_of(points)
    if excluded is not None:
        values = values.masked_fill(excluded(points), -torch.inf)
    value, index = values.max(-1)
    return Maximum(points.take_along_dim(index[..., None, None], -2).squeeze(-2), value)
