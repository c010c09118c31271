"""States of networks, optimizers and other parts of training: copies, checks, and non-finite numbers."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer

from botorch_costly.errors import StateMismatchError, check

_PLAIN = frozenset((bool, int, float, str, bytes, type(None)))
_TENSORS = frozenset((Tensor, nn.Parameter))  # and no subclass, which may have no address


class Stateful(Protocol):
    """An object whose state can be saved and loaded, such as a tuner, a reward or a network."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""

    def load_state_dict(self, state: Any) -> Any:
        """Continue from the state."""


@contextmanager
def outside_inference() -> Iterator[None]:
    """Leave inference mode, so that new tensors can be trained; gradient recording is unchanged.

    Validation often runs under ``torch.inference_mode()``. An optimizer that loads a state there would
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

    Names of one tensor, such as tied weights, are names of one tensor in the copy as well.

    Args:
        state: Tensors and plain values in dicts, lists and tuples; other objects are deep-copied.
        device: Device of the copied tensors; that of each original if omitted.

    Example:
        >>> weights = {"w": torch.ones(2)}
        >>> before = copied(weights)
        >>> _ = weights["w"].zero_()
        >>> before["w"].tolist()
        [1.0, 1.0]
    """
    with torch.no_grad():
        return _copied(state, device, {})


def _copied(
    state: Any, device: torch.device | str | None, copies: dict[int, tuple[Tensor, Tensor]]
) -> Any:
    """Return a copy of a state; ``copies`` are tensors and their copies, by the tensors' addresses."""
    kind = type(state)
    if kind in _PLAIN:
        return state
    if kind in _TENSORS and state.layout == torch.strided:
        return _copied_tensor(state, device, copies)
    if isinstance(state, Tensor) and not is_lazy(state):
        return state.detach().to(device or state.device, copy=True)
    if kind is dict:
        return {
            key: value if type(value) in _PLAIN else _copied(value, device, copies)
            for key, value in state.items()
        }
    if isinstance(state, dict):
        duplicate = copy.copy(state)  # keeps subclass and attributes
        for key, value in state.items():  # no update(), which adds to a Counter
            duplicate[key] = _copied(value, device, copies)
        return duplicate
    if kind in (list, tuple):
        return kind([_copied(value, device, copies) for value in state])
    return copy.deepcopy(state)


def _copied_tensor(
    tensor: Tensor, device: torch.device | str | None, copies: dict[int, tuple[Tensor, Tensor]]
) -> Tensor:
    address = tensor.data_ptr()
    if address in copies and _is_same(tensor, copies[address][0]):
        return copies[address][1]
    duplicate = tensor.clone() if device is None else tensor.to(device, copy=True)
    if address:
        copies.setdefault(address, (tensor, duplicate))
    return duplicate


def _is_same(tensor: Tensor, other: Tensor) -> bool:
    """Return whether two tensors with the same address have the same numbers."""
    return _reading_of(tensor) == _reading_of(other)


def _reading_of(tensor: Tensor) -> tuple[Any, ...]:
    """Return what, besides the address, says which numbers a tensor has; views may flip their signs."""
    layout = (tensor.dtype, tensor.device, tensor.shape, tensor.stride())
    return *layout, tensor.is_conj(), tensor.is_neg()


def kinds_of(parts: Sequence[Any]) -> list[str]:
    """Return the class names of the parts, which are saved with their states."""
    return [type(stateful).__name__ for stateful in parts]


def check_states_of(parts: Sequence[Any], held: Sequence[Any], kinds: Any = None) -> None:
    """Raise if states evidently do not belong to these parts, in this order.

    Args:
        parts: Parts that may be restored to the states.
        held: Any number of states of all parts, each a list with one state for each part.
        kinds: Result of ``kinds_of`` for the parts whose states were saved; None if unknown.

    Raises:
        StateMismatchError: If their number or a class differs, or the state of a network or an optimizer
            does not fit it and fits another one among the parts.
    """
    ours = kinds_of(parts)
    expected = f"states of {', '.join(ours)}, in this order"
    check(kinds is None or kinds == ours, "state: parts", expected, kinds, StateMismatchError)
    if not held:
        return
    layouts = [
        _layout(stateful.state_dict()) if isinstance(stateful, nn.Module | Optimizer) else None
        for stateful in parts
    ]
    for states in held:
        is_row = isinstance(states, list | tuple)
        received = f"{len(states)} states" if is_row else type(states).__name__
        fits = is_row and len(states) == len(parts)
        check(fits, "state: parts", expected, received, StateMismatchError)
        for number, (layout, state) in enumerate(zip(layouts, states, strict=True)):
            if layout is not None and _layout(state) != layout and _layout(state) in layouts:
                name = f"state: part {number}"
                received = f"that of another {ours[layouts.index(_layout(state))]} among the parts"
                raise StateMismatchError(name, f"a state of this {ours[number]}", received)


