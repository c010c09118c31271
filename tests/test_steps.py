"""Numbers with a step: which values there are, how points are rounded, and what is refused."""

import math

import numpy as np
import pytest
import torch

from botorch_costly import Choice, Integer, Real, SearchSpace
from botorch_costly.errors import InvalidConfigError, InvalidSpaceError
from botorch_costly.parameters import Scheduled

STEPPED = {
    "tenths": (Real(0.1, 0.9, step=0.1), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]),
    "below 0": (Real(-0.3, 0.3, step=0.1), [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3]),
    "two": (Real(0, 5, step=5), [0.0, 5.0]),
    "evens": (Integer(2, 10, step=2), [2, 4, 6, 8, 10]),
    "powers": (Integer(32, 128, step=32), [32, 64, 96, 128]),
}
each = pytest.mark.parametrize(("parameter", "values"), STEPPED.values(), ids=STEPPED)


@each
def test_values_are_those_that_a_person_would_write(parameter, values):
    assert list(parameter.values) == values
    assert {type(value) for value in parameter.values} == {type(values[0])}


@each
def test_each_value_has_an_equal_share_of_the_column(parameter, values):
    units = (torch.arange(1000, dtype=torch.float64) + 0.5) / 1000
    decoded = [parameter.decode(unit[None]) for unit in units]
    counts = [decoded.count(value) for value in values]
    assert sum(counts) == 1000
    assert max(counts) - min(counts) <= 1
    assert decoded == sorted(decoded)


@each
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rounded_points_are_the_encodings_of_values(parameter, values, dtype):
    points = torch.linspace(-0.5, 1.5, 401, dtype=dtype).reshape(-1, 1, 1)
    rounded = parameter.round(points)
    assert rounded.dtype == dtype
    assert torch.equal(parameter.round(rounded), rounded)
    encodings = torch.stack([parameter.encode(value) for value in values]).to(dtype)
    assert all(any(torch.equal(one, e) for e in encodings) for one in rounded.reshape(-1, 1))
    for value in values:
        assert parameter.decode(parameter.encode(value)) == value


def test_a_value_between_two_steps_is_refused_and_one_that_is_computed_is_not():
    space = SearchSpace({"x": Real(0.1, 0.9, step=0.1), "n": Integer(2, 10, step=2)})
    assert space.canonical({"x": 0.1 + 0.2, "n": 4})["x"] == 0.3
    assert space.canonical({"x": np.float32(0.7), "n": np.int64(4)}) == {"x": 0.7, "n": 4}
    with pytest.raises(InvalidConfigError, match=r"a step of 0.1 from 0.1 to 0.9, such as 0.3"):
        space.canonical({"x": 0.33, "n": 4})
    with pytest.raises(InvalidConfigError, match="a step of 2 from 2 to 10"):
        space.canonical({"x": 0.3, "n": 5})


def test_a_space_of_steps_is_finite_and_its_definition_comes_back():
    space = SearchSpace({"x": Real(0.1, 0.5, step=0.1), "n": Integer(2, 6, step=2)})
    assert space.size == 15
    assert len(space.configurations()) == 15
    again = SearchSpace.from_dict(space.to_dict())
    assert again == space
    assert again.fingerprint() == space.fingerprint()
    assert (
        space.fingerprint()
        != SearchSpace({"x": Real(0.1, 0.5), "n": Integer(2, 6, step=2)}).fingerprint()
    )


def test_a_definition_without_steps_is_what_it_was():
    space = SearchSpace({"x": Real(0.1, 0.5), "n": Integer(2, 6), "c": Choice([1, 2])})
    assert "step" not in str(space)
    assert "step" not in str(space.to_dict())
    assert repr(Integer(2, 6)) == "Integer(low=2, high=6, log=False)"
    assert repr(Integer(2, 6, step=2)) == "Integer(low=2, high=6, log=False, step=2)"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Real(0.1, 0.9, step=0.3), "such as with high=0.7"),
        (lambda: Integer(1, 10, step=2), "such as with high=9"),
        (lambda: Real(0.1, 0.9, step=0.0), "above 0"),
        (lambda: Real(0.1, 0.9, step=-0.1), "above 0"),
        (lambda: Real(0.1, 0.9, step=1.0), "at most 0.8"),
        (lambda: Real(0.1, 0.9, step=math.nan), "step"),
        (lambda: Real(0.1, 0.9, step="0.1"), "step"),
        (lambda: Integer(1, 9, step=0.5), "an integer"),
        (lambda: Integer(1, 9, step=True), "an integer"),
        (lambda: Real(0.1, 0.9, step=0.1, log=True), "log=True"),
        (lambda: Integer(1, 9, step=2, log=True), "log=True"),
        (lambda: Real(0.0, 1.0, step=1e-9), "steps"),
        (lambda: Real(1e8, 1e8 + 1000, step=0.001), "float64 resolves"),
        (lambda: Real(1e16, 1e16 + 4, step=1.0), "float64 resolves"),
        (lambda: Scheduled(0.1, 0.9, log=False, step=0.1), "Scheduled step"),
    ],
)
def test_steps_that_do_not_fit_are_refused(make, said):
    with pytest.raises(InvalidSpaceError, match=said):
        make()


@pytest.mark.parametrize(("low", "high", "step"), [(1e6, 1e6 + 1e3, 0.1), (-3.0, 7.0, 1e-5)])
def test_all_of_many_steps_are_accepted_and_are_what_they_decode_to(low, high, step):
    real = Real(low, high, step=step)
    space = SearchSpace({"x": real})
    for value in (*real.values[:3], *real.values[:: len(real.values) // 17], *real.values[-3:]):
        assert space.canonical({"x": value}) == {"x": value}
        assert space.canonical({"x": math.nextafter(value, math.inf if value < high else low)}) == {
            "x": value
        }
        assert space.decode(space.encode({"x": value})) == {"x": value}


def test_steps_of_integers_and_of_numbers_are_of_their_own_kind():
    at = SearchSpace({"n": Integer(0, 4, step=2), "x": Real(0.0, 4.0, step=2.0)})
    config = at.decode(at.encode({"n": 2, "x": 2.0}))
    assert [type(value) for value in (config["n"], config["x"])] == [int, float]
    assert [type(value) for value in Real(0.0, 4.0, step=2.0).values] == [float] * 3
