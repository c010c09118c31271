"""All steps of all optimizers of torch, handed to those that watch a run."""

import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook


class Watch(ABC):
    """An object that takes note of steps; it is forgotten with its last reference.

    Its copies watch if it does. A copied run has copies of its parts, and steps of other optimizers tell
    that what it was copied from is trained.
    """

    @abstractmethod
    def note(self, optimizer: Optimizer) -> None:
        """Take note of a step."""

    def __getstate__(self) -> dict[str, Any]:
        is_watching = any(reference() is self for reference in _watching)
        return {**vars(self), "is_watching": is_watching}

    def __setstate__(self, state: dict[str, Any]) -> None:
        is_watching = state.pop("is_watching")
        vars(self).update(state)
        if is_watching:
            watch(self)


def watch(watcher: Watch) -> None:
    """Hand all steps from now on to an object."""
    _replace_by(lambda others: (*others, weakref.ref(watcher)), watcher)


def unwatch(watcher: Watch) -> None:
    """Hand it no more steps."""
    _replace_by(tuple, watcher)


_References = tuple["weakref.ref[Watch]", ...]
# Replaced as a whole: steps of other threads read it meanwhile.
_watching: _References = ()
_lock = threading.Lock()


def _replace_by(change: Callable[[_References], _References], watcher: Watch) -> None:
    """Replace the watchers by what a function makes of the others that are alive."""
    global _watching
    with _lock:
        alive = ((reference, reference()) for reference in _watching)
        _watching = change(tuple(r for r, one in alive if one is not None and one is not watcher))


def _note(optimizer: Any, *_: Any) -> None:
    for reference in _watching:
        watcher = reference()
        if watcher is not None:
            watcher.note(optimizer)


# One hook for good: hooks cannot be removed while others run.
register_optimizer_step_post_hook(_note)
