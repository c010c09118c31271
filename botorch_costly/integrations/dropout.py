"""Dropout of a network: its dropout modules, and that of attentions, recurrent and other modules.

Modules of Transformers hand a probability of their own to ``torch.nn.functional.dropout``: a float whose
name has ``dropout`` in it, such as ``attention_dropout``.
"""

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
    """A probability of a module, which is set.

    Args:
        name: The name in the configuration.
        module: That has it.
        attribute: Its name there.
        value: The probability to be.
    """

    name: str
    module: nn.Module
    attribute: str
    value: float

    @property
    def places(self) -> list[tuple[int, str]]:
        """What is written, in a form that can be compared."""
        return [(id(self.module), self.attribute)]

    def write(self) -> None:
        """Set the probability."""
        setattr(self.module, self.attribute, float(self.value))


def dropout_targets(
    name: str, where: str, value: Any, modules: list[nn.Module]
) -> list[DropoutTarget]:
    """Return the dropout of networks, or of the part ``where`` of them.

    Raises:
        InvalidConfigError: If the value is no probability.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    check(number, name, "a number in [0, 1]", value, InvalidConfigError)
    found: dict[tuple[int, str], DropoutTarget] = {}
    where = plain_name(where)
    for network in modules:
        for path, module in named_parts(network):
            within = not where or path == where or path.startswith(f"{where}.")
            for attribute in _probabilities(module) if within else ():
                target = DropoutTarget(name, module, attribute, value)
                found[target.places[0]] = target
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


def _probabilities(module: nn.Module) -> list[str]:
    """Return the attributes that are probabilities of a module; recurrent ones drop between layers."""
    if isinstance(module, _DropoutNd):
        return ["p"]
    if isinstance(module, nn.RNNBase):
        return [DROPOUT] if module.num_layers > 1 else []
    if isinstance(module, nn.MultiheadAttention):
        return [DROPOUT]
    return [name for name, held in vars(module).items() if DROPOUT in name and _is_share(held)]


def _is_share(value: object) -> bool:
    return isinstance(value, float) and 0 <= value <= 1
