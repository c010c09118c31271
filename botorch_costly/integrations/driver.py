"""What the callbacks of trainers share: rounds, decisions, queries, and a state that continues."""

import json
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, get_args

from torch import nn
from torch.optim import Optimizer

from botorch_costly.ask_tell.generators import global_generators, set_global_generators
from botorch_costly.ask_tell.protocol import Stateful
from botorch_costly.errors import (
    HorizonExceededError,
    StateMismatchError,
    check,
)
from botorch_costly.integrations.applying import Rates, apply, inner_network
from botorch_costly.integrations.distributed import Deciding, SharedTuner
from botorch_costly.integrations.rounds import RoundClock, RoundLength
from botorch_costly.records import Decision
from botorch_costly.rewards import GainReward, GuardedReward
from botorch_costly.rewards.gain import Kind
from botorch_costly.tuners import TwinTuner

_KEYS = {"shared", "clock", "decision", "reward", "over", "due", "generators"}


@dataclass(frozen=True)
class TrainerOptions:
    """How a tuner works in a trainer.

    Args:
        length: Of a round.
        metric: Whether the metric is a loss or an accuracy.
        guard: Whether a network that a query finds diverged goes back to its last good state.
        rates: Whether learning rates of a configuration are values, or multiply those of a scheduler.
        others: Names in the configuration that training reads itself.
        timeout: Seconds after which a rank of a distributed run that does not come is lost.

    Raises:
        InvalidArgumentError: If an option is none of these.
    """

    length: RoundLength
    _: KW_ONLY
    metric: Kind = "loss"
    guard: bool = True
    rates: Rates = "values"
    others: Collection[str] = ()
    timeout: float = 60.0

    def __post_init__(self) -> None:
        check(isinstance(self.length, RoundLength), "length", "a RoundLength", self.length)
        check(isinstance(self.guard, bool), "guard", "a bool", self.guard)
        for name, kinds in (("rates", get_args(Rates)), ("metric", get_args(Kind))):
            given = getattr(self, name)
            check(given in kinds, name, f"one of {list(kinds)}", given)


@dataclass(frozen=True)
class Trained:
    """What training changes.

    Args:
        network: Whose dropout is set.
        optimizer: Whose groups are set.
        schedulers: Of the optimizer.
        parts: Everything else that goes back with network, optimizer and schedulers.
    """

    network: nn.Module
    optimizer: Optimizer
    schedulers: tuple[Stateful, ...] = ()
    parts: tuple[Stateful, ...] = ()


