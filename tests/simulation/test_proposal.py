"""The candidate where points tie, and the rivals it is compared with."""

import pytest
import torch

from botorch_costly.models import DriftingGrid
from botorch_costly.problems import DriftingFunction
from botorch_costly.query import AlwaysQuery, ConfidenceQuery, Progress
from botorch_costly.simulation import GridPolicy, Ground, grid_proposal


def candidate_and_rivals_of(score, lone_rival=True, merges=False):
    """Candidate and rivals of a policy with these scores."""
    truth = DriftingFunction.on_unit_interval(len(score), forgetting=0.05)
    belief = DriftingGrid(truth.prior_cov, 0.05, truth.noise, torch.Size([1]))
    score = torch.tensor([score], dtype=torch.float64)
    options = {"lone_rival": lone_rival, "merges": merges}
    policy = GridPolicy("", ConfidenceQuery(0.6), lambda *_: score, **options)
    proposal = grid_proposal(
        policy, belief, Ground.from_points(truth.points, 0.55), Progress(2), 1.0
    )
    return proposal.query_at.item(), proposal.comparison.exists[0].nonzero()[:, 0].tolist()


@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-8, 1e-3])
def test_a_neighbour_that_is_higher_by_a_rounding_is_no_rival(gap):
    at, rivals = candidate_and_rivals_of([0.0, 1.0, 1.0 + gap, 0.0, 0.5, 0.0])
    assert at == (1 if gap == 0 else 2)
    assert rivals == [4]


@pytest.mark.parametrize("shaken", [-1e-9, 0.0, 1e-9])
def test_of_two_sides_of_a_query_the_first_is_taken(shaken):
    assert candidate_and_rivals_of([0.0, 1.0, 0.5, 1.0 + shaken, 0.0]) == (1, [3])
    assert candidate_and_rivals_of([0.0, 1.0, 0.5, 1.1 + shaken, 0.0]) == (3, [1])


def test_the_rival_of_a_lone_maximum_is_the_best_beyond_the_bandwidth():
    hill = [0.1, 0.9, 1.0, 0.8, 0.3, 0.2, 0.0]
    assert candidate_and_rivals_of(hill) == (2, [6])
    assert candidate_and_rivals_of(hill, lone_rival=False) == (2, [])


def test_merged_rivals_are_beyond_the_bandwidth():
    waves = [0.0, 1.0, 0.5, 0.9, 0.5, 0.8, 0.0]  # the bandwidth is more than three steps
    assert candidate_and_rivals_of(waves) == (1, [3, 5])
    assert candidate_and_rivals_of(waves, merges=True) == (1, [5])
    alone = [0.0, 1.0, 0.5, 0.9, 0.5, 0.4, 0.3]
    assert candidate_and_rivals_of(alone, merges=True) == (1, [5])
    assert candidate_and_rivals_of(alone, merges=True, lone_rival=False) == (1, [])


def test_on_a_fine_grid_no_rival_is_next_door():
    """A rival in the neighbourhood would make a policy with a low threshold query."""
    truth = DriftingFunction.on_unit_interval(1000, forgetting=0.05)
    generator = torch.Generator().manual_seed(0)
    belief = DriftingGrid(truth.prior_cov, 0.05, truth.noise, torch.Size([20]))
    ground = Ground.from_points(truth.points, 0.2)
    every_trial = torch.ones(20, dtype=torch.bool)
    for t in range(40):
        rule = ConfidenceQuery(0.6) if t % 2 else AlwaysQuery()
        proposal = grid_proposal(GridPolicy("", rule), belief, ground, Progress(t + 1), 1.0)
        rivals = proposal.comparison.exists.nonzero()
        distance = (rivals[:, 1] - proposal.query_at[rivals[:, 0]]).abs()
        assert t < 2 or (distance > 2).all()
        y = torch.randn(20, generator=generator, dtype=torch.float64)
        belief.take_in(proposal.query_at, y, every_trial)
        belief.wait()
