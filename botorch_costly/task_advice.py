"""Proposals as an earlier study: configurations of an adviser, beside others of the space.

A proposal has no value. What it says is an order: it is better than configurations far from it. So the
study holds the proposals and Sobol points of the space, and its values are negative distances to the
nearest proposal. Only parameters that a proposal names count: "try 3e-4" says nothing of the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_costly.parameters import Choice
from botorch_costly.plain import Plain
from botorch_costly.space import SearchSpace
from botorch_costly.task_encoding import EncodedTask

_OTHERS = 32  # Sobol points that a study of proposals compares with


def among_others(
    space: SearchSpace, proposals: EncodedTask, configs: Sequence[Mapping[str, Plain]]
) -> EncodedTask:
    """Return encoded proposals followed by Sobol points, all with negative distances as values.

    Two options of a choice are as far from each other as the two ends of a range.

    Args:
        space: Search space of the encoding.
        proposals: The encoded proposals inside the space.
        configs: All proposals by name, in the order of the study.
    """
    engine = SobolEngine(space.dim, scramble=True, seed=0)
    others = space.round(engine.draw(_OTHERS, dtype=torch.float64))
    named = torch.stack([_named(space, configs[number]) for number in proposals.kept])
    offsets = others.unsqueeze(1) - proposals.points  # shape: (others, proposals, dim)
    nearest = (named * offsets.square()).sum(-1).amin(-1).sqrt()
    values = torch.cat([torch.zeros_like(proposals.values), -nearest])
    whole = (row for row, n in enumerate(proposals.kept) if set(space.names) <= set(configs[n]))
    points = torch.cat([proposals.points, others])
    return replace(proposals, points=points, values=values, complete=next(whole, None))


def first_proposal(studies: Sequence[EncodedTask]) -> Tensor:
    """Return the first proposal that names all parameters, ``1 x dim``; without any, ``0 x dim``.

    Args:
        studies: The encoded studies, at least one.
    """
    rows = (s.points[s.complete : s.complete + 1] for s in studies if s.complete is not None)
    return next(rows, studies[0].points[:0])


def _named(space: SearchSpace, config: Mapping[str, Plain]) -> Tensor:
    """Return the weight of each column in squared distances, 0 if the parameter is not named."""
    weights = [
        torch.full((parameter.width,), (0.5 if isinstance(parameter, Choice) else 1.0))
        * (name in config)
        for name, parameter in space.parameters
    ]
    return torch.cat(weights).double()
