"""Schedulers that write what a tuner writes."""

from collections.abc import Collection, Sequence
from typing import Any

from torch.optim import Optimizer

from botorch_costly.errors import InvalidArgumentError

_CYCLED = {"momentum", "betas"}


def check_unscheduled(
    optimizer: Optimizer, schedulers: Sequence[Any], written: Collection[str]
) -> None:
    """Raise if a scheduler writes what a configuration sets, too.

    Args:
        optimizer: Whose groups are set.
        schedulers: Those that are known; others are noticed by what they left in the optimizer.
        written: Settings of the groups that are to be set.

    Raises:
        InvalidArgumentError: With what to do about it.
    """
    known = [type(one).__name__ for one in schedulers]
    noticed = any("initial_lr" in group for group in optimizer.param_groups)
    if "lr" in written and (known or noticed):
        expected = (
            "a learning rate that no scheduler writes as well: tune a multiplier of it "
            "(such as Real(0.1, 10, log=True)) with rates='multipliers', or train without the scheduler"
        )
        raise InvalidArgumentError("lr", expected, ", ".join(known) or "an optimizer with one")
    cycled = any(getattr(one, "cycle_momentum", False) for one in schedulers)
    cycled = cycled or any("max_momentum" in group for group in optimizer.param_groups)
    both = sorted(_CYCLED & set(written))
    if both and cycled:
        expected = "no scheduler with cycle_momentum=True beside it"
        raise InvalidArgumentError(both[0], expected, ", ".join(known) or "an optimizer with one")
