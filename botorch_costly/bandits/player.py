"""A bandit as a player: a strategy says where, a query rule whether, in many trials at once."""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.acquisition.beta import BetaSchedule, ConstantBeta
from botorch_costly.bandits.rewards import RewardRange
from botorch_costly.bandits.strategy import Advice, Strategy, Told
from botorch_costly.bandits.weighing import arm_proposal
from botorch_costly.device import check_device
from botorch_costly.errors import InvalidArgumentError, StateMismatchError, check, check_count
from botorch_costly.numerics.stationary import information_share
from botorch_costly.query import RECENT, Progress, QueryRule, UnqueriedPlay
from botorch_costly.query.rule import Verdict
from botorch_costly.randomness import check_generator, generator_of
from botorch_costly.simulation.player import Chance, Decided


@dataclass(frozen=True)
class BanditPolicy:
    """Where and whether: a strategy and a query rule.

    Args:
        name: Of the policy in tables.
        strategy: Which arm to play.
        rule: Whether to query.
        rewards: Where rewards lie.
        unqueried_play: What a round without a query plays: the arm of the strategy (``"acquisition"``),
            or that with the best ``"mean"``. Rules with an outlook choose themselves.
        bounds: ``beta`` of the confidence bounds that a rule compares, by round.

    Raises:
        InvalidArgumentError: If a part is none of its kind.
    """

    name: str
    strategy: Strategy[Any]
    rule: QueryRule
    _: KW_ONLY
    rewards: RewardRange = field(default_factory=RewardRange)
    unqueried_play: UnqueriedPlay = "acquisition"
    bounds: BetaSchedule = field(default_factory=ConstantBeta)

    def __post_init__(self) -> None:
        check(isinstance(self.strategy, Strategy), "strategy", "a Strategy", self.strategy)
        check(isinstance(self.rule, QueryRule), "rule", "a QueryRule", self.rule)
        check(isinstance(self.rewards, RewardRange), "rewards", "a RewardRange", self.rewards)
        check(callable(self.bounds), "bounds", "beta by round, a BetaSchedule", self.bounds)
        known = self.unqueried_play in ("acquisition", "mean")
        check(known, "unqueried_play", '"acquisition" or "mean"', self.unqueried_play)


class Counts(NamedTuple):
    """How far the trials of a player have come."""

    queries: Tensor  # long, shape: (m,)
    effective_queries: Tensor  # shape: (m,)
    query_values: Tensor  # of the last rounds, the oldest first, shape: (m, RECENT)


