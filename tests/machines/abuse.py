"""Abuse that several machines share: bad values, damaged states, interrupts, refusals."""

import copy
import inspect
import io
import itertools
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

import botorch_costly
from botorch_costly.errors import CostlyError
from tests.tuners.online.states import same

PACKAGE = str(Path(botorch_costly.__file__).parent)

# A finite number beyond the reach of a dtype, other kinds of numbers, and what is no number at all.
BAD_NUMBERS = [
    float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 1e-320, -(10.0**30), 10**400,
    None, True, "much", b"x", 1 + 2j, [], {}, [1.0], object(),
    np.float32(1), np.array(2.0), np.array([1.0, 2.0]), torch.tensor(3.0), torch.tensor([1.0, 2.0]),
]  # fmt: skip
GARBAGE = [None, {}, [], "text", 3, {"header": None}, {"header": {"kind": "another"}}]


@contextmanager
def refused_or_done(*parts):
    """Let the block succeed, or raise a named error that has changed no state of the parts."""
    before = [copy.deepcopy(part.state_dict()) for part in parts]
    try:
        yield
    except CostlyError as error:
        refusal = str(error)
    else:
        return
    assert "Expected" in refusal
    assert "Received" in refusal
    for part, state in zip(parts, before, strict=True):
        assert same(part.state_dict(), state), f"a refusal has changed it: {refusal}"


def through_a_file(state):
    """Return a state as ``weights_only`` reads it back."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def run_machine(machine, examples, steps):
    """Run a machine on the same examples in every run, so that a green suite stays green."""
    quiet = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    run_state_machine_as_test(machine, settings=quiet)


class Interrupted(BaseException):
    """Raised in the middle of a call, as KeyboardInterrupt would be."""


@contextmanager
def watching(enters):
    """Call ``enters`` before each function of the package that is entered within."""

    def watch(frame, event, _):
        # What is raised as a generator is closed is only reported, so it is entered by what it calls.
        code = frame.f_code
        generates = code.co_flags & inspect.CO_GENERATOR
        if event == "call" and not generates and code.co_filename.startswith(PACKAGE):
            enters()

    was = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(was)


def functions_of(call):
    """Return how many functions of the package a call enters."""
    entered = itertools.count()
    with watching(entered.__next__):
        call()
    return next(entered)


@contextmanager
def interrupted(after):
    """Raise ``Interrupted`` once the package has entered ``after`` of its functions; catch it."""
    entered = itertools.count(1)

    def enter():
        if next(entered) == after:
            raise Interrupted

    with suppress(Interrupted), watching(enter):
        yield
