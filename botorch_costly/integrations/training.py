"""Records that a trainer hands to a driver: options of the tuner, and the objects that are trained."""

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from typing import get_args

from torch import nn
from torch.optim import Optimizer

from botorch_costly.ask_tell.protocol import Stateful
from botorch_costly.errors import check
from botorch_costly.integrations.applying import Rates
from botorch_costly.integrations.rounds import RoundLength
from botorch_costly.rewards.gain import Kind


@dataclass(frozen=True)
class TrainerOptions:
    """How a tuner works in a trainer.

    Args:
        length: Length of a round.
        metric: Whether the metric is a loss or an accuracy.
        guard: Whether a network that a query finds diverged goes back to its last good state.
        rates: Whether learning rates of a configuration are values, or multiply those of a scheduler.
        others: Names in the configuration that training reads itself.
        timeout: Seconds after which a rank of a distributed run that does not come is lost.
        changed: Options of the tuner that may differ from those of the state that is resumed, such as
            ``["horizon"]`` to train for longer.

    Raises:
        InvalidArgumentError: If an option is none of these.
    """

    length: RoundLength
    _: KW_ONLY
    metric: Kind = "loss"
    guard: bool = True
    rates: Rates = "values"
    others: Collection[str] = ()
    timeout: float = 60.0
    changed: Collection[str] = ()

    def __post_init__(self) -> None:
        check(isinstance(self.length, RoundLength), "length", "a RoundLength", self.length)
        check(isinstance(self.guard, bool), "guard", "a bool", self.guard)
        for name, kinds in (("rates", get_args(Rates)), ("metric", get_args(Kind))):
            given = getattr(self, name)
            check(given in kinds, name, f"one of {list(kinds)}", given)
        named = not isinstance(self.changed, str)
        check(named, "changed", "names of options in a list, such as ['horizon']", self.changed)


@dataclass(frozen=True)
class Trained:
    """The objects that training changes.

    Args:
        network: Whose dropout is set.
        optimizer: Whose groups are set.
        schedulers: Schedulers of the optimizer.
        parts: Everything else that goes back with network, optimizer and schedulers.
    """

    network: nn.Module
    optimizer: Optimizer
    schedulers: tuple[Stateful, ...] = ()
    parts: tuple[Stateful, ...] = ()
