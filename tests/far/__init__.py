"""A second device without hardware: tensors that compute on the CPU and behave as if elsewhere.

``device="far"`` refuses what a GPU refuses: a tensor with dimensions on the CPU beside one of the device,
``.numpy()``, a generator of the other device. ``waits`` counts what a GPU would be waited for: ``item``,
of ``bool(..)``, ``.tolist()``, ``nonzero``, ``download`` and ``upload``, copies to the CPU and from it.
Values are those of the CPU, so that decisions on the device are equal to those on the CPU::

    python -m pytest -p tests.far --device far tests/numerics     # a plugin of pytest
    python -m tests.far -m benchmarks speed --device far          # a module that runs where the device is
    from tests import far; far.enter(); torch.ones(3, device="far"); print(far.waits)

It shows neither speed, nor kernels that only a GPU has, nor errors that come late, nor memory. Inference
mode is replaced by ``no_grad``, which it resembles in all but its own errors. Needs torch 2.11 or newer.
"""

import collections
import contextlib
import functools
import sys

import pytest
import torch
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

CPU = torch.device("cpu")
waits = collections.Counter()

_COPIES = ("aten::_to_copy", "aten::copy_", "aten::_copy_from", "aten::to")
_INDEXED = ("aten::index", "aten::_index_put", "aten::index_put", "aten::index_put_")
# Factories switch modes off within ``torch.tensor(.., device="far")``: the dispatcher reaches these.
_REACHED = (
    "empty_strided", "empty.memory_format", "_copy_from", "copy_", "_to_copy", "_local_scalar_dense"
)  # fmt: skip


class _Backend(_DummyBackendModule):
    """The functions that torch asks of a backend."""

    def get_amp_supported_dtype(self):
        return [torch.bfloat16, torch.float16]

    def synchronize(self, *_):
        waits["synchronize"] += 1

    def get_rng_state(self, *_):
        return torch.get_rng_state()

    def set_rng_state(self, state, *_):
        torch.set_rng_state(state)


_setup_privateuseone_for_python_backend("far", backend_module=_Backend())
DEVICE = torch.device("far:0")


class FarTensor(torch.Tensor):
    """A tensor of the device around one of the CPU, ``near``."""

    @staticmethod
    def __new__(cls, near):
        layout = {
            "strides": near.stride(),
            "storage_offset": near.storage_offset(),
            "dtype": near.dtype,
            "layout": near.layout,
            "device": DEVICE,
            "requires_grad": False,
        }
        far = torch.Tensor._make_wrapper_subclass(cls, near.shape, **layout)
        far.near = near
        return far

    def __repr__(self, *, tensor_contents=None):
        return f"FarTensor({self.near})"

    def __format__(self, spec):
        return format(self.item(), spec) if self.dim() == 0 else object.__format__(self, spec)

    def tolist(self):
        waits["tolist"] += 1
        return self.near.tolist()

    def __reduce_ex__(self, protocol):
        return _arrived, (self.near.detach(), self.requires_grad)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return _run(function, args, kwargs or {})


def _arrived(near, requires_grad):
    """Return a saved tensor of the device where it was, or where ``torch.load`` was asked to put it."""
    return (near if _loads_to_cpu else FarTensor(near)).requires_grad_(requires_grad)


_load = torch.load
_loads_to_cpu = False


def _loaded(*args, map_location=None, **kwargs):
    """Load as ``torch.load`` does, with its ``map_location`` for tensors of the device."""
    global _loads_to_cpu
    before, _loads_to_cpu = _loads_to_cpu, map_location is not None and not _is_far(map_location)
    try:
        return _load(*args, map_location=map_location, **kwargs)
    finally:
        _loads_to_cpu = before


