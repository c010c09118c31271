"""Partial readings within a trainer: a loader in a fixed random order, and the losses of its batches."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
)

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.integrations.validation.shared import SharedValidation
from botorch_costly.randomness import generator_of


class FixedOrder(Sampler[int]):
    """Numbers of examples in the same order at each iteration, up to the end of a reading.

    Args:
        earlier: Sampler whose place it takes.
        order: Numbers of all examples.
        batch_size: Examples of a batch.
        is_complete: Function that returns whether a reading needs no further batch.
    """

    def __init__(
        self,
        earlier: Any,
        order: list[int],
        batch_size: int,
        is_complete: Callable[[], bool],
    ) -> None:
        self.earlier = earlier
        self._order, self._batch_size, self._is_complete = order, batch_size, is_complete

    def __len__(self) -> int:
        """Return the number of all examples."""
        return len(self._order)

    def __iter__(self) -> Iterator[int]:
        """Iterate over the examples of the batches that a reading needs."""
        for position, example in enumerate(self._order):
            if position % self._batch_size == 0 and self._is_complete():
                return
            yield example


class PartReader:
    """Reads a loader batch by batch in a fixed random order, until a reading is complete.

    The test behind a partial reading assumes values that are drawn in random order without replacement.
    The loader's sampler is therefore exchanged for a permutation, the same in all readings and resumed
    runs of a seed. Values are the losses of examples, if the loader has as many as the option
    ``examples``; or the means of batches, if it has as many batches: then the last, smaller batch is read
    last, and counts like the others.

    Args:
        shared: The validation of a run with a single rank, with the option ``examples``.
    """

    def __init__(self, shared: SharedValidation) -> None:
        self._shared = shared
        self.level: float | None = None  # of the best checkpoint, as it is shown, times the sign
        self._batching: Any = None  # batch sampler of the loader in use
        self._total, self._size, self._of_batches = 0, 1, False
        self._is_reading, self._batch = False, 0
        self._waiting = torch.zeros(0, dtype=torch.float64)
        self._told = False

    # -- the loader -----------------------------------------------------------------------------------

    def use(self, loader: Any, *, has_means: bool = False) -> None:
        """Set the order of a loader until ``release``.

        Args:
            loader: A ``DataLoader``.
            has_means: Whether only the means of batches will be known.

        Raises:
            InvalidArgumentError: If the loader has no fixed set of examples, or batches of its own kind;
                or if it has neither as many examples nor as many batches as the option ``examples``.
        """
        self.release()
        is_loader = isinstance(loader, DataLoader)
        expected = "one DataLoader of torch, for Validation(examples=..)"
        check(is_loader, "validation data", expected, type(loader).__name__)
        is_indexed = not isinstance(loader.dataset, IterableDataset)
        expected = "a data set with indices, for Validation(examples=..)"
        check(is_indexed, "validation data", expected, type(loader.dataset).__name__)
        batching = loader.batch_sampler
        sampler = getattr(batching, "sampler", None)
        if isinstance(sampler, FixedOrder):  # a killed run has not given the order back
            sampler = sampler.earlier
        is_plain = type(batching) is BatchSampler and isinstance(
            sampler, SequentialSampler | RandomSampler
        )
        expected = "all examples in stored or shuffled order, for Validation(examples=..)"
        received = type(batching).__name__ if sampler is None else type(sampler).__name__
        check(is_plain, "validation data", expected, received)
        self._count(loader, batching, has_means=has_means)
        seed = self._shared.validation.options.seed
        order = torch.randperm(self._total, generator=generator_of(seed)).tolist()
        self._batching = batching
        batching.sampler = FixedOrder(sampler, order, self._size, lambda: self.is_complete)

    def _count(self, loader: Any, batching: Any, *, has_means: bool) -> None:
        """Set whether examples or batches are drawn."""
        examples, total = self._shared.validation.options.examples, len(loader.dataset)
        is_whole = not batching.drop_last or total % batching.batch_size == 0
        has_all = is_whole and not has_means
        of_examples = has_all and examples == total
        expected = f"{len(loader)}, the number of batches"
        if has_all:
            expected = f"{total}, the number of examples, or {expected}"
        check(of_examples or examples == len(loader), "examples", expected, examples)
        self._total, self._size = total, batching.batch_size
        self._of_batches = not of_examples

    def release(self) -> None:
        """Give the loader its order back."""
        if self._batching is not None:
            self._batching.sampler = self._batching.sampler.earlier
            self._batching = None

    # -- a reading ------------------------------------------------------------------------------------

    @property
    def is_complete(self) -> bool:
        """Whether the reading in progress needs no further batch."""
        return self._is_reading and not self._shared.examples

    @property
    def is_reading(self) -> bool:
        """Whether a reading is in progress, or complete and not ended."""
        return self._is_reading

    @property
    def examples(self) -> int:
        """Number of examples in the batches that the reading has used so far."""
        return min(self._batch * self._size, self._total)

    def begin(self) -> None:
        """Begin a reading of the loader in use, if one is due."""
        self._is_reading = self._shared.is_due and self._batching is not None
        self._batch, self._told = 0, False
        self._waiting = self._waiting[:0]

    def add(self, losses: Any) -> None:
        """Add the losses of the next batch.

        Args:
            losses: Those of its examples, shape ``(n,)``, or their mean.

        Raises:
            InvalidShapeError: If there is not one value for each example, or for the batch.
        """
        if not self._is_reading or self.is_complete:
            return
        count = 1 if self._of_batches else min(self._size, self._total - self._batch * self._size)
        values = losses if isinstance(losses, Tensor) else torch.zeros(0)
        unit = (
            "the mean loss of the batch" if self._of_batches else f"the losses of {count} examples"
        )
        received = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
        is_shaped = values.numel() == count and values.ndim <= 1
        check(is_shaped, "validation step", f"{unit}, returned", received, InvalidShapeError)
        self._batch += 1
        values = values.detach().reshape(-1).to("cpu", torch.float64)
        self._waiting = torch.cat([self._waiting, values])
        while 0 < len(self._shared.examples) <= len(self._waiting):
            due = len(self._shared.examples)
            self._shared.tell_part(self._waiting[:due])
            self._waiting, self._told = self._waiting[due:], True

    def result(self) -> float | None:
        """Return the estimated mean over the whole set, for others who compare checkpoints.

        It is better than all earlier ones exactly if the checkpoint is the best one so far. None if the
        loader ended before the first shard.
        """
        if not self._told:
            return None
        value, validation = self._shared.validation.history[-1][1], self._shared.validation
        if math.isfinite(value):
            sign = validation.options.sign
            value = sign * _ranked(sign * value, self.level, is_best=validation.is_best)
            self.level = sign * value if validation.is_best else self.level
        return value

    def end(self) -> float | None:
        """End the reading; return an estimate to compare with those before, or None if it failed.

        The mean of a new best checkpoint has more examples, and may by chance be worse than that of the
        earlier one. It counts as no worse, and each later estimate keeps its ratio to it, or its
        difference of a score.
        """
        was_told, self._told, self._is_reading = self._told, False, False
        if not was_told:
            return None
        validation, level = self._shared.validation, self.level
        shown, best, sign = validation.history[-1][1], validation.best, validation.options.sign
        if level is None or best is None or not math.isfinite(shown):
            return shown
        value, least = sign * shown, sign * best.value
        if validation.is_best:
            return sign * min(value, level)
        value = value * (level / least) if min(level, least) > 0 else value + (level - least)
        return sign * max(value, level)


def _ranked(value: float, level: float | None, *, is_best: bool) -> float:
    """Return a value that is lower than a level exactly for the best checkpoint, in single precision.

    Checkpoints are compared on their common examples. The estimate of a new best one has more, and may by
    chance not be lower than the earlier estimate.
    """
    if level is None:
        return value
    if not is_best:
        return max(value, level)
    below = torch.nextafter(torch.tensor(level), torch.tensor(-math.inf))
    return min(value, float(below))
