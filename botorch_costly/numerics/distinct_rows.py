"""The distinct rows of a matrix, in lexicographic order, without waiting for a device.

How many there are is a number that only the device knows. So all rows are kept, and those that repeat the
row before them are marked.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near


class SortedRows(NamedTuple):
    """Rows in lexicographic order."""

    rows: Tensor  # shape: (n, d)
    repeated: Tensor  # whether a row is the one before it once more, bool, shape: (n,)


def sorted_rows(rows: Tensor) -> SortedRows:
    """Sort rows (``n x d``) by their columns, the first one first.

    On a CPU, where their number is known at once, repeated rows are left out.

    Example:
        >>> sorted_rows(torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]])).rows
        tensor([[0., 2.],
                [1., 0.]])
    """
    if is_near(rows):
        distinct = rows.unique(dim=0)
        return SortedRows(distinct, torch.zeros_like(distinct[:, 0], dtype=torch.bool))
    order = torch.arange(len(rows), device=rows.device)
    for column in reversed(
        rows.unbind(-1)
    ):  # stable sorts from the least to the most significant key
        order = order[column[order].argsort(stable=True)]
    rows = rows[order]
    first = torch.zeros_like(rows[:1, 0], dtype=torch.bool)
    return SortedRows(rows, torch.cat([first, (rows[1:] == rows[:-1]).all(-1)]))
