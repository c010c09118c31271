"""``BanditTuner``: a bandit chooses among finitely many configurations."""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from botorch_costly.ask_tell.clocks import Clocks
from botorch_costly.ask_tell.domain import Domain
from botorch_costly.ask_tell.evaluations import Evaluations
from botorch_costly.ask_tell.optimizer import GainOptimizer
from botorch_costly.ask_tell.state import Undo, attributes_of
from botorch_costly.ask_tell.strategy import Action, Proposal, Strategy as AskedStrategy
from botorch_costly.bandits import GPUCB, BanditPlayer, BanditPolicy, RewardRange, Strategy, Told
from botorch_costly.device import check_device, largest_reward
from botorch_costly.errors import InvalidSpaceError, check, is_power_of_two
from botorch_costly.parameters import Plain
from botorch_costly.query import ConfidenceQuery, QueryRule, UnqueriedPlay
from botorch_costly.query.rule import Verdict
from botorch_costly.randomness import generator_of
from botorch_costly.records import Decision, FrozenConfig, Observation
from botorch_costly.space import SearchSpace

_MOST_ARMS = 2000
_logger = logging.getLogger(__name__)


class BanditStrategy(AskedStrategy):
    """Lets a bandit of one trial play the configurations of a finite space.

    Args:
        space: Finite search space; each configuration is an arm.
        player: Bandit of one trial with as many arms.
        estimates: Whether the range of rewards is estimated if those told lie elsewhere.
    """

    def __init__(self, space: SearchSpace, player: BanditPlayer, *, estimates: bool) -> None:
        self._arms = [FrozenConfig(config) for config in space.configurations()]
        self._number = {config: i for i, config in enumerate(self._arms)}
        self._player, self._estimates, self._has_warned = player, estimates, False
        # By round: the probability of the arm, and whether it was explored.
        self._advised: dict[int, tuple[float, bool]] = {}

    def suggest(self, seen: Evaluations[Any, Any]) -> Proposal:
        """Return the arm of the next round, and whether it is queried."""
        player = self._player.copy()
        decided = player.decide(player.chance())
        arm, advice, verdict = int(decided.where), player.advice, _first(player.verdict)
        # An arm that the strategy did not advise was played with probability 1.
        advised = arm == int(advice.arm)
        probability = float(advice.probability) if advised else 1.0
        self._advised[len(seen)] = probability, advised and bool(advice.explored)
        self._player, confidence = player, float(verdict.confidence)
        details = {"confidence": None if math.isnan(confidence) else confidence}
        reason = player.policy.rule.explain(verdict)
        return Proposal(self._arms[arm], reason, query=bool(verdict.query), details=details)

    def may_query(self, seen: Evaluations[Any, Any]) -> bool:
        """Return whether the rule's budget allows a further query."""
        budget = self._player.policy.rule.budget
        return budget is None or seen.queries < budget

    def predict(
        self, seen: Evaluations[Any, Any], points: Tensor, round: int | None = None
    ) -> tuple[Tensor, Tensor] | None:
        """Return the posterior of rewards in a round, by default the next; None before a reward."""
        if seen.best is None:
            return None
        configs = (FrozenConfig(seen.domain.space.decode(point)) for point in points)
        arms = [self._number[config] for config in configs]
        mean, std = self._player.posterior(round)
        return mean[0, arms], std[0, arms]

    def entered(self, suggestion: Decision, seen: Evaluations[Any, Any]) -> None:
        """Note that an arm of the user was played with probability 1, in a round of the bandit."""
        if suggestion.round not in self._advised:
            self._advised[suggestion.round] = 1.0, False
            self._player = self._player.skipped(rounds=1, queries=1)

    def cancelled(self, suggestion: Decision, seen: Evaluations[Any, Any]) -> None:
        """Take back the query of a round, which is not paid for and has no outcome."""
        self._advised = {k: v for k, v in self._advised.items() if k != suggestion.round}
        self._player = self._player.skipped(rounds=0, queries=-int(suggestion.query))

    def learn(self, outcome: Observation, seen: Evaluations[Any, Any], *details: Any) -> None:
        """Learn a reward; learn all of them anew if they are outside the assumed range."""
        if outcome.reward is None:
            return
        others = (other for other in seen.outcomes if other.id != outcome.id)
        player = self._player_for([*others, outcome])
        if player is self._player:
            player = player.copy()
            player.learn(self._row(outcome))
        self._player = player

    def snapshot(self, action: Action, seen: Evaluations[Any, Any]) -> Undo:
        """Return a function that restores the strategy: players are replaced, and never changed."""
        return attributes_of(self)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the bandit, and the probability of the arm of each round."""
        rows = [[float(t), p, float(e)] for t, (p, e) in self._advised.items()]
        advised = torch.tensor(rows, dtype=torch.float64).reshape(-1, 3)
        return {"player": self._player.state_dict(), "advised": advised}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        player = self._player.copy()
        player.load_state_dict(state["player"])
        advised = {int(t): (p, bool(e)) for t, p, e in state["advised"].tolist()}
        self._player, self._advised = player, advised

    def _player_for(self, observations: Sequence[Observation]) -> BanditPlayer:
        """Return the player, or one that has learnt all rewards anew in another range.

        Learning anew is expensive: it is considered for each of the first rewards, and then each time
        that their number has doubled.
        """
        rewarded = [outcome for outcome in observations if outcome.reward is not None]
        rewards, count = [o.reward for o in rewarded if o.reward is not None], len(rewarded)
        assumed = self._player.policy.rewards
        if not (count <= 8 or is_power_of_two(count)) or assumed.fits(rewards):
            return self._player
        # States of earlier versions lack the probabilities.
        complete = all(outcome.round in self._advised for outcome in rewarded)
        estimated = RewardRange.from_rewards(rewards) if self._estimates and complete else assumed
        strategy = self._player.policy.strategy
        # A given range is wrong if it holds no reward; else it matters to a strategy that clips alone.
        is_wrong = not any(assumed.low <= reward <= assumed.high for reward in rewards)
        matters = strategy.assumes_range if self._estimates else is_wrong or strategy.bounded
        if matters and not self._has_warned:
            self._has_warned = True
            advice = "say where they lie: rewards=RewardRange(low, high)"
            advice = f"their range is estimated, or {advice}" if self._estimates else advice
            message = "Rewards such as %.4g are none of a range from %.4g to %.4g; %s."
            _logger.warning(message, rewards[-1], assumed.low, assumed.high, advice)
        if estimated == assumed:
            return self._player
        return self._player.relearnt(estimated, [self._row(o, estimated) for o in rewarded])

    def _row(self, outcome: Observation, within: RewardRange | None = None) -> Told:
        """Return an outcome as a batch of one, its reward clipped to an estimated range."""
        within = self._player.policy.rewards if within is None else within
        reward, device = outcome.reward or 0.0, self._player.device
        reward = within.nearest(reward) if self._estimates and within != RewardRange() else reward
        probability, explored = self._advised[outcome.round]
        numbers = torch.tensor([[outcome.round], [reward], [probability]], dtype=torch.float64)
        arm = torch.tensor([self._number[FrozenConfig(outcome.config)]])
        flags = torch.tensor([[explored], [True]])
        rounds, rewards, probabilities = numbers.to(device)
        return Told(rounds, arm.to(device), rewards, probabilities, *flags.to(device))


class BanditTuner(GainOptimizer[Decision]):
    """Chooses among finitely many configurations, by any bandit strategy and any query rule.

    ``OnlineTuner`` takes choices as well, with one model for choices and numbers. This tuner models arms
    independently, fits how quickly they drift, and offers the classical strategies.

    Args:
        space: Finite search space; each configuration is an arm.
        horizon: Rounds of the run; ``None`` if unknown, which some query rules do not support.
        seconds: Seconds that the run may take, from the first ``ask`` on; no limit if omitted.
        start: Arm of the first round, which is queried, if one is known to be good.
        strategy: Rule that chooses the arm; :class:`botorch_costly.bandits.GPUCB` if omitted.
        query: Rule that decides on queries; ``ConfidenceQuery(0.95)`` if omitted, as in the paper's table
            of bandits.
        rewards: Range of the rewards. If omitted, it is [0, 1]; if rewards are outside, the range is
            estimated, and all rewards are learnt anew. A warning says so if an option of the strategy is
            in units of the range (``UCB1``, ``Softmax``), or it clips rewards (``EXP3S``, ``EXP3R``).
        unqueried_play: Arm that a round without a query plays, see ``BanditPolicy``.
        seed: Seed of all random draws.
        device: Device of all computation.

    Raises:
        InvalidConfigError: If ``start`` is no arm.
        InvalidSpaceError: If the space is not finite, has fewer than two configurations, or too many.
        InvalidArgumentError: If an option is outside its range.
        CostlyError: If the rule does not support the horizon.

    Example:
        >>> from botorch_costly import Choice
        >>> space = SearchSpace({"tune": Choice([False, True])})
        >>> tuner = BanditTuner(space, horizon=100, seed=3)
        >>> for _ in range(3):
        ...     decision = tuner.ask()
        ...     if decision.query:
        ...         _ = tuner.tell(decision, reward=0.9 if decision.config["tune"] else 0.2)
        >>> tuner.queries
        2
    """

    predicts: bool = True

    _changeable = ("horizon", "query", "seconds")

    def __init__(
        self,
        space: SearchSpace,
        horizon: int | None = None,
        *,
        start: Mapping[str, Plain] | None = None,
        strategy: Strategy[Any] | None = None,
        query: QueryRule | None = None,
        rewards: RewardRange | None = None,
        unqueried_play: UnqueriedPlay = "acquisition",
        seconds: float | None = None,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        size = space.size or 0 if isinstance(space, SearchSpace) and space.is_finite else 0
        expected = f"a finite SearchSpace with 2 to {_MOST_ARMS} configurations"
        check(2 <= size <= _MOST_ARMS, "space", expected, space, InvalidSpaceError)
        if horizon is not None and isinstance(horizon, int) and horizon < size:
            message = "Of %d configurations at least %d are never played in %d rounds."
            _logger.warning(message, size, size - horizon, horizon)
        policy = BanditPolicy(
            type(self).__name__,
            GPUCB() if strategy is None else strategy,
            ConfidenceQuery(0.95) if query is None else query,
            rewards=RewardRange() if rewards is None else rewards,
            unqueried_play=unqueried_play,
        )
        device = check_device(device)
        generator = generator_of(seed, device)
        player = BanditPlayer(policy, 1, size, horizon, device=device, generator=generator)
        self._largest = largest_reward(torch.float64) * min(policy.rewards.width, 1.0)
        options = {"strategy": policy.strategy, "query": policy.rule, "rewards": policy.rewards}
        options |= {"unqueried_play": unqueried_play, "seed": seed}
        played = BanditStrategy(space, player, estimates=rewards is None)
        super().__init__(
            Domain(space),
            played,
            horizon=horizon,
            options=options,
            start=start,
            clocks=Clocks(seconds),
        )

    def _check_variance(self, variance: float) -> None:
        expected = "0, for all rewards of an arm are alike; OnlineTuner takes arms and variances"
        check(variance == 0, "variance", expected, variance)

    def best(self) -> dict[str, Plain] | None:
        """Return the configuration with the best mean in the next round; None before a reward."""
        arms = list(self.space.configurations())
        posterior = self.predict(arms)
        return None if posterior is None else dict(arms[int(posterior[0].argmax())])


def _first(verdict: Verdict) -> Verdict:
    """Return the verdict of the only trial, without a batch."""
    query, confidence, cause, *amounts = verdict
    numbers = (None if amount is None else amount[0] for amount in amounts)
    return Verdict(query[0], confidence[0], cause[0], *numbers)
