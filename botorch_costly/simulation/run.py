"""Many trials of several policies on known functions, computed together as one tensor program.

Notation: ``p`` policies, ``m`` trials, ``n`` grid points; arrays of a round have shape ``(p, m)`` or
``(p, m, n)``. Each policy's rule is called once a round for all trials; no code loops over trials.
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
from botorch_costly.query.rule import check_priced
from botorch_costly.randomness import generator_of
from botorch_costly.simulation.draws import Draws
from botorch_costly.simulation.player import Chance, Decided, drive
from botorch_costly.simulation.policies import GridPolicy
from botorch_costly.simulation.proposal import SEEN, GridProposal, Ground, grid_proposal

_TOLERANCE = 1e-12  # weight below which the belief drops an observation


class Run(NamedTuple):
    """Regret and decisions of every trial, and the posterior after the last round."""

    regret: Tensor  # max f_t - f_t(x_t), shape: (p, m, horizon)
    query: Tensor  # bool, shape: (p, m, horizon)
    choice: Tensor  # index of x_t, shape: (p, m, horizon)
    mean: Tensor  # after the last round, shape: (p, m, n)
    variance: Tensor  # after the last round, shape: (p, m, n)

    def of(self, policy: int) -> "Run":
        """Return the run of one policy, without the leading dimension."""
        return Run(*(tensor[policy] for tensor in self))


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
    """Run policies on the functions, noise and coins of ``draws``, all as one tensor program.

    ``simulate`` also makes the draws, from the model's prior, and splits the work. Use ``play`` for
    functions that differ from that prior. The inputs are not changed.

    Args:
        problem: Prior of the model: points in ascending order, prior covariance, noise variance and,
            for policies that set no rate, the forgetting rate.
        policies: Policies, each of which decides where and whether to query.
        draws: Functions, noise, coins and openings. The simulation runs on their device.
        beta: Beta of the confidence bounds by round; ``LogBeta()`` if omitted.
        bandwidth: Distance beyond which the rival of a lone optimum is sought.
        dtype: Dtype of the posterior's terms, see ``simulate``.
        history: A run whose choices and queries are played instead. The choices and queries returned are
            those that the policies would have made in its rounds; regret and posterior are those of the
            history.

    Raises:
        InvalidShapeError: If draws or history do not fit each other or the points, or the draws differ
            in dtype or device.
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
    replayed = None if history is None else Decided(history.choice, history.query)
    rounds = drive(player, draws.paths, draws.noise, draws.coins, draws.coins, replayed)
    regret = draws.paths.amax(-1) - rounds.value
    return Run(regret, rounds.query, rounds.choice, player.mean, player.variance)


def check_policies(policies: Sequence[GridPolicy], horizon: int) -> None:
    """Raise unless there is a policy, and the rules of all can serve a run of ``horizon`` rounds."""
    is_valid = isinstance(policies, Sequence) and len(policies) > 0
    check(is_valid, "policies", "at least one, in a list", policies)
    for policy in policies:
        check(isinstance(policy, GridPolicy), "policies", "GridPolicy objects", policy)
        check_priced(policy.rule)
        policy.rule.check_run(horizon)


class _GridPlayer:
    """All trials of several policies: a player of batch ``(p, m)``."""

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
        rates = (policy.forgetting for policy in policies)
        self._rates = [problem.forgetting if rate is None else rate for rate in rates]
        prior_cov = problem.prior_cov.to(device)
        self._ground = Ground.from_points(problem.points.to(device), bandwidth)
        self._information_share = information_share(prior_cov)
        self._belief = self._prior_belief(prior_cov, problem.noise, shape, dtype)
        self._ages = torch.tensor([[policy.ages] for policy in policies], device=device)
        # For rules that draw more than the coin. Their draws depend on the batch.
        self._generator = generator_of(0, device)
        self._keep = 1 - torch.tensor(self._rates, dtype=torch.float64, device=device)[:, None]
        self._effective_queries = torch.zeros(shape, dtype=torch.float64, device=device)
        self._queries = torch.zeros(shape, dtype=torch.long, device=device)
        self._seen = torch.zeros(shape, dtype=torch.bool, device=device)  # since the last restart
        self._last_query = self._seen.clone()
        self._query_values = draws.paths.new_full((*shape, RECENT), torch.nan)  # of the last rounds

    def _prior_belief(
        self, prior_cov: Tensor, noise: float, shape: tuple[int, int], dtype: torch.dtype
    ) -> DriftingGrid:
        rates, horizon = self._rates, self._horizon
        ages = all(policy.ages for policy in self._policies)
        rounds = max(memory(rate, _TOLERANCE) for rate in rates) if ages else math.inf
        rate_of_trial = torch.tensor(rates, dtype=torch.float64)[:, None].expand(shape)
        return DriftingGrid(
            prior_cov,
            rates[0] if len(set(rates)) == 1 else rate_of_trial.to(prior_cov.device),
            noise,
            torch.Size(shape),
            tolerance=_TOLERANCE,
            capacity=horizon if rounds >= horizon else int(rounds) + 1,
            term_dtype=dtype,
        )

    @property
    def mean(self) -> Tensor:
        """Posterior mean of every point, shape ``(p, m, n)``."""
        return self._belief.mean

    @property
    def variance(self) -> Tensor:
        """Posterior variance of every point, shape ``(p, m, n)``."""
        return self._belief.variance

    def decide(self, chance: Chance) -> Decided:
        """Return which point each trial plays and whether it queries, both ``(p, m)``."""
        t = self._now
        if t > 0:
            self._advance(t)
        # Before the first query all scores are equal, and the first point would be a corner.
        opening = torch.where(self._seen, SEEN, self._opening)
        decisions = [
            self._decide_for(i, t, opening[i], chance.coin) for i in range(len(self._policies))
        ]
        choice, query = zip(*decisions, strict=True)
        return Decided(torch.stack(choice), torch.stack(query))

    def take_in(self, at: Tensor, reward: Tensor, query: Tensor) -> None:
        """Update the posterior by the round that was played, all ``(p, m)``."""
        self._last_query = query
        self._queries = self._queries + query  # not in place: a rule may keep the tensor
        self._seen = self._seen | query
        self._effective_queries = self._keep * (self._effective_queries + query)
        self._belief.take_in(at, reward, query)
        self._now += 1

    def _advance(self, t: int) -> None:
        """Move the beliefs to round ``t``, and restart those that are due."""
        which = None
        if not all(policy.ages for policy in self._policies):
            which = self._ages | self._last_query
        self._belief.wait(which=which)
        periods = (policy.restart_every for policy in self._policies)
        restarts = [period is not None and t % period == 0 for period in periods]
        if all(restarts):
            self._belief.restart()
            self._seen = torch.zeros_like(self._seen)
        elif any(restarts):
            mask = moved(torch.tensor(restarts), self._seen)[:, None].expand_as(self._seen)
            self._belief.restart(mask)
            self._seen = self._seen & ~mask

    def _decide_for(self, i: int, t: int, opening: Tensor, coin: Tensor) -> tuple[Tensor, Tensor]:
        """Return which points a policy plays and whether it queries, both ``(m,)``."""
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
            query_values=self._query_values[i].roll(-(t % RECENT), -1),  # oldest first
            coin=coin,
        )
