"""The parts of a training run: all objects that training changes, copied and restored together."""

import contextlib
import copy
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.optim.lr_scheduler import LRScheduler

from botorch_costly.ask_tell.generators import global_generators, set_global_generators
from botorch_costly.device import check_device
from botorch_costly.errors import RestoreError, StateMismatchError, check
from botorch_costly.rewards.fingerprint import are_others, fingerprint_of
from botorch_costly.states import Stateful, check_states_of, copied, kinds_of

_logger = logging.getLogger(__name__)
Component = Stateful | torch.Generator


class Parts:
    """The parts of a run, and the global generators of Python, NumPy and torch.

    Args:
        components: Objects with ``state_dict`` and ``load_state_dict``, and ``torch.Generator`` objects.
        device: Device of the copies; that of each part if omitted.

    Raises:
        InvalidArgumentError: If there is no part, one has no state, or the device does not exist.
    """

    def __init__(
        self,
        components: Sequence[Component],
        device: torch.device | str | None = None,
    ) -> None:
        check(len(components) > 0, "parts", "at least one network, optimizer, ..", components)
        for component in components:
            stateful = isinstance(component, torch.Generator) or (
                hasattr(component, "state_dict") and hasattr(component, "load_state_dict")
            )
            expected = "parts with a state_dict and a load_state_dict, or generators"
            check(stateful and not isinstance(component, type), "parts", expected, component)
        self.components = components
        self._device = None if device is None else check_device(device)
        self._expected: Any = None  # fingerprint of the networks that were saved with a loaded run

    @property
    def have_scheduler(self) -> bool:
        """Whether there is a scheduler of learning rates among them."""
        return any(isinstance(component, LRScheduler) for component in self.components)

    def described(self) -> dict[str, Any]:
        """Return names of their classes and a fingerprint of the networks, as a state records them."""
        fingerprint = fingerprint_of(self.components)
        known = {} if fingerprint is None else {"fingerprint": fingerprint}
        return {"parts": kinds_of(self.components), **known}

    def expect(self, fingerprint: Any) -> None:
        """Expect the networks that were saved with a run, None if it is not known which."""
        self._expected = fingerprint

    def warn_if_not_loaded(self) -> None:
        """Warn once if the networks are others than those that were saved with a run that was loaded."""
        if self._expected is not None and are_others(
            self._expected, fingerprint_of(self.components)
        ):
            _logger.warning(
                "The networks have other parameters than when this run was saved: the file of a session "
                "alone has no state of them. Save and load them with it, as in save(path, "
                "session=session, network=network, optimizer=optimizer)."
            )
        self._expected = None

    def copied(self) -> list[Any]:
        """Return copies of the states of parts and generators that share no tensor with them."""
        states = [_state_of(component) for component in self.components]
        return [copied(states, self._device), copied(global_generators())]

    def restore(self, kept: list[Any], now: list[Any] | None) -> None:
        """Bring all parts into a state; if that fails, restore the present one if it is known.

        Raises:
            RestoreError: If a part fails to load its state, or there are states of other parts.
        """
        try:
            self._put(kept)
        except BaseException:
            if now is not None:
                with contextlib.suppress(Exception):  # the first error says more
                    self._put(now)
            raise

    def drop_all_but(self, held: Iterable[list[Any]]) -> None:
        """Tell the parts that remember something for each of their states which ones are still held."""
        rows = [states for states, _ in held]
        for number, component in enumerate(self.components):
            if hasattr(component, "drop_all_but"):
                component.drop_all_but([states[number] for states in rows if number < len(states)])

    def _put(self, kept: list[Any]) -> None:
        states, generators = copy.deepcopy(kept)
        expected = f"states of the {len(self.components)} parts of this session"
        check(len(states) == len(self.components), "restore", expected, len(states), RestoreError)
        for component, state in zip(self.components, states, strict=True):
            try:
                if isinstance(component, torch.Generator):
                    component.set_state(state.cpu())
                else:
                    component.load_state_dict(state)
            except Exception as error:
                expected = f"{type(component).__name__} to take an earlier state of its own"
                raise RestoreError("restore", expected, error) from error
        set_global_generators(generators)

    def check_kept(self, tuner: Any, best: Mapping[str, Any] | None, kinds: Any) -> None:
        """Raise unless kept states belong to these parts.

        Args:
            tuner: State of a tuner, with its kept states.
            best: Metric and state of the best query; None if there is none.
            kinds: Names of the classes of the parts that were saved.

        Raises:
            StateMismatchError: If they belong to other parts, or to parts in another order.
        """
        kept = tuner.get("kept") if isinstance(tuner, Mapping) else None
        held = [*kept.values()] if isinstance(kept, Mapping) else []
        held = held if best is None else [*held, best["state"]]
        for pair in held:
            whole = isinstance(pair, list | tuple) and len(pair) == 2
            check(whole, "state: kept", "states of parts and generators", pair, StateMismatchError)
        check_states_of(self.components, [states for states, _ in held], kinds)


def _state_of(component: Component) -> Any:
    return (
        component.get_state() if isinstance(component, torch.Generator) else component.state_dict()
    )
