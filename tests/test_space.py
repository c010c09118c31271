"""Search spaces: round trips between configurations and points of the unit cube."""

import json
import math
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from botorch_costly.errors import (
    InvalidArgumentError,
    InvalidConfigError,
    InvalidShapeError,
    InvalidSpaceError,
)
from botorch_costly.space import Choice, Integer, Real, SearchSpace

quick = settings(derandomize=True, deadline=None, max_examples=60)


@st.composite
def reals(draw):
    log = draw(st.booleans())
    low = draw(st.floats(1e-6, 1e3) if log else st.floats(-1e6, 1e6))
    return Real(low, low + draw(st.floats(1e-3, 1e3)) * max(1.0, abs(low)), log=log)


@st.composite
def integers(draw):
    log = draw(st.booleans())
    low = draw(st.integers(1 if log else -(2**39), 2**39))
    return Integer(low, low + draw(st.integers(1, 2**39) | st.integers(1, 9)), log=log)


scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-2, 2) | st.text(max_size=3)
plain = st.recursive(scalars, lambda part: st.lists(part, max_size=3).map(tuple), max_leaves=4)
choices = st.lists(plain, min_size=1, max_size=4, unique=True).map(Choice)
spaces = st.dictionaries(
    st.text(min_size=1, max_size=4), reals() | integers() | choices, min_size=1, max_size=5
).map(SearchSpace)


def points(space, n=8, seed=0):
    """Points in and a little outside the cube, some of them on its faces."""
    generator = torch.Generator().manual_seed(seed)
    cube = torch.rand(n, space.dim, generator=generator, dtype=torch.float64)
    return (1.2 * cube - 0.1).where(cube < 0.9, cube.round())


@pytest.fixture
def space():
    return SearchSpace(
        {
            "lr": Real(1e-4, 1e-2, log=True),
            "layers": Integer(1, 4),
            "policy": Choice(["none", "light", "strong"]),
            "fixed": Choice(["only"]),
            "dropout": Real(0, 0.6),
            "width": Integer(8, 512, log=True),
        }
    )


# --- round trips -------------------------------------------------------------------------------


@quick
@given(spaces)
def test_rounding_is_encoding_what_was_decoded(space):
    x = points(space)
    rounded = space.round(x)
    encoded = torch.stack([space.encode(space.decode(row)) for row in x])
    torch.testing.assert_close(encoded, rounded, rtol=0, atol=1e-9)
    torch.testing.assert_close(space.round(rounded), rounded, rtol=0, atol=0)
    assert ((rounded >= 0) & (rounded <= 1)).all()


@quick
@given(spaces)
def test_rounding_does_not_change_the_configuration(space):
    for row in points(space):
        config = space.decode(row)
        space.check(config)
        assert space.decode(space.round(row)) == config


@quick
@given(spaces)
def test_encoding_loses_nothing(space):
    for row in points(space):
        config = space.decode(row)
        back = space.decode(space.encode(config))
        for name, parameter in space.parameters:
            if isinstance(parameter, Real):
                slack = 1e-12 * max(abs(parameter.low), abs(parameter.high))
                assert back[name] == pytest.approx(config[name], rel=1e-11, abs=slack)
            else:
                assert back[name] == config[name]
                assert type(back[name]) is type(config[name])


@quick
@given(spaces)
def test_definition_survives_json(space):
    definition = json.loads(json.dumps(space.to_dict()))
    assert definition == space.to_dict()
    back = SearchSpace.from_dict(definition)
    assert back == space
    assert back.fingerprint() == space.fingerprint()


def test_every_integer_of_a_log_scale_returns():
    parameter = Integer(1, 3000, log=True)
    assert all(parameter.decode(parameter.encode(v)) == v for v in parameter.values)


def test_extreme_integers_are_told_apart():
    for log in (False, True):
        parameter = Integer(1, 2**40, log=log)
        for value in (1, 2, 3, 2**39 + 1, 2**40 - 2, 2**40 - 1, 2**40):
            assert parameter.decode(parameter.encode(value)) == value


