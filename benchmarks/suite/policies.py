"""What sets the hyperparameters of a run: a constant, chance, or a tuner that pays for its queries."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch

from benchmarks.suite.protocol import Metrics, OnlineProblem, TrainingRun
from botorch_costly import Decision, GainReward, GuardedReward, SearchSpace
from botorch_costly.rewards.metric_gain import Kind


class Policy(Protocol):
    """Decides before every round, and may have queried after it."""

    def start(self, run: TrainingRun) -> None:
        """Meet the run, before its first round."""

    def decide(self) -> Decision:
        """Return the configuration of the next round, and whether to validate after it."""

    def query(self, decision: Decision, metrics: Metrics) -> None:
        """Hear what the validation said."""

    def state_dict(self) -> dict[str, Any]:
        """Return what the next decisions depend on."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""


class UnqueriedPolicy:
    """A policy that needs no query; it counts its rounds."""

    def __init__(self) -> None:
        self._round = 0

    def start(self, run: TrainingRun) -> None:
        """Nothing about the run matters."""

    def query(self, decision: Decision, metrics: Metrics) -> None:
        """Nothing is queried."""

    def _play(self, config: Mapping[str, Any], reason: str) -> Decision:
        self._round += 1
        return Decision(self._round - 1, config, query=False, reason=reason)

    def state_dict(self) -> dict[str, Any]:
        return {"round": self._round}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._round = state["round"]


class FixedPolicy(UnqueriedPolicy):
    """The same configuration in every round."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self._config = dict(config)

    def decide(self) -> Decision:
        return self._play(self._config, "fixed")


class AnnealedPolicy(UnqueriedPolicy):
    """The default, whose learning rate follows a schedule of the share of the run."""

    def __init__(self, problem: OnlineProblem, schedule: Callable[[float], float]) -> None:
        super().__init__()
        self._config, self._schedule = dict(problem.default), schedule
        lowest = problem.space.decode(torch.zeros(problem.space.dim, dtype=torch.float64))
        self._horizon, self._least = problem.horizon, lowest["learning_rate"]

    def decide(self) -> Decision:
        rate = self._config["learning_rate"] * self._schedule(self._round / self._horizon)
        config = {**self._config, "learning_rate": max(rate, self._least)}
        return self._play(config, "annealed")


def cosine(share: float) -> float:
    """Return the share of the learning rate: from 1 down to 0.01 by half a cosine."""
    return 0.01 + 0.99 * (1 + math.cos(math.pi * share)) / 2


def one_cycle(share: float) -> float:
    """Return the share of the learning rate: from 0.04 up to 1 in 0.3 of the run, then down."""
    if share < 0.3:
        return 0.04 + 0.96 * (1 - math.cos(math.pi * share / 0.3)) / 2
    return cosine((share - 0.3) / 0.7)


class RandomPolicy(UnqueriedPolicy):
    """A fresh uniform configuration in every round."""

    def __init__(self, space: SearchSpace, seed: int) -> None:
        super().__init__()
        self._space = space
        self._generator = torch.Generator().manual_seed(seed)

    def decide(self) -> Decision:
        config = self._space.decode(self._space.sample(1, self._generator)[0])
        return self._play(config, "random")

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._generator.set_state(state["generator"])


class Tuner(Protocol):
    """What is asked for decisions and told their rewards: ``OnlineTuner``, or a bandit."""

    def ask(self) -> Decision:
        """Decide on the next round."""

    def tell(self, decision: Decision, reward: float | None) -> Any:
        """Hear a reward; None is a query without a reward yet."""

    def state_dict(self) -> dict[str, Any]:
        """Return what the next decisions depend on."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""


class TunedPolicy:
    """A tuner, rewarded by the gain of validation: the relative decrease of the loss, or accuracy."""

    def __init__(
        self, tuner: Tuner, *, guarded: bool = False, metric: Kind = "loss", memory: float = 0.0
    ) -> None:
        self.tuner, self._guarded = tuner, guarded
        self._gain = GainReward(metric, memory=memory)
        self.reward: GainReward | GuardedReward = self._gain

    def start(self, run: TrainingRun) -> None:
        """Keep copies of the run, if it is to be guarded."""
        if self._guarded:
            self.reward = GuardedReward(self._gain, run.save, run.restore)

    def decide(self) -> Decision:
        return self.tuner.ask()

    def query(self, decision: Decision, metrics: Metrics) -> None:
        """Turn the metric into a gain and tell the tuner."""
        self.tuner.tell(decision, self.reward(self._metric(metrics), decision))

    def _metric(self, metrics: Metrics) -> float:
        return metrics.loss if self._gain.kind == "loss" else metrics.accuracy

    def state_dict(self) -> dict[str, Any]:
        return {"tuner": self.tuner.state_dict(), "gain": self.reward.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.tuner.load_state_dict(state["tuner"])
        self.reward.load_state_dict(state["gain"])


class TimedPolicy:
    """A policy whose decisions are timed, in seconds of the CPU."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.seconds = policy, 0.0

    def start(self, run: TrainingRun) -> None:
        self.policy.start(run)

    def decide(self) -> Decision:
        began = time.process_time()
        decision = self.policy.decide()
        self.seconds += time.process_time() - began
        return decision

    def query(self, decision: Decision, metrics: Metrics) -> None:
        began = time.process_time()
        self.policy.query(decision, metrics)
        self.seconds += time.process_time() - began

    def state_dict(self) -> dict[str, Any]:
        return {"policy": self.policy.state_dict(), "seconds": self.seconds}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.policy.load_state_dict(state["policy"])
        self.seconds = state["seconds"]
