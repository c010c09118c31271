"""A reward that counts what an arm costs: its gain less what training earns in the same time.

A round that tunes takes longer than one that only trains, of which the gain of a round knows nothing.
Its net gain does. With ``g`` the gain of validation, ``pace`` the average gain so far in the time of a
round of training, and ``c`` what the round costs beyond one of training, in rounds of training,

    net gain = g - c * pace.

An arm is worth its time if its net gain is the larger one, which is how a ratio of gain to time is
maximized (Dinkelbach 1967). Costs are counted in steps, not measured, so that decisions repeat.

References:
    W. Dinkelbach. On nonlinear fractional programming. Management Science 13(7), 1967.
"""

from collections.abc import Mapping
from typing import Any

from benchmarks.suite.policies import TunedPolicy, Tuner
from benchmarks.suite.protocol import Metrics
from benchmarks.training.schedule.recipes import PACES
from botorch_costly import Decision


def extra_cost(config: Mapping[str, Any], step_cost: float) -> float:
    """Return what a round costs beyond one that only trains, in rounds of training.

    Args:
        config: Of the round, with its ``"arm"``.
        step_cost: Of a tuning step, in training steps.
    """
    pace = PACES[str(config["arm"])]
    return 0.0 if pace is None else step_cost / pace


class NetGainPolicy(TunedPolicy):
    """A tuner, rewarded by the net gain of the validation loss in nats.

    Args:
        tuner: That decides.
        step_cost: Of a tuning step, in training steps.
    """

    def __init__(self, tuner: Tuner, step_cost: float) -> None:
        super().__init__(tuner)
        self._step_cost = step_cost
        self._spent = 0.0  # in rounds of training
        self._first: list[float] = []  # level and time of the first query

    def decide(self) -> Decision:
        """Return the arm of the next round, and whether to validate after it."""
        decision = super().decide()
        self._spent += 1 + extra_cost(decision.config, self._step_cost)
        return decision

    def query(self, decision: Decision, metrics: Metrics) -> None:
        """Tell the tuner the net gain of a round; the first query gives a reference alone."""
        gain, level = self.reward(metrics.loss, decision), self._gain.level(metrics.loss)
        if gain is None:
            self._first = [level, self._spent]
            self.tuner.tell(decision, None)
            return
        pace = (level - self._first[0]) / (self._spent - self._first[1])
        # While training only got worse, time is worth nothing.
        worth = max(pace, 0.0) * extra_cost(decision.config, self._step_cost)
        self.tuner.tell(decision, gain - worth)

    def state_dict(self) -> dict[str, Any]:
        """Return the states of tuner and gain, and what was spent."""
        return {**super().state_dict(), "spent": self._spent, "first": self._first}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        super().load_state_dict(state)
        self._spent, self._first = state["spent"], list(state["first"])
