"""States of the parts of training: copies that share no tensor, and numbers that stopped being finite."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy


def copied(state: Any, device: torch.device | str | None = None) -> Any:
    """Return a copy of a state that shares no tensor with it.

    Args:
        state: Tensors and plain values in dicts, lists and tuples; other objects are deep-copied.
        device: Where the copied tensors lie; each on its own device if omitted.

    Example:
        >>> weights = {"w": torch.ones(2)}
        >>> before = copied(weights)
        >>> _ = weights["w"].zero_()
        >>> before["w"].tolist()
        [1.0, 1.0]
    """
    if isinstance(state, Tensor) and not is_lazy(state):
        return state.detach().to(device or state.device, copy=True)
    if isinstance(state, dict):
        found = copy.copy(state)  # a dict of any kind, with its attributes
        for key, value in state.items():  # update adds to a Counter
            found[key] = copied(value, device)
        return found
    if type(state) in (list, tuple):
        return type(state)(copied(value, device) for value in state)
    return copy.deepcopy(state)


def have_diverged(state: Any, since: Any) -> bool:
    """Return whether a tensor holds a number that is not finite and was all finite in an earlier state.

    A mask of minus infinities is the same in both, and has not diverged.

    Args:
        state: The present state of parts.
        since: An earlier state of these parts.
    """
    before = dict(_tensors(since))
    now = {path: tensor for path, tensor in _tensors(state) if path in before}
    if not now:
        return False
    return any(bool(flags.any()) for flags in _by_device(now, before))


def _by_device(now: Mapping[Any, Tensor], before: Mapping[Any, Tensor]) -> Iterator[Tensor]:
    """Yield a flag for each tensor that diverged, by device: each is waited for once."""
    flags: dict[torch.device, list[Tensor]] = {}
    for path, tensor in now.items():
        was = before[path].isfinite().all().to(tensor.device)
        flags.setdefault(tensor.device, []).append(was & ~tensor.isfinite().all())
    for found in flags.values():
        yield torch.stack(found)


def _tensors(state: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Tensor]]:
    if isinstance(state, Tensor):
        if state.is_floating_point() and not is_lazy(state) and state.layout == torch.strided:
            yield path, state.detach()
    elif isinstance(state, dict | list | tuple):
        pairs = state.items() if isinstance(state, dict) else enumerate(state)
        for key, value in pairs:
            yield from _tensors(value, (*path, key))
