"""A player for bandits: a strategy chooses arms, a query rule decides about queries, in many trials."""

import copy
from collections.abc import Iterable, Iterator, Mapping
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
from botorch_costly.query.rule import Verdict, check_priced
from botorch_costly.randomness import check_generator, generator_of
from botorch_costly.simulation.player import Chance, Decided


@dataclass(frozen=True)
class BanditPolicy:
    """A bandit strategy with a query rule.

    Args:
        name: Name of the policy in tables.
        strategy: Strategy that chooses arms.
        rule: Rule that decides about queries.
        rewards: Range of the rewards.
        unqueried_play: Arm of a round without a query: that of the strategy (``"acquisition"``), or
            the one with the best ``"mean"``. With a rule that has an outlook it is the best mean.
        bounds: ``beta`` of the confidence bounds that a rule compares, by round.

    Raises:
        InvalidArgumentError: If an argument has another type.
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
        is_play = self.unqueried_play in ("acquisition", "mean")
        check(is_play, "unqueried_play", '"acquisition" or "mean"', self.unqueried_play)


class Counts(NamedTuple):
    """The queries of a player's trials so far."""

    queries: Tensor  # long, shape: (m,)
    effective_queries: Tensor  # shape: (m,)
    query_values: Tensor  # of the last rounds, the oldest first, shape: (m, RECENT)


