"""A tuner that all ranks of a distributed run share: rank 0 decides."""

import io
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Generic, TypeVar

import torch

from botorch_costly import errors
from botorch_costly.ask_tell.around import Around
from botorch_costly.ask_tell.protocol import AskTell, check_asked
from botorch_costly.ask_tell.serial import Serial
from botorch_costly.errors import (
    CostlyError,
    RankError,
    StateMismatchError,
    check,
    check_nonnegative,
    shown,
)
from botorch_costly.integrations.ranks import Ranks
from botorch_costly.plain import Plain, as_number, listed
from botorch_costly.records import Decision, FrozenConfig
from botorch_costly.space import SearchSpace

D = TypeVar("D", bound=Decision)


class SharedTuner(Serial, Generic[D]):
    """The tuner of rank 0, which decides for all ranks of a distributed run.

    All ranks build the tuner and call ``ask`` and ``mean`` in the same order. Rank 0 asks its tuner and
    sends the decision to the others, whose tuners are not used. A run that is not distributed is one
    of a single rank.

    The state is that of rank 0, and fits any number of ranks: a run may be resumed with another one.

    Args:
        tuner: An ``OnlineTuner``, or any other optimizer of the package.
        timeout: Seconds after which a rank that does not come is lost.

    Raises:
        InvalidArgumentError: If the tuner cannot be asked, or the timeout is not positive.

    Example:
        >>> import botorch_costly as bc
        >>> tuner = bc.OnlineTuner(bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)}), horizon=3)
        >>> shared = SharedTuner(tuner)
        >>> decision = shared.ask()
        >>> if decision.query:
        ...     shared.tell(decision, shared.mean(0.5, weight=128))
    """

    def __init__(self, tuner: AskTell[D], *, timeout: float = 60.0) -> None:
        check_asked(tuner)
        self.tuner, self.ranks = tuner, Ranks(timeout)
        self._asked = self._met = 0
        self._undelivered: D | None = None

    @property
    def space(self) -> SearchSpace:
        """What is tuned."""
        return self.tuner.space

    @property
    def asked(self) -> int:
        """How many decisions all ranks have received."""
        return self._asked

    def ask(self) -> D:
        """Return the next decision, the same one on all ranks.

        Raises:
            HorizonExceededError: On all ranks, if the tuner of rank 0 has no further round.
            RankError: If the ranks disagree on where they are, one is lost, or the tuner of rank 0
                raised what only rank 0 knows. A decision that did not arrive is the next one again,
                also after its state was saved and loaded.
        """
        self.ranks.meet("ask", self._asked)
        message, failure = self._decided() if self.ranks.is_first else (None, None)
        received = json.loads(self.ranks.receive(message, "ask", self._asked))
        if failure is not None:
            raise failure
        decision = _decision(received)
        self._undelivered = None
        self._asked += 1
        return decision

    def take_back(self, decision: D) -> None:
        """Make the decision that ``ask`` returned the next one again, for nothing has come of it.

        Args:
            decision: The last one; all ranks take it back.
        """
        if self.ranks.is_first:
            self._undelivered = decision
        self._asked -= 1

    def tell(self, decision: D, *outcome: Any, **details: Any) -> None:
        """Tell the tuner of rank 0; on other ranks nothing happens.

        Args:
            decision: What ``ask`` returned.
            *outcome: What the tuner is told, such as a reward of the ``mean`` metric of all ranks, a list
                of metrics, or a curve.
            **details: The tuner's own, such as ``seconds`` or ``cost``.
        """
        if self.ranks.is_first:
            self.tuner.tell(decision, *outcome, **details)

    def mean(self, metric: float, *, weight: float = 1.0) -> float:
        """Return the mean of a metric over all ranks, the same to the last bit on each.

        Args:
            metric: Of this rank.
            weight: How much it counts, such as the number of examples it is the mean of.

        Raises:
            InvalidArgumentError: If the metric is no number, the weight is negative, or there is no
                weight at all.
            RankError: As ``ask``.
        """
        weight = check_nonnegative("weight", weight)
        said = self._meet("mean", as_number("metric", metric), weight)
        total = sum(one.weight for one in said)
        check(total > 0, "weight", "a positive weight on one rank at least", total)
        # In the order of the ranks: the sum is the same everywhere.
        return sum(one.value * one.weight for one in said if one.weight > 0) / total

    def best(self) -> Mapping[str, Plain] | None:
        """Return the incumbent of rank 0 on all ranks; None if its tuner has none.

        Raises:
            RankError: As ``ask``.
        """
        self._meet("incumbent", 0.0, 1.0)
        best = self.tuner.best() if self.ranks.is_first else None
        said = None if best is None else {name: listed(value) for name, value in best.items()}
        received = json.loads(self.ranks.receive(json.dumps(said).encode(), "incumbent"))
        return None if received is None else FrozenConfig.from_json(received)

    def agree(self, value: float) -> float:
        """Return the number of rank 0 on all ranks.

        Raises:
            RankError: As ``ask``.
        """
        return self._meet("agree", value, 1.0)[0].value

    def gather(self, state: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return what each rank gives, in their order, on all ranks.

        Args:
            state: Of this rank: tensors and plain values.

        Raises:
            RankError: As ``ask``.
        """
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        messages = self.ranks.gather(buffer.getvalue(), "state", self._met)
        self._met += 1
        return [torch.load(io.BytesIO(message), weights_only=True) for message in messages]

    def state_dict(self) -> dict[str, Any]:
        """Return the state: on rank 0 with its tuner's. No rank waits for another."""
        tuner = self.tuner.state_dict() if self.ranks.is_first else None
        delivered = self._undelivered is None
        return {"tuner": tuner, "asked": self._asked, "delivered": delivered}

    @property
    def changeable(self) -> frozenset[str]:
        """Names of the options of the tuner that may change when a run is continued."""
        return self.tuner.changeable

    def load_state_dict(self, state: Mapping[str, Any], *, changed: Collection[str] = ()) -> None:
        """Continue from the state of rank 0, which all ranks load.

        Args:
            state: A ``state_dict`` of rank 0.
            changed: Options of the tuner that may differ from those of then, such as ``horizon``.

        Raises:
            StateMismatchError: If it is none, that of another rank, or one that the tuner refuses; the
                shared tuner is unchanged.
        """
        known = isinstance(state, Mapping) and {"tuner", "asked", "delivered"} <= set(state)
        check(known, "state", "a state_dict of SharedTuner", state, StateMismatchError)
        asked, delivered = state["asked"], state["delivered"]
        counted = isinstance(asked, int) and asked >= 0 and isinstance(delivered, bool)
        expected = "a number of decisions that were asked for, and whether the last one arrived"
        check(counted, "state", expected, (asked, delivered), StateMismatchError)
        if self.ranks.is_first:
            mine = state["tuner"] is not None
            check(mine, "state", "the state of rank 0", "another rank's", StateMismatchError)
            given = {"changed": tuple(changed)} if changed else {}
            self.tuner.load_state_dict(state["tuner"], **given)
            self._undelivered = None if state["delivered"] else self.tuner.decisions[-1]
        self._asked, self._met = state["asked"], 0

    def flush(self) -> None:
        """Log the last round on rank 0, if its tuner has loggers, which stay open."""
        if self.ranks.is_first and isinstance(self.tuner, Around):
            self.tuner.flush()

    def close(self) -> None:
        """Log the last round on rank 0 and close its loggers, if its tuner has any."""
        if self.ranks.is_first and isinstance(self.tuner, Around):
            self.tuner.close()

    def checkpoint(self) -> "SharedCheckpoint":
        """Return what ``torch.distributed.checkpoint`` saves and loads on all ranks together."""
        return SharedCheckpoint(self)

    def _meet(self, place: str, value: float, weight: float) -> list[Any]:
        said = self.ranks.meet(place, self._met, value, weight)
        self._met += 1
        return said

    def _decided(self) -> tuple[bytes, BaseException | None]:
        """Return the message of rank 0: a decision, or what the tuner raised."""
        try:
            if self._undelivered is None:
                self._undelivered = self.tuner.ask()
        except Exception as error:
            return json.dumps({"error": _told(error)}).encode(), error
        decision = self._undelivered
        kind = type(decision).__name__
        return json.dumps({"kind": kind, "values": decision.to_dict()}).encode(), None


class SharedCheckpoint:
    """The state of a shared tuner as one object of bytes, the same on all ranks.

    ``torch.distributed.checkpoint`` loads tensors in place, and so none that has grown; a history grows.

    Args:
        shared: Whose state it is.

    Example::

        state = {"model": model_state, "tuner": shared.checkpoint()}
        torch.distributed.checkpoint.save(state, checkpoint_id="checkpoint")
    """

    def __init__(self, shared: "SharedTuner[Any]") -> None:
        self._shared = shared

    def state_dict(self) -> dict[str, Any]:
        """Return the state of rank 0; all ranks call it together."""
        ranks, buffer = self._shared.ranks, io.BytesIO()
        self._shared._meet("state", 0.0, 0.0)
        if ranks.is_first:
            torch.save(self._shared.state_dict(), buffer)
        return {"state": ranks.receive(buffer.getvalue(), "state")}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``, with any number of ranks.

        Raises:
            StateMismatchError: As ``SharedTuner.load_state_dict``.
        """
        buffer = io.BytesIO(state["state"])
        self._shared.load_state_dict(torch.load(buffer, weights_only=True))


def _told(error: Exception) -> dict[str, Any]:
    if isinstance(error, CostlyError):
        received = (
            error.received if isinstance(error.received, int | str) else shown(error.received)
        )
        said = {"name": error.name, "expected": error.expected, "received": received}
        return {"kind": type(error).__name__, **said}
    return {
        "kind": "RankError",
        "name": "rank 0",
        "expected": "a decision",
        "received": shown(error),
    }


def _decision(received: Mapping[str, Any]) -> Any:
    """Return the decision in a message; raise what rank 0 raised."""
    if "error" in received:
        said = received["error"]
        kind = getattr(errors, said["kind"], RankError)
        raise kind(said["name"], said["expected"], said["received"])
    kinds = {kind.__name__: kind for kind in _kinds(Decision)}
    named = received["kind"]
    expected = f"a tuner as on rank 0, whose decisions are {named} records"
    check(named in kinds, "ask", expected, sorted(kinds), RankError)
    return kinds[named].from_dict(received["values"])


def _kinds(kind: type[Decision]) -> Iterator[type[Decision]]:
    """Iterate over the records of decisions, those that a user derives among them."""
    yield kind
    for derived in kind.__subclasses__():
        yield from _kinds(derived)