class _Factories(TorchDispatchMode):
    """Lets factories such as ``torch.ones(3, device="far")`` reach the device."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return _run(function, args, kwargs or {})


_CpuGenerator = torch.Generator
_far_generators = set()  # addresses, for torch hands on another object around the same generator


class FarGenerator(_CpuGenerator):
    """``torch.Generator`` while the device is there: one of the device is one of the CPU that says so."""

    def __new__(cls, device="cpu"):
        far = _is_far(device)
        generator = _CpuGenerator.__new__(cls, device=CPU if far else device)
        generator.far = far
        (_far_generators.add if far else _far_generators.discard)(generator._cdata)
        return generator

    def __init__(self, device="cpu"):
        pass

    @property
    def device(self):
        return DEVICE if self.far else CPU


def _is_far(device):
    return device is not None and torch.device(device).type == "far"


def _near(value):
    """Return the tensor or device of the CPU in place of one of the device."""
    if isinstance(value, FarTensor):
        return value.near
    return CPU if isinstance(value, torch.device) and value.type == "far" else value


def _run(function, args, kwargs):
    """Run an operator on the CPU; raise what a GPU would raise, and count what it would be waited for."""
    name, device = function._schema.name, kwargs.get("device")
    leaves = tree_leaves((args, kwargs))
    far = [leaf for leaf in leaves if isinstance(leaf, FarTensor)]
    _check_tensors(name, args, far, leaves)
    _check_generators(name, bool(far) or _is_far(device), leaves)
    _count(name, args, kwargs, far)
    result = function(*tree_map(_near, args), **tree_map(_near, kwargs))
    if torch.Tag.inplace_view in function.tags and far:
        with no_dispatch():  # the shape of the tensor around the one of the CPU
            function(*args, **kwargs)
        return args[0]
    if name == "aten::copy_":
        return args[0]
    if not (_is_far(device) if device is not None else far):
        return result
    known = {
        id(tensor.near): tensor for tensor in far
    }  # changed in place, it stays the same object

    def to_device(value):
        if not isinstance(value, torch.Tensor) or isinstance(value, FarTensor):
            return value
        return known[id(value)] if id(value) in known else FarTensor(value)

    return tree_map(to_device, result)


def _check_tensors(name, args, far, leaves):
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    strangers = any(t.dim() for t in tensors if not isinstance(t, FarTensor))
    indexed = name in _INDEXED and isinstance(args[0], FarTensor)  # which a GPU allows, too
    if far and strangers and name not in _COPIES and not indexed:
        found = "found at least two devices, far:0 and cpu"
        raise RuntimeError(f"Expected all tensors to be on the same device, but {found}! ({name})")


def _check_generators(name, on_device, leaves):
    for leaf in leaves:
        if isinstance(leaf, _CpuGenerator) and on_device != (leaf._cdata in _far_generators):
            expected, found = ("far", "cpu") if on_device else ("cpu", "far")
            message = f"Expected a '{expected}' device type for generator but found '{found}'"
            raise RuntimeError(f"{message} ({name})")


def _count(name, args, kwargs, far):
    """Count what waits: numbers and copies that the CPU needs, and copies to the device that block."""
    if name in ("aten::_local_scalar_dense", "aten::nonzero"):
        waits[{"aten::nonzero": "nonzero"}.get(name, "item")] += bool(far)
    elif name in ("aten::copy_", "aten::_copy_from"):
        target, source = args[:2] if name == "aten::copy_" else args[1::-1]
        _count_copy(source, isinstance(target, FarTensor), kwargs)
    elif name in _COPIES and kwargs.get("device") is not None:
        _count_copy(args[0], _is_far(kwargs["device"]), kwargs)


def _count_copy(source, to_far, kwargs):
    if isinstance(source, FarTensor) != to_far and not (to_far and kwargs.get("non_blocking")):
        waits["upload" if to_far else "download"] += 1


_library = torch.library.Library("aten", "IMPL")
for _name in _REACHED:
    _packet, _, _overload = _name.partition(".")
    _operator = getattr(getattr(torch.ops.aten, _packet), _overload or "default")
    _library.impl(_name, lambda *a, _op=_operator, **k: _run(_op, a, k), "PrivateUse1")


def _inference_mode(mode=True):
    """Return ``no_grad``, or where inference mode is switched off what allows gradients again."""
    if callable(mode):
        return torch.no_grad()(mode)
    return torch.no_grad() if mode else torch.enable_grad()


def prepare():
    """Let generators and files know the device, before the package subclasses ``torch.Generator``."""
    torch.Generator = FarGenerator
    torch.inference_mode = _inference_mode
    torch.load = _loaded
    torch.serialization.add_safe_globals([_arrived])


_depth = 0


def inside():
    """Return whether the device is available here."""
    return _depth > 0


@contextlib.contextmanager
def device():
    """Make the device available within, where each operation takes longer."""
    global _depth
    _depth += 1
    try:
        with _Factories() if _depth == 1 else contextlib.nullcontext():
            yield
    finally:
        _depth -= 1


@functools.cache
def enter():
    """Make the device available from here on."""
    prepare()
    device().__enter__()


# -- a plugin of pytest ----------------------------------------------------------------------------


def pytest_load_initial_conftests():
    prepare()


def pytest_collection_modifyitems(items):
    from tests.far.mirror import mirror_calls  # it imports what is to be prepared first

    mirror_calls(module for name, module in list(sys.modules.items()) if name.startswith("tests."))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Run a test that is told a device where it is; any other mirrors its calls."""
    told = "tkwargs" in getattr(item, "fixturenames", ())
    with device() if told else contextlib.nullcontext():
        return (yield)