def test_rounding_batches_and_keeps_the_dtype(space, tkwargs):
    x = points(space, 12).to(**tkwargs).view(3, 2, 2, space.dim)
    rounded = space.round(x)
    assert (rounded.dtype, rounded.shape) == (x.dtype, x.shape)
    rows = torch.stack([space.round(row) for row in x.flatten(0, 2)])
    assert torch.equal(rounded.flatten(0, 2), rows)


def test_rounding_in_single_precision(space):
    x = points(space).float()
    rounded = space.round(x)
    assert rounded.dtype == torch.float32
    assert torch.equal(space.round(rounded), rounded)
    discrete = ("layers", "policy", "width")
    for row, snapped in zip(x, rounded, strict=True):
        before, after = space.decode(row), space.decode(snapped)
        assert [before[n] for n in discrete] == [after[n] for n in discrete]


# --- encoding, by hand -------------------------------------------------------------------------


def test_columns_in_order_and_by_hand(space):
    config = {"lr": 1e-3, "layers": 1, "policy": "light", "fixed": "only", "dropout": 0.15}
    x = space.encode({**config, "width": 8})
    width = math.log(8 / 7.5) / math.log(512.5 / 7.5)
    expected = [0.5, 0.125, 0, 1, 0, 0.25, width]  # 1 is the middle of the first of four shares
    torch.testing.assert_close(x, torch.tensor(expected, dtype=torch.float64))
    assert space.names == ("lr", "layers", "policy", "fixed", "dropout", "width")
    assert space.dim == 7
    assert space.columns["policy"] == slice(2, 5)
    assert space.columns["fixed"] == slice(5, 5)


def test_corners_decode_to_the_bounds_as_given():
    space = SearchSpace({"lr": Real(1e-4, 0.1, log=True), "w": Real(-0.3, 0.1), "k": Integer(2, 9)})
    ends = [space.decode(torch.full((3,), v)) for v in (-3.0, 0.0, 1.0, math.inf)]
    low, high = {"lr": 1e-4, "w": -0.3, "k": 2}, {"lr": 0.1, "w": 0.1, "k": 9}
    assert ends == [low, low, high, high]


def test_integers_have_equal_shares():
    parameter = Integer(-1, 2)
    cube = (torch.arange(4000, dtype=torch.float64) + 0.5) / 4000
    decoded = [parameter.decode(u[None]) for u in cube]
    assert [decoded.count(v) for v in parameter.values] == [1000] * 4


def test_decoded_values_are_plain(space):
    config = space.decode(torch.rand(7, generator=torch.Generator().manual_seed(1)))
    assert [type(value) for value in config.values()] == [float, int, str, str, float, int]


def test_equal_options_decode_to_the_first(space):
    assert space.decode(torch.full((7,), 0.5))["policy"] == "none"


def test_one_option_is_a_constant():
    space = SearchSpace({"a": Choice([None])})
    assert (space.dim, space.size) == (0, 1)
    assert space.decode(space.encode({"a": None})) == {"a": None}
    assert space.round(torch.zeros(3, 0)).shape == (3, 0)


# --- sampling ----------------------------------------------------------------------------------


def test_samples_are_uniform_over_configurations():
    space = SearchSpace({"k": Integer(1, 3), "c": Choice(["a", "b", "c", "d"])})
    n = 6000
    samples = space.sample(n, torch.Generator().manual_seed(0))
    assert samples.dtype == torch.float64
    assert torch.equal(space.round(samples), samples)
    drawn = [tuple(space.decode(row).values()) for row in samples]
    counts = torch.tensor([drawn.count(tuple(c.values())) for c in space.configurations()])
    chi2 = ((counts - n / 12) ** 2 / (n / 12)).sum()
    assert chi2 < 31.3  # 99.9 % quantile of chi-squared with 11 degrees of freedom


