"""A check of told costs: they fall toward the target, or do not depend on the fidelity."""

from collections.abc import Mapping, Sequence
from statistics import median

import torch

from botorch_costly.numerics.robust import rank_correlation

EVALUATIONS = 10  # after which costs are checked
_FALLING = -0.8  # rank correlation with a fidelity from which on costs fall: 1 in 300 by chance
_RISING = 0.5  # rank correlation with another one from which on that may be why
_WIDE = 4.0  # median share of the target in the upper half, over the lower one, that changes a cost
# Ratio of the median costs of both, and of all costs, up to which they are flat.
_EQUAL, _SPREAD = 1.1, 1.5
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


def are_flat(shares: Sequence[float], costs: Sequence[float]) -> bool:
    """Return whether costs are about equal, although the fidelities are far apart.

    Args:
        shares: Fidelities of each evaluation as a share of the target.
        costs: Costs of the evaluations, above 0.

    Example:
        >>> are_flat([0.01, 0.02, 0.1, 0.5], [60, 61, 59, 60])
        True
    """
    is_wide = _ratio(shares, shares) <= 1 / _WIDE
    ratio = _ratio(shares, costs)
    return is_wide and max(ratio, 1 / ratio) <= _EQUAL and max(costs) <= _SPREAD * min(costs)


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
