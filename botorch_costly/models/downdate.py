"""What queries have taken from the covariance of each of many trials: weighted rank-one terms.

    V = sum_i w_i v_i v_i^T

All weights of a trial decay together, so its oldest term is its lightest. Terms therefore lie in a ring
for each trial, and a new one takes the place of the oldest once that weighs less than the tolerance.
Where forgetting is too slow for that, ``2 n`` terms are compressed into ``n`` by a QR factorization
without changing their sum.

No device but a CPU is asked whether the ring has room. It is known to have some from the number of rounds
so far or from the time passed since the oldest; where it is not, room is made.

Notation: ``m`` trials, ``T`` slots of a ring, ``n`` points.
"""

import copy
import math
from collections import deque
from collections.abc import Callable

import torch
from torch import Tensor

from botorch_costly.device import is_near

_FEW = 0.45  # share of the terms below which summing them one by one is quicker on a CPU
_BLOCK = 32  # terms of lower precision that are summed in it
_LEAST = 1e-300  # least argument of a logarithm


class Downdate:
    """Rank-one terms of ``m`` trials on ``n`` points, none at first.

    Args:
        like: Gives the device; sums are returned in its dtype.
        trials: ``m``.
        num_points: ``n``.
        tolerance: A term is dropped when its weight falls below this.
        capacity: Slots to begin with; more are added when they are needed, up to ``2 n``.
        dtype: Of the terms; that of ``like`` if omitted.
    """

    def __init__(
        self,
        like: Tensor,
        trials: int,
        num_points: int,
        tolerance: float,
        capacity: int,
        dtype: torch.dtype | None = None,
    ) -> None:
        self._tolerance = tolerance
        slots = max(min(capacity, 2 * num_points), 1)
        self.terms = like.new_zeros(trials, slots, num_points, dtype=dtype or like.dtype)
        self.weights = like.new_zeros(trials, slots)  # zero where a slot is free
        self.count = torch.zeros(
            trials, dtype=torch.long, device=like.device
        )  # next slot, modulo T
        self._rows = torch.arange(trials, device=like.device)
        self._begin()

    def _begin(self) -> None:
        self._held = 0  # slots beyond which nothing is
        self._clock = 0.0  # logarithm of what is left of a term as old as this
        self._births: deque[float] = deque(maxlen=self.num_slots)  # clocks of the last T pushes

    @property
    def num_slots(self) -> int:
        """Slots of the ring of each trial."""
        return self.terms.shape[1]

    @property
    def active(self) -> Tensor:
        """Which slots hold a term that counts, shape ``(m, T)``."""
        return self.weights > self._tolerance

    def rows(self, rows: slice) -> "Downdate":
        """Return some of the trials, for reading: memory is shared."""
        part = object.__new__(Downdate)
        part.__dict__.update(self.__dict__)
        part.terms, part.weights = self.terms[rows], self.weights[rows]
        part.count, part._rows = self.count[rows], self._rows[: len(part.terms)]
        return part

    def map(self, fn: Callable[[Tensor], Tensor]) -> "Downdate":
        """Return the terms with all tensors moved or converted."""
        part = copy.copy(self)
        part.terms, part.weights = fn(self.terms), fn(self.weights)
        part.count, part._rows = fn(self.count), fn(self._rows)
        part._births = deque(self._births, maxlen=self._births.maxlen)
        return part

    def decay(self, factor: float | Tensor, most: float) -> None:
        """Multiply all weights by a factor, a number or ``(m, 1)``, that is at most ``most``."""
        self.weights.mul_(factor)
        self._clock += math.log(max(most, _LEAST))

    def clear(self, mask: Tensor | None = None) -> None:
        """Forget the terms of all trials, or of those marked, shape ``(m,)``."""
        if mask is None:
            self.weights.zero_()
            self.count.zero_()
            self._begin()
            return
        self.weights.masked_fill_(mask.unsqueeze(-1), 0)
        self.count.masked_fill_(mask, 0)

    def push(self, shape: Tensor, querying: Tensor) -> None:
        """Add ``shape shape^T`` with weight one, ``(m, n)``, in trials that query, ``(m,)``."""
        self._make_room(querying)
        rows, slot = self._rows, self.count % self.num_slots
        if not is_near(querying):  # is not waited for: trials that do not query get what they had
            shape = torch.where(
                querying.unsqueeze(-1), shape.to(self.terms), self.terms[rows, slot]
            )
            self.weights[rows, slot] = torch.where(querying, 1.0, self.weights[rows, slot])
        else:
            rows = querying.nonzero().squeeze(-1)
            shape, slot = shape[rows].to(self.terms), slot[rows]
            self.weights[rows, slot] = 1
        self.terms[rows, slot] = shape
        self.count += querying
        self._births.append(self._clock)
        # A CPU knows how many slots are in use; of another device it is not asked.
        most = int(self.count.max()) if is_near(self.count) else self._held + 1
        self._held = min(max(self._held, most), self.num_slots)

    def column(self, at: Tensor, querying: Tensor | None = None) -> Tensor:
        """Return ``V[:, at]`` for a point of each trial, ``(m,) -> (m, n)``.

        Given ``querying``, rows of trials that do not query have no meaning.
        """
        held = self._held
        terms, weights = self.terms[:, :held], self.weights[:, :held]
        if terms.dtype != weights.dtype:
            return self._sum_by_blocks(at)
        if querying is not None and is_near(querying):
            wanted = self.active[:, :held] & querying.unsqueeze(-1)
            if int(wanted.sum()) < _FEW * wanted.numel():
                return self._sum_of(wanted, at)
        picked = terms.gather(-1, at.view(-1, 1, 1).expand(-1, held, 1)).squeeze(-1)
        coefficient = (weights * picked).to(terms).unsqueeze(1)
        return torch.bmm(coefficient, terms).squeeze(1).to(weights)

    def _sum_by_blocks(self, at: Tensor) -> Tensor:
        """Return ``V[:, at]`` of terms of lower precision, in which only the sums of some are made.

        The terms of all queries together are no larger than the prior, so rounding them costs little; it
        is in long sums that digits are lost.
        """
        total = self.weights.new_zeros(len(at), self.terms.shape[-1])
        picks = at.view(-1, 1, 1)
        for start in range(0, self._held, _BLOCK):
            block = slice(start, min(start + _BLOCK, self._held))
            terms = self.terms[:, block]
            picked = terms.gather(-1, picks.expand(-1, terms.shape[1], 1)).squeeze(-1)
            coefficient = (self.weights[:, block] * picked).to(terms).unsqueeze(1)
            total += torch.bmm(coefficient, terms).squeeze(1)
        return total

    def _sum_of(self, wanted: Tensor, at: Tensor) -> Tensor:
        """Return ``V[:, at]`` from the terms wanted (``(m, T)``), without touching any other."""
        n, (row, slot) = self.terms.shape[-1], wanted.nonzero().unbind(-1)
        place = row * self.num_slots + slot
        flat = self.terms.reshape(-1, n)
        picked = flat[place, at[row]]
        number = wanted.sum(-1)
        return torch.nn.functional.embedding_bag(
            place,
            flat,
            number.cumsum(-1) - number,
            mode="sum",
            per_sample_weights=(self.weights[row, slot] * picked).to(flat),
        ).to(self.weights)

    def at(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Return weights, ``(m, T, 1)``, and terms at some points of each trial, ``(m, T, k)``.

        Args:
            index: Shape ``(m, k)``, or ``(k,)`` for points shared by all trials.
        """
        held = self._held
        terms, weights = self.terms[:, :held], self.weights[:, :held, None]
        if index.dim() == 1:
            return weights, terms[..., index].to(weights)
        picks = index.unsqueeze(-2).expand(-1, held, -1)
        return weights, terms.gather(-1, picks).to(weights)

    def state(self) -> dict[str, Tensor]:
        """Return everything needed to continue bit by bit."""
        return {"terms": self.terms, "weights": self.weights, "count": self.count}

    def load(self, state: dict[str, Tensor]) -> None:
        """Take over a state."""
        self.terms, self.weights = state["terms"].clone(), state["weights"].clone()
        self.count = state["count"].clone()
        self._begin()
        self._held = min(int(self.count.max()), self.num_slots)
        # The state does not say how old they are.
        self._births.extend([self._clock] * self.num_slots)

    def _make_room(self, querying: Tensor) -> None:
        """Make the next slot of each trial that queries free, or its term light enough."""
        births = self._births
        if len(births) < self.num_slots:
            return
        if self._clock - births[0] < math.log(self._tolerance):
            return
        if is_near(querying):
            # Weights decide, not counts: any number of queries may fall into one round.
            next_weight = self.weights[self._rows, self.count % self.num_slots]
            if not bool((querying & (next_weight > self._tolerance)).any()):
                return
        if self.num_slots < 2 * self.terms.shape[-1]:
            self._grow()
        else:
            self._compress()

    def _grow(self) -> None:
        slots = self.num_slots
        extra = min(slots // 4 + 16, 2 * self.terms.shape[-1] - slots)
        # Rings that have come round begin anew with their oldest term.
        begin = torch.where(self.count >= slots, self.count % slots, 0).unsqueeze(-1)
        order = (begin + torch.arange(slots, device=begin.device)) % slots
        self.terms = self.terms.gather(1, order.unsqueeze(-1).expand_as(self.terms))
        self.weights = self.weights.gather(1, order)
        self.count.clamp_(max=slots)
        self.terms = torch.nn.functional.pad(self.terms, (0, 0, 0, extra))
        self.weights = torch.nn.functional.pad(self.weights, (0, extra))
        self._births = deque(self._births, maxlen=slots + extra)

    def _compress(self) -> None:
        # R^T R = sum_i w_i v_i v_i^T: this downdate in n terms of weight one.
        weighted = self.weights.sqrt().unsqueeze(-1) * self.terms
        triangle = torch.linalg.qr(weighted, mode="r").R
        number = triangle.shape[1]
        self.terms[:, :number], self.weights[:, :number] = triangle.to(self.terms), 1
        self.terms[:, number:], self.weights[:, number:] = 0, 0
        self.count.fill_(number)
        self._births.clear()
        self._births.extend([self._clock] * number)  # the oldest query is in all of them