def test_samples_are_uniform_in_the_logarithm():
    space = SearchSpace({"lr": Real(1e-4, 1.0, log=True)})
    samples = space.sample(2000, torch.Generator().manual_seed(0))
    below = sum(space.decode(x)["lr"] < 1e-2 for x in samples)
    assert abs(below - 1000) < 100


def test_sampling_repeats_with_the_seed_alone(space):
    state = torch.get_rng_state()
    a, b = (space.sample(5, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(a, b)
    assert torch.equal(torch.get_rng_state(), state)
    assert space.sample(0, torch.Generator()).shape == (0, 7)


# --- kinds of spaces ---------------------------------------------------------------------------


def test_finite_spaces_list_their_configurations_in_order():
    space = SearchSpace([("a", Choice(["x", "y"])), ("k", Integer(1, 2))])
    assert space.configurations() == [
        {"a": "x", "k": 1},
        {"a": "x", "k": 2},
        {"a": "y", "k": 1},
        {"a": "y", "k": 2},
    ]
    assert (space.size, space.is_finite, space.is_arms) == (4, True, False)


def test_arms_are_choices_alone(space):
    assert SearchSpace({"a": Choice([1, 2]), "b": Choice(["x"])}).is_arms
    assert (space.size, space.is_finite, space.is_arms) == (None, False, False)
    with pytest.raises(InvalidSpaceError, match="without Real"):
        space.configurations()


def test_fingerprint_sees_every_part_of_the_definition():
    variants = [
        SearchSpace({"a": Real(0, 1), "b": Integer(0, 1)}),
        SearchSpace({"b": Integer(0, 1), "a": Real(0, 1)}),
        SearchSpace({"a": Real(0, 2), "b": Integer(0, 1)}),
        SearchSpace({"a": Real(0.5, 1), "b": Integer(0, 1)}),
        SearchSpace({"a": Real(0.5, 1, log=True), "b": Integer(0, 1)}),
        SearchSpace({"a": Integer(0, 1), "b": Integer(0, 1)}),
        SearchSpace({"a": Choice([0, 1]), "b": Integer(0, 1)}),
        SearchSpace({"a": Choice([False, True]), "b": Integer(0, 1)}),
        SearchSpace({"a": Choice([1, 0]), "b": Integer(0, 1)}),
    ]
    assert len({space.fingerprint() for space in variants}) == len(variants)
    same = SearchSpace({"a": Real(-0.0, 1.0), "b": Integer(0, 1)})
    assert same.fingerprint() == variants[0].fingerprint()


def test_fingerprint_is_stable():
    space = SearchSpace(
        {"lr": Real(0.1, 1, log=True), "k": Integer(1, 2), "c": Choice(["ä", None])}
    )
    assert space.fingerprint() == "b43f3b0e55aef48f"


def test_spaces_pickle_and_hash(space):
    _ = space.columns  # cached
    assert pickle.loads(pickle.dumps(space)) == space
    assert len({space, pickle.loads(pickle.dumps(space))}) == 1
    assert "'layers': Integer(low=1, high=4, log=False)" in repr(space)


# --- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: Real(1, 0),
        lambda: Real(1, 1),
        lambda: Real(0, math.inf),
        lambda: Real(math.nan, 1),
        lambda: Real(0, 10**400),
        lambda: Real(True, 2),
        lambda: Real("0", 1),
        lambda: Real(-1e308, 1.7e308),
        lambda: Real(2**53, 2**53 + 1),
        lambda: Real(1e10, math.nextafter(1e10, math.inf), log=True),
        lambda: Real(0, 1, log=True),
        lambda: Real(-1, 1, log=True),
        lambda: Real(0, 1, log=1),
        lambda: Integer(3, 3),
        lambda: Integer(4, 3),
        lambda: Integer(0, 5, log=True),
        lambda: Integer(0.0, 5),
        lambda: Integer(False, 5),
        lambda: Integer(0, 2**40 + 1),
        lambda: Integer(0, 10**400),
        lambda: Choice([]),
        lambda: Choice(["a", "a"]),
        lambda: Choice([1, True]),
        lambda: Choice("abc"),
        lambda: Choice({"a", "b"}),
        lambda: Choice([[1], [2]]),
        lambda: Choice([1.0, math.nan]),
        lambda: SearchSpace({}),
        lambda: SearchSpace([]),
        lambda: SearchSpace({1: Real(0, 1)}),
        lambda: SearchSpace({"": Real(0, 1)}),
        lambda: SearchSpace({"a": (0, 1)}),
        lambda: SearchSpace({"a": Real}),
        lambda: SearchSpace([("a", Real(0, 1)), ("a", Real(0, 1))]),
        lambda: SearchSpace(["ab"]),
        lambda: SearchSpace("ab"),
        lambda: SearchSpace.from_dict({}),
        lambda: SearchSpace.from_dict({"parameters": [{"name": "a"}]}),
        lambda: SearchSpace.from_dict({"parameters": [{"name": "a", "type": "Set"}]}),
        lambda: SearchSpace.from_dict({"parameters": [{"name": "a", "type": "Real", "up": 1}]}),
        lambda: SearchSpace.from_dict({"parameters": ["a"]}),
        lambda: SearchSpace.from_dict({"parameters": 3}),
    ],
)
def test_ill_defined_spaces_are_named(make):
    with pytest.raises(InvalidSpaceError, match=r"Expected .*; Received "):
        make()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": 1}, "config: Expected the names"),
        ({"lr": 1.0}, r"lr: Expected a number in \[0.0001, 0.01\]; Received 1.0"),
        ({"lr": math.nan}, "lr"),
        ({"lr": "0.001"}, "lr: Expected a number; Received '0.001'"),
        ({"lr": None}, "lr"),
        ({"layers": 2.0}, r"layers: Expected an integer; Received 2\.0"),
        ({"layers": np.float32(2)}, "layers: Expected an integer; Received"),
        ({"layers": 2**41}, r"layers: Expected an integer in \[1, 4\]"),
        ({"lr": torch.ones(1)}, "lr: Expected a number; Received"),
        ({"layers": True}, "layers"),
        ({"layers": 5}, "layers"),
        ({"policy": "heavy"}, "policy: Expected one of"),
        ({"policy": ["none"]}, "policy"),
        ({"fixed": 1}, "fixed"),
    ],
)
def test_configurations_of_elsewhere_are_named(space, change, message):
    good = {"lr": 1e-3, "layers": 1, "policy": "none", "fixed": "only", "dropout": 0, "width": 9}
    space.check(good)
    with pytest.raises(InvalidConfigError, match=message):
        space.check({**good, **change})
    with pytest.raises(InvalidConfigError, match=message):
        space.encode({**good, **change})


def test_missing_names_and_other_types_are_named(space):
    with pytest.raises(InvalidConfigError, match="Expected the names"):
        space.check({"lr": 1e-3})
    with pytest.raises(InvalidConfigError, match="a mapping"):
        space.check([("lr", 1e-3)])


def test_options_match_with_their_type():
    space = SearchSpace({"flag": Choice([True, "yes"])})
    space.check({"flag": True})
    with pytest.raises(InvalidConfigError):
        space.check({"flag": 1})


def test_points_of_another_shape_are_named(space):
    with pytest.raises(InvalidShapeError, match="dim = 7"):
        space.decode(torch.zeros(6))
    with pytest.raises(InvalidShapeError):
        space.decode(torch.zeros(1, 7))
    with pytest.raises(InvalidShapeError):
        space.round(torch.zeros(3, 6))
    with pytest.raises(InvalidShapeError):
        space.round(torch.tensor(0.5))
    with pytest.raises(InvalidShapeError):
        space.round(torch.zeros(3, 7, dtype=torch.long))
    with pytest.raises(InvalidArgumentError, match="NaN"):
        space.decode(torch.full((7,), math.nan))
    with pytest.raises(InvalidArgumentError, match="n: Expected"):
        space.sample(-1, torch.Generator())
