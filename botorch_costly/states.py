"""States of networks, optimizers and other parts of training: copies, checks, and non-finite numbers."""

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer
from torch.torch_version import TorchVersion

from botorch_costly.errors import StateMismatchError, UnsafeVersionError, check

_PLAIN = frozenset((bool, int, float, str, bytes, type(None)))
_TENSORS = frozenset((Tensor, nn.Parameter))  # and no subclass, which may have no address
_SAFE = "2.10"  # the least version of torch that reads files of others safely
# The place of a tensor in a state: that of the dict, list or tuple around it, and its key there. The
# outermost key is that of the state itself.
Place = tuple[Any, Any]


class Stateful(Protocol):
    """An object whose state can be saved and loaded, such as a tuner, a reward or a network."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""

    def load_state_dict(self, state: Any) -> Any:
        """Continue from the state."""


def read_plain(file: Any, device: str | None = None, *, mapped: bool = False) -> Any:
    """Return the tensors and plain values of a file; no code of the file is executed.

    Args:
        file: Path, or an open binary file.
        device: Device of the tensors; the one that each was saved on if omitted.
        mapped: Whether tensors stay in the file, a path, until they are read.

    Raises:
        UnsafeVersionError: If this version of torch runs code of a file, or damages memory, even where it
            is told to read plain values alone (CVE-2025-32434, CVE-2026-24747).
    """
    received = torch.__version__
    if TorchVersion(received) < _SAFE:
        raise UnsafeVersionError("torch", f"version {_SAFE} or later, to read a file", received)
    return torch.load(file, weights_only=True, map_location=device, mmap=mapped)


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
        return dict(zip(state, _copies(state.values(), device, copies), strict=True))
    if isinstance(state, dict):
        duplicate = copy.copy(state)  # keeps subclass and attributes
        values = _copies(state.values(), device, copies)
        for key, value in zip(state, values, strict=True):  # no update(), which adds to a Counter
            duplicate[key] = value
        return duplicate
    if kind in (list, tuple):
        return kind(state if _are_plain(state) else _copies(state, device, copies))
    return copy.deepcopy(state)


def _copies(
    values: Iterable[Any],
    device: torch.device | str | None,
    copies: dict[int, tuple[Tensor, Tensor]],
) -> list[Any]:
    """Return copies of values; most are numbers or tensors, and need no further call to find out."""
    duplicates = []
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            duplicates.append(value)
        elif kind in _TENSORS and value.layout == torch.strided:
            duplicates.append(_copied_tensor(value, device, copies))
        else:
            duplicates.append(_copied(value, device, copies))
    return duplicates


def _copied_tensor(
    tensor: Tensor, device: torch.device | str | None, copies: dict[int, tuple[Tensor, Tensor]]
) -> Tensor:
    address = tensor.data_ptr()
    earlier = copies.get(address)
    if earlier is not None and _is_same(tensor, earlier[0]):
        return earlier[1]
    duplicate = tensor.clone() if device is None else tensor.to(device, copy=True)
    if address and earlier is None:
        copies[address] = tensor, duplicate
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
    by_device: dict[torch.device, dict[Place, Tensor]] = {}
    for place, tensor in _tensors(state):
        by_device.setdefault(tensor.device, {})[place] = tensor.isnan().any()
    for flags in by_device.values():
        read = torch.stack(list(flags.values())).tolist()  # one synchronization for each device
        paths += [_path(place) for place, flag in zip(flags, read, strict=True) if flag]
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


def _have_broken(suspects: Iterable[tuple[Place, Tensor]], before: Mapping[Place, Tensor]) -> bool:
    """Return whether one of the tensors has a non-finite number, and had none before."""
    by_device: dict[torch.device, list[Tensor]] = {}
    for place, tensor in suspects:
        if place in before:
            was_finite = before[place].isfinite().all().to(tensor.device)
            flag = was_finite & ~tensor.isfinite().all()
            by_device.setdefault(tensor.device, []).append(flag)
    return any(bool(torch.stack(flags).any()) for flags in by_device.values())


def _suspects(tensors: list[tuple[Place, Tensor]]) -> list[tuple[Place, Tensor]]:
    """Return the tensors whose sums are not finite: those with such a number, and sums that overflow.

    A sum reads a tensor once, where ``isfinite`` makes several tensors of its size: it takes 2 % of the
    time on a CPU. A device is waited for once, or twice with two precisions.
    """
    by_kind: dict[Any, tuple[list[Tensor], list[int]]] = {}
    for number, (_, tensor) in enumerate(tensors):
        dtype = tensor.dtype
        kind = torch.float32 if tensor.itemsize < 4 else dtype  # for halves overflow early
        sums, numbers = by_kind.setdefault((tensor.device, kind), ([], []))
        is_sum = kind is dtype and not tensor.ndim
        sums.append(tensor if is_sum else tensor.sum(dtype=kind))
        numbers.append(number)
    suspects = list[int]()
    for sums, numbers in by_kind.values():
        totals = torch.stack(sums).tolist()
        if not math.isfinite(sum(totals)):
            pairs = zip(numbers, totals, strict=True)
            suspects += [number for number, total in pairs if not math.isfinite(total)]
    return [tensors[number] for number in sorted(suspects)]


def _tensors(state: Any) -> list[tuple[Place, Tensor]]:
    """Return the dense tensors with floating-point numbers, and their places."""
    found: list[tuple[Place, Tensor]] = []
    _gather([state], None, found)
    return found


def _gather(values: Any, above: Place | None, found: list[tuple[Place, Tensor]]) -> None:
    """Add the tensors in a dict, list or tuple, and those within these."""
    for key, value in values.items() if isinstance(values, dict) else enumerate(values):
        kind = type(value)
        if kind in _PLAIN:
            continue
        if kind in _TENSORS or (isinstance(value, Tensor) and not is_lazy(value)):
            if value.is_floating_point() and value.layout == torch.strided:
                found.append(((above, key), value))
        elif isinstance(value, dict) or (isinstance(value, list | tuple) and not _are_plain(value)):
            _gather(value, (above, key), found)


def _are_plain(values: Iterable[Any]) -> bool:
    return _PLAIN.issuperset(map(type, values))


def _path(place: Place) -> tuple[Any, ...]:
    """Return the keys of a place, from the outermost one."""
    above, key = place
    return () if above is None else (*_path(above), key)
