"""A check of told costs: they fall toward the target, or do not depend on the fidelity."""

import math
from collections.abc import Mapping, Sequence
from statistics import median

import torch
from torch import Tensor

from botorch_costly.numerics.robust import rank_correlation

EVALUATIONS = 10  # after which costs are checked
LATER = (10, 14, 20, 28, 40)  # evaluations after which it is asked again whether they are flat
_FALLING = -0.8  # rank correlation with a fidelity from which on costs fall: 1 in 300 by chance
_RISING = 0.5  # rank correlation with another one from which on that may be why
# The second largest share of the target, over the second smallest, that changes a cost, ...
_WIDE = 3.0
_LARGE = 0.25  # ... if it is as large as this; small parts may take as long as what is fixed, ...
_VERY_WIDE = 16.0  # ... unless they are as far apart as this
# The elasticity of costs by shares below which they are flat; it is about 1 if parts are trained on.
_FLAT = 0.2
_ERRORS = 3.5  # standard errors by which it is at least below
# The ratio, and the standard errors, from which on costs rise, if by less than shares.
_RISE, _CLEAR = 1.1, 2.0
_FREE = 6  # evaluations beyond the coefficients, of a comparison that allows for configurations
_SPREAD = 1.5  # ratio of all costs up to which they are flat whatever the configurations
_TIMES = 1.5  # median cost of the evaluations in the lower half of a fidelity, over the others'


def falling_fidelities(
    fidelities: Sequence[Mapping[str, float]], costs: Sequence[float]
) -> list[str]:
    """Return the fidelities with which costs clearly fall.

    Where costs rise with another one, there are none: the two may have been chosen against each other.
    Costs that are the same at all fidelities fall with none.

    Args:
        fidelities: Value of each fidelity of each evaluation, by name; larger is nearer to the target.
        costs: Costs of the evaluations.

    Example:
        >>> falling_fidelities([{"s": 0.1 * k} for k in range(1, 9)], [1 / k for k in range(1, 9)])
        ['s']
    """
    rows = {name: [at[name] for at in fidelities] for name in fidelities[0]}
    agreements = {name: _agreement(row, costs) for name, row in rows.items()}
    if any(agreement >= _RISING for agreement in agreements.values()):
        return []
    falling = [name for name, agreement in agreements.items() if agreement <= _FALLING]
    return [name for name in falling if _ratio(rows[name], costs) >= _TIMES]


def are_flat(shares: Sequence[float], costs: Sequence[float], configs: Tensor) -> bool:
    """Return whether costs do not depend on the fidelities, although these are far apart.

    The logarithms of costs are a linear function of those of the shares, and of the configurations if
    there are enough evaluations. Without these a configuration may cost what its fidelity saves: then
    all costs have to be about equal.

    Args:
        shares: Fidelities of each evaluation as a share of the target, above 0.
        costs: Costs of the evaluations, above 0.
        configs: Configurations in the unit cube, ``n x d``.

    Example:
        >>> shares = [0.01, 0.02, 0.05, 0.1, 0.1, 0.2, 0.3, 0.5]
        >>> are_flat(shares, [60, 61, 59, 60, 60, 61, 60, 59], torch.zeros(8, 0))
        True
        >>> are_flat(shares, [60 * share for share in shares], torch.zeros(8, 0))
        False
    """
    _, low, *_, high, _ = sorted(shares)
    if high < (_WIDE if high >= _LARGE else _VERY_WIDE) * low:
        return False
    logs, values = (torch.tensor(row, dtype=torch.float64).log() for row in (shares, costs))
    allows = len(costs) - configs.shape[-1] - 2 >= _FREE
    if not allows and max(costs) > _SPREAD * min(costs):
        return False
    others = configs.to(logs) if allows else configs.new_zeros(len(costs), 0).to(logs)
    others = torch.cat([torch.ones_like(logs)[:, None], others], -1)
    left, rest = (row - others @ (torch.linalg.pinv(others) @ row) for row in (logs, values))
    variance = left.square().sum()
    slope = (left @ rest) / variance
    free = len(costs) - 1 - int(torch.linalg.matrix_rank(others))
    error = ((rest - slope * left).square().sum() / free / variance).sqrt()
    rise = float((slope * math.log(high / low)).exp())  # much of a cost may be fixed
    is_rising = rise > _RISE and float(slope) > _CLEAR * float(error)
    return not is_rising and bool(slope.abs() + _ERRORS * error < _FLAT)


def _agreement(fidelity: Sequence[float], costs: Sequence[float]) -> float:
    """Return the rank correlation, NaN if one of the rows is constant."""
    rows = (torch.tensor(row, dtype=torch.float64) for row in (fidelity, costs))
    return rank_correlation(*rows)


def _ratio(fidelity: Sequence[float], costs: Sequence[float]) -> float:
    """Return the median cost of the lower half of a fidelity over that of the upper one."""
    pairs = sorted(zip(fidelity, costs, strict=True), key=lambda pair: pair[0])
    by_fidelity = [cost for _, cost in pairs]
    half = len(costs) // 2
    return median(by_fidelity[:half]) / median(by_fidelity[-half:])
