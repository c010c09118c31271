"""Choice of the next step of one of several trainings, by loops over plain numbers.

A curve is a list of rewards, shorter where less was seen.
"""

import math

import numpy as np


def best_of_step(curves, step):
    """The best reward at a step from 0, or of all rewards where no training has reached it."""
    there = [curve[step] for curve in curves if len(curve) > step]
    return max(there or [reward for curve in curves for reward in curve])


def improvement(mean, sd, best):
    """Expected improvement of a normal over a number, by a sum over its density."""
    z = np.arange(-8, 8, 1e-3) + 5e-4
    density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    return float(np.sum(np.maximum(mean + sd * z - best, 0.0) * density) * 1e-3)


def promises(curves, moments, costs=None):
    """Expected improvement of each training by its next step, per cost of a step.

    ``moments`` are functions of a training and a step: mean and standard deviation.
    """
    gains = []
    for config, curve in enumerate(curves):
        mean, sd = moments(config, len(curve))
        gain = improvement(mean, sd, best_of_step(curves, len(curve)))
        gains.append(gain / (1.0 if costs is None else costs[config]))
    return gains


def restricted_log_likelihood(scale, values, mean, covariance):
    """Of ``scale values + shift - mean`` under the covariance, the best shift taken out."""
    inverse, one = np.linalg.inv(covariance), np.ones(len(values))
    left = scale * values - mean
    left = left - one * (one @ inverse @ left) / (one @ inverse @ one)
    return (len(values) - 1) * math.log(scale) - 0.5 * left @ inverse @ left
