"""A run in a trainer that goes back: a session of twins, on all ranks alike."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botorch_costly.ask_tell.around import Around
from botorch_costly.ask_tell.generators import global_generators
from botorch_costly.errors import InvalidArgumentError, StateMismatchError, check
from botorch_costly.integrations.distributed import SharedTuner
from botorch_costly.integrations.other_ranks import ObeyingRank, OtherRanks
from botorch_costly.integrations.parts import inner_network
from botorch_costly.integrations.training import Trained, TrainerOptions
from botorch_costly.records import Decision, TwinDecision
from botorch_costly.states import check_states_of, kinds_of
from botorch_costly.tuners.twins import Session, TwinTuner
from botorch_costly.tuners.twins.left_open import end_elsewhere
from botorch_costly.tuners.twins.parts import Component

_logger = logging.getLogger(__name__)
_KEYS = {"parts", "ranks", "restores"}
_Kept = tuple[int, list[Any], Any]  # label that ranks share, states of the parts, generators


def twin_tuner_of(tuner: object) -> TwinTuner | None:
    """Return the ``TwinTuner`` within loggers and the like; None if there is none.

    Raises:
        InvalidArgumentError: If it has a session already, which knows nothing of the trainer.
    """
    inner = tuner
    while isinstance(inner, Around):
        expected = (
            "a TwinTuner without a session: the callback makes one of all that training changes"
        )
        check(not isinstance(inner, Session), "tuner", expected, inner)
        inner = inner.tuner
    return inner if isinstance(inner, TwinTuner) else None


def check_twins(tuner: TwinTuner, options: TrainerOptions) -> None:
    """Raise unless options of a trainer suit twins.

    Raises:
        InvalidArgumentError: If the kind of the metric is another one than that of the tuner, or rounds
            have a length in seconds.
    """
    expected = "steps or epochs, because twins are compared after equal numbers of steps"
    check(options.length.seconds is None, "length", expected, options.length)
    if options.metric != "loss" and not tuner.maximize:
        expected = "the kind that the tuner has: TwinTuner(.., metric='accuracy')"
        raise InvalidArgumentError("metric", expected, options.metric)


@contextmanager
def _asked_through(shared: SharedTuner[Any], session: Session) -> Iterator[None]:
    """Put a session around the ``TwinTuner`` within loggers and the like, for a block."""
    outer: Any = shared
    while isinstance(outer.tuner, Around):
        outer = outer.tuner
    outer.tuner = session
    try:
        yield
    finally:
        outer.tuner = session.tuner


class TwinRun:
    """The session of a run: states are kept and restored on all ranks as the tuner of rank 0 decides.

    Its parts are the network without wrappers, optimizer, schedulers, further parts and the data. Rank 0
    has the session, in which the other ranks are one more part.

    Args:
        shared: The tuner of all ranks.
        trained: The objects that training changes.
        options: Options of the tuner in the trainer; the guard has no effect.

    Raises:
        InvalidArgumentError: If a part has no state.
    """

    def __init__(self, shared: SharedTuner[Any], trained: Trained, options: TrainerOptions) -> None:
        self._shared, self._data, self._device = shared, trained.data, options.device
        own: list[Component] = [inner_network(trained.network), trained.optimizer]
        self._parts = [*own, *trained.schedulers, *trained.parts, *trained.data]
        self._session: Session | None = None  # on rank 0
        self._others: OtherRanks | None = None  # on rank 0, if there are others
        self._obeying: ObeyingRank | None = None  # on the other ranks
        self._loaded: tuple[dict[int, _Kept], Mapping[str, Any] | None] | None = None
        self._optimizer, self._is_told = trained.optimizer, False
        self.restores = 0

    def begin(self) -> None:
        """Begin, with the states of a loaded run if there is one, whose tuner has been loaded."""
        ranks, tuner = self._shared.ranks, twin_tuner_of(self._shared.tuner)
        if ranks.is_first and tuner is not None:
            self._others = OtherRanks(ranks) if ranks.count > 1 else None
            others: list[Component] = [] if self._others is None else [self._others]
            self._session = Session.of(tuner, *others, *self._parts, device=self._device)
            end_elsewhere(self._session)
        else:
            self._obeying = ObeyingRank(ranks, self._parts, self._device)
            self._shared.obeys = self._obeying.obey
        if self._loaded is not None:
            self._take_up(*self._loaded)
            self._loaded = None

    @property
    def mends(self) -> bool:
        """Whether a network that diverged in a trial goes back."""
        return self._session is None or not self._session.tuner.is_settled

    def ask(self, accumulates: bool) -> Decision:
        """Return the next decision, the same one on all ranks, which are in its first state.

        Args:
            accumulates: Whether the latest batch ended without a step of the optimizer. Gradients that
                another configuration has accumulated are dropped, so that twins start alike.

        Raises:
            RestoreError: On all ranks, if a part fails to load an earlier state; no part has changed.
        """
        if self._session is None:
            decision: Decision = self._shared.ask()
        else:
            with _asked_through(self._shared, self._session):
                decision = self._shared.ask()
        if isinstance(decision, TwinDecision):
            self.restores += decision.restore is not None
            if accumulates and (decision.keep, decision.restore) != (None, None):
                self._drop_gradients()
        return decision

    def _drop_gradients(self) -> None:
        if not self._is_told and self._session is not None:
            self._is_told = True
            _logger.warning(
                "A round ends between two steps of the optimizer: the gradients accumulated before a "
                "trial are dropped. Choose a length= that ends with a step."
            )
        self._optimizer.zero_grad()

    def tell(self, decision: Decision, mean: float, **details: float) -> None:
        """Tell the metric itself: twins are compared by their levels."""
        self._shared.tell(decision, mean, **details)

    def finish(self, *, alone: bool = False) -> None:
        """Bring the parts into the state of the incumbent; the tuner does not go back again.

        Args:
            alone: Whether the other ranks do not take part, such as after an exception.

        Raises:
            RestoreError: If the state of the incumbent is not held, or a part failed to load it.
        """
        session, others = self._session, self._others
        call = (lambda: None) if session is None else session.finish
        if not alone:
            self._shared.lead(call)
        else:
            if others is not None:
                others.is_muted = True
            call()
        for batches in self._data:
            batches.drop_all_but([])

    # -- the state --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the state without the other ranks, beside that of the tuner, which has kept states."""
        ranks = [self._own()] if self._shared.ranks.count == 1 else None
        return self._named(ranks)

    def gathered_state_dict(self) -> dict[str, Any]:
        """Return the state with that of the other ranks; all ranks call it together."""
        return self._named(self._shared.gather(self._own()))

    def _named(self, ranks: list[dict[str, Any]] | None) -> dict[str, Any]:
        state = {"parts": kinds_of(self._parts), "ranks": ranks, "restores": self.restores}
        return {"reward": None, "twins": state}

    def _own(self) -> dict[str, Any]:
        """Return the state of this rank that another rank does not have: data and generators."""
        count, held = len(self._data), {}
        rows = {} if self._obeying is None else self._obeying.held
        for label, (states, generators) in rows.items():
            held[label] = {"data": states[len(states) - count :], "generators": generators}
        return {"data": [batches.state_dict() for batches in self._data], "held": held}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Check the state of a driver, to continue from it at ``begin``.

        With another number of ranks, networks and optimizers can still go back, but the data and the
        generators of an earlier state stay where they are, because a rank reads other data.

        Raises:
            StateMismatchError: If the state is damaged, or of other parts.
        """
        ranks = self._shared.ranks
        twins: Any = state.get("twins")
        whole = isinstance(twins, Mapping) and set(twins) == _KEYS
        check(whole, "state", "the state of a run with twins", twins, StateMismatchError)
        saved = twins["ranks"]
        tuner = state["shared"]["tuner"]
        kept = _kept_in(tuner.get("kept", {}) if isinstance(tuner, Mapping) else {})
        check_states_of(self._parts, [row[1] for row in kept.values()], twins["parts"])
        is_same = isinstance(saved, list) and len(saved) == ranks.count
        own = saved[ranks.rank] if is_same else None
        if own is None and ranks.is_first:
            _logger.warning(
                "The run goes on with another number of ranks, which read other data: going back to a "
                "state of before restores neither the data nor the generators."
            )
        self._loaded, self.restores = (kept, own), twins["restores"]

    def _take_up(self, kept: Mapping[int, _Kept], own: Mapping[str, Any] | None) -> None:
        """Hold the kept states of a saved run on this rank."""
        if own is not None:
            for batches, now in zip(self._data, own["data"], strict=True):
                batches.load_state_dict(now)
        count = len(self._parts) - len(self._data)
        data = [batches.state_dict() for batches in self._data]
        for number, (label, states, generators) in kept.items():
            row = [states, generators]
            if own is None:
                row = [[*states[:count], *data], global_generators()]
            elif self._obeying is not None and own is not None:
                ours = own["held"][label]
                row = [[*states[:count], *ours["data"]], ours["generators"]]
            if self._obeying is not None:
                self._obeying.held[label] = row
            elif self._session is not None:
                others = [] if self._others is None else [{"number": label}]
                self._session.tuner.kept[number] = [[*others, *row[0]], row[1]]
        if self._others is not None:
            self._others.number = 1 + max((row[0] for row in kept.values()), default=-1)


def _kept_in(kept: Mapping[int, Any]) -> dict[int, _Kept]:
    """Return the kept states of a tuner by number."""
    rows: dict[int, _Kept] = {}
    for number, pair in kept.items():
        whole = isinstance(pair, list | tuple) and len(pair) == 2
        check(whole, "state: kept", "states of parts and generators", pair, StateMismatchError)
        states, generators = pair
        first: Any = states[0] if states else None
        has_number = isinstance(first, Mapping) and set(first) == {"number"}
        has_number = has_number and isinstance(first["number"], int)
        label = first["number"] if has_number else int(number)
        rows[int(number)] = (label, list(states[1:] if has_number else states), generators)
    return rows
