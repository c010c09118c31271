"""Tuners to compare with: one configuration for the whole run, or a fresh random one in every round."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.observed import observation_of
from botorch_costly.ask_tell.recorded import Recorded
from botorch_costly.ask_tell.state import (
    check_header,
    header,
    taking_over,
    undone_on_error,
)
from botorch_costly.errors import check, check_count
from botorch_costly.randomness import check_seed, generator_of
from botorch_costly.records import Decision, FrozenConfig, Observation, Plain
from botorch_costly.space import SearchSpace


class _Unqueried(Recorded[Decision, Observation], ABC):
    """A tuner that asks for no query; outcomes may be told all the same, and are recorded.

    A ``Scheduled`` parameter is played as its peak times the factor of its schedule.
    """

    def __init__(self, space: SearchSpace, horizon: int | None, options: Mapping[str, Any]) -> None:
        self.space = space
        self.horizon = None if horizon is None else check_count("horizon", horizon, minimum=1)
        falls = self.horizon is not None or not space.is_scheduled
        check(falls, "horizon", "the rounds of the run, for a Scheduled parameter", horizon)
        self._ledger = Ledger(*self.records)
        self._header = header(type(self), space, {"horizon": self.horizon, **options})

    def ask(self) -> Decision:
        """Return the decision of the next round.

        Raises:
            HorizonExceededError: If all rounds of the horizon have been asked for.
        """
        now = self._ledger.next_within(self.horizon)
        with undone_on_error(self, self._ledger):
            share = 0.0 if self.horizon is None else now / self.horizon
            played = self.space.scheduled(self._config(), share)
            decision = Decision(now, played, query=False, reason=type(self).__name__)
            self._ledger.suggest(decision)
        return decision

    def tell(
        self, decision: Decision, reward: float | None, *, seconds: float | None = None
    ) -> Observation:
        """Record a reward, and what it cost if that is known; it changes no later decision.

        Raises:
            UnknownDecisionError: If this tuner never made the decision.
            AlreadyToldError: If it was told before.
            InvalidArgumentError: If the reward is not a number, or the seconds are negative. In all
                cases the tuner is unchanged.
        """
        self._ledger.check_open(decision)
        told = observation_of(decision, reward, seconds=seconds)
        self._ledger.tell(told)
        return told

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values from which the run continues identically."""
        return {"header": dict(self._header), "ledger": self._ledger.state_dict()}

    def load_state_dict(
        self, state: Mapping[str, Any], *, changed: tuple[str, ...] | list[str] = ()
    ) -> None:
        """Continue from ``state_dict``.

        Args:
            state: Of a tuner with equal options.
            changed: Names of options that may differ: ``["horizon"]`` for a run that is extended.

        Raises:
            StateMismatchError: If the state belongs to other options, or is damaged; the tuner is
                unchanged.
        """
        check_header(state, self._header, changed, among=self.changeable)
        with taking_over(type(self).__name__, self._ledger):
            self._ledger.load_state_dict(state["ledger"])
            self._continue(state)

    @abstractmethod
    def _config(self) -> Mapping[str, Plain]:
        """Return the configuration of the next round, with peaks of scheduled parameters."""

    def _continue(self, state: Mapping[str, Any]) -> None:
        """Take over what the state holds beyond the ledger."""


class FixedTuner(_Unqueried):
    """Plays one configuration in every round: what a user has without a tuner.

    Args:
        space: Of the configurations.
        config: The configuration of every round; the peak of a ``Scheduled`` parameter.
        horizon: Rounds of the run; ``None`` if unknown.

    Raises:
        InvalidConfigError: If ``config`` does not belong to the space.
        InvalidArgumentError: If a parameter is ``Scheduled`` and the horizon is unknown.
    """

    def __init__(
        self, space: SearchSpace, config: Mapping[str, Plain], *, horizon: int | None = None
    ) -> None:
        self.config = FrozenConfig(space.canonical(config))
        super().__init__(space, horizon, {"config": self.config})

    def _config(self) -> Mapping[str, Plain]:
        return self.config


class RandomTuner(_Unqueried):
    """Plays a fresh uniformly random configuration in every round.

    Args:
        space: Of the configurations.
        horizon: Rounds of the run; ``None`` if unknown.
        seed: The one source of randomness.

    Raises:
        InvalidArgumentError: If a parameter is ``Scheduled`` and the horizon is unknown.
    """

    def __init__(self, space: SearchSpace, horizon: int | None = None, *, seed: int = 0) -> None:
        seed = check_seed(seed)
        super().__init__(space, horizon, {"seed": seed})
        self._generator = generator_of(seed)

    def _config(self) -> Mapping[str, Plain]:
        # The generator of before is left as it was, for a call that is interrupted.
        self._generator = self._generator.clone_state()
        return self.space.decode(self.space.sample(1, self._generator)[0])

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values from which the run continues identically."""
        return {**super().state_dict(), "generator": self._generator.get_state()}

    def _continue(self, state: Mapping[str, Any]) -> None:
        self._generator.set_state(state["generator"].cpu())
