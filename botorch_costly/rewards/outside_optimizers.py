"""An optimizer that trains a network that goes back, and does not go back with it, earns a warning.

Its moments are then those of a training that was undone.
"""

import logging
from collections.abc import Iterable
from typing import Any

from torch import Generator, Tensor, nn
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from botorch_costly.rewards.step_hook import unwatch, watch

_logger = logging.getLogger(__name__)


class OutsideOptimizers:
    """Watches the steps of all optimizers, until a round is over.

    Args:
        parts: Objects that go back to earlier states together.
        advice: How to name them all, for the message.

    Attributes:
        has_warned: Whether there has been a warning.
    """

    def __init__(self, parts: Iterable[Any], advice: str) -> None:
        self._parts, self._advice = list(parts), advice
        self.has_warned = False
        networks = [part for part in self._parts if isinstance(part, nn.Module)]
        self._trained = {id(p) for network in networks for p in network.parameters()}
        watch(self)

    def note(self, optimizer: Optimizer) -> None:
        """Note a step; warn once if the optimizer trains a network and does not go back with it."""
        groups = optimizer.param_groups
        trains = any(id(p) in self._trained for group in groups for p in group["params"])
        if not (trains and _has_moments(optimizer)):
            return
        if any(may_restore(part, optimizer) for part in self._parts):
            return
        self.has_warned = True
        self.end()
        _logger.warning(
            "%s trains a network that goes back to earlier states, and does not go back with it, for it "
            "is not among the parts. Make it once, and name all that training changes: %s.",
            type(optimizer).__name__,
            self._advice,
        )

    def end(self) -> None:
        """Watch no longer."""
        unwatch(self)


def _has_moments(optimizer: Optimizer) -> bool:
    """Return whether an optimizer has a state to go back to, other than plain SGD."""
    states = (state for state in optimizer.state.values() if isinstance(state, dict))
    return any(isinstance(value, Tensor) for state in states for value in state.values())


def may_restore(part: Any, optimizer: Optimizer) -> bool:
    """Return whether a part may restore an optimizer; only of torch's own kinds it is known that not."""
    if part is optimizer or getattr(part, "param_groups", None) is optimizer.param_groups:
        return True
    return not isinstance(part, nn.Module | LRScheduler | Optimizer | GradScaler | Generator)
