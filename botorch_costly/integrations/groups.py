"""Settings of an optimizer's parameter groups, by name."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from botorch_costly.errors import InvalidConfigError, check

# A group remembers its first value under this prefix, in the optimizer's state as well, so that a
# group made without weight decay stays without it after a round in which the others had none.
_FIRST = "untuned_"
_BETAS = {"beta1": 0, "beta2": 1}
_RANGES: dict[str, tuple[str, Callable[[float], bool]]] = {
    "lr": ("a finite number >= 0", lambda v: 0 <= v < math.inf),
    "weight_decay": ("a finite number >= 0", lambda v: 0 <= v < math.inf),
    "momentum": ("a number in [0, 1)", lambda v: 0 <= v < 1),
    "betas": ("numbers in [0, 1)", lambda v: 0 <= v < 1),
}
_ANY = ("a finite number", math.isfinite)


@dataclass(frozen=True)
class GroupTarget:
    """A setting of one group, and its value to be.

    Args:
        name: The name in the configuration.
        group: The parameter group.
        key: Of the setting in the group.
        value: A number; of ``betas`` a number for ``index``, or all of them.
        index: Which of the betas; None for all, and for other settings.
    """

    name: str
    group: dict[str, Any]
    key: str
    value: Any
    index: int | None = None

    @property
    def places(self) -> list[tuple[int, str]]:
        """What is written, in a form that can be compared."""
        if self.key != "betas":
            return [(id(self.group), self.key)]
        indices = range(len(self.group["betas"])) if self.index is None else [self.index]
        return [(id(self.group), f"betas {i}") for i in indices]

    @property
    def first(self) -> Any:
        """The value before any tuning."""
        return self.group.get(_FIRST + self.key, self.group[self.key])

    def write(self) -> None:
        """Set the value, and remember the first one."""
        self.group.setdefault(_FIRST + self.key, _copied(self.group[self.key]))
        if self.index is not None:
            betas = list(self.group[self.key])
            betas[self.index] = self.value
            self.group[self.key] = tuple(betas)
        elif isinstance(self.group[self.key], Tensor):
            self.group[self.key].fill_(self.value)  # a captured graph reads this very tensor
        else:
            self.group[self.key] = self.value


def group_targets(
    name: str, where: str, what: str, value: Any, optimizer: Optimizer
) -> list[GroupTarget]:
    """Return the targets of a name, none if no group has such a setting.

    Args:
        name: The name in the configuration, for messages.
        where: Name or index of a group; empty for all of them.
        what: The setting.
        value: Its value to be.
        optimizer: That has the groups.

    Raises:
        InvalidConfigError: If the value lies outside its range.
    """
    key, index = ("betas", _BETAS[what]) if what in _BETAS else (what, None)
    groups = [
        g for i, g in enumerate(optimizer.param_groups) if where in ("", g.get("name"), str(i))
    ]
    found = [GroupTarget(name, g, key, value, index) for g in groups if _is_setting(g, key)]
    if found:
        _check_value(found[0])
    if where:
        return found
    if key == "weight_decay":
        decayed = [target for target in found if float(target.first) > 0]
        found = decayed or found
    return found


def check_equal(targets: list[GroupTarget]) -> None:
    """Raise if one value is to be set in groups that were made to differ in it.

    Raises:
        InvalidConfigError: With how to name a group.
    """
    firsts = [_comparable(target.first) for target in targets]
    if len(set(firsts)) > 1:
        key = targets[0].key
        expected = f"names of groups, such as '0.{key}', for the groups differ in their {key}"
        raise InvalidConfigError(targets[0].name, expected, firsts)


def settings_of(optimizer: Optimizer) -> list[str]:
    """Return the names of what can be set in some group."""
    keys = {
        key: None for group in optimizer.param_groups for key in group if _is_setting(group, key)
    }
    return [*keys, *(_BETAS if "betas" in keys else ())]


def _is_setting(group: dict[str, Any], key: str) -> bool:
    value = group.get(key)
    number = isinstance(value, int | float | Tensor) and not isinstance(value, bool)
    ours = key.startswith(_FIRST) or key in ("lr_multiplier", "initial_lr")
    return (number or (key == "betas" and value is not None)) and not ours


def _check_value(target: GroupTarget) -> None:
    expected, holds = _RANGES.get(target.key, _ANY)
    values = target.value if isinstance(target.value, tuple) else (target.value,)
    wanted = 1 if target.key != "betas" or target.index is not None else len(target.group["betas"])
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    good = numbers and all(map(holds, values)) and len(values) == wanted
    good = good and (wanted > 1) == isinstance(target.value, tuple)
    expected = expected if wanted == 1 else f"a tuple of {wanted} {expected}"
    check(good, target.name, expected, target.value, InvalidConfigError)


def _comparable(value: Any) -> Any:
    return tuple(map(float, value)) if isinstance(value, tuple | list) else float(value)


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value
