"""Many trials of some policies on given functions, side by side in one tensor program.

Notation: ``p`` policies, ``m`` trials, ``n`` grid points; arrays of a round have shape ``(p, m)`` or
``(p, m, n)``. A rule is asked once for its policy; nothing loops over trials.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.acquisition import BetaSchedule, LogBeta
from botorch_costly.device import check_dtype, moved
from botorch_costly.errors import InvalidShapeError, check, check_nonnegative
from botorch_costly.models import DriftingGrid
from botorch_costly.numerics.drift import memory
from botorch_costly.numerics.stationary import information_share
from botorch_costly.problems.drifting import DriftingFunction
from botorch_costly.query import RECENT, Progress
from botorch_costly.randomness import generator_of
from botorch_costly.simulation.draws import Draws
from botorch_costly.simulation.player import Chance, Decided, drive
from botorch_costly.simulation.policies import GridPolicy
from botorch_costly.simulation.proposal import SEEN, GridProposal, Ground, grid_proposal

_TOLERANCE = 1e-12  # weight below which the belief drops what a query has told


class Run(NamedTuple):
    """What happened in every trial, and what was believed at the end."""

    regret: Tensor  # max f_t - f_t(x_t), shape: (p, m, horizon)
    query: Tensor  # bool, shape: (p, m, horizon)
    choice: Tensor  # index of x_t, shape: (p, m, horizon)
    mean: Tensor  # after the last round, shape: (p, m, n)
    variance: Tensor  # after the last round, shape: (p, m, n)

    def of(self, policy: int) -> "Run":
        """Return the run of one policy, without the leading dimension."""
        return Run(*(part[policy] for part in self))


def play(
    problem: DriftingFunction,
    policies: Sequence[GridPolicy],
    draws: Draws,
    *,
    beta: BetaSchedule | None = None,
    bandwidth: float = 0.2,
    dtype: torch.dtype = torch.float64,
    history: Run | None = None,
) -> Run:
    """Run policies on given functions, with given noise and coins: all in one program.

    ``simulate`` draws them, too, and splits the work. This is for functions that differ from what the
    model believes. Nothing that is passed in is changed.

    Args:
        problem: What is believed: points in ascending order, prior covariance, noise variance and,
            for policies without a rate of their own, the forgetting rate.
        policies: Where and whether to query.
        draws: Functions, noise, coins and openings; their device is computed on.
        beta: Exploration by round; ``LogBeta()`` if omitted.
        bandwidth: Distance beyond which the rival of a lone optimum is sought.
        dtype: Of the terms of the beliefs, see ``simulate``.
        history: A run whose choices and queries are played instead. The choices and queries returned are
            what would have been decided in each of its rounds; regret and belief are those of the
            history.

    Raises:
        InvalidShapeError: If draws or history do not fit each other or the points, or a draw has
            another dtype or device than the others.
        InvalidArgumentError: If there is no policy, or an option is outside its range.
        CostlyError: If a rule cannot serve a run of that horizon.
    """
    draws = draws.check(len(problem.points))
    check_policies(policies, draws.noise.shape[1])
    check_nonnegative("bandwidth", bandwidth)
    check_dtype(dtype)
    beta = LogBeta() if beta is None else beta
    check(callable(beta), "beta", "a schedule, round -> beta, such as ConstantBeta(1.0)", beta)
    if history is not None:
        expected = (len(policies), *draws.noise.shape)
        received = tuple(history.choice.shape)
        check(received == expected, "history", f"shape {expected}", received, InvalidShapeError)
    player = _GridPlayer(problem, policies, draws, beta, bandwidth, dtype)
    given = None if history is None else Decided(history.choice, history.query)
    course = drive(player, draws.paths, draws.noise, draws.coins, draws.coins, given)
    regret = draws.paths.amax(-1) - course.value
    return Run(regret, course.query, course.choice, player.mean, player.variance)


def check_policies(policies: Sequence[GridPolicy], horizon: int) -> None:
    """Raise unless there are policies, and all can serve a run of ``horizon`` rounds."""
    some = isinstance(policies, Sequence) and len(policies) > 0
    check(some, "policies", "at least one, in a list", policies)
    for policy in policies:
        check(isinstance(policy, GridPolicy), "policies", "GridPolicy objects", policy)
        policy.rule.check_run(horizon)


class _GridPlayer:
    """All trials of some policies, side by side: a player of batch ``(p, m)``."""

    def __init__(
        self,
        problem: DriftingFunction,
        policies: Sequence[GridPolicy],
        draws: Draws,
        beta: BetaSchedule,
        bandwidth: float,
        dtype: torch.dtype,
    ) -> None:
        self._policies, self._opening, self._beta = policies, draws.opening, beta
        device, (trials, horizon) = draws.noise.device, draws.noise.shape
        self._horizon, self._now, shape = horizon, 0, (len(policies), trials)
        own = (policy.forgetting for policy in policies)
        self._rates = [problem.forgetting if rate is None else rate for rate in own]
        prior_cov = problem.prior_cov.to(device)
        self._ground = Ground.of(problem.points.to(device), bandwidth)
        self._information_share = information_share(prior_cov)
        self._belief = self._believed(prior_cov, problem.noise, shape, dtype)
        self._ages = torch.tensor([[policy.ages] for policy in policies], device=device)
        # For rules that draw otherwise than by a coin; what they draw depends on the batch.
        self._generator = generator_of(0, device)
        self._keep = 1 - torch.tensor(self._rates, dtype=torch.float64, device=device)[:, None]
        self._effective_queries = torch.zeros(shape, dtype=torch.float64, device=device)
        self._queries = torch.zeros(shape, dtype=torch.long, device=device)
        self._seen = torch.zeros(shape, dtype=torch.bool, device=device)  # since the last restart
        self._last_query = self._seen.clone()
        self._query_values = draws.paths.new_full((*shape, RECENT), torch.nan)  # of the last rounds

    def _believed(
        self, prior_cov: Tensor, noise: float, shape: tuple[int, int], dtype: torch.dtype
    ) -> DriftingGrid:
        rates, horizon = self._rates, self._horizon
        ages = all(policy.ages for policy in self._policies)
        rounds = max(memory(rate, _TOLERANCE) for rate in rates) if ages else math.inf
        every = torch.tensor(rates, dtype=torch.float64)[:, None].expand(shape)
        return DriftingGrid(
            prior_cov,
            rates[0] if len(set(rates)) == 1 else every.to(prior_cov.device),
            noise,
            torch.Size(shape),
            tolerance=_TOLERANCE,
            capacity=horizon if rounds >= horizon else int(rounds) + 1,
            term_dtype=dtype,
        )

    @property
    def mean(self) -> Tensor:
        """What is believed of every point, shape ``(p, m, n)``."""
        return self._belief.mean

    @property
    def variance(self) -> Tensor:
        """How surely, shape ``(p, m, n)``."""
        return self._belief.variance

    def decide(self, chance: Chance) -> Decided:
        """Return where each trial goes and whether it queries, both ``(p, m)``."""
        t = self._now
        if t > 0:
            self._pass(t)
        # Before the first query every point is as good as any, and the first one is in a corner.
        opening = torch.where(self._seen, SEEN, self._opening)
        several = range(len(self._policies))
        decided = [self._decide_for(i, t, opening[i], chance.coin) for i in several]
        at, query = zip(*decided, strict=True)
        return Decided(torch.stack(at), torch.stack(query))

    def take_in(self, at: Tensor, reward: Tensor, query: Tensor) -> None:
        """Take in a round that was played, all ``(p, m)``."""
        self._last_query = query
        self._queries = self._queries + query  # rules may keep what they were told
        self._seen = self._seen | query
        self._effective_queries = self._keep * (self._effective_queries + query)
        self._belief.take_in(at, reward, query)
        self._now += 1

    def _pass(self, t: int) -> None:
        """Let a round pass, and some policies start afresh."""
        which = None
        if not all(policy.ages for policy in self._policies):
            which = self._ages | self._last_query
        self._belief.wait(which=which)
        periods = (policy.restart_every for policy in self._policies)
        afresh = [period is not None and t % period == 0 for period in periods]
        if all(afresh):
            self._belief.restart()
            self._seen = torch.zeros_like(self._seen)
        elif any(afresh):
            mask = moved(torch.tensor(afresh), self._seen)[:, None].expand_as(self._seen)
            self._belief.restart(mask)
            self._seen = self._seen & ~mask

    def _decide_for(self, i: int, t: int, opening: Tensor, coin: Tensor) -> tuple[Tensor, Tensor]:
        """Return where a policy goes and whether it queries, both ``(m,)``."""
        policy, progress = self._policies[i], self._progress(i, t, coin)
        proposal: GridProposal = grid_proposal(
            policy, self._belief.select(i), self._ground, progress, self._beta(t + 1), opening
        )
        verdict = policy.rule(proposal.comparison, progress, self._generator)
        if verdict.rate is not None:
            self._query_values[i, :, t % RECENT] = verdict.rate
        return torch.where(verdict.query, proposal.query_at, proposal.play_unqueried), verdict.query

    def _progress(self, i: int, t: int, coin: Tensor) -> Progress:
        return Progress(
            round=t + 1,  # beta and the rules count rounds from 1
            queries=self._queries[i],
            horizon=self._horizon,
            forgetting=self._rates[i],
            effective_queries=self._effective_queries[i],
            information_share=self._information_share,
            query_values=self._query_values[i].roll(-(t % RECENT), -1),  # the oldest first
            coin=coin,
        )
