"""Two objects that bring one network back to earlier states in turn: each undoes what the other did."""

import logging
import weakref
from collections.abc import Iterable
from typing import Any

from torch import nn
from torch.optim import Optimizer

_logger = logging.getLogger(__name__)
_latest: "weakref.WeakKeyDictionary[Any, weakref.ref[Turns]]" = weakref.WeakKeyDictionary()


class Turns:
    """Notes in whose hands parts are; warns once if they come back from another object that is in use.

    One object may take over from another, as a second run does. Two that alternate do not know of each
    other's states.

    Args:
        parts: Objects that go back to earlier states together; networks and optimizers are watched.
        name: What brings them back, for the message.
    """

    def __init__(self, parts: Iterable[Any], name: str) -> None:
        self._parts = [part for part in parts if isinstance(part, nn.Module | Optimizer)]
        self._name = name
        self._has_acted = self._has_warned = False

    def take(self) -> None:
        """Take the parts in hand."""
        for part in self._parts:
            held = _latest.get(part)
            other = None if held is None else held()
            if other is not None and other is not self and self._has_acted:
                self._warn(other, part)
            _latest[part] = weakref.ref(self)
        self._has_acted = True

    def _warn(self, other: "Turns", part: Any) -> None:
        """Warn of another object with a part, once for both."""
        if not self._has_warned:
            _logger.warning(
                "A %s and a %s bring the same %s back to earlier states in turn: each undoes what the "
                "other has trained. Use one, with all hyperparameters in its space.",
                *(other._name, self._name, type(part).__name__),
            )
        self._has_warned = other._has_warned = True
