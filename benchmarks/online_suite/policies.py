"""Who sets the hyperparameters of a run: a constant, chance, or a tuner that pays for its looks."""

from collections.abc import Mapping
from typing import Any, Protocol

import torch

from benchmarks.online_suite.protocol import Metrics, OnlineProblem
from botorch_costly import Decision, GainReward, OnlineTuner, Real, SearchSpace


class Policy(Protocol):
    """Decides before every round, and may have looked after it."""

    def decide(self) -> Decision:
        """Return the configuration of the next round, and whether to validate after it."""

    def look(self, decision: Decision, metrics: Metrics) -> None:
        """Hear what the validation said."""

    def state_dict(self) -> dict[str, Any]:
        """Return what the next decisions depend on."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""


def space_of(problem: OnlineProblem) -> SearchSpace:
    """Return the search space of a problem."""
    return SearchSpace({name: Real(*limits) for name, limits in problem.ranges.items()})


class FixedPolicy:
    """The same configuration in every round, and never a look."""

    def __init__(self, config: Mapping[str, float]) -> None:
        self._config, self._round = dict(config), 0

    def decide(self) -> Decision:
        """Return the configuration of the next round."""
        self._round += 1
        return Decision(self._round - 1, self._config, False, "fixed")

    def look(self, decision: Decision, metrics: Metrics) -> None:
        """Nobody looks."""

    def state_dict(self) -> dict[str, Any]:
        """Return the round."""
        return {"round": self._round}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self._round = state["round"]


class RandomPolicy:
    """A fresh uniform configuration in every round, and never a look."""

    def __init__(self, space: SearchSpace, seed: int) -> None:
        self._space, self._round = space, 0
        self._generator = torch.Generator().manual_seed(seed)

    def decide(self) -> Decision:
        """Return the configuration of the next round."""
        config = self._space.decode(self._space.sample(1, self._generator)[0])
        self._round += 1
        return Decision(self._round - 1, config, False, "random")

    def look(self, decision: Decision, metrics: Metrics) -> None:
        """Nobody looks."""

    def state_dict(self) -> dict[str, Any]:
        """Return the round and the generator."""
        return {"round": self._round, "generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self._round = state["round"]
        self._generator.set_state(state["generator"])


class TunedPolicy:
    """An online tuner, rewarded by the relative decrease of the validation loss."""

    def __init__(self, tuner: OnlineTuner) -> None:
        self.tuner, self._gain = tuner, GainReward("loss")

    def decide(self) -> Decision:
        """Return the configuration of the next round, and whether to validate after it."""
        return self.tuner.ask()

    def look(self, decision: Decision, metrics: Metrics) -> None:
        """Turn the loss into a gain and tell the tuner."""
        self.tuner.tell(decision, self._gain(metrics.loss, decision.round))

    def state_dict(self) -> dict[str, Any]:
        """Return the states of the tuner and of its reward."""
        return {"tuner": self.tuner.state_dict(), "gain": self._gain.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self.tuner.load_state_dict(state["tuner"])
        self._gain.load_state_dict(state["gain"])
