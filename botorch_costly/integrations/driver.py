"""The driver of a tuner in a trainer: rounds, decisions, queries, and a state that continues."""

import json
import logging
import time
import weakref
from collections.abc import Mapping
from typing import Any

from torch.optim import Optimizer

from botorch_costly.ask_tell.generators import (
    check_generators,
    global_generators,
    set_global_generators,
)
from botorch_costly.ask_tell.protocol import AskTell, check_asked
from botorch_costly.errors import HorizonExceededError, StateMismatchError, check
from botorch_costly.integrations.applying import apply, check_rates
from botorch_costly.integrations.distributed import SharedTuner
from botorch_costly.integrations.horizons import (
    check_left,
    warn_of_earlier,
    warn_of_rounds,
    warn_of_tail,
)
from botorch_costly.integrations.parts import inner_network
from botorch_costly.integrations.rounds import RoundClock
from botorch_costly.integrations.training import Trained, TrainerOptions
from botorch_costly.records import Decision
from botorch_costly.rewards import GainReward, GuardedReward
from botorch_costly.states import Stateful

_logger = logging.getLogger(__name__)
_KEYS = {"shared", "clock", "decision", "reward", "over", "due", "generators", "rates"}
_SINCE = {"rates"}  # keys that older states do not have
# The driver that has started last with an optimizer: a second driver would overwrite its settings.
_drivers: "weakref.WeakKeyDictionary[Optimizer, weakref.ref[Driver]]" = weakref.WeakKeyDictionary()


