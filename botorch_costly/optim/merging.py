"""Merging of starts that have come near each other in the course of a climb, for a batch at once."""

import torch
from torch import Tensor


def merged_into(
    points: Tensor,  # shape: (*batch, n, d)
    values: Tensor,  # shape: (*batch, n): to be maximized, not NaN
    within: float,
) -> Tensor:  # shape: (*batch, n)
    """Return for each point the number of the one that it is merged into, its own if it is not merged.

    A point is merged into the best of those that are better and differ by less than ``within`` in every
    variable, since both most likely climb to one maximum; and with that one into another, and so on. Of
    equally good points the first one counts as better.
    """
    numbers = torch.arange(points.shape[-2], device=points.device)
    lead = values.unsqueeze(-2) - values.unsqueeze(-1)  # of j over i
    is_better = (lead > 0) | ((lead == 0) & (numbers < numbers.unsqueeze(-1)))
    is_near = is_better & (torch.cdist(points, points, p=torch.inf) < within)
    best = values.unsqueeze(-2).masked_fill(~is_near, -torch.inf).argmax(-1)
    into = torch.where(is_near.any(-1), best, numbers)
    for _ in range((points.shape[-2] - 1).bit_length()):  # each pass doubles the length of chains
        into = into.gather(-1, into)
    return into
