"""All steps of all optimizers of torch, handed to those that watch a run."""

import weakref
from typing import Any, Protocol

from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook


class Watch(Protocol):
    """An object that takes note of steps; it is forgotten with its last reference."""

    def note(self, optimizer: Optimizer) -> None:
        """Take note of a step."""


def watch(watcher: Watch) -> None:
    """Hand all steps from now on to an object."""
    _watching.add(watcher)


def unwatch(watcher: Watch) -> None:
    """Hand it no more steps."""
    _watching.discard(watcher)


_watching: "weakref.WeakSet[Watch]" = weakref.WeakSet()


def _note(optimizer: Any, *_: Any) -> None:
    for watcher in tuple(_watching) if _watching else ():
        watcher.note(optimizer)


# One hook for good: hooks cannot be removed while others run.
register_optimizer_step_post_hook(_note)
