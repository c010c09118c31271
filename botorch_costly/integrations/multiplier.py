"""Learning rates that multiply those of a scheduler.

The rate of a group is the scheduler's at all times but within ``optimizer.step()``: a hook before the
step multiplies it, a hook after the step puts it back. So it does not matter whether a scheduler
overwrites the rate or goes on from it, and what it saves and logs is its own.

The multiplier is an entry of the group, which states, copies and pickles of an optimizer have; hooks of
an optimizer are lost with them. So the hooks are those of all optimizers, and read the groups.
"""

from typing import Any

from torch import Tensor
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from botorch_costly.integrations.groups import unshare

_MULTIPLIER = "lr_multiplier"  # of a group, in the optimizer's state as well
_SCHEDULED = "lr_scheduled"  # the scheduler's rate, within a step


def multiply_rate(group: dict[str, Any], factor: float) -> None:
    """Let the optimizer of a group step with the rate of the group times a factor from now on.

    Args:
        group: A parameter group of any optimizer.
        factor: At least 0.
    """
    group[_MULTIPLIER] = factor


def multiply_no_more(group: dict[str, Any]) -> None:
    """Let the optimizer of a group step with the rate of the group itself."""
    group.pop(_MULTIPLIER, None)


def _multiply(optimizer: Any, args: Any, kwargs: Any) -> None:
    _put_back(optimizer, args, kwargs)  # after a step that raised there is something to put back
    unshare(optimizer.param_groups, "lr")
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


register_optimizer_step_pre_hook(_multiply)
register_optimizer_step_post_hook(_put_back)
