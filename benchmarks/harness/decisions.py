"""One decision without a run around it, made by the package: of a tuner, and of a round on a grid."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly import GridPolicy, QueryRule, SearchSpace
from botorch_costly.acquisition import UCB
from botorch_costly.ask_tell.search import Search, SpaceSearch
from botorch_costly.models import DriftingGrid
from botorch_costly.query import Progress
from botorch_costly.simulation import Ground, grid_proposal
from botorch_costly.tuners.online.decider import Decider
from botorch_costly.tuners.online.rivals import rivals_of

RESTARTS, BANDWIDTH, BETA = 50, 0.2, 1.0


class Decisions(NamedTuple):
    """What makes a tuner's decisions from a belief."""

    search: SpaceSearch
    strategy: Decider


def decider(
    space: SearchSpace,
    rule: QueryRule,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float64,
) -> Decisions:
    """Return the decisions of a tuner, which knows nothing of an earlier search."""
    tkwargs: dict[str, Any] = {"dtype": dtype, "device": torch.device(device)}
    rivals = rivals_of(space, Search(RESTARTS, BANDWIDTH), tkwargs)
    return Decisions(rivals.search, Decider(rivals, rule, UCB(BETA), "acquisition"))


class GridDecision(NamedTuple):
    """What a round on a grid plays in each trial, and whether it is queried."""

    at: Tensor  # index of the point, shape: (m,)
    query: Tensor  # bool, shape: (m,)


def decide_on_grid(
    policy: GridPolicy,
    belief: DriftingGrid,
    ground: Ground,
    progress: Progress,
    beta: float,
    generator: torch.Generator,
) -> GridDecision:
    """Return what a policy decides in a round, by the proposal and the rule of the simulation."""
    proposal = grid_proposal(policy, belief, ground, progress, beta)
    query = policy.rule(proposal.comparison, progress, generator).query
    return GridDecision(torch.where(query, proposal.query_at, proposal.play_unqueried), query)
