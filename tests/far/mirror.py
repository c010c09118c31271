"""Functions of the package that tests call on the CPU are called once more on the device.

A test of mathematics makes its tensors on the CPU, and a naive twin looks at each number of them, which
takes long on the stand-in. So the call is repeated alone: its arguments are moved to the device. It must
raise there what it raises here, and return tensors of the device; where it searches as on a CPU, which it
asks more often, the numbers are equal. Calls that differ in numbers alone are repeated once; those with
arguments that cannot be moved are not.
"""

import copy
import dataclasses
import functools
import inspect
import numbers
import sys
import types
from enum import Enum
from typing import Any, NamedTuple

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

from tests import far

ROOMS = (
    "acquisition",
    "bandits",
    "baselines",
    "kernels",
    "models",
    "numerics",
    "optim",
    "query",
    "simulation",
)
_PLAIN = (numbers.Number, str, type(None), torch.dtype, torch.Size, slice, type, Enum)
_PREFIXES = tuple(f"botorch_costly.{room}." for room in ROOMS)


def mirror_calls(modules):
    """Let modules of tests call functions of the package on the device, too."""
    for module in modules:
        for name, value in list(vars(module).items()):
            if inspect.isfunction(value) and value.__module__.startswith(_PREFIXES):
                setattr(module, name, mirrored(value))


@functools.cache
def mirrored(function):
    """Return a function that is also called on the device, once for each kind of arguments."""
    seen = set()

    @functools.wraps(function)
    def both(*args, **kwargs):
        kind = repr(tree_map(_kind, (args, kwargs)))
        if kind in seen or far.inside() or not _is_of_tensors((args, kwargs)):
            return function(*args, **kwargs)
        seen.add(kind)
        try:
            there = _there(function, args, kwargs)
            as_here = _there(function, args, kwargs, as_near=True)
        except _NotMovedError:
            return function(*args, **kwargs)
        here = _outcome(function, args, kwargs)
        _check_is_there(function.__name__, there, here)
        _check_is_equal(function.__name__, as_here, here)
        if here.error is not None:
            raise here.error
        return here.result

    return both


class _Outcome(NamedTuple):
    result: Any
    error: Exception | None


class _NotMovedError(Exception):
    """An argument has parts that are not seen from outside."""


def _is_of_tensors(arguments):
    leaves = [leaf for leaf in tree_leaves(arguments) if isinstance(leaf, torch.Tensor)]
    return leaves and not any(map(torch._C._functorch.is_functorch_wrapped_tensor, leaves))


def _kind(value):
    """Return what of an argument may decide which way a program takes."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.dim(), tuple(min(size, 2) for size in value.shape)
    return value if isinstance(value, bool | str | None) else type(value).__name__


def _there(function, args, kwargs, as_near=False):
    """Return what a call comes to on the device, searched there as on a CPU if asked for."""
    state = torch.get_rng_state()
    with far.device(), pytest.MonkeyPatch.context() as patch:
        moved = tree_map(to_device, (args, kwargs))
        for name, module in list(sys.modules.items()):
            if as_near and name.startswith(_PREFIXES) and hasattr(module, "is_near"):
                patch.setattr(module, "is_near", lambda tensor: True)
        outcome = _outcome(function, *moved)
    torch.set_rng_state(state)
    return outcome


def _outcome(function, args, kwargs):
    try:
        return _Outcome(function(*args, **kwargs), None)
    except _NotMovedError:
        raise
    except Exception as error:
        return _Outcome(None, error)


def to_device(value):
    """Return an argument that lies on the device: a tensor, a generator, or what has such parts."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().to(far.DEVICE).requires_grad_(value.requires_grad)
    if isinstance(value, torch.Generator):
        generator = torch.Generator(far.DEVICE)
        generator.set_state(value.get_state())
        return generator
    if isinstance(value, torch.nn.Module):
        return _moved(value)
    if isinstance(value, torch.device):
        return far.DEVICE
    if isinstance(value, types.FunctionType):
        return _of_the_cpu(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        moved = copy.copy(value)
        for name, part in vars(value).items():
            object.__setattr__(moved, name, tree_map(to_device, part))
        return moved
    if isinstance(value, _PLAIN):
        return value
    raise _NotMovedError


def _moved(module):
    if type(module).__module__.startswith("tests."):
        raise _NotMovedError
    moved = copy.deepcopy(module).to(far.DEVICE)
    attributes = [part for each in moved.modules() for part in tree_leaves(vars(each))]
    if any(isinstance(part, torch.Tensor) and part.device.type == "cpu" for part in attributes):
        raise _NotMovedError  # tensors that are neither parameters nor buffers
    return moved


def to_cpu(value):
    return value.to(far.CPU) if isinstance(value, torch.Tensor) else value


def _of_the_cpu(function):
    """Return a function of a test, which computes on the CPU, between tensors of the device."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    if any(isinstance(content, list | dict | set) for content in cells):
        raise _NotMovedError  # it may count its calls

    def between(*args, **kwargs):
        result = function(*tree_map(to_cpu, args), **tree_map(to_cpu, kwargs))
        if any(isinstance(leaf, torch.nn.Module) for leaf in tree_leaves(result)):
            raise _NotMovedError
        return tree_map(lambda v: v.to(far.DEVICE) if isinstance(v, torch.Tensor) else v, result)

    return between


def _check_is_there(name, there, here):
    """Refuse an error that the CPU does not raise, and a result that lies on the CPU."""
    if type(there.error) is not type(here.error):
        message = f"{name} on the device: {there.error!r}, on the CPU: {here.error!r}"
        raise AssertionError(message) from there.error
    for one in tree_leaves(_parts(there.result)):
        if isinstance(one, torch.Tensor):
            assert one.device.type == "far", f"{name} on the device returns a tensor of the CPU"


def _check_is_equal(name, there, here):
    pairs = zip(tree_leaves(_parts(there.result)), tree_leaves(_parts(here.result)), strict=True)
    for one, other in pairs:
        if isinstance(other, torch.Tensor):
            torch.testing.assert_close(to_cpu(one), other, equal_nan=True, msg=name)
        elif isinstance(other, bool | int | str):
            assert one == other, name


def _parts(value):
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [_parts(part) for part in vars(value).values()]
    return value
