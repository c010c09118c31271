"""What a piece of code asks of a machine: operations, floating-point operations and bytes.

Each operation that reaches the device is counted with the shapes it met, by these formulas:

    A (m x k) B (k x n)             2 m k n
    L X = B, L n x n, B n x r       n^2 r          (both triangles of a Cholesky solve: twice that)
    Cholesky factor, n x n          n^3 / 3
    distances, n and m points       3 n m d
    all others                      one for each number of the larger of input and output

and the bytes are those of its inputs and outputs. Views are free.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten
WAITS = {_aten._local_scalar_dense, _aten.item, _aten.is_nonzero, _aten.nonzero}


@dataclass
class Tally:
    """What has been asked so far."""

    operations: int = 0
    flops: dict[torch.dtype, float] = field(default_factory=dict)
    bytes: int = 0
    waits: int = 0  # for a number of the device, or for one that a shape depends on

    @property
    def total_flops(self) -> float:
        """In any precision."""
        return sum(self.flops.values())


class Counter(TorchDispatchMode):
    """Counts what runs inside of it, for the part that is named at the time.

    Args:
        part: Says for which.
    """

    def __init__(self, part: Callable[[], str] = lambda: "") -> None:
        super().__init__()
        self._part = part
        self.tallies: dict[str, Tally] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Count an operation and let it run."""
        kwargs = kwargs or {}
        if func._overloadpacket not in WAITS:
            with self:  # in inference mode composite operations come in one piece
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        out = func(*args, **kwargs)
        if not func.is_view:
            self._count(self.tallies.setdefault(self._part(), Tally()), func, args, out)
        return out

    @staticmethod
    def _count(tally: Tally, func: Any, args: Sequence[Any], out: Any) -> None:
        given, returned = list(_tensors(args)), list(_tensors(out))
        tally.operations += 1
        tally.waits += func._overloadpacket in WAITS or _is_masked(func, given)
        tally.bytes += sum(t.numel() * t.element_size() for t in [*given, *returned])
        dtype = next((t.dtype for t in [*returned, *given] if t.is_floating_point()), None)
        if dtype is not None:
            flops = flops_of(func, given, returned)
            tally.flops[dtype] = tally.flops.get(dtype, 0.0) + flops


def flops_of(func: Any, given: Sequence[Tensor], returned: Sequence[Tensor]) -> float:
    """Return the floating-point operations of one operation, by the formulas above."""
    kind = func._overloadpacket
    if kind in (_aten.mm, _aten.bmm, _aten.mv, _aten.dot):
        inner = given[0].shape[-1]
        return 2.0 * inner * returned[0].numel()
    if kind in (_aten.addmm, _aten.baddbmm):
        return 2.0 * given[1].shape[-1] * returned[0].numel()
    if kind is _aten.linalg_solve_triangular:
        return float(given[0].shape[-1] * returned[0].numel())
    if kind in (_aten.cholesky_solve, _aten._cholesky_solve_helper):
        return 2.0 * given[1].shape[-1] * returned[0].numel()
    if kind is _aten.linalg_cholesky_ex:
        return given[0].shape[-1] * given[0].numel() / 3
    if kind is _aten._cdist_forward:
        return 3.0 * given[0].shape[-1] * returned[0].numel()
    return float(max((prod(t.shape) for t in [*given, *returned]), default=0))


def _is_masked(func: Any, given: Sequence[Tensor]) -> bool:
    """Return whether rows are picked by a mask: how many there are has to be waited for."""
    return func._overloadpacket is _aten.index and any(t.dtype == torch.bool for t in given[1:])


def _tensors(nested: Any) -> Iterator[Tensor]:
    if isinstance(nested, Tensor):
        yield nested
    elif isinstance(nested, (list, tuple)):
        for inner in nested:
            yield from _tensors(inner)
