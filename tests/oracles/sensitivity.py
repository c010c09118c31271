"""Sobol indices by their definition, one input and one point of a grid at a time."""

import itertools


def indices(function, grids):
    """First-order and total indices of a function on a product of grids, all points alike likely."""
    points = list(itertools.product(*grids))
    value = {point: function(*point) for point in points}
    variance = variance_of(list(value.values()))
    alone, total = [], []
    for i, grid in enumerate(grids):
        means = [mean_of([value[p] for p in points if p[i] == x]) for x in grid]
        alone.append(variance_of(means) / variance)
        rest = {p[:i] + p[i + 1 :] for p in points}
        within = [variance_of([value[(*r[:i], x, *r[i:])] for x in grid]) for r in rest]
        total.append(mean_of(within) / variance)
    return alone, total


def mean_of(values):
    return sum(values) / len(values)


def variance_of(values):
    mean = mean_of(values)
    return sum((value - mean) ** 2 for value in values) / len(values)