class Driver:
    """Drives a tuner through a trainer, on all ranks.

    A trainer calls ``connect`` once its processes exist, ``start`` when network and optimizer are what
    they are to begin or continue with, ``before_step`` and ``after_step`` around each step of the
    optimizer, and ``validated`` with the metric of a validation.

    Args:
        tuner: An ``OnlineTuner``, or another one that is told gains.
        options: How it works in the trainer.

    Raises:
        InvalidArgumentError: If the tuner cannot be asked and told.
    """

    def __init__(self, tuner: Deciding[Any], options: TrainerOptions) -> None:
        asked = callable(getattr(tuner, "ask", None)) and callable(getattr(tuner, "tell", None))
        check(asked and not isinstance(tuner, type), "tuner", "an OnlineTuner or the like", tuner)
        twins = isinstance(tuner, TwinTuner)
        expected = (
            "a tuner that is told gains (a TwinTuner goes back itself, by a Session in a loop)"
        )
        check(not twins, "tuner", expected, type(tuner).__name__)
        self.tuner, self.options = tuner, options
        self.decision: Decision | None = None
        self.seconds = 0.0
        self._shared: SharedTuner[Any] | None = None
        self._trained: Trained | None = None
        self._reward: GainReward | GuardedReward = GainReward(options.metric)
        self._clock = RoundClock(options.length)
        self._loaded: Mapping[str, Any] | None = None
        self._over = self._due = False

    @property
    def is_due(self) -> bool:
        """Whether a metric was to be measured and has not been told."""
        return self._due

    @property
    def restores(self) -> int:
        """How often the network was rolled back."""
        return self._reward.restores if isinstance(self._reward, GuardedReward) else 0

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration of the present round; empty before the first one."""
        return {} if self.decision is None else self.decision.config

    def connect(self) -> SharedTuner[Any]:
        """Connect the ranks of the run, once; all of them call it. Return the tuner they share."""
        if self._shared is None:
            self._shared = SharedTuner(self.tuner, timeout=self.options.timeout)
        return self._shared

    def start(self, trained: Trained, *, generators: bool = True) -> None:
        """Begin, or continue from the state that was loaded.

        Args:
            trained: What training changes.
            generators: Whether the global generators go where the state has them; False if they have
                been there, and the trainer has drawn from them since what the next round needs.
        """
        self.connect()
        self._trained = trained
        if self.options.guard:
            network = inner_network(trained.network)  # a state fits one process, too
            guarded: list[Stateful] = [network, trained.optimizer, *trained.schedulers]
            guarded += trained.parts
            self._reward = GuardedReward.of(GainReward(self.options.metric), *guarded)
        if self._loaded is not None:
            if generators:
                self.set_generators()
            self._continue(self._loaded)
            self._loaded = None
        if self.decision is not None and self._clock.is_running:
            self._apply()  # what no state holds, such as dropout

    def before_step(self) -> None:
        """Begin a round if none is running: ask, and put the configuration into effect."""
        if self._over or self._clock.is_running:
            return
        began = time.perf_counter()
        try:
            self.decision = self.connect().ask()
        except HorizonExceededError:
            self._over = True  # the last configuration stays
            return
        self._apply()
        self._clock.begin(self.connect().agree if self.options.length.seconds else float)
        self.seconds += time.perf_counter() - began

    def after_step(self, *, ends_epoch: bool = False) -> bool:
        """Count a step of the optimizer; return whether the metric is to be measured now."""
        if self._over or not self._clock.step(ends_epoch=ends_epoch) or self.decision is None:
            return False
        # The last round is queried in any case: a guard mends only what a query finds.
        last = self.decision.round + 1 == getattr(self.tuner, "horizon", None)
        self._due = self.decision.query or last
        return self._due

    def validated(self, metric: float) -> None:
        """Tell the metric that was to be measured; a validation that was not is no query."""
        if not self._due or self.decision is None:
            return
        began = time.perf_counter()
        shared = self.connect()
        mean = shared.mean(metric)
        shared.tell(self.decision, self._reward(mean, self.decision))
        self._due = False
        self.seconds += time.perf_counter() - began

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values from which the run continues identically."""
        if self._loaded is not None:
            return dict(self._loaded)
        decision = None if self.decision is None else json.dumps(self.decision.to_dict())
        return {
            "shared": None if self._shared is None else self._shared.state_dict(),
            "clock": self._clock.state_dict(),
            "decision": decision,
            "reward": self._reward.state_dict(),
            "over": self._over,
            "due": self._due,
            "generators": self._generators(),
        }

    def gathered_state_dict(self) -> dict[str, Any]:
        """Return ``state_dict`` with the global generators of each rank; all ranks call it together.

        Raises:
            RankError: If a rank does not.
        """
        state = self.state_dict()
        if self._loaded is None and self._shared is not None:
            state["generators"] = self._shared.gather(global_generators())
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict`` at ``start``, when there is a network to continue with.

        Raises:
            StateMismatchError: If it is none.
        """
        known = isinstance(state, Mapping) and set(state) == _KEYS
        check(known, "state", "the state of a tuning callback", state, StateMismatchError)
        self._loaded = state

    def set_generators(self) -> None:
        """Put the global generators of this rank where the loaded state has them.

        Ranks of another number meet other data: all of them stay as the program has seeded them.
        """
        states = None if self._loaded is None else self._loaded["generators"]
        ranks = self.connect().ranks
        if states is not None and len(states) == ranks.count:
            set_global_generators(states[ranks.rank])

    def _continue(self, state: Mapping[str, Any]) -> None:
        if state["shared"] is not None:
            self.connect().load_state_dict(state["shared"])
        self._reward.load_state_dict(state["reward"])
        self._clock.load_state_dict(state["clock"])
        given = state["decision"]
        self.decision = None if given is None else Decision.from_dict(json.loads(given))
        self._over, self._due = state["over"], state["due"]

    def _generators(self) -> list[dict[str, Any]] | None:
        """Return the states of the global generators of the only rank, if it is the only one."""
        alone = self._shared is None or self._shared.ranks.count == 1
        return [global_generators()] if alone else None

    def _apply(self) -> None:
        trained, options = self._trained, self.options
        if trained is not None and self.decision is not None:
            apply(
                self.decision,
                trained.optimizer,
                trained.network,
                rates=options.rates,
                others=options.others,
                schedulers=trained.schedulers,
            )


def one_optimizer(optimizers: Iterable[Optimizer]) -> Optimizer:
    """Return the only optimizer of a trainer.

    Raises:
        InvalidArgumentError: If there are none or several, for a name does not say which is meant.
    """
    found = list(optimizers)
    expected = (
        "one optimizer, for a name does not say which is meant (parameter groups can be named)"
    )
    check(len(found) == 1, "optimizers", expected, len(found))
    return found[0]
