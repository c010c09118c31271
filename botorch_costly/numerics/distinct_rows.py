"""The distinct rows of a matrix in lexicographic order, without synchronizing with a device.

The number of distinct rows would have to be read from the device. So all rows are kept, and those equal
to the row before them are marked.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near


class SortedRows(NamedTuple):
    """Rows in lexicographic order."""

    rows: Tensor  # shape: (n, d)
    repeated: Tensor  # bool, whether a row equals the one before it, shape: (n,)


def sorted_rows(rows: Tensor) -> SortedRows:
    """Sort rows (``n x d``) lexicographically.

    On a CPU, which needs no synchronization, repeated rows are removed.

    Example:
        >>> sorted_rows(torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]])).rows
        tensor([[0., 2.],
                [1., 0.]])
    """
    if is_near(rows):
        distinct = rows.unique(dim=0)
        return SortedRows(distinct, torch.zeros_like(distinct[:, 0], dtype=torch.bool))
    order = torch.arange(len(rows), device=rows.device)
    # Stable sorts from the least to the most significant key.
    for column in reversed(rows.unbind(-1)):
        order = order[column[order].argsort(stable=True)]
    rows = rows[order]
    first = torch.zeros_like(rows[:1, 0], dtype=torch.bool)
    return SortedRows(rows, torch.cat([first, (rows[1:] == rows[:-1]).all(-1)]))