class Driver:
    """Drives a tuner through a trainer, on all ranks.

    A trainer calls ``prepare`` when it begins to fit and its processes exist, ``start`` when network and
    optimizer are initialized or restored, ``before_step`` and ``after_step`` around each step of the
    optimizer, and ``validated`` with the metric of a validation.

    The reward's reference belongs to the network and ends with the fit. In another fit the tuner
    continues with its remaining rounds: it keeps its observations, begins a new round, and its first
    query has no reward.

    Args:
        tuner: An ``OnlineTuner``, or another optimizer that is told gains.
        options: Options of the tuner in the trainer.

    Raises:
        InvalidArgumentError: If the tuner cannot be asked and told, or the range of a learning rate
            contradicts ``options.rates``.
    """

    def __init__(self, tuner: AskTell[Any], options: TrainerOptions) -> None:
        check_asked(tuner, ", which the driver shares among ranks itself")
        expected = (
            "a tuner that is told gains (use a TwinTuner by a Session in a loop; a PopulationTuner "
            "trains several networks, other optimizers one for each configuration)"
        )
        check(tuner.tells == "gain", "tuner", expected, f"one that is told a {tuner.tells}")
        check_rates(tuner.space, options.rates, options.others)
        self.tuner, self.options = tuner, options
        self.seconds = 0.0
        self._shared: SharedTuner[Any] | None = None
        self._loaded: Mapping[str, Any] | None = None
        self._forget()

    def _forget(self) -> None:
        """Forget an earlier fit; the tuner and a loaded state stay."""
        self.decision: Decision | None = None
        self._final: Mapping[str, Any] | None = None  # played after the last round
        self._trained: Trained | None = None
        self._reward: GainReward | GuardedReward = GainReward(self.options.metric)
        self._guard: GuardedReward | None = None  # the reward, if it is a guard
        self._clock = RoundClock(self.options.length)
        self._over = self._due = False
        self._due_since: float | None = None  # seconds of the clock; None after a resume
        self._is_short = False  # whether a warning has said that no round of the run ends
        self._late = False  # whether a metric was told after the last round

    @property
    def is_due(self) -> bool:
        """Whether a query waits for its metric."""
        return self._due

    @property
    def restores(self) -> int:
        """Number of times that the network was restored."""
        return 0 if self._guard is None else self._guard.restores

    @property
    def mends(self) -> bool:
        """Whether there is a good state to restore a diverged network to."""
        return self._guard is not None and self._guard.has_good_state

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration in effect; empty before the first round."""
        if self._final is not None:
            return self._final
        return {} if self.decision is None else self.decision.config

    def connect(self) -> SharedTuner[Any]:
        """Connect the ranks of the run, once; all ranks call it. Return their shared tuner."""
        if self._shared is None:
            self._shared = SharedTuner(self.tuner, timeout=self.options.timeout)
        return self._shared

    def prepare(self) -> SharedTuner[Any]:
        """Begin a new fit and connect the ranks; all ranks call it. Return their shared tuner."""
        self._forget()
        return self.connect()

    def start(
        self,
        trained: Trained,
        *,
        generators: bool = True,
        steps: float | None = None,
        epochs: float | None = None,
    ) -> None:
        """Begin, or continue from the loaded state.

        Args:
            trained: The objects that training changes.
            generators: Whether to set the global generators to the loaded state; False if
                ``set_generators`` has done so, and the trainer has drawn from them since.
            steps: Remaining steps of the trainer, if known.
            epochs: Remaining epochs of the trainer, if known.

        Raises:
            HorizonExceededError: If the tuner has no round left for another fit.
            StateMismatchError: If the loaded state has other options.
        """
        if self._trained is not None:
            self._forget()
        gain, guard = GainReward(self.options.metric), None
        if self.options.guard:
            network = inner_network(trained.network)  # so that the state also fits a single process
            guarded: list[Stateful] = [network, trained.optimizer, *trained.schedulers]
            guard = GuardedReward.of(gain, *guarded, *trained.parts)
        reward = gain if guard is None else guard
        loaded, resumes = self._loaded, False
        if loaded is not None:
            resumes = loaded["decision"] is not None  # otherwise no round had begun
            self._continue(loaded, reward if resumes else None)
            if generators:
                self.set_generators()
        played = self._check_left(resumes=resumes)
        self._reward, self._guard, self._trained, self._loaded = reward, guard, trained, None
        _drivers[trained.optimizer] = weakref.ref(self)
        if self.connect().ranks.is_first:
            warn_of_earlier(0 if resumes else played)
            rounds = self._clock.rounds_in(steps, epochs)
            predicts = self.tuner.predicts
            self._is_short = warn_of_rounds(
                rounds, played, self.tuner.horizon, self._clock, believes=predicts
            )
        self._apply()  # for settings that no state holds, such as dropout

    def before_step(self, optimizer: Optimizer | None = None) -> None:
        """Begin a round if none is running: ask, and apply the configuration.

        After the last round the incumbent is applied, if the tuner has one. If the metric of that round
        comes later, the incumbent is chosen and applied again.

        Args:
            optimizer: The optimizer of the next step, in a trainer that may exchange it.

        Raises:
            InvalidArgumentError: If it is not the optimizer of the start, or another driver has started
                with it.
        """
        if self._trained is not None:
            same = optimizer is None or optimizer is self._trained.optimizer
            expected = "the one that the fit started with, whose parameter groups are tuned"
            check(same, "optimizer", expected, f"another {type(optimizer).__name__}")
            owner = _drivers.get(self._trained.optimizer)
            is_owner = owner is None or owner() is self
            expected = "one tuner for an optimizer (one space may hold all names)"
            check(is_owner, "tuner", expected, "another tuner of its parameter groups")
        if (self._over and not self._late) or self._clock.is_running:
            return
        began = time.perf_counter()
        before, due, shared = self.decision, self._due, self.connect()
        try:
            decision = shared.ask()
        except HorizonExceededError:
            self._end()
            return
        try:
            # A metric that never came belongs to the round before: no metric is due in this round.
            self.decision, self._due = decision, False
            self._apply()
            self._clock.begin(shared.agree if self.options.length.seconds else float)
        except BaseException:  # no round has begun: the decision is returned again next time
            self.decision, self._due = before, due
            shared.take_back(decision)
            raise
        self.seconds += time.perf_counter() - began

    def after_step(self, *, steps: int = 1, ends_epoch: bool = False) -> bool:
        """Count steps of the optimizer; return whether to measure the metric now.

        Args:
            steps: Number of steps since the last call.
            ends_epoch: Whether an epoch ends here, with a step or without one.
        """
        if steps == 0 and not (ends_epoch and self._clock.is_running):
            return False
        # No operation between the end of a round and its query can be interrupted.
        decision = self.decision
        ends = not self._over and self._clock.step(steps=steps, ends_epoch=ends_epoch)
        if not ends or decision is None:
            return False
        self._due, self._due_since = decision.query, time.perf_counter()
        return self._due

    def validated(self, metric: float) -> None:
        """Tell the metric of a query; a validation without a query is ignored."""
        if not self._due or self.decision is None:
            return
        began = time.perf_counter()
        details = self._details(began)
        self._late = self._over
        shared = self.connect()
        mean = shared.mean(metric)
        reference = self._reward.state_dict()
        try:
            shared.tell(self.decision, self._reward(mean, self.decision), **details)
        except BaseException:
            observed = {observation.round for observation in self.tuner.observations}
            self._due = self.decision.round not in observed
            if self._due:  # the metric can be passed again
                self._reward.load_state_dict(reference)
            raise
        self._due = False
        self.seconds += time.perf_counter() - began

    def _details(self, now: float) -> dict[str, float]:
        """Return the seconds of the query, for a tuner whose queries take a share of the clock."""
        if self._due_since is None or getattr(self.tuner, "overhead", None) is None:
            return {}
        return {"seconds": max(now - self._due_since, 0.0)}

    def finish(self) -> None:
        """End a fit that was not interrupted: warn of steps that no query has measured, and log."""
        if not self._is_short and self.connect().ranks.is_first:
            warn_of_tail(self._clock.steps)
        self.flush()

    def flush(self) -> None:
        """Log the last round, also after an interrupted fit."""
        if self._shared is not None:
            self._shared.flush()

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
            "rates": self.options.rates,
        }

    def gathered_state_dict(self) -> dict[str, Any]:
        """Return ``state_dict`` with the global generators of each rank; all ranks call it together.

        Raises:
            RankError: If a rank does not call it.
        """
        state = self.state_dict()
        if self._loaded is None and self._shared is not None:
            state["generators"] = self._shared.gather(global_generators())
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict`` at ``start``, when the network exists.

        Raises:
            StateMismatchError: If the state does not have the keys of a driver's state.
        """
        is_valid = isinstance(state, Mapping) and _KEYS - _SINCE <= set(state) <= _KEYS
        check(is_valid, "state", "the state of a tuning callback", state, StateMismatchError)
        self._loaded = state

    def set_generators(self) -> None:
        """Set the global generators of this rank to the loaded state.

        Another number of ranks reads other data: then all generators stay as the program has seeded them.
        """
        states = None if self._loaded is None else self._loaded["generators"]
        ranks = self.connect().ranks
        if states is not None and len(states) == ranks.count:
            set_global_generators(states[ranks.rank])

    def _continue(
        self, state: Mapping[str, Any], reward: GainReward | GuardedReward | None
    ) -> None:
        """Load a state completely or not at all; ``reward`` is None if no round had begun."""
        clock, decision = RoundClock(self.options.length), None
        if reward is not None:
            reward.load_state_dict(state["reward"])
            clock.load_state_dict(state["clock"])
            decision = _decision(state["decision"])
        expected = self.options.rates
        rates = state.get("rates", expected)
        check(rates == expected, "rates", repr(expected), rates, StateMismatchError)
        for name in ("due", "over"):
            check(isinstance(state[name], bool), name, "a bool", state[name], StateMismatchError)
        generators = state["generators"]
        listed = generators is None or (isinstance(generators, list) and len(generators) > 0)
        check(listed, "generators", "a list, or None", generators, StateMismatchError)
        for states in generators or []:
            check_generators(states)
        if state["shared"] is not None:
            self.connect().load_state_dict(state["shared"], changed=self.options.changed)
        self.decision, self._clock, self._due = decision, clock, state["due"]

    def _check_left(self, *, resumes: bool) -> int:
        """Return the number of played rounds; raise if no round is left for a new fit."""
        decisions = self.tuner.decisions
        played = int(self.connect().agree(decisions[-1].round + 1 if decisions else 0))
        if not resumes:
            check_left(played, self.tuner.horizon)
        return played

    def _end(self) -> None:
        """Apply the incumbent for the rest of the run."""
        shared = self.connect()
        best = shared.best() if self.tuner.predicts else None
        self._final = self.config if best is None else best
        self._apply()
        self._over, self._late = True, False  # last, so that an interrupted call is repeated
        if shared.ranks.is_first:
            _logger.warning(
                "The tuner has played all of its rounds. The rest of the run is trained with %s: %s",
                "the last configuration" if best is None else "its incumbent",
                dict(self._final),
            )

    def _generators(self) -> list[dict[str, Any]] | None:
        """Return the states of the global generators in a run of one rank; None with several ranks."""
        is_single = self._shared is None or self._shared.ranks.count == 1
        return [global_generators()] if is_single else None

    def _apply(self) -> None:
        trained, options = self._trained, self.options
        if trained is not None and (self.decision is not None or self._final is not None):
            apply(
                self.config,
                trained.optimizer,
                trained.network,
                rates=options.rates,
                others=options.others,
                schedulers=trained.schedulers,
            )


def _decision(state: Any) -> Decision:
    """Return the decision that a state holds as JSON."""
    try:
        values = json.loads(state)
    except (TypeError, ValueError) as error:
        raise StateMismatchError("decision", "a decision as JSON", state) from error
    return Decision.from_dict(values)
