"""Lines through a search space: one hyperparameter varies, the others are held."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from botorch_costly.errors import check
from botorch_costly.models import StreamingGP
from botorch_costly.parameters import Choice, Parameter, Plain
from botorch_costly.records import Decision
from botorch_costly.space import SearchSpace


def values_of(parameter: Parameter, points: int) -> tuple[Plain, ...]:
    """Return the values of a parameter; numbers in ascending order.

    Args:
        parameter: Of which all options are values.
        points: Values of a number at the most; then they have even distances on its scale.
    """
    if isinstance(parameter, Choice):
        options = parameter.options
        numbers = [x for x in options if isinstance(x, int | float) and not isinstance(x, bool)]
        are_all = len(numbers) == len(options)
        return tuple(sorted(numbers)) if are_all else options
    if parameter.values is not None and len(parameter.values) <= points:
        return tuple(parameter.values)
    units = torch.linspace(0, 1, points, dtype=torch.float64)
    return tuple(dict.fromkeys(parameter.decode(unit.reshape(1)) for unit in units))


def line_of(
    space: SearchSpace, held: Mapping[str, Plain], name: str, values: Sequence[Plain]
) -> Tensor:
    """Return the encodings of a configuration in which one value varies, ``n x d``."""
    return torch.stack([space.encode({**held, name: value}) for value in values])


def check_believing(tuner: object) -> None:
    """Raise unless a tuner has a belief over rounds, as an ``OnlineTuner`` and one with loggers have.

    Raises:
        InvalidArgumentError: If it has none.
    """
    believes = all(hasattr(tuner, name) for name in ("reachable", "belief", "interval_of"))
    expected = "an OnlineTuner, whose belief is read"
    check(believes and not isinstance(tuner, type), "tuner", expected, type(tuner).__name__)


def parameter_of(space: SearchSpace, name: str) -> Parameter:
    """Return the parameter of a name.

    Raises:
        InvalidArgumentError: If there is none of the name.
    """
    parameters = dict(space.parameters)
    check(name in parameters, "name", f"a name among {list(parameters)}", name)
    return parameters[name]


def best_in(belief: StreamingGP, interval: int) -> Tensor | None:
    """Return the encoding that is believed best in an interval, of those seen; None unseen."""
    seen = belief.inputs[:, :-1]
    if not len(seen):
        return None
    mean, _ = belief.in_round(seen, float(interval))
    return seen[int(mean.argmax())]


def intervals_of(
    decisions: Sequence[Decision], rounds: Sequence[int] | None, about: int = 30
) -> dict[int, int]:
    """Return the intervals of rounds that are kept, ascending.

    Args:
        decisions: Those that are kept.
        rounds: Some of theirs; about as many as ``about`` at even distances if omitted.
        about: Such a number, less than twice of it.

    Raises:
        InvalidArgumentError: If there is no round, or one was not decided on or is not kept any more.
    """
    known = {one.round: one.round if one.interval is None else one.interval for one in decisions}
    every = max(len(known) // about, 1)
    chosen = sorted(known)[::every] if rounds is None else sorted(set(rounds))
    kept = len(chosen) > 0 and set(chosen) <= set(known)
    check(kept, "rounds", "rounds that were decided on and are kept", chosen)
    return {round: known[round] for round in chosen}
