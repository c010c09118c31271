"""Problems that come near each other most likely end together: only the lowest goes on."""

import torch
from torch import Tensor


def merge(
    point: Tensor,  # shape: (*batch, k, d)
    value: Tensor,  # shape: (*batch, k, 1)
    place: Tensor,  # shape: (*batch, k)
    into: Tensor,  # shape: (*batch, n)
    within: float,
) -> tuple[Tensor, Tensor]:  # shapes: (*batch, k, 1), (*batch, n)
    """Mark the problems that have come near one with a lower value, and say which result each takes.

    Args:
        point: Where the problems at hand are.
        value: Their values there.
        place: Their numbers.
        into: Number of the problem whose result each takes so far, its own at first.
        within: What counts as near.
    """
    rise = value - value.mT  # of i over j
    ahead = (rise > 0) | ((rise == 0) & (place.unsqueeze(-1) > place.unsqueeze(-2)))
    near = ahead & (torch.cdist(point, point) < within)
    lowest = place.gather(-1, value.mT.masked_fill(~near, torch.inf).argmin(-1))
    gone = near.any(-1)
    taken = torch.where(gone, lowest, into.gather(-1, place))
    return gone.unsqueeze(-1), into.scatter(-1, place, taken)


def final(into: Tensor) -> Tensor:
    """Return the problem at the end of each chain of problems that were merged."""
    for _ in range(into.shape[-1].bit_length()):  # each time the way is twice as long
        into = into.gather(-1, into)
    return into


def spread(place: Tensor, like: Tensor) -> Tensor:
    """Expand ``(*batch, k)`` by the trailing dimensions of ``like``, ``(*batch, k, ...)``."""
    extra = like.shape[place.dim() :]
    return place.reshape(*place.shape, *(1 for _ in extra)).expand(*place.shape, *extra)
