"""An optimizer that goes back without the network that it trains, or the reverse, earns a warning.

Its moments are then those of a training that was undone, or the training is not undone at all.
"""

import logging
from collections.abc import Iterable
from typing import Any

from torch import Generator, Tensor, nn
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from botorch_costly.rewards.fingerprint import are_plain
from botorch_costly.rewards.step_hook import Watch, unwatch, watch

_logger = logging.getLogger(__name__)


class OutsideOptimizers(Watch):
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
        watch(self)

    def note(self, optimizer: Optimizer) -> None:
        """Note a step; warn once if either the optimizer or all that it trains is among the parts."""
        networks = [part for part in self._parts if isinstance(part, nn.Module)]
        trained = {id(p) for network in networks for p in network.parameters()}  # as it is now
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        own = {id(p) for p in parameters}
        if own & trained:
            if _has_moments(optimizer) and not any(may_restore(p, optimizer) for p in self._parts):
                self._warn(
                    optimizer,
                    "trains a network that goes back to earlier states, and does not go back with it, "
                    "for it is not among the parts.",
                )
        elif own and are_plain(parameters) and self._is_part(optimizer):
            self._warn(
                optimizer,
                "is among the parts and goes back to earlier states; what it trains is not, and goes on.",
            )

    def _is_part(self, optimizer: Optimizer) -> bool:
        """Return whether an optimizer is a part, and none of the others may hold what it trains."""
        is_one = any(is_its_own(part, optimizer) for part in self._parts)
        return is_one and all(map(_is_known, self._parts))

    def _warn(self, optimizer: Optimizer, what: str) -> None:
        self.has_warned = True
        self.end()
        advice = "Make it once, and name all that training changes"
        _logger.warning("%s %s %s: %s.", type(optimizer).__name__, what, advice, self._advice)

    def end(self) -> None:
        """Watch no longer."""
        unwatch(self)


def _has_moments(optimizer: Optimizer) -> bool:
    """Return whether an optimizer has a state to go back to, other than plain SGD."""
    states = (state for state in optimizer.state.values() if isinstance(state, dict))
    return any(isinstance(value, Tensor) for state in states for value in state.values())


def may_restore(part: Any, optimizer: Optimizer) -> bool:
    """Return whether a part may restore an optimizer; only of torch's own kinds it is known that not."""
    return is_its_own(part, optimizer) or not _is_known(part)


def is_its_own(part: Any, optimizer: Optimizer) -> bool:
    """Return whether a part is an optimizer, or wraps it."""
    return part is optimizer or getattr(part, "param_groups", None) is optimizer.param_groups


def _is_known(part: Any) -> bool:
    """Return whether it is known what a part restores, as of torch's own kinds."""
    return isinstance(part, nn.Module | LRScheduler | Optimizer | GradScaler | Generator)
