"""Analytic acquisition functions in Ax's modular generator, also those of a drifting model."""

from typing import Any

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models.model import Model
from torch import Tensor

from botorch_costly.acquisition.fixed_round import InRound
from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.integrations.extras import require

try:
    from ax.generators.torch.botorch_modular.acquisition import Acquisition
except ImportError:
    Acquisition = object


class AnalyticAcquisition(Acquisition):
    """An ``Acquisition`` of Ax for the analytic acquisition functions of this package.

    Hand it to ``BOTORCH_MODULAR`` as ``acquisition_class``. It differs from Ax's in two ways.

    - The model is conditioned on its posterior mean at running trials, so that several can run at once.
      Ax's own class refuses pending points with an analytic function.
    - An acquisition function of a drifting model, such as ``TimeVaryingUCB``, decides for the round that
      the generation fixes: ``fixed_parameters={"round": 12}``. The round is the last parameter of the
      search space, and the surrogate is a ``TimeVaryingGP``.

    Args:
        *args: Arguments of Ax's ``Acquisition``.
        **kwargs: Keyword arguments of Ax's ``Acquisition``.

    Raises:
        MissingExtraError: If Ax is missing, or older than 1.3.1.
        InvalidArgumentError: If the round is not fixed for an acquisition function that needs it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        require("ax-platform", "1.3.1", "ax")
        config = kwargs["torch_opt_config"] if "torch_opt_config" in kwargs else args[2]
        self._fixed: dict[int, float] = dict(config.fixed_features or {})
        super().__init__(*args, **kwargs)

    X_pending: Tensor | None

    def _construct_botorch_acquisition(
        self,
        botorch_acqf_class: type[AcquisitionFunction],
        botorch_acqf_options: dict[str, Any],
        model: Model,
    ) -> AcquisitionFunction:
        pending, self.X_pending = self.X_pending, None
        model = model if pending is None else _conditioned(model, pending)
        options = dict(botorch_acqf_options)
        drifts = issubclass(botorch_acqf_class, InRound)
        if drifts:
            options["now"] = self._round()
        try:
            function = super()._construct_botorch_acquisition(botorch_acqf_class, options, model)
        finally:
            self.X_pending = pending
        return WithoutRound(function) if drifts else function

    def _round(self) -> float:
        names = self.search_space_digest.feature_names
        last = len(names) - 1
        expected = f"the last parameter, {names[last]!r}, as the round to decide for"
        fixed = [names[column] for column in self._fixed]
        check(last in self._fixed, "fixed_parameters", expected, fixed, InvalidArgumentError)
        return float(self._fixed[last])


class WithoutRound(AcquisitionFunction):
    """An acquisition function over configurations that is evaluated at ``[configuration, round]``.

    Args:
        inner: The acquisition function, with its round fixed.
    """

    def __init__(self, inner: AcquisitionFunction) -> None:
        super().__init__(model=inner.model)
        self.inner = inner

    def forward(self, X: Tensor) -> Tensor:
        """Return the values at ``batch_shape x 1 x (d + 1)`` points, shape ``batch_shape``."""
        value: Tensor = self.inner(X[..., :-1])
        return value


def _conditioned(model: Model, pending: Tensor) -> Model:
    """Return the model conditioned on its posterior mean at pending points, ``m x d``."""
    with torch.no_grad():
        expected = model.posterior(pending).mean
    return model.condition_on_observations(pending, expected)
