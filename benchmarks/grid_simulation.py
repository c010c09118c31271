"""Many trials of one policy on a drifting grid, side by side in one tensor program.

Notation: ``n`` grid points, ``m`` trials; a round's arrays have shape ``(m, n)`` or ``(m,)``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.acquisition import BetaSchedule
from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.models import DriftingGrid
from botorch_costly.numerics.drift import retention_float
from botorch_costly.numerics.knowledge_gradient import knowledge_gradient, rough_rise, slopes
from botorch_costly.numerics.next_look import option_of_next_look
from botorch_costly.numerics.stationary import coverage
from botorch_costly.optim import chain_local_maxima, far_rival_on_grid
from botorch_costly.problems import DriftingFunction
from botorch_costly.query import RECENT, Contest, Outlook, Progress, Prospect, QueryRule
from botorch_costly.tuners.strategy import BlindPlay

Score = Callable[[Tensor, Tensor, float], Tensor]  # mean, std, beta -> score, all (m, n)

_LEAST_STD = 1e-12  # keeps the standardized gains finite where nothing is left to learn
_SEEN = -1  # no opening: a trial has looked already
_FIELD = 200  # grid points at which a look is weighed roughly,
_PEAKS = 4  # and local maxima of that at which it is weighed exactly
_TOLERANCE = 1e-3  # of the knowledge gradient, in prior standard deviations
_LINES = 100  # grid points that may turn out to be the best
_NEXT_LINES = 34  # and those of them that the next look may be at
_LEAST_GAIN = 0.01  # prior standard deviations by which PI asks to improve


def upper_confidence_bound(mean: Tensor, std: Tensor, beta: float) -> Tensor:
    """Return ``mean + sqrt(beta) std``."""
    return torch.add(mean, std, alpha=beta**0.5)


def expected_improvement(mean: Tensor, std: Tensor, beta: float) -> Tensor:
    """Return the expected improvement over the largest posterior mean."""
    std = std.clamp_min(_LEAST_STD)
    z = (mean - mean.amax(-1, keepdim=True)) / std
    density = torch.exp(-0.5 * z.square()) / (2 * torch.pi) ** 0.5
    return std * (z * torch.special.ndtr(z) + density)


def probability_of_improvement(mean: Tensor, std: Tensor, beta: float) -> Tensor:
    """Return the log probability of a noticeable improvement over the largest posterior mean."""
    z = (mean - mean.amax(-1, keepdim=True) - _LEAST_GAIN) / std.clamp_min(_LEAST_STD)
    return torch.special.log_ndtr(z)


@dataclass(frozen=True)
class GridPolicy:
    """Where and whether: a score over the grid, a query rule, and perhaps restarts.

    Args:
        name: What tables call the policy.
        rule: Whether to look.
        score: Where to go: the point with the highest score is played.
        forgetting: Rate the model assumes, per round; the truth's if omitted.
        restart_every: Rounds after which the model forgets everything, as in R-GP-UCB.
        lone_rival: Whether a lone optimum is held against the best point beyond the bandwidth.
            Without it, the literal rule has nobody to compare it with and never looks again.
        joint: Whether the rule reads the covariances of the incumbent and its rivals.
        blind_play: What a round without a look plays: the maximizer of the ``"acquisition"`` or of the
            ``"mean"``. Rules with an outlook choose themselves.
        ages: Whether the belief ages in rounds without a look. Algorithm 1 as printed (line 10)
            leaves it as it was, although the function has moved on; so the model's clock counts looks.
    """

    name: str
    rule: QueryRule
    score: Score = upper_confidence_bound
    forgetting: float | None = None
    restart_every: int | None = None
    lone_rival: bool = True
    joint: bool = False
    ages: bool = True
    blind_play: BlindPlay = "acquisition"


class Run(NamedTuple):
    """What happened in every trial, and what was believed at the end."""

    regret: Tensor  # max f_t - f_t(x_t), shape: (m, horizon)
    look: Tensor  # bool, shape: (m, horizon)
    choice: Tensor  # index of x_t, shape: (m, horizon)
    mean: Tensor  # after the last round, shape: (m, n)
    variance: Tensor  # after the last round, shape: (m, n)


def simulate(
    truth: DriftingFunction,
    paths: Tensor,  # shape: (m, horizon, n)
    noise: Tensor,  # shape: (m, horizon)
    policy: GridPolicy,
    beta: BetaSchedule,
    generator: torch.Generator,
    bandwidth: float = 0.2,
) -> Run:
    """Run a policy on every path.

    Args:
        truth: Where the paths come from: points in ascending order, prior covariance, noise variance.
        paths: The function in every round, ``trials x horizon x n``; their device is computed on.
        noise: What a look in a round adds to the value, ``trials x horizon``. Given from outside so
            that every policy meets the same.
        policy: Where and whether to look.
        beta: Exploration by round.
        generator: Source of the point each trial opens with and of the query rule's coins, on the
            device of the paths.
        bandwidth: Distance beyond which the rival of a lone optimum is sought.

    Raises:
        InvalidShapeError: If paths and noise do not fit each other or the points.
        CostlyError: If the rule cannot serve a run of that horizon.
    """
    trials, horizon, n = _check_shapes(truth, paths, noise)
    policy.rule.check_run(horizon)
    forgetting = truth.forgetting if policy.forgetting is None else policy.forgetting
    prior_cov, points = truth.prior_cov.to(paths.device), truth.points.to(paths.device)
    belief = DriftingGrid(prior_cov, forgetting, truth.noise, torch.Size([trials]))
    opening = torch.randint(n, (trials,), generator=generator, device=paths.device)
    regret = paths.amax(-1)
    look = torch.empty(trials, horizon, dtype=torch.bool, device=paths.device)
    choice = torch.empty_like(look, dtype=torch.long)
    began, share = 0, coverage(prior_cov)
    live = torch.zeros_like(opening, dtype=paths.dtype)
    worths = paths.new_full((trials, horizon), torch.nan)
    for t in range(horizon):  # beta and the rules count rounds from 1
        if t > 0:
            belief.wait(which=None if policy.ages else look[:, t - 1])
        if policy.restart_every and t > 0 and t % policy.restart_every == 0:
            belief.restart()
            began = t
        looks = look[:, :t].sum(-1)
        recent = worths[:, max(t - RECENT, 0) : max(t, 1)]
        progress = Progress(t + 1, looks, horizon, forgetting, live, share, worths=recent)
        # Before the first look every point is as good as any, and the first one is in a corner.
        seen = look[:, began:t].any(-1)
        first = torch.where(seen, _SEEN, opening)
        move = grid_move(policy, belief, points, progress, beta(t + 1), bandwidth, first)
        verdict = policy.rule(move.contest, progress, generator)
        look[:, t] = verdict.look
        if verdict.rate is not None:
            worths[:, t] = verdict.rate
        at = choice[:, t] = torch.where(look[:, t], move.look_at, move.play_blind)
        live = (1 - forgetting) * (live + look[:, t])
        value = paths[:, t].gather(-1, at[:, None]).squeeze(-1)
        belief.observe(at, value + noise[:, t], look[:, t])
        regret[:, t] -= value
    return Run(regret, look, choice, belief.mean, belief.variance)


class GridMove(NamedTuple):
    """What a round plays, by whether it is looked at, and what the rule is asked about."""

    look_at: Tensor  # shape: (m,)
    play_blind: Tensor  # shape: (m,)
    contest: Contest


def grid_move(
    policy: GridPolicy,
    belief: DriftingGrid,
    points: Tensor,  # shape: (n, d)
    progress: Progress,
    beta: float,
    bandwidth: float,
    opening: Tensor | None = None,  # shape: (m,): where to begin, -1 where that is past
) -> GridMove:
    """Return what a round might play, before anybody decides whether to look."""
    score = policy.score(belief.mean, belief.variance.sqrt(), beta)
    outlook = policy.rule.outlook(progress)
    if outlook is not None:
        best = belief.mean.argmax(-1)
        at, prospect = grid_prospect(belief, best, outlook)
        at = at if opening is None else torch.where(opening == _SEEN, at, opening)
        contest = _grid_contest(policy, belief, points, score, best, beta, bandwidth)
        return GridMove(at, best, contest._replace(prospect=prospect))
    at = score.argmax(-1)
    if opening is not None:
        at = torch.where(opening == _SEEN, at, opening)
    blind = belief.mean.argmax(-1) if policy.blind_play == "mean" else at
    contest = _grid_contest(policy, belief, points, score, at, beta, bandwidth)
    return GridMove(at, blind, contest)


def _grid_contest(
    policy: GridPolicy,
    belief: DriftingGrid,
    points: Tensor,  # shape: (n, d)
    score: Tensor,  # shape: (m, n)
    choice: Tensor,  # shape: (m,)
    beta: float,
    bandwidth: float,
) -> Contest:
    """Return the contest of the best grid point against the other local maxima of the score."""
    at, mean, variance = choice[:, None], belief.mean, belief.variance
    present = torch.zeros_like(score, dtype=torch.bool)
    if policy.rule.needs_rivals:
        present = chain_local_maxima(score).scatter_(-1, at, False)
        if policy.lone_rival:
            far, exists = far_rival_on_grid(score, choice, points, bandwidth)
            lone = ~present.any(-1) & exists
            rows = lone.nonzero().squeeze(-1)
            present[rows, far[rows]] = True
    return Contest(
        mean=mean.gather(-1, at).squeeze(-1),
        variance=variance.gather(-1, at).squeeze(-1),
        rival_mean=mean,
        rival_variance=variance,
        rival_covariance=belief.covariance(choice) if policy.joint else None,
        present=present,
        beta=mean.new_full(choice.shape, beta),
    )


def grid_prospect(
    belief: DriftingGrid,
    best: Tensor,  # shape: (m,)
    outlook: Outlook,
) -> tuple[Tensor, Prospect]:
    """Return where a look promises most, and what.

    What a look promises is worked out roughly at many grid points, then exactly at the highest local
    maxima of that and at the maximizer of the mean. The knowledge gradient is taken over about
    ``_LINES`` points, which on grids much finer than the lengthscale is that over all points, and in
    single precision, far finer than its tolerance.
    """
    lines, field = _evenly(belief, _LINES), _evenly(belief, _FIELD)
    terms = (outlook.reach, outlook.price)
    reach, price = (
        torch.as_tensor(v, dtype=torch.float64).to(belief.mean).expand(len(best)) for v in terms
    )
    level = belief.mean[:, lines].float()
    slope = slopes(*_seen(belief, field.expand(len(best), -1), lines), belief.noise)
    rough = rough_rise(level.unsqueeze(1), slope).to(belief.mean)
    at = torch.cat(
        [best[:, None], field[_peaks(belief.mean[:, field] + reach[:, None] * rough)]], -1
    )
    seen = _seen(belief, at, lines)
    gain = knowledge_gradient(level, *seen, belief.noise, _TOLERANCE).to(belief.mean)
    mean = belief.mean.gather(-1, at)
    option = torch.zeros_like(mean)
    if outlook.foresight > 0:
        option = _option(belief, at, reach, price).to(mean)
    pick = (mean + reach[:, None] * gain + outlook.foresight * option).argmax(-1, keepdim=True)
    prospect = Prospect(*(part.gather(-1, pick)[:, 0] for part in (mean, gain, option)))
    return at.gather(-1, pick)[:, 0], prospect


def _seen(belief: DriftingGrid, at: Tensor, lines: Tensor) -> tuple[Tensor, Tensor]:
    """Return the covariances of points (``m x k``) with the lines, ``(m, k, l)``, and variances."""
    cov = belief.covariance_between(at, lines)
    return cov.float(), belief.variance.gather(-1, at).float()


def _peaks(promises: Tensor) -> Tensor:
    """Return the highest local maxima, the best of them again where there are few, ``(m, k)``."""
    heights = promises.masked_fill(~chain_local_maxima(promises), -torch.inf)
    found = heights.topk(min(_PEAKS, promises.shape[-1]), -1)
    return torch.where(found.values.isfinite(), found.indices, promises.argmax(-1, keepdim=True))


def _option(belief: DriftingGrid, at: Tensor, reach: Tensor, price: Tensor) -> Tensor:
    """Return what the next look would earn more after a look at each point, ``(m, k)``."""
    points = _evenly(belief, _NEXT_LINES)
    everywhere = points.expand(len(at), -1)
    return option_of_next_look(
        belief.mean[:, points].float(),
        belief.covariance_between(everywhere, points).float(),
        belief.prior_cov[points][:, points].float(),
        slopes(*_seen(belief, at, points), belief.noise),
        belief.noise,
        retention_float(belief.forgetting, 1),
        reach.float(),
        price.float(),
    )


def _evenly(belief: DriftingGrid, number: int) -> Tensor:
    """Return about as many points, evenly spread over the grid."""
    n = belief.num_points
    return torch.arange(0, n, max(n // number, 1), device=belief.prior_cov.device)


def _check_shapes(truth: DriftingFunction, paths: Tensor, noise: Tensor) -> tuple[int, int, int]:
    n = len(truth.points)
    fits = paths.dim() == 3 and paths.shape[-1] == n
    check(fits, "paths", f"shape (trials, horizon, {n})", tuple(paths.shape), InvalidShapeError)
    trials, horizon, _ = paths.shape
    fits = tuple(noise.shape) == (trials, horizon)
    expected = f"shape {(trials, horizon)}"
    check(fits, "noise", expected, tuple(noise.shape), InvalidShapeError)
    return trials, horizon, n
