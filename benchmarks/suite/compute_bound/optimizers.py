"""What turns gradients into steps, and what each optimizer hears of the settings of a round.

References:
    A. Defazio et al. The road less scheduled. NeurIPS 2024: schedule-free AdamW.
    K. Mishchenko, A. Defazio. Prodigy: an expeditiously adaptive parameter-free learner. ICML 2024.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

from botorch_costly.errors import CostlyError

Parameters = list[dict[str, Any]]


class MissingPackageError(CostlyError, RuntimeError):
    """An optimizer of a package that is not installed."""


@dataclass(frozen=True)
class Recipe:
    """How an optimizer is made, and told the settings of a round."""

    # From the parameters of the body and of the head to the optimizer
    make: Callable[[Parameters], torch.optim.Optimizer]
    # What stands in place of the learning rate in the settings, for body and head alike
    rate: float | None = None
    steered: bool = True  # whether momentum and beta2 are those of the settings, and not its own
    normalized: bool = True  # whether a step does not grow with the gradient

    def apply(
        self, optimizer: torch.optim.Optimizer, settings: Mapping[str, Any], factor: float
    ) -> None:
        """Set learning rate, weight decay and moments; ``factor`` multiplies the learning rate."""
        body, head = optimizer.param_groups
        rate, share = settings["learning_rate"], settings["body_share"]
        if self.rate is not None:
            rate, share = self.rate, 1.0
        # The factor comes last, and a factor of 1 leaves every digit as it is.
        body["lr"], head["lr"] = rate * share * factor, rate * factor
        for group in (body, head):
            group["weight_decay"] = settings["weight_decay"]
            if self.steered:
                _steer(group, settings)


def _steer(group: dict[str, Any], settings: Mapping[str, Any]) -> None:
    """Set the moments of a group: of gradients, and of their squares where there are any."""
    if "betas" in group:
        group["betas"] = (settings["momentum"], settings["beta2"])
    else:
        group["momentum"] = settings["momentum"]
    if "alpha" in group:
        group["alpha"] = settings["beta2"]


def switch(optimizer: torch.optim.Optimizer, mode: str) -> None:
    """Tell an optimizer whether what follows is ``"train"`` or ``"eval"``, if it needs to know.

    Schedule-free optimizers measure at another point than they take gradients at.
    """
    told = getattr(optimizer, mode, None)
    if told is not None:
        told()


def _from(package: str, name: str) -> Callable[..., torch.optim.Optimizer]:
    """Return a maker that imports its package when it is called.

    Raises (when called):
        MissingPackageError: If the package is not installed.
    """

    def make(groups: Parameters, **options: Any) -> torch.optim.Optimizer:
        if find_spec(package) is None:
            how = f"the package {package}: pip install 'botorch_costly[benchmarks]'"
            raise MissingPackageError("optimizer", how, name)
        return getattr(import_module(package), name)(groups, **options)

    return make


_SCHEDULE_FREE = _from("schedulefree", "AdamWScheduleFree")
OPTIMIZERS: dict[str, Recipe] = {
    "adamw": Recipe(lambda groups: torch.optim.AdamW(groups, fused=True)),
    # Its weight decay is a penalty on squares, which is in the gradient.
    "adam": Recipe(lambda groups: torch.optim.Adam(groups, fused=True)),
    "rmsprop": Recipe(lambda groups: torch.optim.RMSprop(groups)),
    "sgd": Recipe(lambda groups: torch.optim.SGD(groups, lr=0.0), normalized=False),
    "schedule_free": Recipe(_SCHEDULE_FREE, steered=False),
    "schedule_free_own": Recipe(_SCHEDULE_FREE, rate=0.0025, steered=False),
    "prodigy": Recipe(_from("prodigyopt", "Prodigy"), rate=1.0, steered=False),
}
