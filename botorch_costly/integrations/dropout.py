"""Dropout of a network: its dropout modules, and that of attentions and recurrent modules."""

import logging
import weakref
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from botorch_costly.errors import InvalidConfigError, check
from botorch_costly.integrations.parts import named_parts, plain_name

_logger = logging.getLogger(__name__)
DROPOUT = "dropout"
# Where torch.compile, Module.compile and Lightning leave that a module is compiled.
_COMPILED = ("_orig_mod", "_compiled_call_impl", "_compiler_ctx")
_warned: "weakref.WeakSet[nn.Module]" = weakref.WeakSet()


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
    found, where = {}, plain_name(where)
    for network in modules:
        for path, module in named_parts(network):
            within = not where or path == where or path.startswith(f"{where}.")
            if within and _drops(module):
                found[id(module)] = DropoutTarget(name, module, value)
    return list(found.values())


def warn_if_compiled(modules: list[nn.Module], *, is_compiled: bool = False) -> None:
    """Warn, once for each network, that a compiled one is compiled anew for each value of dropout.

    Args:
        modules: The networks as they were given, for what compiles them may be the outermost wrapper.
        is_compiled: Whether that is known already.
    """
    for network in modules:
        parts = [] if network in _warned else list(network.modules())
        marks = any(getattr(part, kind, None) is not None for part in parts for kind in _COMPILED)
        if network not in _warned and (is_compiled or marks):
            _warned.add(network)
            _logger.warning(
                "The network is compiled, and torch compiles it anew for each value of dropout. After "
                "torch._dynamo.config.recompile_limit values, 8 by default, it runs without being "
                "compiled. Tune a Choice of a few values, or raise that limit."
            )


def _drops(module: nn.Module) -> bool:
    """Return whether a module has a probability of its own; recurrent ones drop between layers."""
    if isinstance(module, nn.RNNBase):
        return module.num_layers > 1
    return isinstance(module, _DropoutNd | nn.MultiheadAttention)
