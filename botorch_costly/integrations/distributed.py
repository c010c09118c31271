"""A tuner that all ranks of a distributed run share, with the decisions of rank 0."""

import io
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Generic, NoReturn, TypeVar, cast

import torch

from botorch_costly import errors
from botorch_costly.ask_tell.around import Around
from botorch_costly.ask_tell.protocol import AskTell, check_asked
from botorch_costly.ask_tell.serial import Serial
from botorch_costly.calls import advised
from botorch_costly.errors import (
    CostlyError,
    RankError,
    StateMismatchError,
    check,
    check_nonnegative,
    shown,
)
from botorch_costly.integrations.ranks import Ranks, weighted_mean
from botorch_costly.plain import Plain, as_number, listed
from botorch_costly.records import Decision, FrozenConfig
from botorch_costly.space import SearchSpace
from botorch_costly.states import read_plain

D = TypeVar("D", bound=Decision)


class SharedTuner(Serial, Generic[D]):
    """The tuner of rank 0, which decides for all ranks of a distributed run.

    All ranks construct the tuner and call ``ask`` and ``mean`` in the same order. Rank 0 asks its tuner
    and sends the decision to the other ranks, whose tuners are not used. A run that is not distributed
    has a single rank.

    The state is the state of rank 0, so a run may be resumed with another number of ranks.

    Args:
        tuner: An ``OnlineTuner``, or any other optimizer of the package.
        timeout: Seconds after which a missing rank is lost.

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

    @advised
    def __init__(self, tuner: AskTell[D], *, timeout: float = 60.0) -> None:
        check_asked(tuner)
        self.tuner, self.ranks = tuner, Ranks(timeout)
        self._asked = self._met = 0
        self._undelivered: D | None = None
        # Carries out the commands of rank 0 that come before its message, on the other ranks.
        self.obeys: Callable[[Mapping[str, Any]], None] | None = None

    @property
    def space(self) -> SearchSpace:
        """Search space of the tuner."""
        return self.tuner.space

    @property
    def asked(self) -> int:
        """Number of decisions that all ranks have received."""
        return self._asked

    def ask(self) -> D:
        """Return the next decision, the same one on all ranks.

        Raises:
            HorizonExceededError: On all ranks, if the tuner of rank 0 has no further round.
            RankError: If the ranks are at different places, one is lost, or the tuner of rank 0 raised
                an error of another kind. A decision that did not arrive is returned again by the next
                call, also after its state was saved and loaded.
        """
        return self._received("ask", None)

    def enqueue(self, config: Mapping[str, Plain], *args: Any, **options: Any) -> D:
        """Enter a decision of your own on all ranks; see the tuner's ``enqueue``.

        Raises:
            CostlyError: On all ranks, if the tuner of rank 0 refuses it.
            RankError: If the ranks are at different places, or one is lost.
        """
        return self._received("enqueue", lambda: self.tuner.enqueue(config, *args, **options))

    def cancel(self, decision: D) -> None:
        """Cancel a decision of the tuner of rank 0; other ranks do nothing."""
        if self.ranks.is_first:
            self.tuner.cancel(decision)

    def _received(self, place: str, call: Callable[[], D] | None) -> D:
        """Return a decision that rank 0 makes, by a call or by ``ask``, on all ranks."""
        self.ranks.meet(place, self._asked)
        failure = self._decide(call) if self.ranks.is_first else None
        if self.ranks.count == 1:
            if failure is not None:
                raise failure
            decision = cast(D, self._undelivered)
        else:
            received = self._heard(self._message(failure), place)
            if failure is not None:
                raise failure
            decision = _decision(received)
        self._undelivered = None
        self._asked += 1
        return decision

    def _heard(self, message: bytes | None, place: str) -> dict[str, Any]:
        """Return the message of rank 0; other ranks carry out its commands until it comes."""
        while True:
            received = json.loads(self.ranks.receive(message, place, self._asked))
            if self.obeys is None or "command" not in received:
                return received
            self.obeys(received)

    def lead(self, call: Callable[[], object]) -> None:
        """Make a call on rank 0, whose commands the other ranks carry out meanwhile; all ranks come.

        Raises:
            CostlyError: On all ranks, if the call raises.
            RankError: If the ranks are at different places, or one is lost.
        """
        self._meet("incumbent", 0.0, 1.0)
        message, failure = None, None
        if self.ranks.is_first:
            try:
                call()
                message = json.dumps({"done": True}).encode()
            except Exception as error:
                message, failure = json.dumps({"error": _fields(error)}).encode(), error
        received = self._heard(message, "incumbent")
        if failure is not None:
            raise failure
        if "error" in received:
            _raise(received["error"])

    def take_back(self, decision: D) -> None:
        """Make the next ``ask`` return a decision again, because it was not used.

        Args:
            decision: The last decision; all ranks take it back.
        """
        if self.ranks.is_first:
            self._undelivered = decision
        self._asked -= 1

    def tell(self, decision: D, *outcome: Any, **details: Any) -> None:
        """Tell the tuner of rank 0; other ranks do nothing.

        Args:
            decision: A decision of ``ask``.
            *outcome: Positional arguments of the tuner's ``tell``, such as a reward of the ``mean``
                metric of all ranks, a list of metrics, or a curve.
            **details: Keyword arguments of the tuner's ``tell``, such as ``seconds`` or ``cost``.
        """
        if self.ranks.is_first:
            self.tuner.tell(decision, *outcome, **details)

    def mean(self, metric: float, *, weight: float = 1.0) -> float:
        """Return the mean of a metric over all ranks, the same to the last bit on each.

        Args:
            metric: Metric of this rank.
            weight: Weight of the metric, such as the number of examples in it.

        Raises:
            InvalidArgumentError: If the metric is no number, the weight is negative, or no weight is
                positive.
            RankError: If the ranks are at different places, or one is lost.
        """
        weight = check_nonnegative("weight", weight)
        reports = self._meet("mean", as_number("metric", metric), weight)
        total = sum(report.weight for report in reports)
        check(total > 0, "weight", "a positive weight on one rank at least", total)
        return weighted_mean(reports)

    def best(self) -> Mapping[str, Plain] | None:
        """Return the incumbent of rank 0 on all ranks; None if its tuner has none.

        Raises:
            RankError: If the ranks are at different places, or one is lost.
        """
        self._meet("incumbent", 0.0, 1.0)
        best = self.tuner.best() if self.ranks.is_first else None
        values = None if best is None else {name: listed(value) for name, value in best.items()}
        received = json.loads(self.ranks.receive(json.dumps(values).encode(), "incumbent"))
        return None if received is None else FrozenConfig.from_json(received)

    def agree(self, value: float) -> float:
        """Return the number of rank 0 on all ranks.

        Raises:
            RankError: If the ranks are at different places, or one is lost.
        """
        return self._meet("agree", value, 1.0)[0].value

    def gather(self, state: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the states of all ranks, in their order, on all ranks.

        Args:
            state: State of this rank, in tensors and plain values.

        Raises:
            RankError: If the ranks are at different places, or one is lost.
        """
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        messages = self.ranks.gather(buffer.getvalue(), "state", self._met)
        self._met += 1
        return [read_plain(io.BytesIO(message)) for message in messages]

    def state_dict(self) -> dict[str, Any]:
        """Return the state, on rank 0 with the tuner's state. No rank waits for another."""
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
            changed: Options of the tuner that may differ from those in the state, such as ``horizon``.

        Raises:
            StateMismatchError: If the state is damaged, belongs to another rank, or is refused by the
                tuner; the shared tuner is unchanged.
        """
        is_valid = isinstance(state, Mapping) and {"tuner", "asked", "delivered"} <= set(state)
        check(is_valid, "state", "a state_dict of SharedTuner", state, StateMismatchError)
        asked, delivered = state["asked"], state["delivered"]
        is_valid = isinstance(asked, int) and asked >= 0 and isinstance(delivered, bool)
        expected = "the number of decisions asked for, and whether the last decision arrived"
        check(is_valid, "state", expected, (asked, delivered), StateMismatchError)
        if self.ranks.is_first:
            has_tuner = state["tuner"] is not None
            check(has_tuner, "state", "the state of rank 0", "another rank's", StateMismatchError)
            options = {"changed": tuple(changed)} if changed else {}
            self.tuner.load_state_dict(state["tuner"], **options)
            self._undelivered = None if delivered else self.tuner.decisions[-1]
        self._asked, self._met = asked, 0

    def flush(self) -> None:
        """Log the last round on rank 0, if its tuner has loggers; they stay open."""
        if self.ranks.is_first and isinstance(self.tuner, Around):
            self.tuner.flush()

    def close(self) -> None:
        """Log the last round on rank 0 and close its loggers, if its tuner has any."""
        if self.ranks.is_first and isinstance(self.tuner, Around):
            self.tuner.close()

    def checkpoint(self) -> "SharedCheckpoint":
        """Return the object that ``torch.distributed.checkpoint`` saves and loads on all ranks."""
        return SharedCheckpoint(self)

    def _meet(self, place: str, value: float, weight: float) -> list[Any]:
        reports = self.ranks.meet(place, self._met, value, weight)
        self._met += 1
        return reports

    def _decide(self, call: Callable[[], D] | None) -> Exception | None:
        """Make the decision of rank 0; return an error of the tuner."""
        try:
            if call is not None:
                self._undelivered = call()
            elif self._undelivered is None:
                self._undelivered = self.tuner.ask()
        except Exception as error:
            return error
        return None

    def _message(self, failure: Exception | None) -> bytes | None:
        """Return the message of rank 0, the decision or an error; None on other ranks."""
        if failure is not None:
            return json.dumps({"error": _fields(failure)}).encode()
        decision = self._undelivered
        if decision is None:
            return None
        kind = type(decision).__name__
        return json.dumps({"kind": kind, "values": decision.to_dict()}).encode()


class SharedCheckpoint:
    """The state of a shared tuner as one object of bytes, the same on all ranks.

    ``torch.distributed.checkpoint`` loads tensors in place, which fails for a history that has grown.

    Args:
        shared: The shared tuner.

    Example::

        state = {"model": model_state, "tuner": shared.checkpoint()}
        torch.distributed.checkpoint.save(state, checkpoint_id="checkpoint")
    """

    @advised
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
            StateMismatchError: If the state is damaged, or the tuner refuses it.
        """
        buffer = io.BytesIO(state["state"])
        self._shared.load_state_dict(read_plain(buffer))


