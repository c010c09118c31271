"""Curves at equally spaced shares of their trainings."""

import math

import torch
from torch import Tensor

from botorch_costly.problems import CurveProblem

SHARES = 16  # at which curve models see a training


def on_grid(problem: CurveProblem, config: int, curve: Tensor, shares: int = SHARES) -> Tensor:
    """Return a curve at equally spaced shares of its training, NaN beyond its present end."""
    length = int(problem.lengths[config])
    at = torch.tensor([math.ceil(step * length / shares) for step in range(1, shares + 1)])
    seen = torch.full((shares,), math.nan, dtype=torch.float64)
    known = at <= len(curve)
    seen[known] = curve[at[known] - 1].double()
    return seen
