"""Dropout of a network: of dropout modules, attentions, recurrent modules and others.

Modules of Transformers pass their own probability to ``torch.nn.functional.dropout``: a float attribute
whose name contains ``dropout``, such as ``attention_dropout``.
"""

import logging
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from botorch_costly.errors import InvalidConfigError, check
from botorch_costly.integrations.parts import named_parts, parts_of, plain_name

_logger = logging.getLogger(__name__)
DROPOUT = "dropout"
# A submodule and attributes by which torch.compile, Module.compile and Lightning mark a compiled module.
_INNER = "_orig_mod"
_COMPILED = ("_compiled_call_impl", "_compiler_ctx")
_warned: "weakref.WeakSet[nn.Module]" = weakref.WeakSet()


class DropoutTarget(NamedTuple):
    """A dropout probability to set in a module.

    Args:
        name: Name in the configuration.
        module: Module with the probability.
        attribute: Name of the attribute in the module.
        value: New probability.
    """

    name: str
    module: nn.Module
    attribute: str
    value: float

    @property
    def places(self) -> list[tuple[int, str]]:
        """The written attribute, in a form that can be compared."""
        return [(id(self.module), self.attribute)]

    def write(self) -> None:
        """Set the probability."""
        setattr(self.module, self.attribute, float(self.value))


def dropout_targets(
    name: str, where: str, value: Any, modules: list[nn.Module]
) -> list[DropoutTarget]:
    """Return the dropout targets of networks, or of their submodules ``where``.

    Raises:
        InvalidConfigError: If the value is no probability.
    """
    is_rate = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    check(is_rate, name, "a number in [0, 1]", value, InvalidConfigError)
    targets: dict[tuple[int, str], DropoutTarget] = {}
    where = plain_name(where)
    for network in modules:
        for module in _within(network, where) if where else parts_of(network):
            for attribute in _probabilities(module):
                targets[id(module), attribute] = DropoutTarget(name, module, attribute, value)
    return list(targets.values())


def _within(network: nn.Module, where: str) -> Iterator[nn.Module]:
    """Iterate over the submodules of a network with a name, and over theirs."""
    for path, module in named_parts(network):
        if path == where or path.startswith(f"{where}."):
            yield module


def warn_if_compiled(modules: list[nn.Module], *, is_compiled: bool = False) -> None:
    """Warn, once for each network, that torch recompiles it for each value of dropout.

    Args:
        modules: The networks with their wrappers, which may be the compiled modules.
        is_compiled: Whether the caller knows that they are compiled.
    """
    for network in modules:
        if network in _warned:
            continue
        if is_compiled or any(map(_is_compiled, parts_of(network))):
            _warned.add(network)
            _logger.warning(
                "The network is compiled, and torch recompiles it for each value of dropout. After "
                "torch._dynamo.config.recompile_limit values, 8 by default, it runs uncompiled. Tune a "
                "Choice of a few values, or raise that limit."
            )


def _is_compiled(module: nn.Module) -> bool:
    held = vars(module)
    return _INNER in module._modules or any(held.get(mark) is not None for mark in _COMPILED)


def _probabilities(module: nn.Module) -> list[str]:
    """Return the names of a module's dropout probabilities; recurrent modules drop between layers."""
    if isinstance(module, _DropoutNd):
        return ["p"]
    if isinstance(module, nn.RNNBase):
        return [DROPOUT] if module.num_layers > 1 else []
    if isinstance(module, nn.MultiheadAttention):
        return [DROPOUT]
    return [name for name, held in vars(module).items() if DROPOUT in name and _is_share(held)]


def _is_share(value: object) -> bool:
    return isinstance(value, float) and 0 <= value <= 1
