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
        inner = network._modules.get("_orig_mod") if inner is None else inner
        if not isinstance(inner, nn.Module):
            return network
        network = inner


def plain_name(name: str) -> str:
    """Return the name of a submodule or a parameter without the names that wrappers add."""
    return ".".join(step for step in name.split(".") if step not in _WITHIN)


def parts_of(network: nn.Module) -> list[nn.Module]:
    """Return a network and its submodules, each once, as ``modules()`` does in several times the time."""
    seen = {id(network): network}
    left = [network]
    while left:
        for module in left.pop()._modules.values():
            if module is not None and id(module) not in seen:
                seen[id(module)] = module
                left.append(module)
    return list(seen.values())


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
