"""Dropout of a network: its dropout modules, and that of attentions and recurrent modules."""

from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from botorch_costly.errors import InvalidConfigError, check

DROPOUT = "dropout"


@dataclass(frozen=True)
class DropoutTarget:
    """A module whose probability is set.

    Args:
        name: The name in the configuration.
        module: A dropout module, an attention or a recurrent module.
        value: The probability to be.
    """

    name: str
    module: nn.Module
    value: float

    @property
    def places(self) -> list[tuple[int, str]]:
        """What is written, in a form that can be compared."""
        return [(id(self.module), DROPOUT)]

    def write(self) -> None:
        """Set the probability."""
        attribute = "p" if isinstance(self.module, _DropoutNd) else "dropout"
        setattr(self.module, attribute, float(self.value))


def dropout_targets(
    name: str, where: str, value: Any, modules: list[nn.Module]
) -> list[DropoutTarget]:
    """Return the dropout of networks, or of the part ``where`` of them.

    Raises:
        InvalidConfigError: If the value is no probability.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    check(number, name, "a number in [0, 1]", value, InvalidConfigError)
    found = {}
    for network in modules:
        for path, module in network.named_modules():
            within = not where or path == where or path.startswith(f"{where}.")
            if within and _drops(module):
                found[id(module)] = DropoutTarget(name, module, value)
    return list(found.values())


def _drops(module: nn.Module) -> bool:
    """Return whether a module has a probability of its own; recurrent ones drop between layers."""
    if isinstance(module, nn.RNNBase):
        return module.num_layers > 1
    return isinstance(module, _DropoutNd | nn.MultiheadAttention)
