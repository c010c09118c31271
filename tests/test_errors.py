"""Errors say what was expected and what came, and are caught as built-ins too."""

import pickle
import traceback
from collections import OrderedDict

import numpy as np
import pytest
import torch

from botorch_costly import errors
from botorch_costly.errors import (
    CostlyError,
    InvalidArgumentError,
    InvalidShapeError,
    check,
    check_count,
    check_nonnegative,
    check_positive,
    check_probability,
    check_rate,
)

BUILT_IN = {
    errors.InvalidArgumentError: ValueError,
    errors.InvalidShapeError: ValueError,
    errors.InvalidCallError: TypeError,
    errors.InvalidSpaceError: ValueError,
    errors.InvalidConfigError: ValueError,
    errors.InvalidBudgetError: ValueError,
    errors.UnknownNameError: AttributeError,
    errors.UnknownParameterError: KeyError,
    errors.UnknownDecisionError: KeyError,
    errors.AlreadyToldError: ValueError,
    errors.StateMismatchError: ValueError,
    errors.RestoreError: RuntimeError,
    errors.UnsafeVersionError: RuntimeError,
    errors.HorizonExceededError: RuntimeError,
    errors.RankError: RuntimeError,
    errors.RanksDisagreeError: RuntimeError,
    errors.RankLostError: RuntimeError,
    errors.MissingExtraError: ImportError,
    errors.NumericalError: ArithmeticError,
}
NOT_NUMBERS = [float("nan"), np.float64("nan"), True, "0.5", None, [0.5], 1j]
CHECKS = [check_probability, check_rate, check_positive, check_nonnegative]


def test_every_error_is_listed_here():
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type)}
    ours = {kind for kind in kinds if issubclass(kind, Exception)}
    assert ours == {CostlyError, *BUILT_IN}


@pytest.mark.parametrize(("kind", "built_in"), BUILT_IN.items(), ids=lambda k: k.__name__)
def test_an_error_is_one_of_ours_and_a_built_in(kind, built_in):
    with pytest.raises(built_in) as caught:
        raise kind("lr", "a number > 0", "0.1")
    assert isinstance(caught.value, CostlyError)
    assert str(caught.value) == "lr: Expected a number > 0; Received '0.1'."


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda k: k.__name__)
def test_an_error_survives_pickling(kind):
    error = kind("lr", "a number > 0", -1)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error)
    assert (copy.name, copy.expected, copy.received) == ("lr", "a number > 0", -1)


def test_check_raises_what_it_is_told():
    check(True, "x", "anything", 1)
    with pytest.raises(InvalidArgumentError, match=r"^x: Expected y; Received 1\.$"):
        check(False, "x", "y", 1)
    with pytest.raises(InvalidShapeError):
        check(False, "x", "y", 1, InvalidShapeError)


@pytest.mark.parametrize("checked", CHECKS)
@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_no_check_takes_what_is_not_a_number(checked, value):
    with pytest.raises(InvalidArgumentError, match=r"^rate: Expected a .*number .*; Received "):
        checked("rate", value)


@pytest.mark.parametrize("checked", CHECKS)
@pytest.mark.parametrize("value", [0.5, np.float64(0.5)])
def test_every_check_returns_a_number_inside(checked, value):
    assert checked("rate", value) is value


@pytest.mark.parametrize(
    ("checked", "inside", "outside"),
    [
        (check_probability, [1e-300], [0, 1, 0.0, 1.0, -0.1]),
        (check_rate, [0, 1, 0.0, 1.0], [-1e-9, 1.1, float("inf")]),
        (check_positive, [1, 1e300], [0, -1, float("inf")]),
        (check_nonnegative, [0, 1e300], [-1e-300, float("inf"), -float("inf")]),
    ],
)
def test_the_edges_of_each_range(checked, inside, outside):
    for value in inside:
        assert checked("x", value) == value
    for value in outside:
        with pytest.raises(InvalidArgumentError):
            checked("x", value)


def test_every_check_says_what_it_does():
    for checked in CHECKS:
        assert checked.__doc__.startswith("Return ``value`` if it is a")


def test_counts():
    assert check_count("n", 0) == 0
    assert check_count("n", 3, minimum=3) == 3
    with pytest.raises(InvalidArgumentError, match=r"^n: Expected an integer >= 3; Received 2\.$"):
        check_count("n", 2, minimum=3)


@pytest.mark.parametrize(
    "value",
    [1e3, 1000, np.int64(1000), np.float64(1e3), np.float32(1e3), np.uint16(1000)],
    ids=repr,
)
def test_a_count_is_a_python_integer(value):
    count = check_count("n", value)
    assert type(count) is int
    assert count == 1000


@pytest.mark.parametrize(
    "value", [*NOT_NUMBERS, 3.5, np.float64(3.5), -1, -1.0, float("inf"), np.True_], ids=repr
)
def test_what_is_no_count(value):
    with pytest.raises(InvalidArgumentError, match="n: Expected an integer >= 0"):
        check_count("n", value)


class Deep:
    """An object that shows all it holds, as states and networks do."""

    def __repr__(self):
        return "weights " * 100_000


LARGE = {
    "a state": {f"layer{i}": torch.zeros(()).expand(1000, 1000) for i in range(500)},
    "an ordered state": OrderedDict((f"layer{i}", torch.zeros(100)) for i in range(500)),
    "states within a list": [{"kept": {"state": [{"w": torch.zeros(9999)}]}}],
    "an array": np.zeros((300, 300)),
    "a list": list(range(1_000_000)),
    "a set": set(range(100_000)),
    "a text": "x" * 1_000_000,
    "a number": 10**4000,
    "a number that cannot be written": 10**9000,
    "an object": Deep(),
    "an error": RuntimeError("size mismatch for layer. " * 10_000),
    "bytes": b"x" * 1_000_000,
}


@pytest.mark.parametrize("value", LARGE.values(), ids=LARGE)
def test_no_message_holds_all_of_a_large_value(value):
    """The kind: a message that prints what it received, however large it is."""
    error = errors.StateMismatchError("state", "a state_dict", value)
    for text in (str(error), repr(error), "".join(traceback.format_exception(error))):
        assert len(text) < 1500
    assert error.received is value
    long = errors.InvalidConfigError("x" * 10_000, f"one of {list(range(100_000))}", 1)
    assert len(str(long)) < 4000


def test_a_value_of_common_size_is_shown_as_ever():
    for value in (
        {"b": [1, 2.5], "a": ("x", None)},
        torch.zeros(3),
        np.arange(4),
        [],
        {1, 2},
        1e-9,
    ):
        assert str(InvalidArgumentError("lr", "a b", value)) == (
            f"lr: Expected a b; Received {value!r}."
        )


class Network:
    """A class of the caller's."""


@pytest.mark.parametrize(
    ("received", "is_named"),
    [(Network, True), (dict, True), (Network(), False), (float, False), (np.float32, False)],
    ids=["class", "dict", "object", "float", "float32"],
)
def test_a_class_in_place_of_an_object_is_to_be_called(received, is_named):
    said = str(InvalidArgumentError("x", "an object", received))
    name = getattr(received, "__name__", "")
    assert (f"> itself (call it to make an object: {name}(..))." in said) == is_named
