"""Strengths of regularization and augmentation: weak at first, and stronger if that pays later.

A network that learns slowly may be regularized too strongly, and one that overfits only does so late. So
strong strengths are weakened at once if that is no worse, and switched off if that is no worse either:
all of them, or else one by one. Later the next stronger ones are compared again, unless they were clearly
worse.
"""

from collections.abc import Generator
from typing import Any, NamedTuple

from torch import Tensor

from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.trials import Side

_GIVEN, _MODERATE, _WEAK, _OFF = range(4)


class _Comparison(NamedTuple):
    """Strengths to compare with those in use."""

    rung: int
    columns: list[int]  # that take the values of the rung
    strengthens: bool = False


class _Outcome(NamedTuple):
    lead: float  # levels, of the other strengths
    is_taken: bool


_Comparisons = Generator[_Comparison, _Outcome, None]


class Strengths:
    """A ladder of strengths: as given, moderate, weak, off; one rung is in use, one may be compared.

    Args:
        given: Encoded first configuration, shape ``(d,)``.
        weaker: The same with moderate, weak and no strengths; empty if none is strong.
    """

    def __init__(self, given: Tensor, weaker: list[Tensor]) -> None:
        self._rungs = [given, *weaker]
        # Columns that are on the rung in use; those that are switched off alone leave.
        self._columns = (self._rungs[-1] != given).nonzero().flatten().tolist()
        self._rung = _GIVEN
        self._lead = 0.0  # of the next stronger rung, last seen
        self._comparisons: _Comparisons | None = self._weaker() if weaker else None
        self._next = next(self._comparisons) if self._comparisons else None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy or a pickle; it tells what is in use, and a replay goes on."""
        return {**vars(self), "_comparisons": None}

    @property
    def is_due(self) -> bool:
        """Whether a comparison is due."""
        return self._next is not None

    @property
    def strengthens(self) -> bool:
        """Whether it is one with stronger strengths."""
        return self._next is not None and self._next.strengthens

    def renew(self) -> None:
        """Make a comparison with the next stronger rung due, unless it was clearly worse."""
        if self._rung > _GIVEN and self._lead > -CONSTANTS.level_noise:
            self._comparisons = self._stronger()
            self._next = next(self._comparisons)

    def put_off(self) -> None:
        """Compare nothing until the next renewal."""
        self._next = None

    def other(self, point: Tensor) -> Tensor:
        """Return a configuration with the strengths to compare."""
        assert self._next is not None
        other, columns = point.clone(), self._next.columns
        other[columns] = self._rungs[self._next.rung][columns]
        return other

    def is_better(self, trial: Side, incumbent: Side) -> bool:
        """Return whether the other strengths are better; weaker ones win ties."""
        noise = CONSTANTS.level_noise
        return trial.lead_over(incumbent) > (noise if self.strengthens else -noise)

    def decide(self, trial: Side, incumbent: Side, *, is_taken: bool) -> None:
        """Note how a comparison came out, and make the next one due, if any."""
        assert self._comparisons is not None
        try:
            self._next = self._comparisons.send(_Outcome(trial.lead_over(incumbent), is_taken))
        except StopIteration:
            self._next = None

    def _weaker(self) -> _Comparisons:
        """Compare weak strengths, and moderate ones if they are worse; then none, or none one by one."""
        weak = yield _Comparison(_WEAK, self._columns)
        if not weak.is_taken:
            self._use(_MODERATE, (yield _Comparison(_MODERATE, self._columns)))
            return
        self._rung = _WEAK
        off = yield _Comparison(_OFF, self._columns)
        self._use(_OFF, off)
        if off.is_taken or len(self._columns) == 1:
            return
        for column in list(self._columns):
            alone = yield _Comparison(_OFF, [column])
            if alone.is_taken:
                self._columns.remove(column)

    def _use(self, rung: int, outcome: _Outcome) -> None:
        """Use the next weaker rung if it is taken."""
        if outcome.is_taken:
            self._rung, self._lead = rung, -outcome.lead

    def _stronger(self) -> _Comparisons:
        rung = self._rung - 1
        outcome = yield _Comparison(rung, self._columns, strengthens=True)
        self._lead = outcome.lead
        if outcome.is_taken:
            self._rung, self._lead = rung, 0.0
