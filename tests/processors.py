"""Imitate another processor: what IEEE 754 leaves open comes out a little different.

Processors agree on sums, products, quotients and roots of two numbers. They differ in exponentials
and the like and in the order of long sums, so in all linear algebra: by some units in the last
place, which no test may notice. A ``Processor`` changes these results, and random draws, wherever
torch computes them, also within the package and within a backward pass.

The change is a smooth function of the value and of nothing else. Whatever is computed twice is the
same twice, as on one machine, symmetric matrices stay symmetric, and what rises still rises. Numbers
of few digits, such as counts, zero, one and one half, stay as they are, and no change leads across
one: processors agree on them, and a probability is at most one on all of them.
"""

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

FUNCTIONS = """
exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh asin acos atan asinh acosh
atanh atan2 pow sigmoid logit softplus erf erfc erfinv lgamma digamma polygamma
special_log_ndtr special_ndtri special_erfcx special_i1 special_i0e special_i1e igamma igammac
_softmax _log_softmax log_sigmoid_forward linspace uniform_ normal_ exponential_ log_normal_
_standard_gamma
"""
REDUCTIONS = """
sum mean var std var_mean std_mean prod linalg_vector_norm norm
"""
RUNNING = "cumsum cumprod"
# The first argument's last size is the number of terms.
PRODUCTS = "mm bmm dot linalg_cholesky_ex linalg_solve_triangular"
SUMS = """
_cdist_forward addmm baddbmm addmv _cholesky_solve_helper cholesky_inverse triangular_solve linalg_qr
_linalg_eigh _linalg_svd linalg_lu_factor_ex linalg_lu_solve _linalg_solve_ex linalg_inv_ex _linalg_det
"""
_SHORT = {np.dtype(np.float64): np.float32, np.dtype(np.float32): np.float16}
_EXACT_POWERS = (-2, -1, -0.5, 0.5, 1, 2)


class Processor:
    """Compute ``v + size * v * sin(1e5 * v + draw)`` wherever other processors compute ``v``.

    Args:
        sizes: The largest relative error by dtype; results of other dtypes stay as they are.
        draw: Which of many such processors it is.
    """

    def __init__(self, sizes: Mapping[torch.dtype, float], draw: int = 0) -> None:
        self.sizes, self.draw = dict(sizes), float(draw)
        self._library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a kernel that is replaced
            for name in f"{FUNCTIONS} {REDUCTIONS} {RUNNING} {PRODUCTS} {SUMS}".split():
                for full in _kernels(name):
                    self._replace(full, name)

    def _replace(self, full: str, name: str) -> None:
        kernel = torch.library.get_kernel(f"aten::{full}", "CPU")
        reduces, runs, multiplies = (
            name in kind.split() for kind in (REDUCTIONS, RUNNING, PRODUCTS)
        )

        def computed(keys: Any, *args: Any, **kwargs: Any) -> Any:
            result = kernel.call_boxed(keys, *args, **kwargs)
            # One term alone is its own sum; a root or a quotient of two numbers is rounded in one way.
            if multiplies and args[0].shape[-1] == 1:
                return result
            if isinstance(result, tuple | list):
                for part in result:
                    self.change(part)
                return tuple(result)
            if reduces and result.numel() == args[0].numel():
                return result
            if name == "pow" and isinstance(args[1], int | float) and args[1] in _EXACT_POWERS:
                return result
            ends = result[[0, -1]] if name == "linspace" and len(result) else None
            self.change(result)
            if ends is not None:
                result[0], result[-1] = ends
            if runs and result.numel() and result.dim():
                result.select(args[1], 0).copy_(args[0].select(args[1], 0))
            return result

        self._library.impl(full, computed, "CPU", with_keyset=True)

    def change(self, value: Any) -> None:
        """Write what this processor computes instead of ``value`` in its place."""
        size = self.sizes.get(value.dtype) if isinstance(value, Tensor) else None
        if not size:
            return
        v = value.detach().numpy()
        with np.errstate(all="ignore"):  # of numbers that are not finite
            change = np.sin(1e5 * v + self.draw) * v * size
            away = np.abs(v.astype(_SHORT[v.dtype]) - v) > np.abs(change)
        np.add(v, change, out=v, where=away)


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
