"""Settings of an optimizer's parameter groups, by name."""

import logging
import math
import re
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.optim import Optimizer

from botorch_costly.errors import InvalidConfigError, check
from botorch_costly.integrations.parts import plain_name

_logger = logging.getLogger(__name__)
# A group keeps its first value under this prefix, also in the optimizer's state. So a group that was made
# without weight decay stays without it, even after a round in which no group had any.
FIRST = "untuned_"
BETAS = {"beta1": 0, "beta2": 1}
_RANGES: dict[str, tuple[str, Callable[[float], bool]]] = {
    "lr": ("a finite number >= 0", lambda v: 0 <= v < math.inf),
    "weight_decay": ("a finite number >= 0", lambda v: 0 <= v < math.inf),
    "momentum": ("a number in [0, 1)", lambda v: 0 <= v < 1),
    "betas": ("numbers in [0, 1)", lambda v: 0 <= v < 1),
}
_ANY = ("a finite number", math.isfinite)
_PLAIN = frozenset((float, int))  # values that are compared without waiting for a device
# Names of the parameters that Transformers trains without weight decay.
_WITHOUT_DECAY = re.compile(r"bias|layernorm|rmsnorm|(?:^|[._])norm(?:$|\.)")
_warned: "weakref.WeakSet[Optimizer]" = weakref.WeakSet()


class GroupTarget(NamedTuple):
    """A value to set in parameter groups.

    Args:
        name: Name in the configuration.
        groups: The parameter groups.
        key: Key of the setting in each group.
        value: A number; for ``betas`` the number at ``beta``, or a tuple of all.
        beta: Index among the betas; None for all, and for other settings.
    """

    name: str
    groups: list[dict[str, Any]]
    key: str
    value: Any
    beta: int | None = None

    @property
    def places(self) -> list[tuple[int, str]]:
        """The written settings, in a form that can be compared."""
        if self.key != "betas":
            return [(id(group), self.key) for group in self.groups]
        several = [
            range(len(group["betas"])) if self.beta is None else [self.beta]
            for group in self.groups
        ]
        pairs = zip(self.groups, several, strict=True)
        return [(id(group), f"betas {i}") for group, indices in pairs for i in indices]

    @property
    def firsts(self) -> list[Any]:
        """The values before any tuning, one for each group."""
        key, first = self.key, FIRST + self.key
        return [group[first] if first in group else group[key] for group in self.groups]

    def within(self, groups: Iterable[dict[str, Any]]) -> "GroupTarget":
        """Return the target in some of the groups alone."""
        return self._replace(groups=list(groups))

    def write(self) -> None:
        """Set the value, and keep the first one."""
        key, first, value = self.key, FIRST + self.key, self.value
        for group in self.groups:
            present = group[key]
            if first not in group:
                group[first] = _copied(present)
            if self.beta is not None:
                betas = list(present)
                betas[self.beta] = value
                group[key] = tuple(betas)
            elif isinstance(present, Tensor):
                present.fill_(value)  # a captured graph reads this very tensor
            else:
                group[key] = value


def group_target(
    name: str,
    where: str,
    what: str,
    value: Any,
    optimizer: Optimizer,
    modules: Iterable[nn.Module] = (),
) -> GroupTarget | None:
    """Return the target of a name; None if no group has such a setting.

    Args:
        name: Name in the configuration, for messages.
        where: Name or index of a group; empty for all groups.
        what: Key of the setting in a group, or one of ``beta1`` and ``beta2``.
        value: New value.
        optimizer: Optimizer with the groups.
        modules: Networks with the parameters of the groups, whose names identify biases and norms.

    Raises:
        InvalidConfigError: If the value lies outside its range.
    """
    key, beta = ("betas", BETAS[what]) if what in BETAS else (what, None)
    unshare(optimizer.param_groups, key)
    groups = _groups_named(plain_name(where), optimizer) if _is_tunable(key) else []
    groups = [g for g in groups if _is_set(key, g.get(key))]
    if not groups:
        return None
    target = GroupTarget(name, groups, key, value, beta)
    _check_value(target)
    return _decayed(target, modules) if key == "weight_decay" and not where else target


def _groups_named(where: str, optimizer: Optimizer) -> list[dict[str, Any]]:
    """Return the groups with a name or, if there are none, the one with that index; all if empty."""
    groups = optimizer.param_groups
    if not where:
        return groups
    named = [g for g in groups if "name" in g and where == plain_name(str(g["name"]))]
    return named or [g for i, g in enumerate(groups) if where == str(i)]


