"""Several processes that train one network: each has a share of every batch and meets all the others.

Without ``torch.distributed`` there is one process, and every function here returns what it was given.
The loss of a rank is the mean over its own examples, and gradients are averaged over ranks. Under

    L = (1 / R) sum_r L_r,    dL/dz_s = (1 / R) sum_r dL_r/dz_s,

what a rank's examples contribute to the losses of the others reaches it in the backward pass of
``gathered``, as a sum over ranks.
"""

import os
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from botorch_costly.errors import check


def many() -> int:
    """Return how many processes train together."""
    return dist.get_world_size() if _together() else 1


def rank() -> int:
    """Return which of them this one is, from 0."""
    return dist.get_rank() if _together() else 0


def _together() -> bool:
    return dist.is_available() and dist.is_initialized()


def join(device: str) -> str:
    """Join the processes that ``torch.distributed.run`` started, if it did; return this one's device."""
    if "WORLD_SIZE" not in os.environ or _together():
        return device
    on_gpu = torch.device(device).type == "cuda"
    if on_gpu:
        device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    return device


def leave() -> None:
    """Leave the other processes, if there are any."""
    if _together():
        dist.destroy_process_group()


def wait() -> None:
    """Wait for the other processes."""
    if _together():
        dist.barrier()


def mine(whole: Tensor) -> Tensor:
    """Return this process's share of a batch.

    Raises:
        InvalidArgumentError: If the batch cannot be shared out evenly.
    """
    each, left = divmod(len(whole), many())
    check(left == 0, "batch", f"a multiple of {many()} processes", len(whole))
    return whole[rank() * each : (rank() + 1) * each]


class _Gather(torch.autograd.Function):
    """All ranks' rows; backward, the sum over ranks of what flows into one's own."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        ctx.each = len(rows)
        found = [torch.empty_like(rows) for _ in range(many())]
        dist.all_gather(found, rows.contiguous())
        return torch.cat(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        dist.all_reduce(total)
        return total[rank() * ctx.each : (rank() + 1) * ctx.each]


def gathered(rows: Tensor) -> Tensor:  # shape: (many * n, d) of (n, d)
    """Return the rows of all processes, in the order of their ranks, with gradients."""
    return _Gather.apply(rows) if many() > 1 else rows


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace each gradient by its mean over processes, all of them in one message."""
    if many() == 1:
        return
    gradients = [p.grad for p in parameters if p.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    parts = (flat / many()).split([gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


def total(value: Tensor) -> Tensor:
    """Return the sum of a value over processes."""
    if many() > 1:
        value = value.clone()
        dist.all_reduce(value)
    return value


def of_first(numbers: list[float], device: torch.device) -> list[float]:
    """Return what the first process found: all decide by the same numbers."""
    if many() == 1:
        return numbers
    told = torch.tensor(numbers, dtype=torch.float64, device=device)
    dist.broadcast(told, 0)
    return told.tolist()
