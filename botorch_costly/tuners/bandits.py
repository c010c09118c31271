"""Tune a decision, such as which optimizer, which policy, or whether to tune at all: a bandit to ask."""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.observed import observation_of
from botorch_costly.ask_tell.recorded import Recorded
from botorch_costly.ask_tell.state import check_header, header, taking_over, undone_on_error
from botorch_costly.bandits import GPUCB, BanditPlayer, BanditPolicy, RewardRange, Strategy, Told
from botorch_costly.device import check_device, largest_reward
from botorch_costly.errors import InvalidSpaceError, check, check_count, is_power_of_two
from botorch_costly.query import ConfidenceQuery, QueryRule, UnqueriedPlay
from botorch_costly.query.rule import Verdict
from botorch_costly.randomness import generator_of
from botorch_costly.records import Decision, FrozenConfig, Observation
from botorch_costly.space import SearchSpace

_MOST_ARMS = 2000
_logger = logging.getLogger(__name__)


class BanditTuner(Recorded[Decision, Observation]):
    """Chooses among finitely many configurations, by any bandit strategy and any query rule.

    ``OnlineTuner`` takes choices as well, with a belief that it shares with numbers; this one keeps the
    arms apart from each other, learns how quickly they drift, and has the classical strategies.

    Args:
        space: Finite; each configuration is an arm.
        horizon: Rounds of the run; ``None`` if unknown, which some query rules do not serve.
        strategy: Which arm to play; :class:`botorch_costly.bandits.GPUCB` if omitted.
        query: Whether to query; ``ConfidenceQuery(0.95)`` if omitted, as in the paper's table of bandits.
        rewards: Where rewards lie. If omitted, in [0, 1], unless those told lie elsewhere: then the range
            is estimated, what was told is learnt anew in its units, and a warning says so.
        unqueried_play: What a round without a query plays, see ``BanditPolicy``.
        seed: The one source of randomness.
        device: Where to compute.

    Raises:
        InvalidSpaceError: If the space is not finite, has fewer than two configurations, or too many.
        InvalidArgumentError: If an option is outside its range.
        CostlyError: If the rule cannot serve a run of that horizon.

    Example:
        >>> from botorch_costly import Choice
        >>> space = SearchSpace({"tune": Choice([False, True])})
        >>> tuner = BanditTuner(space, horizon=100, seed=3)
        >>> for _ in range(3):
        ...     decision = tuner.ask()
        ...     if decision.query:
        ...         told = tuner.tell(decision, reward=0.9 if decision.config["tune"] else 0.2)
        >>> tuner.queries
        2
    """

    _changeable = ("horizon", "query")

    def __init__(
        self,
        space: SearchSpace,
        horizon: int | None = None,
        *,
        strategy: Strategy[Any] | None = None,
        query: QueryRule | None = None,
        rewards: RewardRange | None = None,
        unqueried_play: UnqueriedPlay = "acquisition",
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        size = space.size or 0 if isinstance(space, SearchSpace) and space.is_finite else 0
        expected = f"a finite SearchSpace with 2 to {_MOST_ARMS} configurations"
        check(2 <= size <= _MOST_ARMS, "space", expected, space, InvalidSpaceError)
        self.space = space
        self.horizon = None if horizon is None else check_count("horizon", horizon, minimum=1)
        policy = BanditPolicy(
            type(self).__name__,
            GPUCB() if strategy is None else strategy,
            ConfidenceQuery(0.95) if query is None else query,
            rewards=RewardRange() if rewards is None else rewards,
            unqueried_play=unqueried_play,
        )
        self._arms = [FrozenConfig(config) for config in space.configurations()]
        self._number = {config: i for i, config in enumerate(self._arms)}
        device = check_device(device)
        generator = generator_of(seed, device)
        self._player = BanditPlayer(
            policy, 1, size, self.horizon, device=device, generator=generator
        )
        self._estimates, self._has_warned = rewards is None, False
        width = policy.rewards.width
        self._largest = largest_reward(torch.float64) * min(width, 1.0)
        self._ledger = Ledger(*self.records)
        # What was advised of each round: probability, and whether it was explored.
        self._advised: dict[int, tuple[float, bool]] = {}
        options = {"strategy": policy.strategy, "query": policy.rule, "rewards": policy.rewards}
        more = {"horizon": self.horizon, "unqueried_play": unqueried_play, "seed": seed}
        self._header = header(type(self), space, {**options, **more})

    def ask(self) -> Decision:
        """Return the decision of the next round.

        Raises:
            HorizonExceededError: If all rounds of the horizon have been asked for.
        """
        now, player = self._ledger.next_within(self.horizon), self._player.copy()
        decided = player.decide(player.chance())
        arm, advice = int(decided.where), player.advice
        decision = self._decision(now, arm, player)
        # An arm that the strategy did not advise was played for certain.
        advised = arm == int(advice.arm)
        probability = float(advice.probability) if advised else 1.0
        explored = advised and bool(advice.explored)
        with undone_on_error(self, self._ledger):
            self._advised[now], self._player = (probability, explored), player
            self._ledger.suggest(decision)
        return decision

    def tell(
        self, decision: Decision, reward: float | None, *, seconds: float | None = None
    ) -> Observation:
        """Record the reward of a decision, in any order and however late.

        Args:
            decision: That ``ask`` returned.
            reward: What was found, larger is better; one that is not finite is a failed query, which is
                recorded and never learnt from, as is ``None``. One outside of the range of rewards is
                the nearer end to the strategies of bounded rewards, and what it is to the others.
            seconds: What the query cost, if known; it is recorded.

        Raises:
            UnknownDecisionError: If this tuner never made the decision.
            AlreadyToldError: If it was told before.
            InvalidArgumentError: If the reward is not a number, or too large to compute with, or the
                seconds are negative. In all cases the tuner is unchanged.
        """
        self._ledger.check_open(decision)
        told = observation_of(decision, reward, seconds=seconds, largest=self._largest)
        player = self._player
        if told.reward is not None:
            player = self._player_for([*self.observations, told])
            if player is self._player:
                player = player.copy()
                player.learn(self._told(told))
        with undone_on_error(self, self._ledger):
            self._player = player
            self._ledger.tell(told)
        return told

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values from which the run continues identically."""
        rows = [[float(t), p, float(e)] for t, (p, e) in self._advised.items()]
        return {
            "header": dict(self._header),
            "ledger": self._ledger.state_dict(),
            "player": self._player.state_dict(),
            "advised": torch.tensor(rows, dtype=torch.float64).reshape(-1, 3),
        }

    def load_state_dict(
        self, state: Mapping[str, Any], *, changed: tuple[str, ...] | list[str] = ()
    ) -> None:
        """Continue from ``state_dict``.

        Args:
            state: Of a tuner with equal options.
            changed: Names of options that may differ: ``["horizon"]`` for a run that is
                extended, and those of the query rule.

        Raises:
            StateMismatchError: If the state belongs to other options, such as other arms, or is damaged;
                the tuner is unchanged.
        """
        check_header(state, self._header, changed, among=self.changeable)
        with taking_over(type(self).__name__, self._ledger):
            player = self._player.copy()
            player.load_state_dict(state["player"])
            advised = {int(t): (p, bool(e)) for t, p, e in state["advised"].tolist()}
            self._ledger.load_state_dict(state["ledger"])
        self._player, self._advised = player, advised

    def _decision(self, now: int, arm: int, player: BanditPlayer) -> Decision:
        verdict = _first(player.verdict)
        confidence = float(verdict.confidence)
        return Decision(
            now,
            self._arms[arm],
            query=bool(verdict.query),
            reason=player.policy.rule.explain(verdict),
            confidence=None if math.isnan(confidence) else confidence,
        )

    def _player_for(self, observations: Sequence[Observation]) -> BanditPlayer:
        """Return the player, or one that has learnt rewards anew if they lie elsewhere than it took them.

        Looking is cheap, and learning anew is not: it is done for the first rewards, and then each time
        that there are twice as many.
        """
        told = [one for one in observations if one.reward is not None]
        rewards, count = [one.reward for one in told if one.reward is not None], len(told)
        taken = self._player.policy.rewards
        if not (count <= 8 or is_power_of_two(count)) or taken.fits(rewards):
            return self._player
        known = all(one.round in self._advised for one in told)  # not in states of earlier versions
        estimated = RewardRange.of(rewards) if self._estimates and known else taken
        if not self._has_warned:
            self._has_warned = True
            advice = "say where they lie: rewards=RewardRange(low, high)"
            advice = f"their range is estimated, or {advice}" if self._estimates else advice
            said = "Rewards such as %.4g are none of a range from %.4g to %.4g; %s."
            _logger.warning(said, rewards[-1], taken.low, taken.high, advice)
        if estimated == taken:
            return self._player
        return self._player.relearnt(estimated, [self._told(one, estimated) for one in told])

    def _told(self, told: Observation, within: RewardRange | None = None) -> Told:
        taken = self._player.policy.rewards if within is None else within
        reward = told.reward or 0.0
        reward = taken.nearest(reward) if self._estimates and taken != RewardRange() else reward
        probability, explored = self._advised[told.round]
        numbers = torch.tensor([[told.round], [reward], [probability]], dtype=torch.float64)
        rounds, rewards, probabilities = numbers.to(self._player.device)
        arm, flags = (
            torch.tensor([self._number[FrozenConfig(told.config)]]),
            torch.tensor([[explored], [True]]),
        )
        return Told(rounds, arm.to(rounds.device), rewards, probabilities, *flags.to(rounds.device))


def _first(verdict: Verdict) -> Verdict:
    """Return the verdict of the only trial, without a batch."""
    query, confidence, cause, *amounts = verdict
    numbers = (None if amount is None else amount[0] for amount in amounts)
    return Verdict(query[0], confidence[0], cause[0], *numbers)
