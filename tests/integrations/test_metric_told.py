"""A driver tells the metric beside the gain that it makes of it, on a network that diverges as well.

The kind: a callback knows the loss, and its log has gains alone.
"""

import math

import pytest

from tests.integrations.test_driver_fits import STEPS, Fit, driver_of, tuner


@pytest.mark.parametrize("guard", [False, True])
def test_the_mean_metric_is_told_beside_its_gain(guard):
    fit = Fit(driver_of(tuner(4), guard=guard))
    losses = [2.0, 1.5, math.nan, 1.0]
    for loss in losses:
        for _ in range(STEPS):
            fit.driver.before_step()
            if fit.driver.after_step():
                fit.driver.validated(loss)
    told = fit.driver.tuner.observations
    assert repr([one.metric for one in told]) == repr(losses)
    assert [one.reward is not None for one in told] == [False, True, guard, True]
