"""A training run that can go back: states of training are kept and restored as a tuner decides."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import torch

from botorch_costly.ask_tell.around import Around, warn_if_over
from botorch_costly.ask_tell.surroundings import undisturbed
from botorch_costly.calls import advised
from botorch_costly.errors import (
    HorizonExceededError,
    RestoreError,
    StateMismatchError,
    check,
    shortened,
)
from botorch_costly.records import Observation, Plain, TwinDecision
from botorch_costly.rewards.applied_rates import AppliedSettings
from botorch_costly.rewards.idle_rounds import IdleRounds
from botorch_costly.rewards.metric_gain import Kind
from botorch_costly.rewards.outside_optimizers import OutsideOptimizers
from botorch_costly.rewards.turns import Turns
from botorch_costly.space import SearchSpace
from botorch_costly.states import outside_inference
from botorch_costly.tuners.twins.diagnosis import TwinDiagnosis
from botorch_costly.tuners.twins.left_open import Latest
from botorch_costly.tuners.twins.parts import Component, Parts
from botorch_costly.tuners.twins.run_length import StepCounter
from botorch_costly.tuners.twins.tuner import TwinTuner
from botorch_costly.tuners.twins.warm_up import plays_a_schedule, rate_of

_logger = logging.getLogger(__name__)
_ADVICE = "Session(space, horizon, network, optimizer, ..)"


@advised
class Session(Around[TwinDecision]):
    """Tune hyperparameters in one training run, whose parts go back to earlier states.

    The parts are all objects that training changes: network, optimizers, schedulers, a gradient scaler,
    exponential averages, generators, data loaders with a ``state_dict``. The global generators of Python,
    NumPy and torch are restored, too, so that a loop over a fresh ``DataLoader`` yields the same batches.
    If the order of the data cannot be restored, twins see different batches: comparisons are noisier,
    and the tuner learns the noise.

    A run of fewer than 500 steps of its optimizer, or of rounds of one or two, is too short to compare
    settings. After its first round one warning says so, and it is trained with its start. While the
    learning rate of the optimizer rises by itself, as in a warm-up, nothing is tried, for at most a fifth
    of the run.

    A scheduler is restored as well, so that twins train with equal rates: at the end it has counted the
    rounds that lead to the last state, fewer than the horizon. If a rate has to end where its schedule
    does, let the tuner schedule it, which counts all rounds: ``Scheduled(low, high, base="cosine")``.

    Each state is copied on its own device. The tuner holds three copies at most, and so does its
    ``state_dict``; there is one more while the parts go back. If a state cannot be copied or is missing
    when it is needed, a warning is logged, and the rest of the run plays the incumbent.

    Args:
        space: Search space; see ``TwinTuner`` for its learning rates.
        horizon: Rounds of compute, including those given back; None if ``seconds`` alone end the run.
        parts: Objects with ``state_dict`` and ``load_state_dict``, and ``torch.Generator`` objects.
        start: First configuration, such as your default; the middle of the space if omitted.
        metric: Kind of the metric: ``"loss"``, at least 0, or ``"accuracy"``, a fraction.
        queries: Largest share of queried rounds.
        seconds: Seconds that the run may take, from the first ``ask`` on; no limit if omitted.
        overhead: Share of the clock that queries and the tuner may take, in (0, 1]; no limit if omitted.
        clock: Function that returns seconds.
        seed: Seed of all random draws.
        device: Device of the copies; ``"cpu"`` saves memory of an accelerator. That of each part if
            omitted. A part of your own moves what it loads to its device, as those of torch do.
        keep_best: Whether the state of the best query is copied as well, for ``restore_best``. By default
            the result of a run is its last state, which has been trained to its end.

    Raises:
        InvalidArgumentError: If an argument is outside its range, a part has no state, or no such device.
        InvalidConfigError: If ``start`` does not belong to the space.
        InvalidSpaceError: If the space holds a single configuration.

    Example::

        session = Session(space, 300, network, optimizer, start=default)
        for decision in session:
            train_one_round(**decision.config)
            if decision.query:
                session.tell(decision, validation_loss())
    """

    _counter: StepCounter | None = None  # until the run is known to be long enough

    def __init__(
        self,
        space: SearchSpace,
        horizon: int | None,
        *parts: Component,
        start: Mapping[str, Plain] | None = None,
        metric: Kind = "loss",
        queries: float = 0.3,
        seconds: float | None = None,
        overhead: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
        seed: int = 0,
        device: torch.device | str | None = None,
        keep_best: bool = False,
    ) -> None:
        wanted = "a SearchSpace (a tuner of your own and its parts go to Session.of)"
        check(isinstance(space, SearchSpace), "space", wanted, space)
        is_part = hasattr(horizon, "state_dict")
        check(not is_part, "horizon", "the number of rounds, before the parts", horizon)
        tuner = TwinTuner(
            space,
            horizon,
            start=start,
            metric=metric,
            queries=queries,
            seconds=seconds,
            overhead=overhead,
            clock=clock,
            seed=seed,
        )
        self._begin(tuner, parts, device, keep_best)
        self._counter = StepCounter(parts)

    @classmethod
    def of(
        cls,
        tuner: TwinTuner,
        *parts: Component,
        device: torch.device | str | None = None,
        keep_best: bool = False,
    ) -> Self:
        """Return a session of a ``TwinTuner`` that exists; other arguments and errors of the class.

        Such a session compares settings however short the run is.
        """
        session = cls.__new__(cls)
        session._begin(tuner, parts, device, keep_best)
        return session

    def _begin(
        self,
        tuner: TwinTuner,
        parts: tuple[Component, ...],
        device: torch.device | str | None,
        keep_best: bool,
    ) -> None:
        around = "LoggedTuner(session, loggers)"
        expected = f"a TwinTuner (loggers and ranks go around its session: {around})"
        check(isinstance(tuner, TwinTuner), "tuner", expected, tuner)
        self.tuner, self._parts = tuner, Parts(parts, device)
        self._outside, self._settings = OutsideOptimizers(parts, _ADVICE), AppliedSettings(parts)
        self._idle, self._turns = IdleRounds(parts, self._outside), Turns(parts, "Session")
        if plays_a_schedule(tuner.space) and self._parts.have_scheduler:
            _logger.warning(
                "A scheduler is among the parts, and the tuner lets the learning rate fall at the end, "
                "too. Tune Scheduled(low, high, base='constant') and let your scheduler do it."
            )
        check(isinstance(keep_best, bool), "keep_best", "a bool", keep_best)
        if tuner.position[0] == 0 and tuner.position[1] > 0:
            _logger.warning(
                "The tuner has been asked for %d rounds before. This session goes on after them, with "
                "the parts as they are now; for a new run make a new tuner.",
                tuner.position[1],
            )
        self._latest = Latest(self, tuner)
        self._keeps_best = keep_best
        self._best: dict[str, Any] | None = None  # metric and state

    def __iter__(self) -> Iterator[TwinDecision]:
        """Iterate over the remaining decisions; warn if there are none."""
        warn_if_over(self.tuner)
        while not self.tuner.is_over:
            try:
                decision = self.ask()
            except HorizonExceededError:
                return  # time was over a moment later, and the parts are back
            yield decision
        self._come_back()

    @undisturbed()
    def ask(self) -> TwinDecision:
        """Decide on the next round, and bring the parts into its first state.

        If a part fails to load an earlier state, or the call is interrupted, the parts and the tuner are
        unchanged, and the next call tries again. If the state is missing, a warning is logged, and the
        rest of the run plays the incumbent.

        Raises:
            HorizonExceededError: If no round or time is left: the parts are in the incumbent's state.
            RestoreError: If a part failed to load an earlier state, or the tuner was asked elsewhere
                since this session's latest ``ask``, so that it assumes another state of the parts.
        """
        self._latest.check_alone()
        self._check_length()
        self._check_training()
        self._parts.warn_if_not_loaded()
        self._turns.take()
        # Now rather than at the end: nothing between a decision and its return can be interrupted.
        best = [] if self._best is None else [self._best["state"]]
        self._parts.drop_all_but([*self.tuner.kept.values(), *best])
        try:
            decision, position = self._asked()
        except _NoWayBackError as error:
            self._settle(str(error))
            decision, position = self._asked()  # the incumbent goes on from the present state
        except HorizonExceededError:
            self._come_back()
            raise
        self._latest.position = position
        return decision

    def _asked(self) -> tuple[TwinDecision, tuple[int, int]]:
        """Carry out the next decision; return it and the position of the tuner after it."""
        with self.tuner.asking(rate_of(self._parts.components)) as decision:
            self._carry_out(decision)
            for number in decision.drop:
                self.tuner.kept.pop(number, None)
            self._idle.begin_round()
            return decision, self.tuner.position

    def _come_back(self) -> None:
        """Bring the parts into the state of the incumbent if time was over in the middle of a trial."""
        if self.tuner.state_of_incumbent is not None:
            self.finish()

    def _check_length(self) -> None:
        """After the first round, settle a run that is too short to find anything out."""
        rounds = len(self.tuner.decisions)
        horizon = self.tuner.expected_rounds
        fewest = 1 if self.tuner.seconds is None else 2  # the first round may last longer
        if self._counter is None or rounds < fewest or horizon is None:
            return
        counter, self._counter = self._counter, None
        reason = counter.verdict(rounds, horizon)
        if reason is not None:
            self.tuner.settle()
            _logger.warning("%s. The run is trained with its start, as without a tuner.", reason)
        elif (advice := counter.advice(rounds, horizon)) is not None:
            _logger.warning(advice)

    def _check_training(self) -> None:
        """After a round that this session has asked for, warn if it was trained with other settings."""
        decisions = self.tuner.decisions
        if self._latest.position is not None and decisions:
            self._outside.end()
            self._idle.end_round()
            if not self._idle.are_trained_elsewhere:
                self._settings.note(decisions[-1].config, self.tuner.space.rates)

    def _carry_out(self, decision: TwinDecision) -> None:
        """Keep and restore states as a decision says; a settled run does neither."""
        if self.tuner.is_settled:
            return
        kept = self.tuner.kept
        # Now, so that there are never more copies than states that are needed.
        for number in set(decision.drop) - {decision.restore}:
            kept.pop(number, None)
        if decision.restore is not None and decision.restore not in kept:
            raise _NoWayBackError(
                f"Round {decision.round} goes back to a state of training that is not held: it was "
                "asked for without a session, or saved without the kept states."
            )
        if decision.keep is not None:
            kept[decision.keep] = self._copy_of_now()
        if decision.restore is not None:
            now = kept[decision.keep] if decision.keep is not None else self._copy_of_now()
            self._parts.restore(kept[decision.restore], now)

    def _copy_of_now(self) -> list[Any]:
        try:
            return self._parts.copied()
        except Exception as error:
            raise _NoWayBackError(
                "A state of training could not be copied "
                f"({type(error).__name__}: {shortened(str(error))})."
            ) from error

    def _settle(self, reason: str) -> None:
        number = self.tuner.state_of_incumbent
        if number in self.tuner.kept:
            now = None
            with contextlib.suppress(Exception):  # such parts may still be able to load a state
                now = self._parts.copied()
            self._parts.restore(self.tuner.kept[number], now)
        self.tuner.settle()
        message = "%s The rest of the run plays the incumbent, because there is no way back."
        _logger.warning(message, reason)

    @outside_inference()
    def tell(self, decision: TwinDecision, metric: float, **details: Any) -> Observation:
        """Hand in the metric after a round; arguments and errors of ``TwinTuner.tell``."""
        observation = self.tuner.tell(decision, metric, **details)
        is_latest = decision.round == len(self.tuner.decisions) - 1  # the parts are in its state
        self._idle.note_reading(is_latest=is_latest)
        if self._keeps_best and is_latest and observation.reward is not None:
            self._keep_if_best(observation.reward)
        return observation

    @outside_inference()
    def restore_best(self) -> float:
        """Bring the parts into the state of the best query; return its metric.

        The best of many noisy queries looks better than it is. If the learning rate falls at the end, the
        last state is usually as good. The tuner does not go back again: the rest of the run, if any,
        plays the incumbent from this state, until the run is loaded with a longer horizon.

        Raises:
            RestoreError: If there is no such state, or a part failed to load it; parts are unchanged.
        """
        if self._best is None:
            expected = "a query told in a session with keep_best=True"
            raise RestoreError("restore_best", expected, "none")
        self._parts.restore(self._best["state"], self._parts.copied())
        self.tuner.settle()
        return float(self._best["metric"])

    @outside_inference()
    def finish(self) -> dict[str, Plain]:
        """Bring the parts into the state of the incumbent, and return the incumbent.

        Call it to end a run before its horizon, because the present state may be that of a trial. The
        rest of the run, if any, plays the incumbent, until the run is loaded with a longer horizon.

        Raises:
            RestoreError: If its state is not held, or a part failed to load it; the parts are unchanged.
        """
        self._latest.check_alone()
        number = self.tuner.state_of_incumbent
        if number is not None:
            held = number in self.tuner.kept
            expected = "a tuner whose rounds this session has asked for"
            check(held, "finish", expected, "no such state", RestoreError)
            self._parts.restore(self.tuner.kept[number], self._parts.copied())
        self.tuner.settle()
        return self.tuner.incumbent

    def diagnose(self) -> TwinDiagnosis:
        """Return whether compute binds, the cost of exploration so far, and whether it has paid."""
        return self.tuner.diagnose()

    def summary(self) -> str:
        """Return a few lines on the rounds, the queries, the cost of exploration and the incumbent."""
        return self.tuner.summary()

    def _keep_if_best(self, metric: float) -> None:
        if self._best is not None:
            gained = metric - self._best["metric"]
            if (gained if self.tuner.maximize else -gained) <= 0:
                return
        try:
            state = self._parts.copied()
        except Exception as error:
            self._keeps_best = False
            _logger.warning(
                "The best state could not be copied (%s): only the last one is available.", error
            )
        else:
            self._best = {"metric": metric, "state": state}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the tuner, with its kept states; save the parts separately."""
        self._latest.saved = self.tuner.position
        state = {"tuner": self.tuner.state_dict(), **self._parts.described()}
        return state if self._best is None else {**state, "best": dict(self._best)}

    @outside_inference()
    def load_state_dict(
        self, state: Mapping[str, Any], *, changed: tuple[str, ...] | list[str] = ()
    ) -> None:
        """Continue from ``state_dict``, with parts that were loaded as well.

        Args:
            state: State of a session with parts of the same kinds in the same order.
            changed: Names of options of the tuner that may differ, such as ``["horizon"]``.

        Raises:
            StateMismatchError: If the state does not match the tuner or the parts; nothing is changed.
        """
        is_session = isinstance(state, Mapping) and "tuner" in state
        check(is_session, "state", "a state_dict of Session", state, StateMismatchError)
        best = state.get("best")
        whole = best is None or (isinstance(best, Mapping) and {"metric", "state"} == set(best))
        check(whole, "state: best", "a metric and a state", best, StateMismatchError)
        self._parts.check_kept(state["tuner"], best, state.get("parts"))
        self.tuner.load_state_dict(state["tuner"], changed=changed)
        self._parts.expect(state.get("fingerprint"))
        self._best, self._latest.position, self._counter = best, None, None


class _NoWayBackError(Exception):
    """A decision to keep a state or to go back to one cannot be carried out."""