class BanditPlayer:
    """Plays a policy in ``m`` trials: a :class:`botorch_costly.simulation.Player` of batch ``(m,)``.

    Args:
        policy: Where and whether.
        trials: Number of trials.
        arms: Number of arms, at least 2.
        horizon: Rounds of a trial, ``None`` if unknown.
        device: Where to compute.
        generator: Of what ``chance`` draws, and of rules that draw otherwise than by a coin, on the
            device; one with a fixed seed if omitted.

    Raises:
        InvalidArgumentError: If a number is no such count, or this machine has no such device.
        CostlyError: If the rule cannot serve a run of that horizon.
    """

    def __init__(
        self,
        policy: BanditPolicy,
        trials: int,
        arms: int,
        horizon: int | None = None,
        *,
        device: torch.device | str = "cpu",
        generator: torch.Generator | None = None,
    ) -> None:
        check(isinstance(policy, BanditPolicy), "policy", "a BanditPolicy", policy)
        device = check_device(device)
        self.policy, self._horizon = policy, horizon
        trials, self.arms = check_count("trials", trials, 1), check_count("arms", arms, 2)
        policy.rule.check_run(horizon)
        self._state: tuple[Tensor, ...] = policy.strategy.begin(trials, self.arms, device)
        if generator is None:
            generator = generator_of(0, device)
        self._generator = check_generator(generator)
        nothing = torch.zeros(trials, dtype=torch.float64, device=device)
        unknown = torch.full((trials, RECENT), torch.nan, dtype=torch.float64, device=device)
        self._counts = Counts(nothing.long(), nothing, unknown)
        self._now, self._information_share = 0, 1.0
        self._advice: Advice | None = None
        self._verdict: Verdict | None = None

    @property
    def advice(self) -> Advice:
        """What the strategy said of the last round.

        Raises:
            InvalidArgumentError: If no round was decided.
        """
        if self._advice is None:
            raise InvalidArgumentError("advice", "a round that was decided", None)
        return self._advice

    @property
    def verdict(self) -> Verdict:
        """What the query rule said of the last round.

        Raises:
            InvalidArgumentError: If no round was decided.
        """
        if self._verdict is None:
            raise InvalidArgumentError("verdict", "a round that was decided", None)
        return self._verdict

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self._counts.queries.device

    def copy(self) -> "BanditPlayer":
        """Return a player that goes on from here; what it does leaves this one as it is."""
        other = copy.copy(self)
        other._generator = self._generator.clone_state()
        return other

    def chance(self) -> Chance:
        """Draw what a round needs, for players whose luck was not drawn beforehand."""
        like, drawn = self._counts.effective_queries, self._generator
        coin, luck = torch.rand(
            2, len(like), generator=drawn, dtype=like.dtype, device=like.device
        ).unbind(0)
        return Chance(coin, luck)

    def posterior(self) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of the arms' rewards in the next round, ``(m, n)`` each.

        They are in the caller's units. No later round depends on it.
        """
        strategy, rewards = self.policy.strategy, self.policy.rewards
        luck = torch.full_like(self._counts.effective_queries, 0.5)
        state = strategy.refresh(self._state, self._now)
        belief = strategy.advise(state, self._now, luck).belief
        std = belief.cov.diagonal(dim1=-2, dim2=-1).sqrt()
        return rewards.low + rewards.width * belief.mean, rewards.width * std

    def decide(self, chance: Chance) -> Decided:
        """Return which arm each trial plays in the next round, and whether it queries."""
        policy, now = self.policy, self._now
        self._state = policy.strategy.refresh(self._state, now)
        advice = policy.strategy.advise(self._state, now, chance.luck)
        # The covariance of the arms is the same in all trials and rounds, up to a factor.
        if now == 0:
            self._information_share = information_share(advice.belief.prior_cov[0])
        progress = self._progress(advice, chance.coin)
        proposal = arm_proposal(
            advice,
            policy.rule.outlook(progress),
            policy.bounds(now + 1),
            plays_mean=policy.unqueried_play == "mean",
            chooses=policy.strategy.chooses,
        )
        verdict = policy.rule(proposal.comparison, progress, self._generator)
        self._advice, self._verdict = advice, verdict
        at = torch.where(verdict.query, proposal.query_at, proposal.play_unqueried)
        self._count(advice, verdict)
        self._now += 1
        return Decided(at, verdict.query)

    def take_in(self, at: Tensor, reward: Tensor, query: Tensor) -> None:
        """Take in the round that was decided last."""
        advice = self.advice
        rounds = torch.full_like(advice.probability, self._now - 1)
        self.learn(Told(rounds, at, reward, advice.probability, advice.explored, query))

    def learn(self, told: Told) -> None:
        """Learn what queries told, of whichever round; rewards are in units of the caller.

        A query whose reward is not finite has failed: it was paid for, and is never learnt from.
        """
        strategy = self.policy.strategy
        query = told.query & told.reward.isfinite()
        unit = self.policy.rewards.to_unit(told.reward.double(), bounded=strategy.bounded)
        reward = torch.where(query, unit, 0.0)  # what was not found out is not read
        self._state = strategy.learn(self._state, told._replace(reward=reward, query=query))

    def relearnt(self, rewards: RewardRange, told: Iterable[Told]) -> "BanditPlayer":
        """Return a player for which rewards lie elsewhere, and that has learnt them anew.

        Args:
            rewards: Where they lie.
            told: What all queries told so far, rewards in units of the caller.
        """
        other = self.copy()
        other.policy = replace(self.policy, rewards=rewards)
        trials = len(self._counts.queries)
        other._state = self.policy.strategy.begin(trials, self.arms, self.device)
        for one in told:
            other.learn(one)
        return other

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values from which the run continues identically."""
        parts = {f"state.{i}": part for i, part in enumerate(_leaves(self._state))}
        # Numbers that are not equal to themselves would make no two states alike.
        counts = {
            name: part.nan_to_num(nan=torch.inf) for name, part in self._counts._asdict().items()
        }
        return {
            **parts,
            **counts,
            "now": self._now,
            "information_share": self._information_share,
            "range": [self.policy.rewards.low, self.policy.rewards.high],
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            StateMismatchError: If a tensor is of another kind or of other trials than those here; the
                player is unchanged. A state that lacks a part raises KeyError.
        """
        named = {f"state.{i}": leaf for i, leaf in enumerate(_leaves(self._state))}
        named |= self._counts._asdict()
        found = {name: _like(state[name], leaf, name) for name, leaf in named.items()}
        leaves = iter(found.values())  # those of the strategy are the first
        strategy_state = _filled(self._state, lambda: next(leaves))
        counts = Counts(*(found[name] for name in Counts._fields))
        values = counts.query_values.masked_fill(counts.query_values == torch.inf, torch.nan)
        now, share = int(state["now"]), float(state["information_share"])
        rewards = RewardRange(*state["range"]) if "range" in state else self.policy.rewards
        self._generator.set_state(state["generator"].cpu())
        self.policy = replace(self.policy, rewards=rewards)
        self._state, self._counts = strategy_state, counts._replace(query_values=values)
        self._now, self._information_share = now, share
        self._advice = self._verdict = None

    def _count(self, advice: Advice, verdict: Verdict) -> None:
        queries, effective, values = self._counts
        keep = 1 - advice.belief.forgetting
        rate = verdict.rate if verdict.rate is not None else torch.full_like(keep, torch.nan)
        values = torch.cat([values[:, 1:], rate.to(values)[:, None]], -1)
        query = verdict.query
        self._counts = Counts(queries + query, keep * (effective + query), values)

    def _progress(self, advice: Advice, coin: Tensor) -> Progress:
        return Progress(
            round=self._now + 1,  # beta and the rules count rounds from 1
            queries=self._counts.queries,
            horizon=self._horizon,
            forgetting=advice.belief.forgetting,
            effective_queries=self._counts.effective_queries,
            information_share=self._information_share,
            scale=self.policy.rewards.width,
            query_values=self._counts.query_values,
            coin=coin,
        )


def _leaves(state: tuple[Any, ...]) -> list[Tensor]:
    """Return the tensors of a state, however it is nested."""
    parts = [_leaves(part) if isinstance(part, tuple) else [part] for part in state]
    return [leaf for part in parts for leaf in part]


def _like(found: Any, leaf: Tensor, name: str) -> Tensor:
    """Return a saved tensor on the device of the one in its place, if it may stand there.

    Places of observations may be more or fewer; trials are the first dimension of all.
    """
    kind = f"{leaf.dtype}, {leaf.dim()} dimensions, {len(leaf)} trials"
    tensor = isinstance(found, Tensor) and found.dim() > 0
    received = f"{found.dtype}, {found.dim()} dimensions, {len(found)} trials" if tensor else found
    check(received == kind, f"state: {name}", kind, received, StateMismatchError)
    return found.to(leaf.device)


def _filled(state: Any, following: Any) -> Any:
    """Return a state of that structure with other tensors."""
    if isinstance(state, tuple):
        return type(state)(*(_filled(part, following) for part in state))
    return following()
