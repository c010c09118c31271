"""The same work for a network whose hidden layers are narrower."""

from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

from benchmarks.suite.compute_bound.training import Work


class Narrow(NamedTuple):
    """A work, and how many times wider the network was that it is made from."""

    work: Work
    times: float


def narrower(work: Work, divisor: int) -> Narrow | None:
    """Return a work whose network has its width divided, by ``divisor`` where the width is large enough.

    A width is a field ``width`` of the work, or the default of the argument ``width`` of its ``make``.
    None if there is neither: a network that knows something already comes in one size.
    """
    known: Any = work
    if hasattr(known, "width"):
        width = max(1, known.width // divisor)
        return Narrow(replace(known, width=width), known.width / width)
    argument = signature(known.make).parameters.get("width")
    if argument is None:
        return None
    width = max(1, argument.default // divisor)
    return Narrow(replace(known, make=partial(known.make, width=width)), argument.default / width)
