"""Batches that are handed out again after training went back to an earlier state."""

import contextlib
import copy
import logging
import sys
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from botorch_costly.ask_tell.generators import global_generators, set_global_generators
from botorch_costly.calls import advised
from botorch_costly.errors import StateMismatchError, check, check_positive
from botorch_costly.states import copied

_logger = logging.getLogger(__name__)
_KEYS = {"run", "position", "frontier", "since", "passed", "is_open", "number", "starts"}


@advised
class Rewindable:
    """A loader whose batches are handed out again after training went back.

    Its state is a position in the order of the batches. After an earlier state is loaded, the batches
    since then come again, the same objects, before new ones are read. So twins train on the same batches.

    ``for batch in batches`` is one pass: as many batches as the loader has, those handed out again
    included, so that an epoch of a trainer is as long as ever. After a pass in which batches came again,
    the next one begins with the rest of the loader's epoch. A pass that is broken off ends the loader's
    epoch, as without this class. ``next(batches)`` reads on without an end. Epochs are numbered here:
    samplers with a ``set_epoch`` are told the number. All other attributes are those of the loader.

    Batches are remembered from the first ``state_dict`` on, by reference. ``drop_all_but`` says which
    states may still be loaded; a ``Session`` calls it. Where remembered batches exceed the bound, the
    oldest are forgotten with one warning: a run that goes back to before them reads new batches.

    A state that is loaded in another process reads the loader again from the beginning of the epoch. The
    generators are set as they were there, so that a shuffled order is the same.

    Args:
        loader: A ``DataLoader`` or another iterable that can be iterated again.
        gigabytes: Largest size of the remembered batches, in GiB, on the device that the loader has them
            on.

    Attributes:
        before: Function that is called before each batch is handed out; it may load a state.

    Raises:
        InvalidArgumentError: If the loader is not iterable, or an iterator, or the size is not positive.

    Example:
        >>> batches = Rewindable(["a", "b", "c"])
        >>> next(batches)
        'a'
        >>> before = batches.state_dict()
        >>> next(batches), next(batches)
        ('b', 'c')
        >>> batches.load_state_dict(before)
        >>> next(batches), next(batches), next(batches)
        ('b', 'c', 'a')
    """

    loader: Any
    before: Callable[[], None] | None

    def __init__(self, loader: Iterable[Any], *, gigabytes: float = 1.0) -> None:
        readable = isinstance(loader, Iterable) and not isinstance(loader, Iterator)
        check(readable, "loader", "a loader that can be iterated again", loader)
        self.loader, self.before = loader, None
        self._most = check_positive("gigabytes", gigabytes) * 2**30
        self._run = uuid.uuid4().hex  # states of other runs are not positions of this one
        self._position = 0  # number of the next batch
        self._first = 0  # number of the oldest remembered batch, or of the next one
        self._batches: deque[Any] = deque()
        self._size, self._is_told = 0, False
        self._held: int | None = None  # oldest position that may be loaded
        self._starts: list[dict[str, Any]] = []  # of the epochs that are remembered
        self._number = 0  # of the next epoch
        self._iterator: Iterator[Any] | None = None
        self._passed, self._is_in_pass = 0, False  # batches of the present pass

    def __len__(self) -> int:
        """Return the number of batches of a pass."""
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the loader, such as ``sampler`` or ``batch_size``."""
        if name.startswith("_") or name == "loader":
            raise AttributeError(name)  # during copying there is no loader yet
        return getattr(self.loader, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_") or name in ("loader", "before"):
            super().__setattr__(name, value)
        else:
            setattr(self.loader, name, value)

    def set_epoch(self, epoch: int) -> None:
        """Do nothing: epochs are numbered here, for a trainer counts those that were given back."""

    # -- handing out ------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        """Begin a pass, or continue the one in which a loaded state was saved."""
        if self._is_in_pass:
            self.end_pass()
        self._is_in_pass = True
        return self._pass()

    def __next__(self) -> Any:
        """Return the next batch, of the next epoch after the last one.

        Raises:
            StopIteration: If the loader has no batch at all.
        """
        if self.before is not None:
            self.before()
        try:
            return self._taken()
        except StopIteration:
            return self._taken()

    def end_pass(self) -> None:
        """End the present pass; a pass that was broken off ends the loader's epoch."""
        if self._passed not in (0, self._length()):
            self._iterator = None
        self._passed, self._is_in_pass = 0, False

    def _pass(self) -> Iterator[Any]:
        length = self._length()
        while length is None or self._passed < length:
            if self.before is not None:
                self.before()
            if length is None and self._passed > 0 and self._is_at_a_start:
                break  # batches come again up to the end of an epoch
            try:
                batch = self._taken()
            except StopIteration:
                if length is None or self._passed == self._since_start:
                    break  # the pass and the epoch began together
                try:
                    batch = self._taken()
                except StopIteration:
                    break
            self._passed += 1
            yield batch
        self._passed, self._is_in_pass = 0, False

    def _length(self) -> int | None:
        try:
            return len(self.loader)
        except (TypeError, NotImplementedError):
            return None

    @property
    def _frontier(self) -> int:
        """Number of the next new batch."""
        return self._first + len(self._batches)

    @property
    def _since_start(self) -> int:
        return self._frontier - self._starts[-1]["position"]

    @property
    def _is_at_a_start(self) -> bool:
        """Whether the next batch is the first one of an epoch."""
        has_ended = self._iterator is None and self._position == self._frontier
        return has_ended or any(start["position"] == self._position for start in self._starts)

    def _taken(self) -> Any:
        """Return the next batch; StopIteration at the end of an epoch."""
        if self._position == self._frontier:
            self._remember(self._read())
        batch = self._batches[self._position - self._first]
        self._position += 1
        self._forget()
        # A training step may take entries out of a dictionary or a list.
        return copy.copy(batch) if isinstance(batch, dict | list) else batch

    def _read(self) -> Any:
        if self._iterator is None:
            self._begin(_start_of(self.loader, self._position))
        assert self._iterator is not None
        try:
            return next(self._iterator)
        except StopIteration:
            self._iterator = None
            raise

    def _begin(self, start: dict[str, Any]) -> None:
        """Begin an epoch of the loader, whose generators are as its start says."""
        for one in _numbered(self.loader):
            one.set_epoch(self._number)
        self._starts.append(start)
        self._number += 1
        self._iterator = iter(self.loader)

    # -- remembering ------------------------------------------------------------------------------

    def _remember(self, batch: Any) -> None:
        self._batches.append(batch)
        self._size += _size_of(batch)
        while self._size > self._most and len(self._batches) > 1:
            self._drop_first()
            if not self._is_told:
                self._is_told = True
                _logger.warning(
                    "More than %g GiB of batches since the oldest state: the oldest are forgotten, and a "
                    "run that goes back to before them reads new batches (see gigabytes=).",
                    self._most / 2**30,
                )

    def _drop_first(self) -> None:
        self._size -= _size_of(self._batches.popleft())
        self._first += 1

    def _forget(self) -> None:
        """Forget the batches and epochs that no state needs."""
        needed = self._position if self._held is None else min(self._held, self._position)
        while self._batches and self._first < needed:
            self._drop_first()
        while len(self._starts) > 1 and self._starts[1]["position"] <= self._first:
            self._starts.pop(0)

    def drop_all_but(self, states: Iterable[Mapping[str, Any]]) -> None:
        """Forget the batches that only other states need.

        Args:
            states: Results of ``state_dict``, or copies of them, that may still be loaded.
        """
        held = [state["position"] for state in states if state.get("run") == self._run]
        self._held = min(held, default=None)
        self._forget()

    # -- the state --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the position; the batches since then are remembered from now on."""
        self._held = self._position if self._held is None else min(self._held, self._position)
        return {
            "run": self._run,
            "position": self._position,
            "frontier": self._frontier,
            "since": self._first,
            "passed": 0 if self._passed == self._length() else self._passed,
            "is_open": self._iterator is not None,
            "number": self._number,
            "starts": list(self._starts),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to the position of ``state_dict``; a pass in progress goes on, and is as long as before.

        Raises:
            StateMismatchError: If the state is damaged, or the loader has fewer batches than it had.
        """
        whole = isinstance(state, Mapping) and set(state) == _KEYS
        check(whole, "state", "a state_dict of Rewindable", state, StateMismatchError)
        if state["run"] != self._run:
            self._read_again(state)
        elif self._first <= state["position"] <= self._frontier:
            self._position = state["position"]
        else:
            self._position = self._frontier  # its batches are forgotten, as a warning has said

    def _read_again(self, state: Mapping[str, Any]) -> None:
        """Read the loader from the start of an epoch up to the newest batch of a state."""
        starts = state["starts"]
        self._batches.clear()
        self._starts, self._iterator, self._size = [], None, 0
        self._run, self._number = state["run"], state["number"] - len(starts)
        self._first = self._position = state["since"]
        self._held = state["since"]
        generators = global_generators()
        try:
            for number, start in enumerate(starts):
                later = [one["position"] for one in starts[number + 1 :]]
                _set_to(start, self.loader)
                self._begin(start)
                self._read_up_to([*later, state["frontier"]][0], start["position"])
        finally:
            set_global_generators(generators)
        self._iterator = self._iterator if state["is_open"] else None
        self._position, self._passed = max(state["position"], self._first), state["passed"]

    def _read_up_to(self, end: int, begin: int) -> None:
        """Read batches of the present epoch, and remember those since the oldest state."""
        assert self._iterator is not None
        for position in range(begin, end):
            try:
                batch = next(self._iterator)
            except StopIteration:
                expected = f"a loader with {end - begin} batches or more, as it had"
                received = position - begin
                raise StateMismatchError("loader", expected, received) from None
            if position >= self._first:
                self._remember(batch)


def _start_of(loader: Any, position: int) -> dict[str, Any]:
    """Return the generators and the state of a loader, which determine the order of an epoch."""
    own = None
    if hasattr(loader, "state_dict") and hasattr(loader, "load_state_dict"):
        with contextlib.suppress(
            Exception
        ):  # one that has a state only in use, such as Accelerate's
            own = copied(loader.state_dict())
    generators = [generator.get_state() for generator in _generators_of(loader)]
    return {
        "position": position,
        "global": global_generators(),
        "generators": generators,
        "loader": own,
    }


def _set_to(start: Mapping[str, Any], loader: Any) -> None:
    """Set generators and loader as they were at the start of an epoch."""
    set_global_generators(start["global"])
    for generator, state in zip(_generators_of(loader), start["generators"], strict=False):
        generator.set_state(state.cpu())
    if start["loader"] is not None:
        loader.load_state_dict(copied(start["loader"]))


def _within(loader: Any) -> list[Any]:
    """Return a loader and its samplers, each once."""
    batch_sampler = getattr(loader, "batch_sampler", None)
    found = [loader, getattr(loader, "sampler", None), batch_sampler]
    found.append(getattr(batch_sampler, "sampler", None))
    return [one for n, one in enumerate(found) if not any(one is other for other in found[:n])]


def _numbered(loader: Any) -> list[Any]:
    return [one for one in _within(loader) if callable(getattr(one, "set_epoch", None))]


def _generators_of(loader: Any) -> list[torch.Generator]:
    """Return the generators of a loader's own, each once."""
    found: list[torch.Generator] = []
    for one in _within(loader):
        generator = getattr(one, "generator", None)
        if isinstance(generator, torch.Generator) and not any(generator is g for g in found):
            found.append(generator)
    return found


def _size_of(batch: Any) -> int:
    """Return the size of a batch in bytes, as far as it is known."""
    if isinstance(batch, Tensor):
        return batch.numel() * batch.element_size()
    if isinstance(batch, Mapping):
        return sum(map(_size_of, batch.values()))
    if isinstance(batch, list | tuple):
        return sum(map(_size_of, batch))
    size = getattr(batch, "nbytes", None)
    return size if isinstance(size, int) else sys.getsizeof(batch)
