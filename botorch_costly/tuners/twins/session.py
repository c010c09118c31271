"""A training run that can go back: keeps and restores whatever training changes, as a tuner decides."""

import copy
import logging
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler

from botorch_costly.ask_tell.generators import global_generators, set_global_generators
from botorch_costly.ask_tell.protocol import Stateful
from botorch_costly.errors import RestoreError, check
from botorch_costly.parameters import Scheduled
from botorch_costly.records import Observation, TwinDecision
from botorch_costly.tuners.twins.tuner import TwinTuner

_logger = logging.getLogger(__name__)


class Session:
    """A tuner, and the parts of a training run that it goes back with.

    Whatever training changes belongs to the parts: network, optimizers, schedulers, a gradient scaler,
    exponential averages, generators, data loaders with a ``state_dict``. The states of Python's, NumPy's
    and torch's global generators go back, too, so that a loop over a fresh ``DataLoader`` meets the same
    batches. Where the order of data cannot go back, twins see different batches: comparisons are noisier,
    and the tuner learns how noisy.

    A state is copied on its own device, and about three copies are held at a time. If one cannot be
    copied, a warning says so, and the rest of the run plays the incumbent.

    Args:
        tuner: A ``TwinTuner``.
        parts: Objects with ``state_dict`` and ``load_state_dict``, and ``torch.Generator`` objects.
        device: Where copies are held: ``"cpu"`` saves memory of an accelerator; that of the parts if
            omitted.
        keep_best: Whether the state of the best query is copied as well, for ``restore_best``. By
            default what is handed over is the last state, which has been trained to its end.

    Raises:
        InvalidArgumentError: If the tuner is none, or a part has no state.

    Example::

        session = Session(TwinTuner(space, 300, start=default), network, optimizer)
        for decision in session:
            train_one_round(**decision.config)
            if decision.query:
                session.tell(decision, validation_loss())
    """

    def __init__(
        self,
        tuner: TwinTuner,
        *parts: Stateful | torch.Generator,
        device: torch.device | str | None = None,
        keep_best: bool = False,
    ) -> None:
        check(isinstance(tuner, TwinTuner), "tuner", "a TwinTuner", tuner)
        check(len(parts) > 0, "parts", "at least one network, optimizer, ..", parts)
        for part in parts:
            stateful = isinstance(part, torch.Generator) or (
                hasattr(part, "state_dict") and hasattr(part, "load_state_dict")
            )
            expected = "parts with a state_dict and a load_state_dict, or generators"
            check(stateful and not isinstance(part, type), "parts", expected, part)
        if _plays_a_schedule(tuner) and any(isinstance(p, LRScheduler) for p in parts):
            _logger.warning(
                "A scheduler is among the parts, and the tuner lets the learning rate fall at the end, "
                "too. Tune Scheduled(low, high, base='constant') and let your scheduler do it."
            )
        check(isinstance(keep_best, bool), "keep_best", "a bool", keep_best)
        self.tuner, self._parts, self._device = tuner, parts, device
        self._kept: dict[int, Any] = {}
        self._keeps_best = keep_best
        self._best: dict[str, Any] | None = None  # metric and state

    def __iter__(self) -> Iterator[TwinDecision]:
        """Iterate over the decisions that are left."""
        while len(self.tuner.decisions) < self.tuner.horizon:
            yield self.ask()

    def ask(self) -> TwinDecision:
        """Decide on the next round, and bring the parts into the state that it begins with.

        Raises:
            HorizonExceededError: If all rounds of the horizon have been asked for.
            RestoreError: If a part did not take an earlier state.
        """
        decision = self.tuner.ask()
        if decision.keep is not None:
            self._keep(decision.keep)
        if decision.restore is not None and decision.restore in self._kept:
            self._restore(self._kept[decision.restore])
        for number in decision.drop:
            self._kept.pop(number, None)
        return decision

    def tell(
        self, decision: TwinDecision, metric: float, *, seconds: float | None = None
    ) -> Observation:
        """Hand in the metric after a round; arguments and errors of ``TwinTuner.tell``."""
        told = self.tuner.tell(decision, metric, seconds=seconds)
        latest = (
            decision.round == len(self.tuner.decisions) - 1
        )  # else the parts are elsewhere by now
        if self._keeps_best and latest and told.reward is not None:
            self._keep_if_best(told.reward)
        return told

    def restore_best(self) -> float:
        """Bring the parts into the state of the best query; return its metric.

        The best of many queries looks better than it is: it was lucky, too. Where the learning rate falls
        at the end, the last state is usually as good.

        Raises:
            RestoreError: If there is no such state, or a part did not take it.
        """
        if self._best is None:
            expected = "a query told in a session with keep_best=True"
            raise RestoreError("restore_best", expected, "none")
        self._restore(self._best["state"])
        return float(self._best["metric"])

    def _keep_if_best(self, metric: float) -> None:
        level_of = self.tuner.level_of
        if self._best is not None and level_of(metric) <= level_of(self._best["metric"]):
            return
        try:
            state = self._copied(self._states())
        except Exception as error:
            self._keeps_best = False
            _logger.warning("The best state could not be copied (%s): the last is left.", error)
        else:
            self._best = {"metric": metric, "state": state}

    def _keep(self, number: int) -> None:
        try:
            self._kept[number] = self._copied(self._states())
        except Exception as error:
            self.tuner.settle()
            self._kept.clear()
            _logger.warning(
                "A state of training could not be copied (%s: %s). The rest of the run plays the "
                "incumbent: nothing is tried, for there is no way back.",
                type(error).__name__,
                error,
            )

    def _states(self) -> list[Any]:
        parts = [_state_of(part) for part in self._parts]
        return [parts, global_generators()]

    def _restore(self, kept: list[Any]) -> None:
        states, generators = copy.deepcopy(kept)
        for part, state in zip(self._parts, states, strict=True):
            try:
                if isinstance(part, torch.Generator):
                    part.set_state(state.cpu())
                else:
                    part.load_state_dict(state)
            except Exception as error:
                expected = f"{type(part).__name__} to take an earlier state of its own"
                raise RestoreError("restore", expected, error) from error
        set_global_generators(generators)

    def _copied(self, state: Any) -> Any:
        """Return a copy that shares no tensor with the state."""
        if isinstance(state, Tensor):
            return state.detach().to(self._device or state.device, copy=True)
        if isinstance(state, dict):
            copied = copy.copy(state)  # of any kind of dict, with what hangs on it
            copied.update({key: self._copied(value) for key, value in state.items()})
            return copied
        if type(state) in (list, tuple):
            return type(state)(self._copied(value) for value in state)
        return copy.deepcopy(state)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the tuner and the states that are kept; the parts are saved beside it."""
        state = {"tuner": self.tuner.state_dict(), "kept": dict(self._kept)}
        return state if self._best is None else {**state, "best": dict(self._best)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state_dict``, with parts that were loaded as well.

        Raises:
            StateMismatchError: As ``TwinTuner.load_state_dict``; the session is unchanged.
        """
        self.tuner.load_state_dict(state["tuner"])
        self._kept, self._best = dict(state["kept"]), state.get("best")


def _plays_a_schedule(tuner: TwinTuner) -> bool:
    parameters = dict(tuner.space.parameters)
    rates = [parameters[name] for name in tuner.space.rates]
    return any(not isinstance(rate, Scheduled) or rate.base != "constant" for rate in rates)


def _state_of(part: Stateful | torch.Generator) -> Any:
    return part.get_state() if isinstance(part, torch.Generator) else part.state_dict()
