"""Baselines: one configuration for the whole run, or a random one in every round."""

import math
from collections.abc import Mapping
from typing import Any

from botorch_costly.ask_tell.clocks import Clocks
from botorch_costly.ask_tell.domain import Domain
from botorch_costly.ask_tell.evaluations import Evaluations
from botorch_costly.ask_tell.optimizer import GainOptimizer
from botorch_costly.ask_tell.state import Undo, attributes_of
from botorch_costly.ask_tell.strategy import ENQUEUED, Action, Proposal, Strategy
from botorch_costly.errors import InvalidSpaceError, check
from botorch_costly.parameters import Plain
from botorch_costly.randomness import check_seed, generator_of
from botorch_costly.records import Decision, FrozenConfig
from botorch_costly.space import SearchSpace


class _Fixed(Strategy):
    """Plays one configuration in every round."""

    def __init__(self, config: Mapping[str, Plain]) -> None:
        self._config = config

    def suggest(self, seen: Evaluations[Any, Any]) -> Proposal:
        """Return the configuration."""
        return Proposal(self._config, "FixedTuner", query=False)


class _Random(Strategy):
    """Plays a fresh uniformly random configuration in every round."""

    def __init__(self, seed: int) -> None:
        self._generator = generator_of(seed)

    def suggest(self, seen: Evaluations[Any, Any]) -> Proposal:
        """Return a random configuration."""
        self._generator = self._generator.clone_state()
        space = seen.domain.space
        config = space.decode(space.sample(1, self._generator)[0])
        return Proposal(config, "RandomTuner", query=False)

    def snapshot(self, action: Action, seen: Evaluations[Any, Any]) -> Undo:
        """Return a function that restores the generator, which is replaced, and never changed."""
        return attributes_of(self)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the generator."""
        return {"generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        generator = self._generator.clone_state()
        generator.set_state(state["generator"].cpu())
        self._generator = generator


class _Unlearning(GainOptimizer[Decision]):
    """A tuner that learns nothing; it queries the last round alone, and records all outcomes.

    A ``Scheduled`` parameter is played as its peak times the factor of its schedule.
    """

    def __init__(
        self,
        space: SearchSpace,
        strategy: Strategy,
        horizon: int | None,
        options: Mapping[str, Any],
        start: Mapping[str, Plain] | None = None,
        *,
        seconds: float | None,
    ) -> None:
        valid = horizon is not None or seconds is not None or not space.is_scheduled
        expected = "the rounds of the run, or its seconds=, for a Scheduled parameter"
        check(valid, "horizon", expected, horizon)
        domain = Domain(space, allow_single=True)
        super().__init__(
            domain,
            strategy,
            horizon=horizon,
            options=options,
            start=start,
            clocks=Clocks(seconds),
        )

    def _suggestion(self, number: int, proposal: Proposal) -> Decision:
        config = proposal.config
        if proposal.reason != ENQUEUED:
            share = min(number / (self.expected_rounds or math.inf), 1.0)
            config = self.space.scheduled(config, share)
        return Decision(number, config, query=proposal.query, reason=proposal.reason)


class FixedTuner(_Unlearning):
    """Plays one configuration in every round, as without a tuner.

    Args:
        space: Search space of the configuration.
        config: Configuration of every round; the peak of a ``Scheduled`` parameter.
        horizon: Rounds of the run; ``None`` if unknown.
        seconds: Seconds that the run may take, from the first ``ask`` on; no limit if omitted.

    Raises:
        InvalidConfigError: If ``config`` does not belong to the space.
        InvalidArgumentError: If a parameter is ``Scheduled``, and neither rounds nor seconds are given.
    """

    def __init__(
        self,
        space: SearchSpace,
        config: Mapping[str, Plain],
        *,
        horizon: int | None = None,
        seconds: float | None = None,
    ) -> None:
        check(isinstance(space, SearchSpace), "space", "a SearchSpace", space, InvalidSpaceError)
        self.config = FrozenConfig(space.canonical(config))
        options = {"config": self.config}
        super().__init__(space, _Fixed(self.config), horizon, options, seconds=seconds)

    def best(self) -> dict[str, Plain]:
        """Return the configuration."""
        return dict(self.config)


class RandomTuner(_Unlearning):
    """Plays a fresh uniformly random configuration in every round.

    Args:
        space: Search space of the configurations.
        horizon: Rounds of the run; ``None`` if unknown.
        seconds: Seconds that the run may take, from the first ``ask`` on; no limit if omitted.
        start: Configuration of the first round, which is queried, if one is known to be good; the peak of
            a ``Scheduled`` parameter.
        seed: Seed of all random draws.

    Raises:
        InvalidArgumentError: If a parameter is ``Scheduled``, and neither rounds nor seconds are given.
        InvalidConfigError: If ``start`` does not belong to the space.
    """

    def __init__(
        self,
        space: SearchSpace,
        horizon: int | None = None,
        *,
        start: Mapping[str, Plain] | None = None,
        seconds: float | None = None,
        seed: int = 0,
    ) -> None:
        check(isinstance(space, SearchSpace), "space", "a SearchSpace", space, InvalidSpaceError)
        seed = check_seed(seed)
        super().__init__(space, _Random(seed), horizon, {"seed": seed}, start, seconds=seconds)
