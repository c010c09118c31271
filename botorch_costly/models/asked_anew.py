"""A BoTorch GP that drops its caches when it moves to another dtype or device."""

from collections.abc import Callable
from typing import Any

import torch
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, check
from botorch_costly.models.posterior import check_inputs, check_noise
from botorch_costly.models.promises import SingleOutput, check_options


class AskedAnewGP(SingleOutput, SingleTaskGP):
    """A ``SingleTaskGP`` that can be converted after a prediction: GPyTorch would keep stale caches."""

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any) -> Any:
        """Move or convert all tensors: ``float``, ``double`` and ``to`` call this."""
        moved = super()._apply(fn, *args)
        self.prediction_strategy = None
        return moved

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Return the posterior at ``batch_shape x q x d`` points, as in BoTorch.

        Raises:
            InvalidShapeError: If the points have the wrong number of columns, or ``observation_noise``
                does not have one variance for each point.
            InvalidArgumentError: If a variance is negative or not finite.
        """
        check_inputs(X, self.train_inputs[0].shape[-1])
        if isinstance(observation_noise, Tensor):
            batch = torch.broadcast_shapes(X.shape[:-2], self.batch_shape)
            check_noise(observation_noise.squeeze(-1), torch.Size([*batch, X.shape[-2]]))
        return super().posterior(
            X, output_indices, observation_noise, posterior_transform, **kwargs
        )

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> Any:
        """Return the model conditioned on further observations, as in BoTorch.

        Raises:
            InvalidShapeError: If ``X`` has the wrong number of columns, or ``Y`` not one value per row.
            InvalidArgumentError: If a number is not finite, an option would be ignored, or ``noise`` is
                missing although the model was built with known noise.
        """
        columns = self.train_inputs[0].shape[-1]
        fits = X.dim() >= 2 and X.shape[-1] == columns and Y.shape[-2:] == (X.shape[-2], 1)
        shapes = tuple(X.shape), tuple(Y.shape)
        check(fits, "X, Y", f"shapes (.., n, {columns}) and (.., n, 1)", shapes, InvalidShapeError)
        finite = bool(X.isfinite().all() & Y.isfinite().all())
        check(finite, "X, Y", "finite numbers", "NaN or infinite ones", InvalidArgumentError)
        check_options(kwargs, self.likelihood)
        return super().condition_on_observations(X, Y, **kwargs)