def _fields(error: Exception) -> dict[str, Any]:
    """Return class name and arguments of the error to raise on other ranks."""
    if not isinstance(error, CostlyError):
        error = RankError("rank 0", "a decision", shown(error))
    received = error.received if isinstance(error.received, int | str) else shown(error.received)
    kind = type(error).__name__
    return {"kind": kind, "name": error.name, "expected": error.expected, "received": received}


def _raise(fields: Mapping[str, Any]) -> NoReturn:
    """Raise the error of rank 0."""
    named = dict(fields)
    raise getattr(errors, named.pop("kind"), RankError)(**named)


def _decision(received: Mapping[str, Any]) -> Any:
    """Return the decision in a message, or raise the error in it."""
    if "error" in received:
        _raise(received["error"])
    kinds = {kind.__name__: kind for kind in _kinds(Decision)}
    name = received["kind"]
    expected = f"a tuner as on rank 0, whose decisions are {name} records"
    check(name in kinds, "ask", expected, sorted(kinds), RankError)
    return kinds[name].from_dict(received["values"])


def _kinds(kind: type[Decision]) -> Iterator[type[Decision]]:
    """Iterate over the classes of decisions, including those that a user has derived."""
    yield kind
    for derived in kind.__subclasses__():
        yield from _kinds(derived)
