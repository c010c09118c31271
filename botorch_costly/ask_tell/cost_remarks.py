"""Remarks of a diagnosis on costs: what was paid for evaluations that showed nothing."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from botorch_costly.numerics.robust import rank_correlation, ranks_of
from botorch_costly.parameters import Choice
from botorch_costly.space import SearchSpace

_FEWEST = 15  # evaluations; with fewer, a fifth of them says little
_MOST = 0.5  # share of the cost from which on the most expensive fifth is spoken of
_WITH = 0.8  # rank correlation from which on a parameter explains costs


def shares_of_cost(outcomes: Sequence[Any]) -> list[float] | None:
    """Return the share of each evaluation in the cost of all; None unless all costs are known."""
    costs = [getattr(outcome, "cost", None) for outcome in outcomes]
    known = [float(cost) for cost in costs if cost is not None]
    total = sum(known)
    if len(known) < len(costs) or not 0 < total < math.inf:
        return None
    return [cost / total for cost in known]


def remark_on_expenses(space: SearchSpace, outcomes: Sequence[Any], sign: float) -> list[str]:
    """Return a sentence on expensive evaluations that were no better than others, if there are any.

    The most expensive fifth has to take half of the cost, to have none of the best fifth of the values,
    and to have values of a lower mean rank than the others.

    Args:
        space: Search space of the configurations.
        outcomes: Evaluations of one fidelity, whose values are compared.
        sign: 1 if larger values are better, -1 if smaller ones are.
    """
    told = [outcome for outcome in outcomes if outcome.reward is not None]
    shares = shares_of_cost(told)
    if shares is None or len(told) < _FEWEST:
        return []
    costs = torch.tensor(shares, dtype=torch.float64)
    values = sign * torch.tensor([float(o.reward) for o in told], dtype=torch.float64)
    costly = costs.topk(-(-len(told) // 5)).indices
    share, ranks = float(costs[costly].sum()), ranks_of(values)
    best = len(told) - len(costly)  # least rank of the best fifth
    no_better = bool((ranks[costly] < best - 0.5).all()) and float(ranks[costly].mean()) < best / 2
    if share < _MOST or not no_better:
        return []
    why = _cause(space, [outcome.config for outcome in told], costs, costly.tolist())
    sentence = (
        f"The most expensive fifth of the evaluations took {share:.0%} of the cost, and none of"
    )
    return [f"{sentence} them is among the best fifth: {why}."]


def _cause(space: SearchSpace, configs: Sequence[Any], costs: Tensor, costly: Sequence[int]) -> str:
    """Return a clause on the parameter that costs go with, and on how to save them."""
    found = "", 0.0
    for name, parameter in space.parameters:
        if isinstance(parameter, Choice):
            options = {configs[number][name] for number in costly}
            with_it = sum(config[name] in options for config in configs)
            if len(options) == 1 and 2 * with_it <= len(configs):
                return f"all of them have {name}={options.pop()!r}, which may be left out"
            continue
        numbers = torch.tensor([float(c[name]) for c in configs], dtype=torch.float64)
        agreement = rank_correlation(numbers, costs)
        if abs(agreement) > abs(found[1]):  # False for NaN, of a parameter that is always the same
            found = name, agreement
    name, agreement = found
    if abs(agreement) < _WITH:
        return "such evaluations may be stopped early"
    direction, bound = ("rises", "upper") if agreement > 0 else ("falls", "lower")
    low_or_high = "lower" if agreement > 0 else "higher"
    return f"cost {direction} with {name}, whose {bound} bound may be {low_or_high}"
