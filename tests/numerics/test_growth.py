"""Covariance and evidence of growing curves."""

import math

import pytest
import torch

from botorch_costly.numerics.growth import (
    POWERS,
    STRENGTHS,
    Marks,
    covariance,
    log_evidence,
    pairs_of,
    prior_mean,
    prior_variance,
    scales_of,
    solve,
)
from tests.oracles import growth as oracle

THETA = [math.log(0.4), math.log(0.8), 0.2, -1.3, -0.7, -2.1]


def marks_and_values(generator, tasks=0):
    x = torch.rand(4, 2, generator=generator).double().repeat_interleave(2, 0)
    share = 0.05 + 0.95 * torch.rand(8, generator=generator).double()
    means = torch.randn(4, tasks, generator=generator).double().repeat_interleave(2, 0)
    return Marks(x, share, means), torch.randn(8, generator=generator).double()


def as_rows(marks):
    return list(zip(*(column.tolist() for column in marks), strict=True))


def hypotheses(tasks):
    return [(q, t) for q in POWERS for t in (STRENGTHS if tasks else (0.0,))]


by_tasks = pytest.mark.parametrize("tasks", [0, 1, 3])


@by_tasks
def test_covariances_are_those_of_the_text(tasks, generator):
    marks, _ = marks_and_values(generator, tasks)
    columns = Marks(marks.x[2:5], marks.share[3:6], marks.tasks[2:5])
    scales = scales_of(torch.tensor(THETA, dtype=torch.float64))
    found = covariance(pairs_of(marks, columns), scales)
    expected = [
        [[oracle.covariance(a, b, h, THETA) for b in as_rows(columns)] for a in as_rows(marks)]
        for h in hypotheses(tasks)
    ]
    torch.testing.assert_close(found, torch.tensor(expected).double(), rtol=1e-7, atol=1e-7)
    own = covariance(pairs_of(marks, marks), scales).diagonal(dim1=-2, dim2=-1)
    torch.testing.assert_close(own, prior_variance(marks, scales))


def test_the_evidence_is_a_normal_density(generator):
    marks, y = marks_and_values(generator)
    found = solve(
        pairs_of(marks, marks), y, scales_of(torch.tensor(THETA, dtype=torch.float64))
    ).log_evidence
    expected = oracle.log_evidences(as_rows(marks), y.tolist(), THETA)
    assert found.tolist() == pytest.approx(expected, rel=1e-6)


@by_tasks
def test_the_gradient_is_that_of_differences(tasks, generator):
    marks, y = marks_and_values(generator, tasks)
    pairs, y = pairs_of(marks, marks), y - prior_mean(marks)
    theta = torch.stack([torch.tensor(THETA), torch.zeros(6)]).double()
    value, gradient = log_evidence(pairs, y, theta)
    assert value.shape == (2,)
    step = 1e-5
    for j, unit in enumerate(step * torch.eye(6).double()):
        above, below = (log_evidence(pairs, y, theta + sign * unit)[0] for sign in (1, -1))
        difference = (above - below) / (2 * step)
        torch.testing.assert_close(gradient[:, j], difference, rtol=1e-5, atol=1e-6)


def test_a_singular_covariance_has_no_evidence():
    marks = Marks(torch.zeros(2, 1).double(), torch.ones(2).double(), torch.zeros(2, 0).double())
    theta = torch.tensor([0.0, 20.0, 0.0, 0.0, -20.0]).double()
    value, _ = log_evidence(pairs_of(marks, marks), torch.zeros(2).double(), theta)
    assert bool(value.isnan())
