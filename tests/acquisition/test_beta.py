"""Exploration schedules against their formulas."""

import math
import pickle

import pytest

from botorch_costly.acquisition import CompactDomainBeta, ConstantBeta, FiniteDomainBeta, LogBeta
from botorch_costly.errors import InvalidArgumentError


def constant(t):
    return 3.0


def logarithmic(t):
    return 2.0 * math.log(5.0 * t)


def finite(t):
    """Theorem 4: |D| = 1000, delta = 0.05."""
    return 2 * math.log(1000 * t * t * math.pi**2 / (6 * 0.05))


def compact(t):
    """Theorem 7: d = 3, delta = 0.05, a = 2, b = 1.5, r = 4."""
    first = 2 * math.log(t**2 * 2 * math.pi**2 / (3 * 0.05))
    return first + 2 * 3 * math.log(t**2 * 3 * 1.5 * 4 * math.sqrt(math.log(4 * 3 * 2 / 0.05)))


SCHEDULES = [
    (ConstantBeta(3.0), constant),
    (LogBeta(2.0, 5.0), logarithmic),
    (FiniteDomainBeta(1000, delta=0.05), finite),
    (CompactDomainBeta(3, delta=0.05, a=2.0, b=1.5, r=4.0), compact),
]


@pytest.mark.parametrize(
    ("schedule", "formula"), SCHEDULES, ids=lambda s: getattr(s, "__name__", "")
)
def test_a_schedule_is_its_formula(schedule, formula):
    for t in (1, 2, 7, 500, 10**6):
        assert schedule(t) == pytest.approx(formula(t), rel=1e-14)


@pytest.mark.parametrize(
    "schedule",
    [
        *(schedule for schedule, _ in SCHEDULES),
        LogBeta(0.1, 1.0),
        FiniteDomainBeta(1, delta=0.99),
        CompactDomainBeta(1, delta=0.99, a=0.01),  # the tail bound is trivial
        CompactDomainBeta(1, delta=0.99, b=1e-3, r=1e-3),  # one point covers the domain
    ],
    ids=repr,
)
def test_a_schedule_never_decreases_nor_is_negative(schedule):
    betas = [schedule(t) for t in range(1, 1001)]
    assert betas[0] >= 0
    assert betas == sorted(betas)
    assert all(map(math.isfinite, betas))


def test_the_default_is_what_reproduces_table_a2():
    for t in (1, 10, 500):
        assert LogBeta()(t) == pytest.approx(0.8 * math.log(4 * t), rel=1e-14)


@pytest.mark.parametrize("schedule", [schedule for schedule, _ in SCHEDULES], ids=repr)
def test_a_schedule_can_be_pickled_and_compared(schedule):
    assert pickle.loads(pickle.dumps(schedule)) == schedule


@pytest.mark.parametrize(
    ("kind", "arguments", "name"),
    [
        (ConstantBeta, {"beta": -1.0}, "beta"),
        (ConstantBeta, {"beta": float("nan")}, "beta"),
        (LogBeta, {"c1": 0.0}, "c1"),
        (LogBeta, {"c2": 0.5}, "c2"),
        (LogBeta, {"c2": float("nan")}, "c2"),
        (LogBeta, {"c2": float("inf")}, "c2"),
        (LogBeta, {"c2": "4"}, "c2"),
        (FiniteDomainBeta, {"num_points": 0}, "num_points"),
        (FiniteDomainBeta, {"num_points": 2.5}, "num_points"),
        (FiniteDomainBeta, {"num_points": 10, "delta": 1.0}, "delta"),
        (CompactDomainBeta, {"dim": 0}, "dim"),
        (CompactDomainBeta, {"dim": 2, "delta": 0.0}, "delta"),
        (CompactDomainBeta, {"dim": 2, "a": -1.0}, "a"),
        (CompactDomainBeta, {"dim": 2, "b": 0.0}, "b"),
        (CompactDomainBeta, {"dim": 2, "r": float("inf")}, "r"),
    ],
)
def test_a_bad_argument_is_named(kind, arguments, name):
    with pytest.raises(InvalidArgumentError, match=rf"^{name}: Expected .*; Received "):
        kind(**arguments)
