"""Protection of an optimizer's calls from the settings of torch around them, and from slow threads.

Validation often runs under ``torch.inference_mode()`` and training under ``torch.autocast``. A call of an
optimizer inside them needs gradients, and the precision of its own tensors.

An optimizer computes with many small matrices. On a busy machine threads wait for each other at each
operation: 15 asks of a ``TransferOptimizer`` took 82 s with two threads, and 1.3 s with one.
"""

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from botorch_costly.device import DTYPES

LARGE = 2000  # rows of a matrix from which on several threads are surely faster
_AUTOCAST = ("cpu", "cuda", "mps", "xpu")  # kinds of devices with autocast
_COMPUTES = {"ask", "tell", "predict", "best", "incumbent", "summary", "diagnose"}

_FLOATS = {torch.empty, torch.eye, torch.linspace, torch.ones, torch.rand, torch.randn, torch.zeros}
_OF_DATA = {torch.as_tensor, torch.full, torch.tensor}
_DIVIDES = {torch.div, Tensor.div, Tensor.__truediv__}  # SobolEngine divides integers
_here, _lowering = threading.local(), threading.Lock()
_NOTHING = nullcontext()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Run a block with torch's default settings.

    Gradients are recorded, tensors are no inference tensors, autocast and anomaly detection are off. The
    default device is the CPU, the default dtype is single precision.

    Example:
        >>> with torch.inference_mode(), undisturbed():
        ...     torch.is_grad_enabled(), torch.zeros(1).is_inference()
        (True, False)
    """
    with ExitStack() as settings:
        settings.enter_context(torch.inference_mode(mode=False))
        settings.enter_context(torch.enable_grad())
        for kind in _AUTOCAST:
            if torch.is_autocast_enabled(kind):
                settings.enter_context(torch.autocast(kind, enabled=False))
        if torch.is_anomaly_enabled():
            settings.enter_context(torch.autograd.set_detect_anomaly(mode=False))
        if torch.get_default_device().type != "cpu":
            settings.enter_context(torch.device("cpu"))
        if torch.get_default_dtype() != torch.float32:
            settings.enter_context(_SinglePrecision())
        yield


def _is_disturbed() -> bool:
    """Return whether ``undisturbed`` would change a setting; setting them all is slow."""
    return (
        torch.is_inference_mode_enabled()
        or not torch.is_grad_enabled()
        or torch.get_default_dtype() != torch.float32
        or torch.is_anomaly_enabled()
        or any(map(torch.is_autocast_enabled, _AUTOCAST))
        or torch.get_default_device().type != "cpu"
    )


class _SinglePrecision(TorchFunctionMode):
    """Makes single precision the default dtype of new tensors, in this thread alone.

    GPyTorch makes parameters and constraints in the default dtype of torch, which is a setting of the
    whole process and must not be changed.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named, default = {} if kwargs is None else kwargs, torch.get_default_dtype()
        if default not in DTYPES:  # GPyTorch names half precision, which the package never uses
            args = tuple(torch.float32 if value is default else value for value in args)
            named = {k: torch.float32 if v is default else v for k, v in named.items()}
        if func in _FLOATS and named.get("dtype") is None:
            return func(*args, **{**named, "dtype": torch.float32})
        if func in _DIVIDES and not args[0].is_floating_point():
            return func(args[0].to(torch.float32), *args[1:], **named)
        made = func(*args, **named)
        if func not in _OF_DATA or made.dtype is not default or named.get("dtype") is not None:
            return made
        typed = any(hasattr(value, "dtype") for value in (*args, *named.values()))
        return made if typed else func(*args, **{**named, "dtype": torch.float32})


@contextmanager
def one_thread(rows: int = 0) -> Iterator[None]:
    """Run a block with one thread of torch, and restore the setting, also after an error.

    The setting is lowered for the calling thread alone. PyTorch gives a new thread the number that was
    set last in the process. A helper thread sets the former number again, so that a training that
    starts meanwhile keeps all of its threads.

    Args:
        rows: Number of rows of the largest matrix; ``LARGE`` or more leave the setting as it is.

    Example:
        >>> before = torch.get_num_threads()
        >>> with one_thread():
        ...     torch.get_num_threads()
        1
        >>> torch.get_num_threads() == before
        True
    """
    before = torch.get_num_threads()
    if before == 1 or rows >= LARGE:
        yield
        return
    try:
        with _lowering:
            torch.set_num_threads(1)
            others = threading.Thread(target=torch.set_num_threads, args=(before,), daemon=True)
            others.start()
            others.join()
        yield
    finally:
        torch.set_num_threads(before)


def shield(kind: type) -> None:
    """Wrap the public members of a class in ``undisturbed``, and expensive ones in ``one_thread``.

    Args:
        kind: Class whose own methods and properties are replaced, but not those of its bases. Its method
            ``_rows_of_matrix`` returns the size of an instance's largest matrix.
    """
    for name, member in list(vars(kind).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if inspect.isfunction(member):
            setattr(kind, name, _shielded(member, computes=name in _COMPUTES))
        elif isinstance(member, property) and member.fget is not None:
            shielded = _shielded(member.fget, computes=name in _COMPUTES)
            setattr(kind, name, property(shielded, member.fset, member.fdel, member.__doc__))


def _shielded(call: Callable[..., Any], *, computes: bool) -> Callable[..., Any]:
    @functools.wraps(call)
    def shielded(self: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(_here, "inside", False):
            return call(self, *args, **kwargs)
        _here.inside = True
        try:
            with undisturbed() if _is_disturbed() else _NOTHING:
                if not computes:
                    return call(self, *map(_normal, args), **kwargs)
                if torch.get_num_threads() == 1:
                    return call(self, *args, **kwargs)
                with one_thread(self._rows_of_matrix()):
                    return call(self, *args, **kwargs)
        finally:
            _here.inside = False

    return shielded


def _normal(value: Any) -> Any:
    """Return a state with copies in place of inference tensors, which cannot be differentiated."""
    if isinstance(value, Tensor):
        return value.clone() if value.is_inference() else value
    if type(value) is dict:
        return {name: _normal(entry) for name, entry in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_normal, value))
    return value
