"""The kind: values of a rate that a driver takes for the wrong one, a rate or its multiplier."""

import pytest

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError
from tests.integrations.test_driver_fits import driver_of


def of_rates(parameter, rates, name="lr", **options):
    space = bc.SearchSpace({name: parameter})
    return driver_of(bc.RandomTuner(space), rates=rates, **options)


@pytest.mark.parametrize("name", ["lr", "learning_rate", "head.lr", "0.lr"])
@pytest.mark.parametrize(
    "parameter",
    [
        bc.Real(1e-5, 1e-1, log=True),
        bc.Real(1e-5, 0.5),
        bc.Choice([1e-4, 1e-3]),
        bc.Real(2.0, 5.0),
        bc.Integer(2, 5),
    ],
    ids=repr,
)
def test_multipliers_that_cannot_be_1_are_refused_at_the_door(name, parameter):
    with pytest.raises(InvalidArgumentError, match="rates='values'"):
        of_rates(parameter, "multipliers", name)
    of_rates(parameter, "multipliers", name, others=[name])
    of_rates(parameter, "values", name)


def test_ranges_that_look_like_the_other_kind_earn_a_warning():
    with pytest.warns(UserWarning, match="looks like a range of learning rates"):
        of_rates(bc.Real(1e-5, 1.0, log=True), "multipliers")
    with pytest.warns(UserWarning, match="looks like a range of multipliers"):
        of_rates(bc.Real(0.1, 10.0, log=True), "values")
    for fine in (bc.Real(0.1, 10.0, log=True), bc.Real(0.01, 1.0), bc.Choice([0.5, 1, 2])):
        of_rates(fine, "multipliers")
    for fine in (bc.Real(1e-4, 1.0, log=True), bc.Real(1e-2, 10.0, log=True)):
        of_rates(fine, "values")
