"""Merging of starts that have come near each other in the course of a climb, for a batch at once."""

from typing import NamedTuple

import torch
from torch import Tensor


def merged_into(
    points: Tensor,  # shape: (*batch, n, d)
    values: Tensor,  # shape: (*batch, n): to be maximized, not NaN
    within: float,
) -> Tensor:  # shape: (*batch, n)
    """Return for each point the number of the one that it is merged into, its own if it is not merged.

    A point is merged into the best of those that are better and differ by less than ``within`` in every
    variable, since both most likely climb to one maximum. That one may be merged itself, see
    :func:`followed`. Of equally good points the first one counts as better.
    """
    order = values.argsort(dim=-1, descending=True, stable=True)
    ranked = points_at(points, order)
    is_near = torch.cdist(ranked, ranked, p=torch.inf) < within
    # Each point is near itself, also within 0.
    is_near.diagonal(dim1=-2, dim2=-1).fill_(True)
    best = is_near.tril().max(-1).indices  # the first of the near points that are not worse
    return order.scatter(-1, order, order.gather(-1, best))


class Leaders(NamedTuple):
    """Points that are not merged, by their numbers, padded with one of them."""

    numbers: Tensor  # shape: (*batch, n)
    number: Tensor  # how many there are before the padding, shape: (*batch,)


def leaders_of(into: Tensor) -> Leaders:
    """Return the points that are merged into themselves, by ``merged_into``, shape ``(*batch, n)``.

    A repeated leader climbs as the leader itself does, so that the padding needs no mask.
    """
    leads = into == torch.arange(into.shape[-1], device=into.device)
    leads, numbers = leads.sort(dim=-1, descending=True, stable=True)
    return Leaders(torch.where(leads, numbers, numbers[..., :1]), leads.sum(-1))


def followed(into: Tensor) -> Tensor:
    """Return the ends of the chains of points that are merged one into the next, ``(*batch, n)``."""
    for _ in range((into.shape[-1] - 1).bit_length()):  # each pass doubles the length of chains
        into = into.gather(-1, into)
    return into


def points_at(
    points: Tensor,  # shape: (*batch, n, d)
    numbers: Tensor,  # shape: (*batch, m)
) -> Tensor:  # shape: (*batch, m, d)
    """Return points by their numbers."""
    return points.gather(-2, numbers.unsqueeze(-1).expand(*numbers.shape, points.shape[-1]))
