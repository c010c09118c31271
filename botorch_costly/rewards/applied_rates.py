"""Whether the settings of configurations reach what is trained: forgotten ones earn one warning."""

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd
from torch.optim import Optimizer

from botorch_costly.device import is_near
from botorch_costly.roles import role_by_name

_logger = logging.getLogger(__name__)
_ENOUGH = 3  # different values that leave all as it is, before a warning says so


def rates_in(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a configuration whose names are those of learning rates.

    Example:
        >>> rates_in({"lr": 0.1, "head.lr": 0.2, "dropout": 0.5})
        {'lr': 0.1, 'head.lr': 0.2}
    """
    return {n: rate for n, rate in config.items() if role_by_name(n) == "learning_rate"}


class _Applied(ABC):
    """Compares what is trained with the values of the rounds that trained it.

    Settings that change at all end the comparison: it only notices that they are the same after rounds
    with three different values.
    """

    _what: ClassVar[str]  # is left as it was
    _unless: ClassVar[str] = ""

    def __init__(self, *, is_over: bool) -> None:
        self._first: list[Any] | None = None
        self._played: set[tuple[Any, ...]] = set()
        self._is_over = is_over

    def note(self, values: Mapping[str, Any]) -> None:
        """Take note of the values of a round that has been trained; warn once if none is applied."""
        if self._is_over or not values:
            return
        now = self._settings()
        self._first = now if self._first is None else self._first
        if now is None or now != self._first:
            self._is_over = True
            return
        self._played.add(tuple(values.values()))
        if len(self._played) < _ENOUGH:
            return
        self._is_over = True
        _logger.warning(
            "Rounds with %d values of %s have left the %s as it was: they are not applied, and the tuner "
            "learns from noise. Before each round call "
            "botorch_costly.integrations.apply(decision, optimizer, network)%s.",
            *(len(self._played), " and ".join(values), self._what, self._unless),
        )

    @abstractmethod
    def _settings(self) -> list[Any] | None:
        """Return the present settings; None if they cannot be compared."""


class AppliedRates(_Applied):
    """Compares the settings of optimizers with learning rates.

    They change by the rates, by ``lr_multiplier`` or by a scheduler.

    Args:
        parts: Parts of a run; those that are no optimizers are passed over.
    """

    _what = "optimizer"

    def __init__(self, parts: Iterable[Any]) -> None:
        self._optimizers = [part for part in parts if isinstance(part, Optimizer)]
        super().__init__(is_over=not self._optimizers)

    def _settings(self) -> list[Any] | None:
        """Return all settings of the groups; None if to read one would wait for an accelerator."""
        groups = [group for optimizer in self._optimizers for group in optimizer.param_groups]
        rows = [(name, value) for group in groups for name, value in group.items()]
        if any(isinstance(value, Tensor) and not is_near(value) for _, value in rows):
            return None
        return [(name, _plain(value)) for name, value in rows if name != "params"]


class AppliedDropout(_Applied):
    """Compares the dropout modules of networks with probabilities named ``dropout``.

    Args:
        parts: Parts of a run; networks without such a module are passed over.
    """

    _what = "dropout of the network"
    _unless = ", unless forward reads them itself"

    def __init__(self, parts: Iterable[Any]) -> None:
        networks = [part for part in parts if isinstance(part, nn.Module)]
        modules = [module for network in networks for module in network.modules()]
        self._modules = [module for module in modules if isinstance(module, _DropoutNd)]
        super().__init__(is_over=not self._modules)

    def note(self, values: Mapping[str, Any]) -> None:
        """Take note of a configuration that has been trained; warn once if none is applied."""
        super().note({n: v for n, v in values.items() if n.rpartition(".")[2] == "dropout"})

    def _settings(self) -> list[Any] | None:
        return [module.p for module in self._modules]


class AppliedGroups:
    """Notices a setting that follows the tuner in some groups of an optimizer, and stays in the others.

    Groups that differ from the start are to differ; a setting of zero may be off in a group on purpose.

    Args:
        parts: Parts of a run; those that are no optimizers of several groups are passed over.
    """

    def __init__(self, parts: Iterable[Any]) -> None:
        optimizers = [part for part in parts if isinstance(part, Optimizer)]
        self._alike = {o: _alike(o.param_groups) for o in optimizers if len(o.param_groups) > 1}
        self._groups = {optimizer: len(optimizer.param_groups) for optimizer in self._alike}
        self._played: dict[tuple[Optimizer, str], set[float]] = {}

    def note(self, config: Mapping[str, Any]) -> None:
        """Take note of a configuration that has been trained; warn once if it has reached some groups."""
        for name, value in config.items():
            key = "lr" if name == "learning_rate" else name
            for optimizer, alike in list(self._alike.items()):
                if key in alike and isinstance(value, int | float) and value != alike[key]:
                    self._compare(optimizer, key, value)

    def _compare(self, optimizer: Optimizer, key: str, value: float) -> None:
        groups = optimizer.param_groups[: self._groups[optimizer]]  # without those added since
        now, first = [_number(group.get(key)) for group in groups], self._alike[optimizer][key]
        left = [number for number, own in enumerate(now) if own == first]
        if any(own != first and not _is_close(own, value) for own in now) or not left:
            del self._alike[optimizer][key]  # set in another way, or everywhere
            return
        played = self._played.setdefault((optimizer, key), set())
        if len(left) < len(now):
            played.add(value)
        if len(played) == _ENOUGH:
            self._alike.clear()
            _logger.warning(
                "%s of %s follows the tuner, but group%s %s of its param_groups still %s %.6g, as all "
                "had at first, and the tuner does not know it. Set it in every group, or before each "
                "round call botorch_costly.integrations.apply(decision, optimizer, network); one of a "
                "part of the network alone has the name of this part, such as head.%s.",
                *(key, type(optimizer).__name__, "s" * (len(left) > 1), ", ".join(map(str, left))),
                *("have" if len(left) > 1 else "has", first, key),
            )


def _alike(groups: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the numbers, other than zero, that all groups of an optimizer have."""
    first, *others = groups
    numbers = {key: _number(value) for key, value in first.items() if key != "params"}
    return {
        key: number
        for key, number in numbers.items()
        if number and all(_number(group.get(key)) == number for group in others)
    }


def _number(value: Any) -> float | None:
    """Return a number; None for anything else, and for one on an accelerator, which is not waited for."""
    if isinstance(value, Tensor):
        return value.item() if value.numel() == 1 and is_near(value) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else None


def _is_close(own: float | None, value: float) -> bool:
    # Rates may be in single precision.
    return own is not None and math.isclose(own, value, rel_tol=1e-6)


class AppliedSettings:
    """All comparisons, for the parts of a run.

    Args:
        parts: Networks, optimizers and other parts.
    """

    def __init__(self, parts: Iterable[Any]) -> None:
        parts = tuple(parts)
        self._rates, self._dropout = AppliedRates(parts), AppliedDropout(parts)
        self._groups = AppliedGroups(parts)

    def note(self, config: Mapping[str, Any], rates: Iterable[str]) -> None:
        """Take note of a configuration that has been trained, whose learning rates have these names."""
        self._rates.note({name: config[name] for name in rates})
        self._dropout.note(config)
        self._groups.note(config)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, Tensor) else value
