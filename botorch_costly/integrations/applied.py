"""The configuration of a round in a trainer: it is applied, and still holds when the round is told."""

import logging
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from botorch_costly.device import is_near
from botorch_costly.integrations.applying import apply, setting_of
from botorch_costly.integrations.groups import FIRST
from botorch_costly.integrations.multiplier import MULTIPLIER
from botorch_costly.integrations.training import Trained, TrainerOptions

_logger = logging.getLogger(__name__)


class Applied:
    """Applies configurations, and warns once if something else writes one of their settings, too."""

    def __init__(self) -> None:
        # What was applied, by name in the configuration, one for each group.
        self._settings: dict[str, list[Any]] = {}
        self._keys: dict[str, str] = {}
        self._trained: Trained | None = None
        self._has_warned = False

    def write(self, config: Mapping[str, Any], trained: Trained, options: TrainerOptions) -> None:
        """Apply a configuration; errors are those of ``apply``."""
        named: dict[str, Any] = {"others": options.others, "schedulers": trained.schedulers}
        apply(config, trained.optimizer, trained.network, rates=options.rates, **named)
        written = (name for name in config if name not in options.others)
        self._keys, self._trained = {n: setting_of(n, options.rates) for n in written}, trained
        self._settings = self._present(trained)

    def check(self, *, warns: bool = True) -> None:
        """Compare the settings with those that were applied, at the end of a round.

        Args:
            warns: Whether this process logs.
        """
        if self._has_warned or self._trained is None or not warns:
            return
        for name, present in self._present(self._trained).items():
            applied = self._settings[name]
            now = present[: len(applied)]  # groups that were added since are not compared
            if now != applied:
                self._has_warned = True
                _logger.warning(
                    "%s was applied as %s and is %s at the end of the round: something else writes it, "
                    "too, and the tuner learns from rounds that it did not choose. Leave it to the "
                    "tuner, or, beside a scheduler, tune a multiplier with rates='multipliers'.",
                    name,
                    _shown(applied),
                    _shown(now),
                )
                return

    def _present(self, trained: Trained) -> dict[str, list[Any]]:
        """Return the written settings, one for each group; None in other groups."""
        groups, keys = trained.optimizer.param_groups, self._keys.items()
        return {name: [_written(group, key) for group in groups] for name, key in keys}


def _written(group: Mapping[str, Any], key: str) -> Any:
    is_written = key == MULTIPLIER or FIRST + key in group
    return _plain(group.get(key)) if is_written else None


def _plain(value: Any) -> Any:
    """Return a number or numbers; None for a tensor on an accelerator, which is not waited for."""
    if isinstance(value, Tensor):
        return value.item() if is_near(value) else None
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def _shown(values: list[Any]) -> str:
    distinct = dict.fromkeys(values)
    return " and ".join(f"{v:.6g}" if isinstance(v, float) else str(v) for v in distinct)