def _layout(state: Any) -> Any:
    """Return sizes that distinguish networks, or optimizers; training may change them."""
    if not isinstance(state, Mapping):
        return None
    if "param_groups" in state:
        return [len(group["params"]) for group in state["param_groups"]]
    tensors = {n: t for n, t in state.items() if isinstance(t, Tensor) and not is_lazy(t)}
    return {name: tensor.shape for name, tensor in tensors.items()}


def nans(state: Any) -> list[tuple[Any, ...]]:
    """Return the paths of the tensors that contain a NaN.

    Args:
        state: A state of nested dicts, lists and tuples. Infinities may be masks and are allowed.

    Example:
        >>> nans([{"w": torch.ones(2), "b": torch.tensor([0.0, torch.nan])}])
        [(0, 'b')]
    """
    paths: list[tuple[Any, ...]] = []
    by_device: dict[torch.device, dict[tuple[Any, ...], Tensor]] = {}
    for path, tensor in _tensors(state):
        by_device.setdefault(tensor.device, {})[path] = tensor.isnan().any()
    for flags in by_device.values():
        read = torch.stack(list(flags.values())).tolist()  # one synchronization for each device
        paths += [path for path, flag in zip(flags, read, strict=True) if flag]
    return paths


def have_diverged(state: Any, since: Any) -> bool:
    """Return whether a tensor has a non-finite number, and was all finite in an earlier state.

    A mask with infinities in both states has not diverged.

    Args:
        state: The current state of the parts.
        since: An earlier state of the parts.
    """
    with torch.no_grad():
        suspects = _suspects(_tensors(state))
        return bool(suspects) and _have_broken(suspects, dict(_tensors(since)))


def _have_broken(
    suspects: list[tuple[tuple[Any, ...], Tensor]], before: Mapping[tuple[Any, ...], Tensor]
) -> bool:
    """Return whether one of the tensors has a non-finite number, and had none before."""
    by_device: dict[torch.device, list[Tensor]] = {}
    for path, tensor in suspects:
        if path in before:
            was_finite = before[path].isfinite().all().to(tensor.device)
            flag = was_finite & ~tensor.isfinite().all()
            by_device.setdefault(tensor.device, []).append(flag)
    return any(bool(torch.stack(flags).any()) for flags in by_device.values())


def _suspects(
    tensors: list[tuple[tuple[Any, ...], Tensor]],
) -> list[tuple[tuple[Any, ...], Tensor]]:
    """Return the tensors whose sums are not finite: those with such a number, and sums that overflow.

    A sum reads a tensor once, where ``isfinite`` makes several tensors of its size: it takes 2 % of the
    time on a CPU. A device is waited for once, or twice with two precisions.
    """
    by_kind: dict[Any, tuple[list[Tensor], list[int]]] = {}
    for number, (_, tensor) in enumerate(tensors):
        kind = torch.float32 if tensor.itemsize < 4 else tensor.dtype  # for halves overflow early
        sums, numbers = by_kind.setdefault((tensor.device, kind), ([], []))
        sums.append(tensor.sum(dtype=kind) if tensor.ndim or tensor.dtype != kind else tensor)
        numbers.append(number)
    suspects = set[int]()
    for sums, numbers in by_kind.values():
        flags = torch.stack(sums).isfinite().tolist()
        suspects.update(number for number, flag in zip(numbers, flags, strict=True) if not flag)
    return [tensors[number] for number in sorted(suspects)]


def _tensors(state: Any) -> list[tuple[tuple[Any, ...], Tensor]]:
    """Return the paths of the dense tensors with floating-point numbers, and these."""
    found: list[tuple[tuple[Any, ...], Tensor]] = []
    _gather(state, (), found)
    return found


def _gather(state: Any, path: tuple[Any, ...], found: list[tuple[tuple[Any, ...], Tensor]]) -> None:
    if isinstance(state, Tensor):
        if state.is_floating_point() and not is_lazy(state) and state.layout == torch.strided:
            found.append((path, state))
    elif isinstance(state, dict | list | tuple):
        for key, value in state.items() if isinstance(state, dict) else enumerate(state):
            if type(value) not in _PLAIN:
                _gather(value, (*path, key), found)
