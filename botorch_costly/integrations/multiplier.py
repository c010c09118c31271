"""Learning rates that multiply those of a scheduler.

The rate of a group is the scheduler's at all times but within ``optimizer.step()``: a hook before the
step multiplies it, a hook after the step puts it back. So it does not matter whether a scheduler
overwrites the rate or goes on from it, and what it saves and logs is its own.
"""

import weakref
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

_MULTIPLIER = "lr_multiplier"  # of a group, in the optimizer's state as well
_SCHEDULED = "lr_scheduled"  # the scheduler's rate, within a step
_hooked: "weakref.WeakSet[Optimizer]" = weakref.WeakSet()


def multiply_rates(optimizer: Optimizer, group: dict[str, Any], factor: float) -> None:
    """Let the optimizer step with the rate of a group times a factor from now on.

    Args:
        optimizer: That has the group.
        group: One of its parameter groups.
        factor: At least 0.
    """
    group[_MULTIPLIER] = factor
    if optimizer not in _hooked:
        optimizer.register_step_pre_hook(_multiply)
        optimizer.register_step_post_hook(_put_back)
        _hooked.add(optimizer)


def _multiply(optimizer: Any, args: Any, kwargs: Any) -> None:
    _put_back(optimizer, args, kwargs)  # after a step that raised there is something to put back
    for group in optimizer.param_groups:
        if _MULTIPLIER in group:
            rate = group["lr"]
            group[_SCHEDULED] = rate.clone() if isinstance(rate, Tensor) else rate
            _write(group, rate * group[_MULTIPLIER])


def _put_back(optimizer: Any, args: Any, kwargs: Any) -> None:
    for group in optimizer.param_groups:
        if _SCHEDULED in group:
            _write(group, group.pop(_SCHEDULED))


def _write(group: dict[str, Any], rate: Any) -> None:
    if isinstance(group["lr"], Tensor):
        group["lr"].copy_(rate)
    else:
        group["lr"] = rate
