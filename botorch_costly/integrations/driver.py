"""The driver of a tuner in a trainer: rounds, decisions, queries, and a state that continues."""

import json
import logging
import time
import weakref
from collections.abc import Mapping
from typing import Any

from torch.optim import Optimizer

from botorch_costly.ask_tell.generators import global_generators, set_global_generators
from botorch_costly.ask_tell.protocol import AskTell, check_asked
from botorch_costly.errors import HorizonExceededError, InvalidArgumentError, RankError, check
from botorch_costly.integrations.applied import Applied
from botorch_costly.integrations.applying import check_rates
from botorch_costly.integrations.distributed import SharedTuner
from botorch_costly.integrations.driver_states import check_keys, check_whole, decision_of
from botorch_costly.integrations.gain_run import GainRun
from botorch_costly.integrations.horizons import (
    check_left,
    warn_of_earlier,
    warn_of_rounds,
    warn_of_tail,
)
from botorch_costly.integrations.rounds import RoundClock
from botorch_costly.integrations.training import Trained, TrainerOptions
from botorch_costly.integrations.twin_run import TwinRun, check_twins, twin_tuner_of
from botorch_costly.records import Decision

_logger = logging.getLogger(__name__)
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

    A ``TwinTuner`` is told the metric itself, and goes back: before the first step of a round all parts
    are brought into its first state, on all ranks alike. A fit that ends within a trial hands over the
    state of the incumbent.

    Args:
        tuner: An ``OnlineTuner``, another optimizer that is told gains, or a ``TwinTuner``.
        options: Options of the tuner in the trainer.

    Raises:
        InvalidArgumentError: If the tuner cannot be asked and told, the range of a learning rate
            contradicts ``options.rates``, or a ``TwinTuner`` has a session or a metric of another kind
            than the options.
    """

    def __init__(self, tuner: AskTell[Any], options: TrainerOptions) -> None:
        check_asked(tuner, ", which the driver shares among ranks itself")
        twins = twin_tuner_of(tuner)
        expected = (
            "a TwinTuner or a tuner that is told gains (a PopulationTuner trains several networks, "
            "other optimizers one for each configuration)"
        )
        is_driven = tuner.tells == "gain" or twins is not None
        check(is_driven, "tuner", expected, f"one that is told a {tuner.tells}")
        if twins is not None:
            check_twins(twins, options)
        self.has_twins = twins is not None
        self._make = TwinRun if self.has_twins else GainRun
        check_rates(tuner.space, options.rates, options.others)
        self.tuner, self.options, self.seconds = tuner, options, 0.0
        self._shared: SharedTuner[Any] | None = None
        self._loaded: Mapping[str, Any] | None = None
        self._forget()

    def _forget(self) -> None:
        """Forget an earlier fit; the tuner and a loaded state stay."""
        self.decision: Decision | None = None
        self._final: Mapping[str, Any] | None = None  # played after the last round
        self._trained: Trained | None = None
        self._run: GainRun | TwinRun | None = None
        self._clock, self._applied = RoundClock(self.options.length), Applied()
        self._over = self._due = self._counts_seconds = False
        self._due_since: float | None = None  # seconds of the clock; None after a resume
        self._is_short = False  # whether a warning has said that no round of the run ends
        self._late = False  # whether a metric was told after the last round
        self._displaced = False  # whether another driver has started with the optimizer
        self._accumulates = False  # whether the latest batch ended without a step

    @property
    def is_due(self) -> bool:
        """Whether a query waits for its metric."""
        return self._due

    @property
    def restores(self) -> int:
        """Number of times that the network was restored."""
        return 0 if self._run is None else self._run.restores

    @property
    def mends(self) -> bool:
        """Whether there is a state to restore a diverged network to."""
        return self._run is not None and self._run.mends

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
        run = self._make(self.connect(), trained, self.options)
        loaded, resumes = self._loaded, False
        if loaded is not None:
            resumes = loaded["decision"] is not None  # otherwise no round had begun
            self._continue(loaded, run if resumes else None)
            if generators:
                self.set_generators()
        played = self._check_left(resumes=resumes)
        run.begin()
        self._run, self._trained, self._loaded = run, trained, None
        self._counts_seconds = getattr(self.tuner, "overhead", None) is not None
        self._claim(trained.optimizer)
        if self.connect().ranks.is_first:
            if not self.has_twins:  # their session says so
                warn_of_earlier(0 if resumes else played)
            numbers = self._clock.rounds_in(steps, epochs), played, self.tuner.horizon
            self._is_short = warn_of_rounds(*numbers, self._clock, believes=self.tuner.predicts)
        self._apply()  # for settings that no state holds, such as dropout

    def _claim(self, optimizer: Optimizer) -> None:
        """Take an optimizer over from the driver that started with it last, if that still trains it."""
        earlier = _drivers.get(optimizer)
        if earlier is not None and (owner := earlier()) is not None:
            owner._displaced |= owner._trained is not None and owner._trained.optimizer is optimizer
        _drivers[optimizer], self._displaced = weakref.ref(self), False

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
        trained = self._trained
        if trained is not None and optimizer is not None and optimizer is not trained.optimizer:
            expected = "the one that the fit started with, whose parameter groups are tuned"
            raise InvalidArgumentError("optimizer", expected, f"another {type(optimizer).__name__}")
        if self._displaced:
            expected = "one tuner for an optimizer (one space may hold all names)"
            raise InvalidArgumentError("tuner", expected, "another tuner of its parameter groups")
        if self._clock.is_running or (self._over and not self._late):
            return
        self._begin()

    def _begin(self) -> None:
        """Ask, and apply the configuration."""
        began = time.perf_counter()
        before, due, shared = self.decision, self._due, self.connect()
        try:
            decision = shared.ask() if self._run is None else self._run.ask(self._accumulates)
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

    def after_step(self, *, steps: int = 1, ends_epoch: bool = False, trained: bool = True) -> bool:
        """Count steps of the optimizer; return whether to measure the metric now.

        Args:
            steps: Number of steps since the last call.
            ends_epoch: Whether an epoch ends here, with a step or without one.
            trained: Whether a batch was trained since the last call.
        """
        if trained:
            self._accumulates = steps == 0
        clock = self._clock
        if clock.done + steps < clock.enough and not ends_epoch:
            clock.done += steps  # most steps need no more
            return False
        if self._over or (steps == 0 and not (ends_epoch and clock.is_running)):
            return False
        # No operation between the end of a round and its query can be interrupted.
        decision = self.decision
        if not clock.step(steps=steps, ends_epoch=ends_epoch) or decision is None:
            return False
        self._due, self._due_since = decision.query, time.perf_counter()
        return self._due

    def validated(self, metric: float) -> None:
        """Tell the metric of a query; a validation without a query is ignored."""
        if not self._due or self.decision is None or self._run is None:
            return
        began = time.perf_counter()
        self._late = self._over
        self._applied.check(warns=self.connect().ranks.is_first)
        mean = self.connect().mean(metric)
        try:
            self._run.tell(self.decision, mean, **self._details(began))
        except BaseException:  # unless it is recorded, the metric can be passed again
            observed = {observation.round for observation in self.tuner.observations}
            self._due = self.decision.round not in observed
            raise
        self._due = False
        self.seconds += time.perf_counter() - began

    def _details(self, now: float) -> dict[str, float]:
        """Return the seconds of the query, for a tuner whose queries take a share of the clock."""
        since = self._due_since if self._counts_seconds else None
        return {} if since is None else {"seconds": max(now - since, 0.0)}

    def finish(self) -> None:
        """End a fit that was not interrupted; all ranks call it.

        With twins the parts are handed over in the state of the incumbent, unless all rounds were played.
        A warning says if no query has measured the last steps.
        """
        if not self.has_twins and not self._is_short and self.connect().ranks.is_first:
            warn_of_tail(self._clock.steps)
        self.hand_over()
        self.flush()

    def hand_over(self, *, alone: bool = False) -> None:
        """Bring the parts into the state of the incumbent if twins have rounds left; once in a fit.

        If that is not possible, a warning says so, and the parts stay as they are.

        Args:
            alone: Whether the other ranks do not take part, such as after an exception.
        """
        decision, run = self.decision, self._run
        if not self.has_twins or decision is None or run is None or self._over:
            return
        if decision.round + 1 == self.tuner.horizon and not self._clock.is_running:
            return  # all rounds were played
        self._over = True
        try:
            run.finish(alone=alone)
        except Exception as error:
            if not alone and isinstance(error, RankError):
                raise
            _logger.warning("The network is not in the state of the incumbent (%r).", error)
            return
        self._clock, self._due = RoundClock(self.options.length), False
        self._final = self.tuner.best() if alone else self.connect().best()
        self._apply()

    def flush(self) -> None:
        """Log the last round, also after an interrupted fit."""
        if self._shared is not None:
            self._shared.flush()

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values from which the run continues identically."""
        if self._loaded is not None:
            return dict(self._loaded)
        return self._state_with({"reward": None} if self._run is None else self._run.state_dict())

    def _state_with(self, run: Mapping[str, Any]) -> dict[str, Any]:
        decision = None if self.decision is None else json.dumps(self.decision.to_dict())
        return {
            "shared": None if self._shared is None else self._shared.state_dict(),
            "clock": self._clock.state_dict(),
            "decision": decision,
            **run,
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
        if self._loaded is not None or self._shared is None or self._run is None:
            state = self.state_dict()
        else:
            state = self._state_with(self._run.gathered_state_dict())
        if self._loaded is None and self._shared is not None:
            state["generators"] = self._shared.gather(global_generators())
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict`` at ``start``, when the network exists.

        Raises:
            StateMismatchError: If the state does not have the keys of a driver's state.
        """
        check_keys(state)
        self._loaded = state

    def set_generators(self) -> None:
        """Set the global generators of this rank to the loaded state.

        Another number of ranks reads other data: then all generators stay as the program has seeded them.
        """
        states = None if self._loaded is None else self._loaded["generators"]
        ranks = self.connect().ranks
        if states is not None and len(states) == ranks.count:
            set_global_generators(states[ranks.rank])

    def _continue(self, state: Mapping[str, Any], run: GainRun | TwinRun | None) -> None:
        """Load a state completely or not at all; ``run`` is None if no round had begun."""
        clock, decision = RoundClock(self.options.length), None
        if run is not None:
            run.load_state_dict(state)
            clock.load_state_dict(state["clock"])
            decision = decision_of(state["decision"])
        check_whole(state, self.options.rates)
        if state["shared"] is not None:
            self.connect().load_state_dict(state["shared"], changed=self.options.changed)
        self.decision, self._clock, self._due = decision, clock, state["due"]

    def _check_left(self, *, resumes: bool) -> int:
        """Return the number of played rounds; raise if no round is left for a new fit."""
        decisions, agree = self.tuner.decisions, self.connect().agree
        played = int(agree(decisions[-1].round + 1 if decisions else 0))
        if not resumes:
            over = bool(agree(getattr(self.tuner, "is_over", False)))
            check_left(played, self.tuner.horizon, is_over=over)
        return played

    def _end(self) -> None:
        """Apply the incumbent for the rest of the run."""
        shared = self.connect()
        best = shared.best() if self.tuner.predicts else None
        self._final = self.config if best is None else best
        self._apply()
        self._over, self._late = True, False  # last, so that an interrupted call is repeated
        if shared.ranks.is_first:
            which = "the last configuration" if best is None else "its incumbent"
            message = "The tuner has no round left. The rest of the run is trained with %s: %s"
            _logger.warning(message, which, dict(self._final))

    def _generators(self) -> list[dict[str, Any]] | None:
        """Return the states of the global generators in a run of one rank; None with several ranks."""
        has_more = self._shared is not None and self._shared.ranks.count > 1
        return None if has_more else [global_generators()]

    def _apply(self) -> None:
        if self._trained is None or (self.decision is None and self._final is None):
            return
        self._applied.write(self.config, self._trained, self.options)
