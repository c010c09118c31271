"""Variance-based sensitivity analysis: Sobol indices of groups of independent inputs.

The inputs are drawn twice, as the rows of two designs, ``first`` and ``second``. The *mix* of a group is
the first design with the columns of that group from the second.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Sensitivity(NamedTuple):
    """Shares of the variance; 0 for a constant function."""

    first_order: Tensor  # explained by each group alone, shape: (*batch, groups)
    total: Tensor  # explained with its interactions, shape: (*batch, groups)


def sensitivity(
    function: Callable[[Tensor], Tensor], first: Tensor, second: Tensor, groups: Sequence[slice]
) -> Sensitivity:
    r"""Estimate Sobol indices by mixed designs from ``n (groups + 2)`` evaluations in one call.

    With ``f_A`` and ``f_B`` at the designs and ``f_i`` at the mix of group ``i``,

        S_i = mean(f_B (f_i - f_A)) / variance,     T_i = mean((f_A - f_i)^2) / (2 variance).

    The values are centered first, because products of large numbers would have large rounding errors.

    References:
        A. Saltelli, P. Annoni, I. Azzini, F. Campolongo, M. Ratto, S. Tarantola. Variance based
        sensitivity analysis of model output. 2010, Table 2, (b) and (f).

    Args:
        function: Maps rows ``(m, d)`` to values ``(*batch, m)``.
        first: Rows of a design, ``(n, d)``.
        second: Rows of another design, independent of the first, ``(n, d)``.
        groups: Columns of each group.

    Returns:
        First-order and total indices, clamped to [0, 1], ``(*batch, groups)``.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> A, B = torch.rand(2, 4096, 2, generator=generator, dtype=torch.float64)
        >>> shares = sensitivity(lambda X: X[:, 0] + 0 * X[:, 1], A, B, [slice(0, 1), slice(1, 2)])
        >>> shares.total.round(decimals=1)
        tensor([1., 0.], dtype=torch.float64)
    """
    rows = torch.cat([first, second, *(_mix(first, second, group) for group in groups)])
    values = function(rows).unflatten(-1, (len(groups) + 2, len(first)))
    ends = values[..., :2, :]
    center = ends.mean((-1, -2), keepdim=True)
    variance = (ends - center).square().mean((-1, -2)).unsqueeze(-1)
    centered = values - center
    f_A, f_B, f_mixed = centered[..., 0:1, :], centered[..., 1:2, :], centered[..., 2:, :]
    explained = (f_B * (f_mixed - f_A)).mean(-1), (f_A - f_mixed).square().mean(-1) / 2
    # A function that varies by rounding errors alone counts as constant; NaN is propagated.
    tiny = torch.finfo(values.dtype).eps * ends.abs().amax((-1, -2)).unsqueeze(-1)
    varies = ~(variance <= tiny.square())
    scale = torch.where(varies, variance, torch.ones_like(variance))
    return Sensitivity(*(torch.where(varies, e / scale, 0.0).clamp(0, 1) for e in explained))


def _mix(first: Tensor, second: Tensor, group: slice) -> Tensor:
    mixed = first.clone()
    mixed[:, group] = second[:, group]
    return mixed
