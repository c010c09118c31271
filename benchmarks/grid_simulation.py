"""Many trials of one policy on a drifting grid, side by side in one tensor program."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.models import DriftingGrid
from botorch_costly.optim import chain_local_maxima, far_rival_on_grid
from botorch_costly.problems import DriftingFunction
from botorch_costly.query import Contest, Progress, QueryRule

Score = Callable[[Tensor, Tensor, float], Tensor]  # mean, std, beta -> score, (trials, n)


def upper_confidence_bound(mean: Tensor, std: Tensor, beta: float) -> Tensor:
    """Return ``mean + sqrt(beta) std``."""
    return torch.add(mean, std, alpha=beta**0.5)


def expected_improvement(mean: Tensor, std: Tensor, beta: float) -> Tensor:
    """Return the expected improvement over the largest posterior mean."""
    z = (mean - mean.amax(-1, keepdim=True)) / std
    density = torch.exp(-0.5 * z.square()) / (2 * torch.pi) ** 0.5
    return std * (z * torch.special.ndtr(z) + density)


def probability_of_improvement(mean: Tensor, std: Tensor, beta: float) -> Tensor:
    """Return ``log P(improvement over the largest posterior mean by 0.01 std of the prior)``."""
    z = (mean - mean.amax(-1, keepdim=True) - 0.01) / std
    return torch.special.log_ndtr(z)


@dataclass(frozen=True)
class GridPolicy:
    """Where and whether: a score over the grid, a query rule, and perhaps restarts."""

    name: str
    rule: QueryRule
    score: Score = upper_confidence_bound
    forgetting: float | None = None  # what the model assumes; the truth's if None
    restart_every: int | None = None  # rounds, for R-GP-UCB
    lone_rival: bool = True  # name a far rival for a lone optimum


class Run(NamedTuple):
    """What happened: everything of shape (trials, horizon)."""

    regret: Tensor
    look: Tensor
    choice: Tensor


def simulate(
    truth: DriftingFunction,
    paths: Tensor,  # shape: (trials, horizon, n)
    noise: Tensor,  # shape: (trials, horizon)
    policy: GridPolicy,
    beta: Callable[[int], float],
    generator: torch.Generator,
    bandwidth: float = 0.2,
) -> Run:
    """Run ``policy`` on every path."""
    trials, horizon, _ = paths.shape
    forgetting = truth.forgetting if policy.forgetting is None else policy.forgetting
    belief = DriftingGrid(truth.prior_cov, forgetting, truth.noise, torch.Size([trials]))
    rows = torch.arange(trials, device=paths.device)
    looks = torch.zeros(trials, dtype=torch.long, device=paths.device)
    steps = []
    for t in range(1, horizon + 1):
        if t > 1:
            belief.wait()
        if policy.restart_every and t > 1 and (t - 1) % policy.restart_every == 0:
            belief.restart()
        mean, variance = belief.mean, belief.variance
        score = policy.score(mean, variance.sqrt(), beta(t))
        choice = score.argmax(-1)
        contest = _contest(policy, truth.points, mean, variance, score, choice, beta(t), bandwidth)
        look = policy.rule(contest, Progress(t, looks), generator).look
        value = paths[rows, t - 1, choice]
        belief.observe(choice, value + noise[:, t - 1], look)
        looks += look
        steps.append(Run(paths[:, t - 1].amax(-1) - value, look, choice))
    return Run(*(torch.stack(column, -1) for column in zip(*steps, strict=True)))


def _contest(
    policy: GridPolicy,
    points: Tensor,
    mean: Tensor,
    variance: Tensor,
    score: Tensor,
    choice: Tensor,
    beta: float,
    bandwidth: float,
) -> Contest:
    """Return the contest of the best grid point against the other local maxima of the score."""
    at = choice[:, None]
    present = torch.zeros_like(score, dtype=torch.bool)
    if policy.rule.needs_rivals:
        present = chain_local_maxima(score).scatter(-1, at, False)
        if policy.lone_rival:
            far, exists = far_rival_on_grid(score, choice, points, bandwidth)
            lone = ~present.any(-1) & exists
            present |= torch.zeros_like(present).scatter(-1, far[:, None], True) & lone[:, None]
    return Contest(
        mean.gather(-1, at).squeeze(-1),
        variance.gather(-1, at).squeeze(-1),
        mean,
        variance,
        None,
        present,
        mean.new_full((len(mean),), beta),
    )
