"""Training data of a Trainer of Lightning that can be handed out again."""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from botorch_costly.integrations.rewindable import Rewindable

_logger = logging.getLogger(__name__)


class Feed:
    """Rewindable batches as a loader of the trainer, which does not see their state.

    Lightning saves the state of each loader that has one, and refuses a checkpoint if the loader of the
    resumed run has none. So the callback saves it.

    Args:
        batches: The batches.
    """

    def __init__(self, batches: Rewindable) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Any]:
        return iter(self.batches)

    def __len__(self) -> int:
        return len(self.batches)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the loader, such as ``sampler``."""
        if name.startswith("_") or name in ("batches", "state_dict", "load_state_dict"):
            raise AttributeError(name)
        return getattr(self.batches, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "batches":
            super().__setattr__(name, value)
        else:
            setattr(self.batches, name, value)


class TrainingData:
    """Makes the training data of a trainer rewindable while it fits.

    Lightning passes each loader through ``process_dataloader`` of its strategy, which is there to wrap
    loaders, after it has added the samplers of distributed training.

    Args:
        before: Function that is called before a batch of sized data is fetched. Of data without a length
            Lightning fetches a batch ahead.
    """

    def __init__(self, before: Callable[[], None]) -> None:
        self._before = before
        self._strategy: Any = None
        self._wrapped: list[Rewindable] = []

    def install(self, trainer: Any) -> None:
        """Make the loaders of training rewindable that the trainer sets up from now on."""
        self.remove()
        self._strategy, process = trainer.strategy, trainer.strategy.process_dataloader
        reloads = trainer.reload_dataloaders_every_n_epochs > 0
        if reloads:
            _logger.warning(
                "The training data are loaded again every %d epochs: twins see other batches. Use "
                "reload_dataloaders_every_n_epochs=0.",
                trainer.reload_dataloaders_every_n_epochs,
            )

        def processed(loader: Any) -> Any:
            ready = process(loader)
            return self._feed(ready) if trainer.training and not reloads else ready

        self._strategy.process_dataloader = processed

    def remove(self) -> None:
        """Leave the trainer as it was."""
        if self._strategy is not None:
            del self._strategy.process_dataloader
            self._strategy = None
        for batches in self._wrapped:
            batches.before = None
        self._wrapped = []

    def of(self, trainer: Any) -> tuple[Rewindable, ...]:
        """Return the batches that the trainer reads; from now on ``before`` is called."""
        self._wrapped = [feed.batches for feed in _feeds_in(trainer.train_dataloader)]
        for batches in self._wrapped:
            batches.before = self._before if _is_sized(batches) else None
        return tuple(self._wrapped)

    def end_pass(self) -> None:
        """End the pass of an epoch that ends before its data."""
        for batches in self._wrapped:
            batches.end_pass()

    def _feed(self, loader: Any) -> Feed:
        return Feed(loader if isinstance(loader, Rewindable) else Rewindable(loader))


def _feeds_in(loaders: Any) -> list[Feed]:
    """Return the feeds in the loaders of a trainer: one, or lists and dictionaries of them."""
    if isinstance(loaders, Feed):
        return [loaders]
    if isinstance(loaders, Mapping):
        return [feed for value in loaders.values() for feed in _feeds_in(value)]
    if isinstance(loaders, list | tuple):
        return [feed for value in loaders for feed in _feeds_in(value)]
    return []


def _is_sized(batches: Rewindable) -> bool:
    try:
        return len(batches) >= 0
    except (TypeError, NotImplementedError):
        return False