class BanditPlayer:
    """Plays a policy in ``m`` trials: a :class:`botorch_costly.simulation.Player` of batch ``(m,)``.

    Args:
        policy: Strategy with its query rule.
        trials: Number of trials.
        arms: Number of arms, at least 2.
        horizon: Rounds of a trial, ``None`` if unknown.
        device: Device of the computations.
        generator: Generator on that device for ``chance``, and for rules that draw more than a coin; one
            with a fixed seed if omitted.

    Raises:
        InvalidArgumentError: If a number is out of range, or this machine has no such device.
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
        horizon = None if horizon is None else check_count("horizon", horizon, 1)
        self.policy, self._horizon = policy, horizon
        trials, self.arms = check_count("trials", trials, 1), check_count("arms", arms, 2)
        check_priced(policy.rule)
        policy.rule.check_run(horizon)
        self._state: tuple[Tensor, ...] = policy.strategy.begin(trials, self.arms, device)
        if generator is None:
            generator = generator_of(0, device)
        self._generator = check_generator(generator)
        zeros = torch.zeros(trials, dtype=torch.float64, device=device)
        unknown = torch.full((trials, RECENT), torch.nan, dtype=torch.float64, device=device)
        self._counts = Counts(zeros.long(), zeros, unknown)
        self._now, self._information_share = 0, 1.0
        self._advice: Advice | None = None
        self._verdict: Verdict | None = None

    @property
    def advice(self) -> Advice:
        """The strategy's advice for the last round.

        Raises:
            InvalidArgumentError: If no round was decided.
        """
        if self._advice is None:
            raise InvalidArgumentError("advice", "a round that was decided", None)
        return self._advice

    @property
    def verdict(self) -> Verdict:
        """The query rule's verdict for the last round.

        Raises:
            InvalidArgumentError: If no round was decided.
        """
        if self._verdict is None:
            raise InvalidArgumentError("verdict", "a round that was decided", None)
        return self._verdict

    @property
    def device(self) -> torch.device:
        """Device of the computations."""
        return self._counts.queries.device

    def copy(self) -> "BanditPlayer":
        """Return an independent player with the same state."""
        other = copy.copy(self)
        other._generator = self._generator.clone_state()
        return other

    def chance(self) -> Chance:
        """Draw the random numbers of a round, for callers that have not drawn them beforehand."""
        like, generator = self._counts.effective_queries, self._generator
        options: dict[str, Any] = {"dtype": like.dtype, "device": like.device}
        return Chance(*torch.rand(2, len(like), generator=generator, **options))

    def skipped(self, *, rounds: int, queries: int) -> "BanditPlayer":
        """Return a player after rounds that others decided, with so many queries more or fewer."""
        other = self.copy()
        other._now += rounds
        other._counts = self._counts._replace(queries=self._counts.queries + queries)
        return other

    def posterior(self, round: int | None = None) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of the arms' rewards in a round, each of shape ``(m, n)``.

        They are in the caller's units. No later round depends on it.

        Args:
            round: Round of a trial, from 0; the next one if omitted.
        """
        strategy, rewards = self.policy.strategy, self.policy.rewards
        now = self._now if round is None else check_count("round", round)
        luck = torch.full_like(self._counts.effective_queries, 0.5)
        belief = strategy.advise(strategy.refresh(self._state, now), now, luck).belief
        std = belief.cov.diagonal(dim1=-2, dim2=-1).sqrt()
        return rewards.low + rewards.width * belief.mean, rewards.width * std

    def decide(self, chance: Chance) -> Decided:
        """Return the arm of each trial in the next round, and whether the trial queries."""
        policy, now = self.policy, self._now
        self._state = policy.strategy.refresh(self._state, now)
        advice = policy.strategy.advise(self._state, now, chance.luck)
        # Up to a factor the prior covariance is the same in all trials and rounds.
        if self._information_share == 1.0:  # not computed yet; the first rounds may be the caller's
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
        arm = torch.where(verdict.query, proposal.query_at, proposal.play_unqueried)
        self._count(advice, verdict)
        self._now += 1
        return Decided(arm, verdict.query)

    def take_in(self, at: Tensor, reward: Tensor, query: Tensor) -> None:
        """Learn the observations of the last decided round."""
        advice = self.advice
        rounds = torch.full_like(advice.probability, self._now - 1)
        self.learn(Told(rounds, at, reward, advice.probability, advice.explored, query))

    def learn(self, told: Told) -> None:
        """Learn observations of any round, with rewards in units of the caller.

        A query whose reward is not finite has failed: it was paid for, and does not change the state.
        """
        strategy = self.policy.strategy
        query = told.query & told.reward.isfinite()
        unit = self.policy.rewards.to_unit(told.reward.double(), bounded=strategy.bounded)
        reward = torch.where(query, unit, 0.0)  # no NaN, whose product with 0 is NaN
        self._state = strategy.learn(self._state, told._replace(reward=reward, query=query))

    def relearnt(self, rewards: RewardRange, told: Iterable[Told]) -> "BanditPlayer":
        """Return a player with another range of rewards that has learnt all observations again.

        Args:
            rewards: Range of the rewards.
            told: All observations so far, rewards in units of the caller.
        """
        other = self.copy()
        other.policy = replace(self.policy, rewards=rewards)
        trials = len(self._counts.queries)
        other._state = self.policy.strategy.begin(trials, self.arms, self.device)
        for observed in told:
            other.learn(observed)
        return other

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values from which the run continues identically."""
        # Infinity replaces NaN, which is not equal to itself: equal states compare as equal.
        counts = self._counts._asdict().items()
        return {
            **{f"state.{i}": leaf for i, leaf in enumerate(_leaves(self._state))},
            **{name: count.nan_to_num(nan=torch.inf) for name, count in counts},
            "now": self._now,
            "information_share": self._information_share,
            "range": [self.policy.rewards.low, self.policy.rewards.high],
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            StateMismatchError: If a tensor has another dtype, number of dimensions or number of trials;
                the player is unchanged. A state that lacks a key raises KeyError.
        """
        current = {f"state.{i}": leaf for i, leaf in enumerate(_leaves(self._state))}
        current |= self._counts._asdict()
        loaded = {name: _like(state[name], leaf, name) for name, leaf in current.items()}
        leaves = iter(loaded.values())  # those of the strategy are the first
        strategy_state = _filled(self._state, leaves)
        counts = Counts(*(loaded[name] for name in Counts._fields))
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
        query, keep = verdict.query, 1 - advice.belief.forgetting
        rate = verdict.rate if verdict.rate is not None else torch.full_like(keep, torch.nan)
        values = torch.cat([values[:, 1:], rate.to(values)[:, None]], -1)
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
    """Return the tensors of a nested state."""
    fields = [_leaves(field) if isinstance(field, tuple) else [field] for field in state]
    return [leaf for field in fields for leaf in field]


def _like(saved: Any, leaf: Tensor, name: str) -> Tensor:
    """Return a saved tensor on the device of the leaf that it replaces, if it fits.

    The number of places for observations may differ; the first dimension of every tensor is trials.
    """
    expected = f"{leaf.dtype}, {leaf.dim()} dimensions, {len(leaf)} trials"
    is_tensor = isinstance(saved, Tensor) and saved.dim() > 0
    received = saved
    if is_tensor:
        received = f"{saved.dtype}, {saved.dim()} dimensions, {len(saved)} trials"
    check(received == expected, f"state: {name}", expected, received, StateMismatchError)
    return saved.to(leaf.device)


def _filled(state: Any, leaves: Iterator[Tensor]) -> Any:
    """Return a state of the same structure with other leaves."""
    if isinstance(state, tuple):
        return type(state)(*(_filled(field, leaves) for field in state))
    return next(leaves)
