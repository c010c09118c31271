"""Whether the learning rates of configurations reach the optimizers: forgotten ones earn one warning."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from botorch_costly.device import is_near
from botorch_costly.roles import role_by_name

_logger = logging.getLogger(__name__)
_ENOUGH = 3  # different rates that leave the optimizers as they are, before a warning says so


def rates_in(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a configuration whose names are those of learning rates.

    Example:
        >>> rates_in({"lr": 0.1, "head.lr": 0.2, "dropout": 0.5})
        {'lr': 0.1, 'head.lr': 0.2}
    """
    return {n: rate for n, rate in config.items() if role_by_name(n) == "learning_rate"}


class AppliedRates:
    """Compares the settings of optimizers with the learning rates of the rounds that they trained.

    Settings that change at all, by the rates, by ``lr_multiplier`` or by a scheduler, end the comparison:
    it only notices optimizers that are the same after rounds with three different rates.

    Args:
        parts: Parts of a run; those that are no optimizers are passed over.
    """

    def __init__(self, parts: Iterable[Any]) -> None:
        self._optimizers = [part for part in parts if isinstance(part, Optimizer)]
        self._first: list[Any] | None = None
        self._played: set[tuple[Any, ...]] = set()
        self._is_over = not self._optimizers

    def note(self, rates: Mapping[str, Any]) -> None:
        """Take note of the rates of a round that has been trained; warn once if none is applied."""
        if self._is_over or not rates:
            return
        now = self._settings()
        self._first = now if self._first is None else self._first
        if now is None or now != self._first:
            self._is_over = True
            return
        self._played.add(tuple(rates.values()))
        if len(self._played) < _ENOUGH:
            return
        self._is_over = True
        _logger.warning(
            "Rounds with %d values of %s have left the optimizer as it was: they are not applied, and "
            "the tuner learns from noise. Before each round call "
            "botorch_costly.integrations.apply(decision, optimizer, network).",
            len(self._played),
            " and ".join(rates),
        )

    def _settings(self) -> list[Any] | None:
        """Return all settings of the groups; None if to read one would wait for an accelerator."""
        groups = [group for optimizer in self._optimizers for group in optimizer.param_groups]
        rows = [(name, value) for group in groups for name, value in group.items()]
        if any(isinstance(value, Tensor) and not is_near(value) for _, value in rows):
            return None
        return [(name, _plain(value)) for name, value in rows if name != "params"]


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, Tensor) else value
