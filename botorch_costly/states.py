"""States of the parts of training: copies that share no tensor, and numbers that stopped being finite."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer

from botorch_costly.errors import StateMismatchError, check


@contextmanager
def outside_inference() -> Iterator[None]:
    """Make tensors that training can go on with; gradients are recorded, or not, as before.

    Validation often runs under ``torch.inference_mode()``. An optimizer that is given a state there would
    hold inference tensors, and its next step would raise.

    Example:
        >>> with torch.inference_mode(), outside_inference():
        ...     torch.zeros(1).is_inference(), torch.is_grad_enabled()
        (False, False)
    """
    records = torch.is_grad_enabled()
    with torch.inference_mode(mode=False), torch.set_grad_enabled(records):
        yield


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


def kinds_of(parts: Sequence[Any]) -> list[str]:
    """Return the names of the classes of parts, which a state of them says."""
    return [type(part).__name__ for part in parts]


def check_states_of(parts: Sequence[Any], held: Sequence[Any], kinds: Any = None) -> None:
    """Raise where it can be told that states are none of these parts, in this order.

    Args:
        parts: Those that may go back to the states.
        held: Any number of states of all parts, each a list with one for each part.
        kinds: What ``kinds_of`` said of the parts whose states they are; None if that is not known.

    Raises:
        StateMismatchError: If there are more or fewer, a part is of another class, or the state of a
            network or an optimizer does not fit it and fits another one among the parts.
    """
    ours = kinds_of(parts)
    expected = f"states of {', '.join(ours)}, in this order"
    check(kinds is None or kinds == ours, "state: parts", expected, kinds, StateMismatchError)
    for states in held:
        listed = isinstance(states, list | tuple)
        received = f"{len(states)} states" if listed else type(states).__name__
        fits = listed and len(states) == len(parts)
        check(fits, "state: parts", expected, received, StateMismatchError)
        _check_order(parts, states)


def _check_order(parts: Sequence[Any], states: Sequence[Any]) -> None:
    ours = kinds_of(parts)
    layouts = [_layout(part.state_dict()) if _has_layout(part) else None for part in parts]
    for number, (layout, state) in enumerate(zip(layouts, states, strict=True)):
        if layout is not None and _layout(state) != layout and _layout(state) in layouts:
            name = f"state: part {number}"
            received = f"that of another {ours[layouts.index(_layout(state))]} among the parts"
            raise StateMismatchError(name, f"a state of this {ours[number]}", received)


def _has_layout(part: Any) -> bool:
    return isinstance(part, nn.Module | Optimizer)


def _layout(state: Any) -> Any:
    """Return a description by which networks, or optimizers, differ; training may change it."""
    if not isinstance(state, Mapping):
        return None
    if "param_groups" in state:
        return [len(group["params"]) for group in state["param_groups"]]
    known = {n: t for n, t in state.items() if isinstance(t, Tensor) and not is_lazy(t)}
    return {name: tensor.shape for name, tensor in known.items()}


def nans(state: Any) -> list[tuple[Any, ...]]:
    """Return the paths of the tensors that hold a NaN.

    Args:
        state: A state, nested in dicts, lists and tuples. Infinities may be masks and are allowed.

    Example:
        >>> nans([{"w": torch.ones(2), "b": torch.tensor([0.0, torch.nan])}])
        [(0, 'b')]
    """
    found: list[tuple[Any, ...]] = []
    by_device: dict[torch.device, dict[tuple[Any, ...], Tensor]] = {}
    for path, tensor in _tensors(state):
        by_device.setdefault(tensor.device, {})[path] = tensor.isnan().any()
    for flags in by_device.values():
        there = torch.stack(list(flags.values())).tolist()
        found += [path for path, flag in zip(flags, there, strict=True) if flag]
    return found


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
