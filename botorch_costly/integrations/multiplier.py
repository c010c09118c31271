"""Learning rates that multiply those of a scheduler.

The rate of a group is multiplied only within ``optimizer.step()``: a hook before the step multiplies it,
a hook after the step restores it. So the scheduler may overwrite the rate or continue from it, and saves
and logs its own rate.

The multiplier is an entry of the group, because states, copies and pickles of an optimizer keep its
groups but lose its hooks. So the hooks are global to all optimizers, and read the groups.
"""

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from botorch_costly.integrations.groups import unshare

MULTIPLIER = "lr_multiplier"  # entry of a group, also in the optimizer's state
_PLAYED = 5  # different multipliers that are looked at
_ABSOLUTE = 0.1  # up to which all of them look like rates
_played: "WeakKeyDictionary[Optimizer, list[float]]" = WeakKeyDictionary()
_SCHEDULED = "lr_scheduled"  # the scheduler's rate, within a step


def multiply_rates(groups: Iterable[dict[str, Any]], factor: float) -> None:
    """Make the optimizer of groups step with their rates times a factor from now on.

    Args:
        groups: Parameter groups of any optimizer.
        factor: Multiplier, at least 0.
    """
    for group in groups:
        group[MULTIPLIER] = factor


def seem_absolute(optimizer: Optimizer, factor: float) -> bool:
    """Take note of the multiplier of a round; return once whether all so far look like rates.

    Multipliers change the rate of a scheduler by about ten times. Several that are far smaller are rates
    by themselves, unless they fall from round to round, as at the end of a schedule.
    """
    played = _played.setdefault(optimizer, [])
    if len(played) == _PLAYED or factor in played:
        return False
    played.append(factor)
    falls = played == sorted(played, reverse=True)
    return len(played) == _PLAYED and max(played) <= _ABSOLUTE and not falls


def multiply_no_more(groups: Iterable[dict[str, Any]]) -> None:
    """Make the optimizer of groups step with the rates of the groups themselves."""
    for group in groups:
        group.pop(MULTIPLIER, None)


def _multiply(optimizer: Any, args: Any, kwargs: Any) -> None:
    _restore(optimizer, args, kwargs)  # a step that raised has not restored the rates
    unshare(optimizer.param_groups, "lr")
    for group in optimizer.param_groups:
        if MULTIPLIER in group:
            rate = group["lr"]
            group[_SCHEDULED] = rate.clone() if isinstance(rate, Tensor) else rate
            _write(group, rate * group[MULTIPLIER])


def _restore(optimizer: Any, args: Any, kwargs: Any) -> None:
    for group in optimizer.param_groups:
        if _SCHEDULED in group:
            _write(group, group.pop(_SCHEDULED))


def _write(group: dict[str, Any], rate: Any) -> None:
    if isinstance(group["lr"], Tensor):
        group["lr"].copy_(rate)
    else:
        group["lr"] = rate


register_optimizer_step_pre_hook(_multiply)
register_optimizer_step_post_hook(_restore)
