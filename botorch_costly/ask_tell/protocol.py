"""The protocols of optimizers: asked and told, saved and loaded, and with a belief that can be read."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, Self, TypeVar, runtime_checkable

from torch import Tensor

from botorch_costly.parameters import Plain
from botorch_costly.space import SearchSpace

# An optimizer is told the gain of a round, a metric as it was measured, the value of a configuration, or
# its learning curve.
Tells = Literal["gain", "metric", "value", "curve"]


class Suggestion(Protocol):
    """What ``ask`` returns: a frozen record of plain values."""

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
    """What ``tell`` records: a frozen record of plain values."""

    @property
    def id(self) -> int:
        """Number of the suggestion that it belongs to."""

    @property
    def reward(self) -> float | None:
        """The finite value that was told; None if there was none."""

    @property
    def failed(self) -> bool:
        """Whether the query found no finite value."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in plain values that JSON keeps."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild the record from ``to_dict``."""


class Stateful(Protocol):
    """An object whose state can be saved and loaded, such as a tuner, a reward or a network."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""

    def load_state_dict(self, state: Any) -> Any:
        """Continue from the state."""


@runtime_checkable
class Extendable(Stateful, Protocol):
    """An object that can go on from a state although some of its options have changed since."""

    @property
    def changeable(self) -> frozenset[str]:
        """Names of the options that ``changed`` may name."""

    def load_state_dict(self, state: Any, *, changed: tuple[str, ...] | list[str] = ()) -> Any:
        """Continue from the state; the options that are named may differ from those of then."""


S = TypeVar("S", bound=Suggestion)


class AskTell(Stateful, Protocol[S]):
    """An optimizer that is asked for suggestions and told their outcomes.

    The arguments of ``tell`` after the suggestion are the optimizer's own. In every optimizer a
    suggestion may be told late, in any order, or never; an interrupted or refused call changes
    nothing; and the seed is the one source of randomness.
    """

    space: SearchSpace

    def ask(self) -> S:
        """Return the next suggestion."""

    def tell(self, suggestion: S, *args: Any, **kwargs: Any) -> Any:
        """Record the outcome of a suggestion."""

    @property
    def history(self) -> list[dict[str, Any]]:
        """One plain dictionary per suggestion, ready for a data frame."""


class Believing(ABC):
    """A tuner that says what it believes of configurations in a round of a run: it derives from this."""

    maximize: bool

    @abstractmethod
    def best_seen(self) -> Mapping[str, Plain] | None:
        """Return the incumbent; None if nothing was seen."""

    @abstractmethod
    def believed(
        self, configs: Sequence[Mapping[str, Plain]], round: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations of the reward in a round, each ``(n,)``."""