def unshare(groups: list[dict[str, Any]], key: str) -> None:
    """Give each group its own tensor: torch puts one tensor argument into all groups."""
    seen = set()
    for group in groups:
        if isinstance(group.get(key), Tensor):
            if id(group[key]) in seen:
                group[key] = group[key].clone()
            seen.add(id(group[key]))


def shared_target(target: GroupTarget, optimizer: Optimizer) -> GroupTarget:
    """Return the target of one value for all groups.

    A group may be added after the value was first set, such as the group of an unfrozen backbone. It is
    set, too, if it was made with the value of the other groups. Otherwise it keeps its value, with one
    warning.

    Args:
        target: The target of all groups with the setting.
        optimizer: Optimizer with the groups.

    Raises:
        InvalidConfigError: If the groups were made with different values of the setting.
    """
    key, groups, firsts = target.key, target.groups, target.firsts
    if _PLAIN.issuperset(map(type, firsts)) and firsts.count(firsts[0]) == len(firsts):
        return target
    firsts = [_comparable(first) for first in firsts]
    pairs = list(zip(groups, firsts, strict=True))
    earlier = {first for group, first in pairs if FIRST + key in group}  # of tuned groups
    if len(set(firsts)) > 1 and len(earlier) == 1:
        if optimizer not in _warned:
            _warned.add(optimizer)
            _logger.warning(
                "A new parameter group was made with another %s than the others, and keeps it. To tune "
                "it, name the groups, such as '0.%s', or tune multipliers.",
                key,
                key,
            )
        return target.within(group for group, first in pairs if first in earlier)
    expected = f"names of groups, such as '0.{key}', because the groups differ in their {key}"
    check(len(set(firsts)) == 1, target.name, expected, firsts, InvalidConfigError)
    return target


def settings_of(optimizer: Optimizer) -> list[str]:
    """Return the names of the settings of all groups."""
    groups = optimizer.param_groups
    keys = dict.fromkeys(
        key for group in groups for key in group if _is_tunable(key) and _is_set(key, group[key])
    )
    return [*keys, *(BETAS if "betas" in keys else ())]


def _decayed(target: GroupTarget, modules: Iterable[nn.Module]) -> GroupTarget:
    """Return the target in the groups that were made with weight decay.

    If no group has any, the default of Transformers, these are the groups with other parameters than
    biases and norms.
    """
    pairs = zip(target.groups, target.firsts, strict=True)
    decayed = [group for group, first in pairs if float(first) > 0]
    if not decayed and len(target.groups) > 1:
        names = {id(p): name for network in modules for name, p in network.named_parameters()}
        for group in target.groups:
            names |= dict(zip(map(id, group["params"]), group.get("param_names", ()), strict=False))
        decayed = [group for group in target.groups if _holds_weights(group, names)]
    return target.within(decayed) if decayed else target


def _holds_weights(group: dict[str, Any], names: dict[int, str]) -> bool:
    """Return whether a group has other parameters than biases and norms, by shapes and names."""
    return any(
        parameter.ndim > 1 and not _WITHOUT_DECAY.search(names.get(id(parameter), "").lower())
        for parameter in group["params"]
    )


def _is_tunable(key: str) -> bool:
    return not key.startswith(FIRST) and key not in ("lr_multiplier", "initial_lr")


def _is_set(key: str, value: Any) -> bool:
    if key == "betas":
        return value is not None
    return isinstance(value, int | float | Tensor) and not isinstance(value, bool)


def _check_value(target: GroupTarget) -> None:
    expected, holds = _RANGES.get(target.key, _ANY)
    values = target.value if isinstance(target.value, tuple) else (target.value,)
    is_one = target.key != "betas" or target.beta is not None
    count = 1 if is_one else len(target.groups[0]["betas"])
    are_numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    is_valid = are_numbers and all(map(holds, values)) and len(values) == count
    is_valid = is_valid and (count > 1) == isinstance(target.value, tuple)
    expected = expected if count == 1 else f"a tuple of {count} {expected}"
    check(is_valid, target.name, expected, target.value, InvalidConfigError)


def _comparable(value: Any) -> Any:
    return tuple(map(float, value)) if isinstance(value, tuple | list) else float(value)


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value
