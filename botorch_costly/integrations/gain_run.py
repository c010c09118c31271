"""A run whose tuner is told gains, and whose network is guarded."""

from collections.abc import Mapping
from typing import Any

from botorch_costly.integrations.distributed import SharedTuner
from botorch_costly.integrations.parts import inner_network
from botorch_costly.integrations.training import Trained, TrainerOptions
from botorch_costly.records import Decision
from botorch_costly.rewards import GainReward, GuardedReward
from botorch_costly.states import Stateful


class GainRun:
    """The reward of a run: the gain since the last query, with a guard if the options say so.

    Args:
        shared: The tuner of all ranks.
        trained: The objects that training changes.
        options: Options of the tuner in the trainer.
    """

    def __init__(self, shared: SharedTuner[Any], trained: Trained, options: TrainerOptions) -> None:
        gain = GainReward(options.metric)
        self._shared, self._guard = shared, None
        if options.guard:
            network = inner_network(trained.network)  # so that the state also fits a single process
            guarded: list[Stateful] = [network, trained.optimizer, *trained.schedulers]
            self._guard = GuardedReward.of(gain, *guarded, *trained.parts, device=options.device)
            self._guard.trust_rates()
        self._reward: GainReward | GuardedReward = gain if self._guard is None else self._guard

    @property
    def restores(self) -> int:
        """Number of times that the network was restored."""
        return 0 if self._guard is None else self._guard.restores

    @property
    def mends(self) -> bool:
        """Whether there is a good state to restore a diverged network to."""
        return self._guard is not None and self._guard.has_good_state

    def begin(self) -> None:
        """Do nothing: the reward is ready."""

    def ask(self, accumulates: bool) -> Decision:
        """Return the next decision, the same one on all ranks."""
        return self._shared.ask()

    def tell(self, decision: Decision, mean: float, **details: float) -> None:
        """Tell the gain of a metric; if it is not recorded, it can be told again."""
        reference = self._reward.state_dict()
        try:
            self._shared.tell(decision, self._reward(mean, decision), metric=mean, **details)
        except BaseException:
            rounds = {observation.round for observation in self._shared.tuner.observations}
            if decision.round not in rounds:
                self._reward.load_state_dict(reference)
            raise

    def finish(self, *, alone: bool = False) -> None:
        """Do nothing: the last state of the run stands."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the reward."""
        return {"reward": self._reward.state_dict()}

    def gathered_state_dict(self) -> dict[str, Any]:
        """Return ``state_dict``, which is the same on all ranks."""
        return self.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a driver."""
        self._reward.load_state_dict(state["reward"])
