"""Imitate another processor: what IEEE 754 leaves open comes out a little different.

Processors agree on sums, products, quotients and roots of two numbers. They differ in exponentials
and the like and in the order of long sums, so in all linear algebra: by some units in the last
place, which no test may notice. A ``Processor`` changes these results, and random draws, wherever
torch computes them, also within the package and within a backward pass.

The change is a smooth function of the value and of nothing else. Whatever is computed twice is the
same twice, as on one machine, and symmetric matrices stay symmetric. Numbers of few digits, such as
counts, zero, one and one half, stay as they are: processors agree on them.
"""

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

FUNCTIONS = """
exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh asin acos atan asinh acosh
atanh atan2 pow sigmoid logit softplus erf erfc erfinv lgamma digamma polygamma
special_log_ndtr special_ndtri special_erfcx special_i1 special_i0e special_i1e igamma igammac
_softmax _log_softmax log_sigmoid_forward linspace uniform_ normal_ exponential_ log_normal_
_standard_gamma
"""
# One term alone is its own sum.
SUMS = """
sum mean var std var_mean std_mean prod cumsum cumprod linalg_vector_norm norm _cdist_forward
mm bmm addmm baddbmm addmv dot vdot linalg_cholesky_ex _cholesky_solve_helper cholesky_inverse
linalg_solve_triangular triangular_solve linalg_qr _linalg_eigh _linalg_svd
linalg_lu_factor_ex linalg_lu_solve _linalg_solve_ex linalg_inv_ex _linalg_det
"""
_SHORT = {torch.float64: torch.float32, torch.float32: torch.float16}
_EXACT_POWERS = (-2, -1, -0.5, 0.5, 1, 2)


class Processor:
    """Compute ``v + size * v * sin(1e5 * v + draw)`` wherever other processors compute ``v``.

    Args:
        sizes: The largest relative error by dtype; results of other dtypes stay as they are.
        draw: Which of many such processors it is.
    """

    def __init__(self, sizes: Mapping[torch.dtype, float], draw: int = 0) -> None:
        self.sizes, self.draw = dict(sizes), float(draw)
        self._sin = torch.library.get_kernel("aten::sin", "CPU")
        self._library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a kernel that is replaced
            for name in f"{FUNCTIONS} {SUMS}".split():
                for full in _kernels(name):
                    self._replace(full, name in SUMS.split())

    def _replace(self, full: str, sums: bool) -> None:
        kernel = torch.library.get_kernel(f"aten::{full}", "CPU")
        name, _, overload = full.partition(".")
        schema = getattr(getattr(torch.ops.aten, name), overload or "default")._schema
        written = any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)

        def computed(keys: Any, *args: Any, **kwargs: Any) -> Any:
            result = kernel.call_boxed(keys, *args, **kwargs)
            if isinstance(result, tuple | list):
                return tuple(self.changed(part, written) for part in result)
            if sums and result.numel() == args[0].numel() and 1 in args[0].shape[-2:]:
                return result
            if (
                full.startswith("pow")
                and isinstance(args[1], int | float)
                and args[1] in _EXACT_POWERS
            ):
                return result
            return self.changed(result, written)

        self._library.impl(full, computed, "CPU", with_keyset=True)

    def changed(self, value: Any, written: bool) -> Any:
        """Return what this processor computes instead of ``value``."""
        size = self.sizes.get(value.dtype) if isinstance(value, Tensor) else None
        if not size or value.numel() == 0:
            return value
        keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
        change = self._sin.call_boxed(keys, value.mul(1e5).add_(self.draw)).mul_(value).mul_(size)
        change.masked_fill_(value.to(_SHORT[value.dtype]).to(value.dtype) == value, 0)
        return value.add_(change) if written else value + change


def _kernels(name: str) -> Iterator[str]:
    """Yield the full names under which torch computes an operation on a CPU itself."""
    for variant in (name, f"{name}_"):
        packet = getattr(torch.ops.aten, variant, None)
        for overload in [] if packet is None else packet.overloads():
            full = f"{variant}.{overload}".removesuffix(".default")
            # Nothing here asks for an output by name, but for torch's own linspace.
            if overload.endswith("out") and name != "linspace":
                continue
            try:
                if torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{full}", "CPU"):
                    yield full
            except RuntimeError:  # of TorchScript alone
                continue
