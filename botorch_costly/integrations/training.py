"""Records that a trainer passes to a driver: options of the tuner, and the trained objects."""

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from typing import get_args

import torch
from torch import nn
from torch.optim import Optimizer

from botorch_costly.device import check_device
from botorch_costly.errors import check
from botorch_costly.integrations.applying import Rates
from botorch_costly.integrations.rewindable import Rewindable
from botorch_costly.integrations.rounds import RoundLength
from botorch_costly.rewards.metric_gain import Kind
from botorch_costly.states import Stateful


@dataclass(frozen=True)
class TrainerOptions:
    """How a tuner works in a trainer.

    Args:
        length: Length of a round.
        metric: ``"loss"`` or ``"accuracy"``, the kind of the metric.
        guard: Whether the network is restored to its last good state after a query shows divergence; it
            has no effect with a ``TwinTuner``, which goes back itself.
        rates: ``"values"`` if learning rates of a configuration are set, ``"multipliers"`` if they
            multiply the rates of a scheduler.
        others: Names in the configuration that training reads itself.
        timeout: Seconds after which a missing rank of a distributed run is lost.
        changed: Options of the tuner that may differ from those in a loaded state, such as
            ``["horizon"]`` to train for longer.
        device: Device of the kept states of training; that of each part if omitted.

    Raises:
        InvalidArgumentError: If an option is invalid.
    """

    length: RoundLength
    _: KW_ONLY
    metric: Kind = "loss"
    guard: bool = True
    rates: Rates = "values"
    others: Collection[str] = ()
    timeout: float = 60.0
    changed: Collection[str] = ()
    device: torch.device | str | None = None

    def __post_init__(self) -> None:
        check(isinstance(self.length, RoundLength), "length", "a RoundLength", self.length)
        check(isinstance(self.guard, bool), "guard", "a bool", self.guard)
        for name, kinds in (("rates", get_args(Rates)), ("metric", get_args(Kind))):
            kind = getattr(self, name)
            check(kind in kinds, name, f"one of {list(kinds)}", kind)
        is_list = not isinstance(self.changed, str)
        check(is_list, "changed", "names of options in a list, such as ['horizon']", self.changed)
        if self.device is not None:
            check_device(self.device)


@dataclass(frozen=True)
class Trained:
    """The objects that training changes.

    Args:
        network: Network whose dropout is set.
        optimizer: Optimizer whose parameter groups are set.
        schedulers: Schedulers of the optimizer.
        parts: Further objects that are restored with network, optimizer and schedulers.
        data: The training data, if twins can see the same batches.
    """

    network: nn.Module
    optimizer: Optimizer
    schedulers: tuple[Stateful, ...] = ()
    parts: tuple[Stateful, ...] = ()
    data: tuple[Rewindable, ...] = ()
