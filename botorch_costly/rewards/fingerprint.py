"""Sums of the parameters of networks, which tell whether they were loaded together with a run."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

_TOLERANCE = 1e-2  # of the sum of absolute values: other precisions and devices round otherwise


def fingerprint_of(parts: Iterable[Any]) -> Tensor | None:
    """Return two sums for each parameter of the networks among parts, ``(n, 2)``, on the CPU.

    They are those of the values and of their absolute values. It is None if there is no parameter, or one
    is sharded, quantized or has no values yet.
    """
    networks = [part for part in parts if isinstance(part, nn.Module)]
    parameters = [p for network in networks for p in network.parameters()]
    if not parameters or not are_plain(parameters):
        return None  # a sum of what is sharded would wait for other processes
    if any(p.is_meta or is_lazy(p) for p in parameters):
        return None
    places: dict[torch.device, list[int]] = {}
    for place, parameter in enumerate(parameters):
        places.setdefault(parameter.device, []).append(place)
    sums = torch.empty(len(parameters), 2)
    for held in places.values():  # one wait for each device
        sums[held] = torch.stack([_sums_of(parameters[place]) for place in held]).cpu()
    return sums


def are_plain(parameters: Iterable[Tensor]) -> bool:
    """Return whether parameters are torch's own: none is sharded, quantized, or of another library."""
    return all(type(parameter) in (Tensor, nn.Parameter) for parameter in parameters)


def _sums_of(parameter: Tensor) -> Tensor:
    values = parameter.detach()
    values = (torch.view_as_real(values) if values.is_complex() else values).float()
    return torch.stack([values.sum(), values.abs().sum()])


def are_others(before: Any, after: Tensor | None) -> bool:
    """Return whether two fingerprints are evidently those of different values of as many parameters."""
    if not isinstance(before, Tensor) or after is None or before.shape != after.shape:
        return False
    return bool(((before - after).abs() > _TOLERANCE * before[:, 1:]).any())
