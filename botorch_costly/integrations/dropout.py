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
_differed: "weakref.WeakSet[nn.Module]" = weakref.WeakSet()  # first of modules that were made alike


class DropoutTarget(NamedTuple):
    """A dropout probability to set in modules.

    Args:
        name: Name in the configuration.
        held: Modules with the probability, each with the name of an attribute of it.
        value: New probability.
    """

    name: str
    held: list[tuple[nn.Module, str]]
    value: float

    @property
    def key(self) -> str:
        """The kind of the setting, as of parameter groups."""
        return DROPOUT

    @property
    def places(self) -> list[tuple[int, str]]:
        """The written attributes, in a form that can be compared."""
        return [(id(module), attribute) for module, attribute in self.held]

    def write(self) -> None:
        """Set the probability; warn once if it makes different ones alike."""
        value, first = float(self.value), self.held[0][0]
        rates = sorted({float(getattr(module, attribute)) for module, attribute in self.held})
        if len(rates) > 1 and first not in _differed:
            _differed.add(first)
            _logger.warning(
                "%s is set in %d places, whose probabilities were %s: they are alike from now on. A part "
                "with a probability of its own is named, as in encoder.dropout and head.dropout.",
                *(self.name, len(self.held), ", ".join(f"{rate:.3g}" for rate in rates)),
            )
        for module, attribute in self.held:
            setattr(module, attribute, value)


def dropout_target(name: str, where: str, value: Any, modules: list[nn.Module]) -> DropoutTarget:
    """Return the dropout of networks, or of their submodules ``where``.

    Raises:
        InvalidConfigError: If the value is no probability.
    """
    is_rate = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    check(is_rate, name, "a number in [0, 1]", value, InvalidConfigError)
    where = plain_name(where)
    held: dict[int, nn.Module] = {}
    for network in modules:
        parts = _within(network, where) if where else parts_of(network)
        held |= {id(module): module for module in parts}
    pairs = [(part, attribute) for part in held.values() for attribute in _probabilities(part)]
    return DropoutTarget(name, pairs, value)


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
    if held.get(_COMPILED[0]) is not None or held.get(_COMPILED[1]) is not None:
        return True
    return _INNER in module._modules


def _probabilities(module: nn.Module) -> list[str]:
    """Return the names of a module's dropout probabilities; recurrent modules drop between layers."""
    if isinstance(module, _DropoutNd):
        return ["p"]
    if isinstance(module, nn.RNNBase):
        return [DROPOUT] if module.num_layers > 1 else []
    if isinstance(module, nn.MultiheadAttention):
        return [DROPOUT]
    held = vars(module)
    if DROPOUT not in " ".join(held):  # one look at all names, for most modules have none
        return []
    return [name for name, value in held.items() if DROPOUT in name and _is_share(value)]


def _is_share(value: object) -> bool:
    return isinstance(value, float) and 0 <= value <= 1
