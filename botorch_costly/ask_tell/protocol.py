"""Protocols of optimizers, of their suggestions and outcomes."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, Self, TypeVar, runtime_checkable

from torch import Tensor

from botorch_costly.errors import check
from botorch_costly.parameters import Plain
from botorch_costly.space import SearchSpace
from botorch_costly.states import Stateful

# An optimizer is told the gain of a round, a metric as it was measured, the value of a configuration, or
# its learning curve.
Tells = Literal["gain", "metric", "value", "curve"]


class Suggestion(Protocol):
    """A suggestion of ``ask``: a frozen record of plain values."""

    @property
    def id(self) -> int:
        """Number of the suggestion, from 0 in the order of asking."""

    @property
    def config(self) -> Mapping[str, Plain]:
        """Configuration to train with."""

    @property
    def query(self) -> bool:
        """Whether its outcome is paid for."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in plain values that JSON keeps."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild the record from ``to_dict``."""


class Outcome(Protocol):
    """An outcome that ``tell`` records: a frozen record of plain values."""

    @property
    def id(self) -> int:
        """Number of the suggestion that it belongs to."""

    @property
    def reward(self) -> float | None:
        """The finite value that was told; None if there was none."""

    @property
    def failed(self) -> bool:
        """Whether the query found no finite value."""

    @property
    def price(self) -> float:
        """Cost of the outcome; 0 if it is not known."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in plain values that JSON keeps."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild the record from ``to_dict``."""


@runtime_checkable
class Extendable(Stateful, Protocol):
    """An object that can continue from a state although some of its options have changed."""

    @property
    def changeable(self) -> frozenset[str]:
        """Names of the options that ``changed`` may name."""

    def load_state_dict(self, state: Any, *, changed: tuple[str, ...] | list[str] = ()) -> Any:
        """Continue from the state; the named options may differ from the saved ones."""


S = TypeVar("S", bound=Suggestion)


@runtime_checkable
class AskTell(Extendable, Protocol[S]):
    """An optimizer that is asked for suggestions and told their outcomes, with its declared capabilities.

    The arguments of ``tell`` after the suggestion are the optimizer's own. In every optimizer a
    suggestion may be told late, in any order, or never; an interrupted or refused call changes
    nothing; and the seed is the one source of randomness.
    """

    @property
    def space(self) -> SearchSpace:
        """Search space of the configurations."""

    @property
    def horizon(self) -> int | None:
        """Largest number of suggestions; None if unknown."""

    @property
    def maximize(self) -> bool:
        """Whether larger values are better."""

    @property
    def tells(self) -> Tells:
        """Kind of the outcome that ``tell`` takes."""

    @property
    def predicts(self) -> bool:
        """Whether ``predict`` has a model."""

    @property
    def queries_last(self) -> bool:
        """Whether the last round of a horizon is always queried."""

    def ask(self) -> S:
        """Return the next suggestion."""

    def tell(self, suggestion: S, *args: Any, **kwargs: Any) -> Any:
        """Record the outcome of a suggestion."""

    def enqueue(self, config: Mapping[str, Plain], *args: Any, **kwargs: Any) -> S:
        """Enter a suggestion of the user's, in place of the next one."""

    def cancel(self, suggestion: S) -> None:
        """Cancel a pending suggestion."""

    def best(self) -> Mapping[str, Plain] | None:
        """Return the incumbent; None if there is none yet."""

    def predict(
        self, configs: Sequence[Mapping[str, Plain]], *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor] | None:
        """Return means and standard deviations of configurations, each ``(n,)``, in the told units.

        Inside a run, of gains, a further argument is the round; the next one if omitted.
        """

    @property
    def queries(self) -> int:
        """Number of queries paid for."""

    @property
    def decisions(self) -> tuple[S, ...]:
        """The suggestions so far, as far as they are kept."""

    @property
    def observations(self) -> tuple[Any, ...]:
        """The outcomes of the suggestions that are kept."""

    @property
    def history(self) -> list[dict[str, Any]]:
        """One plain dictionary per suggestion, ready for a data frame."""


_FACE: tuple[str, ...] = (
    "ask",
    "tell",
    "enqueue",
    "cancel",
    "best",
    "predict",
    "space",
    "horizon",
    "maximize",
    "tells",
    "predicts",
)
_FACE += ("queries_last", "queries", "decisions", "observations", "history", "changeable")


def check_asked(tuner: object, hint: str = "") -> None:
    """Raise unless an object has the face of an optimizer.

    Args:
        tuner: The object.
        hint: Addition to the message, such as the order in which objects go around each other.

    Raises:
        InvalidArgumentError: If it lacks a part, which the error names.
    """
    has_face = isinstance(tuner, AskTell) and not isinstance(tuner, type)
    missing = [name for name in _FACE if not hasattr(tuner, name)]
    received = f"{type(tuner).__name__} without {', '.join(missing[:3])}" if missing else tuner
    expected = f"an OnlineTuner or another Optimizer{hint}"
    check(has_face, "tuner", expected, received)
