"""Why a hyperparameter had one value throughout, and what its user can do about it."""

from collections.abc import Mapping, Sequence
from typing import Literal

from botorch_costly.parameters import Choice, Plain
from botorch_costly.space import SearchSpace

Why = Literal["momentum", "settled", "costly", "binds", "few"]


def reasons(
    space: SearchSpace,
    peaks: Sequence[Mapping[str, Plain]],
    costly: set[int],
    *,
    is_bound: bool,
    is_settled: bool,
) -> dict[str, Why]:
    """Return why hyperparameters were never tried, by name.

    Args:
        space: Space of the configurations.
        peaks: Configurations so far, before schedules.
        costly: Columns that were open to trials which would have cost too much.
        is_bound: Whether trials of numbers were put off because compute bound.
        is_settled: Whether the run plays its incumbent to the end.
    """
    momenta, parameters = space.with_role("momentum"), dict(space.parameters)

    def why(name: str) -> Why:
        if name in momenta:
            return "momentum"
        if is_settled:
            return "settled"
        if not costly.isdisjoint(range(space.dim)[space.columns[name]]):
            return "costly"
        is_number = not isinstance(parameters[name], Choice) and name not in space.rates
        return "binds" if is_bound and is_number else "few"

    return {name: why(name) for name in space.names if len({peak[name] for peak in peaks}) == 1}


def sentences_on(untried: Mapping[str, Why], noun: str, *, has_rate: bool) -> list[str]:
    """Return a sentence for each reason, with the names and with what to do.

    Args:
        untried: Reasons by name.
        noun: Name of the quantity that falls as a network learns.
        has_rate: Whether a learning rate was searched.
    """
    because: dict[Why, str] = {
        "momentum": "Small values look better at once, so momenta stay as they are: choose them by "
        "start=.",
        "settled": "The run plays its incumbent to the end.",
        "costly": "The search for the learning rate took what trials may cost: give several times as "
        "many rounds, or leave the learning rate out of the space."
        if has_rate
        else "Trials would have cost more than they promised: give more rounds.",
        "binds": f"While the {noun} fell fast, numbers other than learning rates were left alone, unless "
        "they lie in the upper part of their range: choose them by start=, or offer a Choice of values.",
        "few": "No trial of them fitted into the rounds and queries: give more rounds.",
    }
    named = {why: ", ".join(name for name, its in untried.items() if its == why) for why in because}
    return [f"Never tried: {names}. {because[why]}" for why, names in named.items() if names]
