"""The downdate of the prior covariance by the queries of each trial: a sum of weighted rank-one terms.

    V = sum_i w_i v_i v_i^T

All weights of a trial decay together, so its oldest term has the smallest weight. A trial's terms are a
ring buffer, in which a new term replaces the oldest once the weight of that is below the tolerance. If
forgetting is too slow for that, a QR factorization compresses ``2 n`` terms into ``n`` and keeps the sum.

On a device other than a CPU, reading whether the ring has a free slot would synchronize. The number of
rounds so far, or the time since the oldest term, then imply a free slot; otherwise one is made.

Covariances between points of a coarse *sublattice*, every ``step``-th point, would read a number from
each cache line of all terms. So the terms on the last sublattice asked for are stored a second time, in
single precision.

Notation: ``m`` trials, ``T`` slots of a ring, ``n`` points.
"""

import copy
import math
from collections import deque
from collections.abc import Callable

import torch
from torch import Tensor

from botorch_costly.device import is_near

_SPARSE = 0.45  # share of active terms below which a sparse sum is faster on a CPU
_BLOCK = 32  # terms of lower precision that are summed in that precision
_LEAST = 1e-300  # smallest argument of a logarithm


class Downdate:
    """Rank-one terms of ``m`` trials on ``n`` points, none at first.

    Args:
        like: A tensor whose device is used, and whose dtype sums have.
        trials: ``m``.
        num_points: ``n``.
        tolerance: Weight below which a term is dropped.
        capacity: Initial number of slots; it grows to at most ``2 n``.
        dtype: The dtype of the terms; that of ``like`` if omitted.
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
        # The next slot, modulo T.
        self.count = torch.zeros(trials, dtype=torch.long, device=like.device)
        self._rows = torch.arange(trials, device=like.device)
        self._coarse: tuple[int, Tensor] | None = None  # step and terms of a sublattice
        self._whole: tuple[Downdate, slice] | None = None  # that this is a view of
        self._begin()

    def _begin(self) -> None:
        self._held = 0  # upper bound of the slots in use
        self._clock = 0.0  # log weight that a term of clock 0 has now
        self._births: deque[float] = deque(
            maxlen=self.num_slots
        )  # clock at each of the last T pushes

    @property
    def num_slots(self) -> int:
        """Number of slots of each trial's ring."""
        return self.terms.shape[1]

    @property
    def active(self) -> Tensor:
        """Which slots hold a term above the tolerance, shape ``(m, T)``."""
        return self.weights > self._tolerance

    def rows(self, rows: slice) -> "Downdate":
        """Return a read-only view of a slice of the trials, which shares memory."""
        view = copy.copy(self)
        view.terms, view.weights = self.terms[rows], self.weights[rows]
        view.count, view._rows = self.count[rows], self._rows[: len(view.terms)]
        view._coarse, view._whole = None, (self, rows)
        return view

    def map(self, fn: Callable[[Tensor], Tensor]) -> "Downdate":
        """Return a copy with all tensors moved or converted by ``fn``."""
        new = copy.copy(self)
        new.terms, new.weights = fn(self.terms), fn(self.weights)
        new.count, new._rows = fn(self.count), fn(self._rows)
        new._births = deque(self._births, maxlen=self._births.maxlen)
        new._coarse = new._whole = None
        return new

    def decay(self, factor: float | Tensor, most: float) -> None:
        """Multiply all weights by a factor, a number or ``(m, 1)``, with upper bound ``most``."""
        self.weights.mul_(factor)
        self._clock += math.log(max(most, _LEAST))

    def clear(self, mask: Tensor | None = None) -> None:
        """Drop the terms of all trials, or of those in ``mask``, shape ``(m,)``."""
        if mask is None:
            self.weights.zero_()
            self.count.zero_()
            self._begin()
            return
        self.weights.masked_fill_(mask.unsqueeze(-1), 0)
        self.count.masked_fill_(mask, 0)

    def push(self, shape: Tensor, querying: Tensor) -> None:
        """Add ``shape shape^T`` (``(m, n)``) with weight one in trials that query (``(m,)``)."""
        self._make_room(querying)
        rows, slot = self._rows, self.count % self.num_slots
        if not is_near(
            querying
        ):  # no synchronization: trials that do not query are rewritten unchanged
            shape = torch.where(
                querying.unsqueeze(-1), shape.to(self.terms), self.terms[rows, slot]
            )
            self.weights[rows, slot] = torch.where(querying, 1.0, self.weights[rows, slot])
        else:
            rows = querying.nonzero().squeeze(-1)
            shape, slot = shape[rows].to(self.terms), slot[rows]
            self.weights[rows, slot] = 1
        self.terms[rows, slot] = shape
        if self._coarse is not None:
            step, terms = self._coarse
            terms[rows, slot] = shape[:, ::step].to(terms)
        self.count += querying
        self._births.append(self._clock)
        # Another device would have to synchronize for the exact number of slots in use.
        most = int(self.count.max()) if is_near(self.count) else self._held + 1
        self._held = min(max(self._held, most), self.num_slots)

    def column(self, index: Tensor, querying: Tensor | None = None) -> Tensor:
        """Return ``V[:, index]`` for one point of each trial, ``(m,) -> (m, n)``.

        With ``querying``, rows of trials that do not query are undefined.
        """
        held = self._held
        terms, weights = self.terms[:, :held], self.weights[:, :held]
        if terms.dtype != weights.dtype:
            return self._sum_by_blocks(index)
        if querying is not None and is_near(querying):
            used = self.active[:, :held] & querying.unsqueeze(-1)
            if int(used.sum()) < _SPARSE * used.numel():
                return self._sparse_sum(used, index)
        picked = terms.gather(-1, index.view(-1, 1, 1).expand(-1, held, 1)).squeeze(-1)
        coefficient = (weights * picked).to(terms).unsqueeze(1)
        return torch.bmm(coefficient, terms).squeeze(1).to(weights)

    def _sum_by_blocks(self, index: Tensor) -> Tensor:
        """Return ``V[:, index]`` of terms of lower precision; only sums of a block have that precision.

        The sum of all terms is at most the prior covariance, so rounding single terms costs little, but
        long sums would lose digits.
        """
        total = self.weights.new_zeros(len(index), self.terms.shape[-1])
        picks = index.view(-1, 1, 1)
        for start in range(0, self._held, _BLOCK):
            block = slice(start, min(start + _BLOCK, self._held))
            terms = self.terms[:, block]
            picked = terms.gather(-1, picks.expand(-1, terms.shape[1], 1)).squeeze(-1)
            coefficient = (self.weights[:, block] * picked).to(terms).unsqueeze(1)
            total += torch.bmm(coefficient, terms).squeeze(1)
        return total

    def _sparse_sum(self, used: Tensor, index: Tensor) -> Tensor:
        """Return ``V[:, index]`` from the terms used (``(m, T)``), without reading any other."""
        n, (row, slot) = self.terms.shape[-1], used.nonzero().unbind(-1)
        place = row * self.num_slots + slot
        flat = self.terms.reshape(-1, n)
        picked = flat[place, index[row]]
        number = used.sum(-1)
        return torch.nn.functional.embedding_bag(
            place,
            flat,
            number.cumsum(-1) - number,
            mode="sum",
            per_sample_weights=(self.weights[row, slot] * picked).to(flat),
        ).to(self.weights)

    def at(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Return weights, ``(m, T, 1)``, and the terms' entries at points, ``(m, T, k)``.

        Args:
            index: Points, ``(m, k)``, or ``(k,)`` if shared by all trials.
        """
        held = self._held
        terms, weights = self.terms[:, :held], self.weights[:, :held, None]
        if index.dim() == 1:
            return weights, terms[..., index].to(weights)
        picks = index.unsqueeze(-2).expand(-1, held, -1)
        return weights, terms.gather(-1, picks).to(weights)

    def on_sublattice(self, step: int) -> tuple[Tensor, Tensor]:
        """Return weights, ``(m, T, 1)``, and the terms at every ``step``-th point, ``(m, T, c)``.

        Both are in single precision, and stale once a term is added.
        """
        held, weights = self._held, self.weights[:, : self._held, None].float()
        return weights, self._terms_on_sublattice(step)[:, :held]

    def _terms_on_sublattice(self, step: int) -> Tensor:
        if self._whole is not None:
            whole, rows = self._whole
            return whole._terms_on_sublattice(step)[rows]
        if self._coarse is None or self._coarse[0] != step:
            with torch.inference_mode(False):  # later terms are written outside of this mode, too
                coarse = self.terms[..., ::step].to(torch.float32, copy=True)
                self._coarse = step, coarse.contiguous()
        return self._coarse[1]

    def state(self) -> dict[str, Tensor]:
        """Return all that is needed to continue bit for bit."""
        return {"terms": self.terms, "weights": self.weights, "count": self.count}

    def load(self, state: dict[str, Tensor]) -> None:
        """Load a result of ``state``."""
        self.terms, self.weights = state["terms"].clone(), state["weights"].clone()
        self.count = state["count"].clone()
        self._coarse = None
        self._begin()
        self._held = min(int(self.count.max()), self.num_slots)
        # The state does not hold the ages.
        self._births.extend([self._clock] * self.num_slots)

    def _make_room(self, querying: Tensor) -> None:
        """Ensure that the next slot of each querying trial is free, or its weight below tolerance."""
        births = self._births
        if len(births) < self.num_slots:
            return
        if self._clock - births[0] < math.log(self._tolerance):
            return
        if is_near(querying):
            # Counts would not do: any number of queries may fall into one round.
            next_weight = self.weights[self._rows, self.count % self.num_slots]
            if not bool((querying & (next_weight > self._tolerance)).any()):
                return
        if self.num_slots < 2 * self.terms.shape[-1]:
            self._grow()
        else:
            self._compress()

    def _grow(self) -> None:
        slots, self._coarse = self.num_slots, None
        extra = min(slots // 4 + 16, 2 * self.terms.shape[-1] - slots)
        # A full ring is rotated so that its oldest term comes first.
        begin = torch.where(self.count >= slots, self.count % slots, 0).unsqueeze(-1)
        order = (begin + torch.arange(slots, device=begin.device)) % slots
        self.terms = self.terms.gather(1, order.unsqueeze(-1).expand_as(self.terms))
        self.weights = self.weights.gather(1, order)
        self.count.clamp_(max=slots)
        self.terms = torch.nn.functional.pad(self.terms, (0, 0, 0, extra))
        self.weights = torch.nn.functional.pad(self.weights, (0, extra))
        self._births = deque(self._births, maxlen=slots + extra)

    def _compress(self) -> None:
        self._coarse = None
        # R^T R = sum_i w_i v_i v_i^T is the same downdate in n terms of weight one.
        weighted = self.weights.sqrt().unsqueeze(-1) * self.terms
        triangle = torch.linalg.qr(weighted, mode="r").R
        number = triangle.shape[1]
        self.terms[:, :number], self.weights[:, :number] = triangle.to(self.terms), 1
        self.terms[:, number:], self.weights[:, number:] = 0, 0
        self.count.fill_(number)
        self._births.clear()
        self._births.extend([self._clock] * number)  # each new term includes the latest query
