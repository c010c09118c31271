"""BoTorch's GP whose caches are dropped when it moves to another dtype or device."""

from collections.abc import Callable
from typing import Any

from botorch.models import SingleTaskGP
from torch import Tensor


class AskedAnewGP(SingleTaskGP):
    """A ``SingleTaskGP`` that may be converted after it was asked; GPyTorch keeps its old caches."""

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any) -> Any:
        """Move or convert all tensors: ``float``, ``double`` and ``to`` end here."""
        moved = super()._apply(fn, *args)
        self.prediction_strategy = None
        return moved
