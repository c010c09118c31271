"""Messages between the ranks of a distributed run, and a diagnosis in place of a deadlock.

Everything is sent on a gloo group of its own, so that a message of a tuner and one of training never
wait for each other. Each message begins with a *meeting*: all ranks say where in the program they are.
So a rank that is somewhere else is found out before anything is waited for, and all ranks raise.
"""

import re
from datetime import timedelta
from typing import NamedTuple

import torch
import torch.distributed as dist

from botorch_costly.errors import RankLostError, RanksDisagreeError, check_positive

PLACES = ("ask", "mean", "agree", "state", "incumbent")  # what ranks meet for
_BLOCK = 2048  # bytes of the first part of a message; most decisions fit
_LENGTH = 8  # bytes of it that say how long the message is
_DIAGNOSIS = 0.25  # of the timeout, to find out which ranks are lost


class Said(NamedTuple):
    """What a rank says in a meeting, in plain numbers."""

    place: str
    number: int
    value: float
    weight: float


class Ranks:
    """The ranks of a distributed run, or the only process of one that is not distributed.

    All ranks make one at the same place of their programs, after ``init_process_group``.

    Args:
        timeout: Seconds after which a rank that does not come is lost.

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
            # After an error a gloo group is of no use, so the diagnosis has one of its own.
            self._diagnosis = dist.new_group(backend="gloo", timeout=wait)

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which decides."""
        return self.rank == 0

    def meet(self, place: str, number: int, value: float = 0.0, weight: float = 0.0) -> list[Said]:
        """Wait for all ranks at one place of the program; return what each of them says.

        Args:
            place: One of ``PLACES``.
            number: How often the ranks have met there.
            value: Of this rank.
            weight: Of the value.

        Raises:
            RanksDisagreeError: On all ranks, if they are at different places.
            RankLostError: If a rank does not come within the timeout.
        """
        ours = torch.tensor([PLACES.index(place), number, value, weight], dtype=torch.float64)
        told = [torch.empty_like(ours) for _ in range(self.count)]
        if self.count == 1:
            told = [ours]
        else:
            try:
                dist.all_gather(told, ours, group=self._group)
            except RuntimeError as error:
                raise self._lost(place, number) from error
        said = [Said(PLACES[int(t[0])], int(t[1]), float(t[2]), float(t[3])) for t in told]
        places = {rank: f"{one.place} {one.number}" for rank, one in enumerate(said)}
        if len(set(places.values())) > 1:
            expected = "all of them at one place of the run, with one state loaded"
            raise RanksDisagreeError("ranks", expected, places)
        return said

    def receive(self, message: bytes | None, place: str = "message", number: int = 0) -> bytes:
        """Return the message of rank 0 on all ranks.

        Args:
            message: That of rank 0; what other ranks give is not read.
            place: Where the ranks are, for the error.
            number: As above.

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
            message: That of this rank.
            place: Where the ranks meet, one of ``PLACES``.
            number: How often they have met there.

        Raises:
            RanksDisagreeError: As ``meet``.
            RankLostError: As ``meet``.
        """
        lengths = [int(one.value) for one in self.meet(place, number, len(message))]
        if self.count == 1:
            return [message]
        ours = torch.zeros(max(lengths), dtype=torch.uint8)  # all send as much as the longest
        ours[: len(message)] = torch.frombuffer(bytearray(message), dtype=torch.uint8)
        told = [torch.empty_like(ours) for _ in lengths]
        try:
            dist.all_gather(told, ours, group=self._group)
        except RuntimeError as error:
            raise self._lost(place, number) from error
        return [one[:length].numpy().tobytes() for one, length in zip(told, lengths, strict=True)]

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
        rest = bytearray(length)
        rest[: len(message)] = message
        return self._sent(rest)

    def _sent(self, data: bytearray) -> bytes:
        buffer = torch.frombuffer(data, dtype=torch.uint8)
        dist.broadcast(buffer, src=0, group=self._group)
        return bytes(data)

    def _lost(self, place: str, number: int) -> RankLostError:
        """Return the error that names the ranks that do not answer, as far as can be found out."""
        wait = timedelta(seconds=_DIAGNOSIS * self.timeout)
        try:
            dist.monitored_barrier(self._diagnosis, wait, wait_all_ranks=True)
            lost = "an answer of all of them afterwards: a connection broke, or a rank was too late"
        except RuntimeError as error:
            lost = self._named(str(error))
        expected = f"all {self.count} ranks at {place} {number} within {self.timeout:g} s"
        return RankLostError(f"rank {self.rank}", expected, lost)

    def _named(self, said: str) -> str:
        """Return which ranks are lost, as the barrier said it."""
        found = re.search(r"[Rr]anks? ((?:\d+,? ?)+)failed to pass", said)
        if found:
            return f"nothing from rank {found[1].strip()}"
        other = f"rank {1 - self.rank}" if self.count == 2 else "another rank"
        return f"a broken connection: the process of {other} has ended"
