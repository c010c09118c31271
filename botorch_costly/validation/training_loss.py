"""The training loss of a run: its smoothed level, and its spikes."""

import math
import statistics
from collections import deque
from typing import Any

import torch
from torch import Tensor

from botorch_costly.plain import as_number

_FLUSH = 16  # losses on a device that are read together, so that steps do not wait for it
_MEMORY = 0.05  # share of the steps so far over which the level is averaged,
_LEAST_MEMORY = 8  # in steps, at least
_WINDOW = 128  # earlier losses that a spike is compared with
_LEAST_WINDOW = 32
_RECENT = 4  # latest losses, all of which have to be high in a spike
_DEVIATIONS = 6.0  # above the median that they have to exceed,
_LEAST_RISE = 0.05  # and the share of the median: losses without noise have no deviation


class TrainingLoss:
    """Losses of training steps. Tensors are kept on their device and read a few at a time."""

    def __init__(self) -> None:
        self.level = math.nan
        self._count = 0
        self._window: deque[float] = deque(maxlen=_WINDOW)
        self._unread: list[Tensor] = []
        self.has_spiked = False  # since ``take_spike``

    def add(self, loss: float | Tensor) -> None:
        """Add the loss of a step, a number or a tensor with one element.

        Raises:
            InvalidArgumentError: If it is neither.
        """
        if type(loss) is float and not self._unread:  # most calls; the checks below take longer
            self._add(loss)
        elif isinstance(loss, Tensor) and loss.numel() == 1 and loss.dtype.is_floating_point:
            if loss.device.type == "cpu":
                self._add(loss.item())
                return
            self._unread.append(loss.detach().reshape(()).clone())
            if len(self._unread) >= _FLUSH:
                self.read()
        else:
            self.read()
            self._add(as_number("train_loss", loss))

    def read(self) -> None:
        """Read the losses that are still on their device."""
        if self._unread:
            losses = torch.stack([loss.double() for loss in self._unread]).tolist()
            self._unread = []
            for loss in losses:
                self._add(loss)

    def take_spike(self) -> bool:
        """Return whether the losses have spiked since the last call."""
        spiked, self.has_spiked = self.has_spiked, False
        return spiked

    def restart(self, level: float) -> None:
        """Forget the losses so far, and begin at a level; NaN if it is unknown."""
        self.level, self._count = level, int(math.isfinite(level))
        self._window.clear()
        self._unread, self.has_spiked = [], False

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
