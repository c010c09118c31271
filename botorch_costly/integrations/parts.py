"""Names of the submodules of a network, independent of wrappers around the network or submodules."""

from collections.abc import Iterator

from torch import nn

# Names under which torch.compile, FSDP and activation checkpointing hold the wrapped module.
_WITHIN = {"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}
_PARALLEL = (nn.parallel.DistributedDataParallel, nn.DataParallel)


def inner_network(network: nn.Module) -> nn.Module:
    """Return the network inside of wrappers such as that of ``torch.compile``."""
    while True:
        inner = network.module if isinstance(network, _PARALLEL) else None
        inner = getattr(network, "_orig_mod", None) if inner is None else inner
        if not isinstance(inner, nn.Module):
            return network
        network = inner


def plain_name(name: str) -> str:
    """Return the name of a submodule or a parameter without the names that wrappers add."""
    return ".".join(step for step in name.split(".") if step not in _WITHIN)


def named_parts(network: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Iterate over the submodules of a network and their names, without the names of wrappers."""
    modules: dict[str, nn.Module] = {}
    names: dict[str, str] = {}
    for path, module in network.named_modules():
        parent, _, last = path.rpartition(".")
        wrapped = last in _WITHIN
        wrapped = wrapped or (last == "module" and isinstance(modules.get(parent), _PARALLEL))
        above = names.get(parent, "")
        modules[path] = module
        names[path] = above if wrapped else f"{above}.{last}".removeprefix(".")
        yield names[path], module
