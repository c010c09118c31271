"""The training loss of a run: its smoothed level, and its spikes."""

import math
import statistics
from collections import deque
from typing import Any

import torch
from torch import Tensor

from botorch_costly.plain import as_number

_FLUSH = 16  # losses that are read together, so that most steps do not wait for a device
_MEMORY = 0.05  # share of the steps so far over which the level is averaged,
_LEAST_MEMORY = 8  # in steps, at least
_WINDOW = 128  # earlier losses that a spike is compared with
_LEAST_WINDOW = 32
_RECENT = 4  # latest losses, all of which have to be high in a spike
_DEVIATIONS = 6.0  # above the median that they have to exceed,
_LEAST_RISE = 0.05  # and the share of the median: losses without noise have no deviation


class TrainingLoss:
    """Losses of training steps, read a few at a time; ``level`` is that after the latest ``read``."""

    def __init__(self) -> None:
        self.level = math.nan
        self._count = 0
        self._window: deque[float] = deque(maxlen=_WINDOW)
        self._unread: list[float | Tensor] = []
        self._highest = (
            math.inf
        )  # of earlier losses; a higher one may be a spike: it is read at once
        self.has_spiked = False  # since ``take_spike``

    def add(self, loss: float | Tensor) -> None:
        """Add the loss of a step, a number or a tensor with one element.

        Raises:
            InvalidArgumentError: If it is neither.
        """
        if type(loss) is not float:  # most are; the checks take longer
            loss = _checked(loss)
        self._unread.append(loss)
        is_low = isinstance(loss, Tensor) or -math.inf < loss < self._highest  # False for NaN
        if len(self._unread) >= _FLUSH or not is_low:
            self.read()

    def read(self) -> None:
        """Read the losses since the last call, and those that are still on their device."""
        if not self._unread:
            return
        unread, self._unread = self._unread, []
        far = [loss.double() for loss in unread if isinstance(loss, Tensor)]
        near = iter(torch.stack(far).tolist() if far else [])
        for loss in unread:
            self._add(next(near) if isinstance(loss, Tensor) else loss)
        self._highest = self._highest_earlier()

    def _highest_earlier(self) -> float:
        return max(list(self._window)[:-_RECENT], default=math.inf)

    def take_spike(self) -> bool:
        """Return whether the losses have spiked since the last call."""
        spiked, self.has_spiked = self.has_spiked, False
        return spiked

    def restart(self, level: float) -> None:
        """Forget the losses so far, and begin at a level; NaN if it is unknown."""
        self.level, self._count = level, int(math.isfinite(level))
        self._window.clear()
        self._unread, self._highest, self.has_spiked = [], math.inf, False

    def _add(self, loss: float) -> None:
        if not math.isfinite(loss):
            self.has_spiked = True
            return
        self._count += 1
        weight = 1 / min(self._count, max(_LEAST_MEMORY, _MEMORY * self._count))
        self.level = loss if self._count == 1 else self.level + weight * (loss - self.level)
        self._window.append(loss)
        if self._is_spike():
            self.has_spiked = True
            self._window.clear()  # the next spike is one from the new level
            self.level, self._count = loss, 1

    def _is_spike(self) -> bool:
        if len(self._window) < _LEAST_WINDOW + _RECENT:
            return False
        losses = list(self._window)
        lowest = min(losses[-_RECENT:])
        earlier = losses[:-_RECENT]
        if lowest <= max(earlier[-_RECENT:]):  # cheap, and true of most steps
            return False
        median = statistics.median(earlier)
        deviation = statistics.median(abs(loss - median) for loss in earlier)
        return lowest - median > max(_DEVIATIONS * 1.4826 * deviation, _LEAST_RISE * abs(median))

    def state_dict(self) -> dict[str, Any]:
        """Return the state in plain values."""
        self.read()
        return {
            "level": self.level,
            "count": self._count,
            "window": list(self._window),
            "spiked": self.has_spiked,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.level, self._count, self.has_spiked = state["level"], state["count"], state["spiked"]
        self._window, self._unread = deque(state["window"], maxlen=_WINDOW), []
        self._highest = self._highest_earlier()


def _checked(loss: float | Tensor) -> float | Tensor:
    """Return a loss as a number, or as a tensor without dimensions if it is on a device."""
    is_float = isinstance(loss, Tensor) and loss.numel() == 1 and loss.dtype.is_floating_point
    if isinstance(loss, Tensor) and is_float:
        is_near = loss.device.type == "cpu"
        return loss.item() if is_near else loss.detach().reshape(()).clone()
    return as_number("train_loss", loss)
