"""Messages between the ranks of a distributed run, with an error in place of a deadlock.

All messages use a separate gloo group, so that messages of a tuner and of training never wait for each
other. Each message begins with a *meeting*, in which all ranks report their place in the program. If a
rank is at another place, all ranks raise before any of them waits.
"""

import re
from datetime import timedelta
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from botorch_costly.errors import RankLostError, RanksDisagreeError, check_positive

PLACES = (
    "ask",
    "mean",
    "agree",
    "state",
    "incumbent",
    "enqueue",
    "validation",
    "reading",
)  # places of the program where ranks meet
_BLOCK = 2048  # bytes of the first part of a message; most decisions fit
_LENGTH = 8  # bytes of the first part that hold the length of the message
_DIAGNOSIS = 0.25  # share of the timeout for finding the lost ranks


class Said(NamedTuple):
    """Report of a rank in a meeting, in plain numbers."""

    place: str
    number: int
    value: float
    weight: float


def weighted_mean(reports: list[Said]) -> float:
    """Return the mean of the values in reports, the same to the last bit on all ranks.

    The sum is in the order of the ranks; values without a weight may be NaN, and one weight is positive.
    """
    total = sum(report.weight for report in reports)
    return sum(r.value * r.weight for r in reports if r.weight > 0) / total


class Ranks:
    """The ranks of a distributed run, or the only process of another run.

    All ranks construct it at the same place of their programs, after ``init_process_group``.

    Args:
        timeout: Seconds after which a missing rank is lost.

    Raises:
        InvalidArgumentError: If the timeout is not positive.

    Example:
        >>> Ranks().receive(b"a decision")
        b'a decision'
    """

    def __init__(self, timeout: float = 60.0) -> None:
        self.timeout = check_positive("timeout", timeout)
        distributed = dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank() if distributed else 0
        self.count = dist.get_world_size() if distributed else 1
        if self.count > 1:
            wait = timedelta(seconds=(1 - _DIAGNOSIS) * timeout)
            self._group = dist.new_group(backend="gloo", timeout=wait)
            # A gloo group is unusable after an error, so the diagnosis needs another one.
            self._diagnosis = dist.new_group(backend="gloo", timeout=wait)

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which decides."""
        return self.rank == 0

    def meet(self, place: str, number: int, value: float = 0.0, weight: float = 0.0) -> list[Said]:
        """Wait for all ranks at one place of the program; return their reports in order.

        Args:
            place: One of ``PLACES``.
            number: Number of earlier meetings there.
            value: Value of this rank.
            weight: Weight of the value.

        Raises:
            RanksDisagreeError: On all ranks, if they are at different places.
            RankLostError: If a rank does not come within the timeout.
        """
        if self.count == 1:
            return [Said(place, number, value, weight)]
        ours = torch.tensor([PLACES.index(place), number, value, weight], dtype=torch.float64)
        rows = self._gathered(ours, place, number)
        reports = [Said(PLACES[int(r[0])], int(r[1]), float(r[2]), float(r[3])) for r in rows]
        places = {rank: f"{report.place} {report.number}" for rank, report in enumerate(reports)}
        if len(set(places.values())) > 1:
            expected = "all of them at one place of the run, with one state loaded"
            raise RanksDisagreeError("ranks", expected, places)
        return reports

    def receive(self, message: bytes | None, place: str = "message", number: int = 0) -> bytes:
        """Return the message of rank 0 on all ranks.

        Args:
            message: Message of rank 0; ignored on other ranks.
            place: Place of the ranks, for the error.
            number: Number of earlier meetings there, for the error.

        Raises:
            RankLostError: If a rank does not come within the timeout.
        """
        if self.count == 1:
            return message or b""
        try:
            return self._broadcast(message if self.is_first and message else b"")
        except RuntimeError as error:
            raise self._lost(place, number) from error

    def gather(self, message: bytes, place: str = "state", number: int = 0) -> list[bytes]:
        """Return the messages of all ranks, in their order, on all ranks.

        Args:
            message: Message of this rank.
            place: Place where the ranks meet, one of ``PLACES``.
            number: Number of earlier meetings there.

        Raises:
            RanksDisagreeError: On all ranks, if they are at different places.
            RankLostError: If a rank does not come within the timeout.
        """
        lengths = [int(report.value) for report in self.meet(place, number, len(message))]
        if self.count == 1:
            return [message]
        ours = torch.zeros(max(lengths), dtype=torch.uint8)  # padded to the longest message
        ours[: len(message)] = torch.frombuffer(bytearray(message), dtype=torch.uint8)
        rows = self._gathered(ours, place, number)
        return [row[:length].numpy().tobytes() for row, length in zip(rows, lengths, strict=True)]

    def _gathered(self, ours: Tensor, place: str, number: int) -> list[Tensor]:
        """Return the tensors of all ranks, in their order."""
        rows = [torch.empty_like(ours) for _ in range(self.count)]
        try:
            dist.all_gather(rows, ours, group=self._group)
        except RuntimeError as error:
            raise self._lost(place, number) from error
        return rows

    def _broadcast(self, message: bytes) -> bytes:
        first = bytearray(_BLOCK)
        if self.is_first:
            first[:_LENGTH] = len(message).to_bytes(_LENGTH, "little")
            head = message[: _BLOCK - _LENGTH]
            first[_LENGTH : _LENGTH + len(head)] = head
        sent = self._sent(first)
        length = int.from_bytes(sent[:_LENGTH], "little")
        if length <= _BLOCK - _LENGTH:
            return sent[_LENGTH : _LENGTH + length]
        whole = bytearray(length)
        whole[: len(message)] = message
        return self._sent(whole)

    def _sent(self, data: bytearray) -> bytes:
        buffer = torch.frombuffer(data, dtype=torch.uint8)
        dist.broadcast(buffer, src=0, group=self._group)
        return bytes(data)

    def _lost(self, place: str, number: int) -> RankLostError:
        """Return the error that names the lost ranks, as far as the diagnosis finds them."""
        wait = timedelta(seconds=_DIAGNOSIS * self.timeout)
        try:
            dist.monitored_barrier(self._diagnosis, wait, wait_all_ranks=True)
            lost = "a late answer of all of them: a connection broke, or a rank was too slow"
        except RuntimeError as error:
            lost = self._named(str(error))
        expected = f"all {self.count} ranks at {place} {number} within {self.timeout:g} s"
        return RankLostError(f"rank {self.rank}", expected, lost)

    def _named(self, message: str) -> str:
        """Return the lost ranks in the message of a barrier."""
        match = re.search(r"[Rr]anks? ((?:\d+,? ?)+)failed to pass", message)
        if match:
            return f"nothing from rank {match[1].strip()}"
        other = f"rank {1 - self.rank}" if self.count == 2 else "another rank"
        return f"a broken connection: the process of {other} has ended"
