"""Scores of learning curves."""

import math
import pickle

import pytest
import torch
from gpytorch.priors import LogNormalPrior, NormalPrior
from torch.func import functional_call

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.transforms import CurveCompression
from tests.oracles import compression as oracle


def curves_of(generator, n=4, longest=9):
    curves = torch.randn(n, longest, generator=generator, dtype=torch.float64)
    curves[1, 5:] = math.nan  # stopped
    curves[2, [0, 3]] = math.nan  # with gaps
    return curves


def double(longest=9, **options):
    return CurveCompression(longest, **options).double()


@pytest.mark.parametrize(("midpoint", "growth"), [(0.0, 1.0), (4.5, 3.0), (-5.0, 0.2)])
def test_scores_are_a_naive_sum(midpoint, growth, generator):
    curves, compress = curves_of(generator), double()
    compress.midpoint, compress.growth = midpoint, growth
    scores = compress(curves)
    for curve, row in zip(curves.tolist(), scores.tolist(), strict=True):
        expected = [oracle.score(curve, t, midpoint, growth) for t in range(1, 10)]
        assert row == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


def test_what_comes_later_does_not_change_the_score_of_a_prefix(generator):
    curves, compress = curves_of(generator), double()
    cut = curves.clone()
    cut[:, 6:] = 1e6
    assert torch.equal(compress(curves)[:, :6].nan_to_num(), compress(cut)[:, :6].nan_to_num())


def test_a_late_midpoint_forgets_early_rewards(generator):
    curves = torch.zeros(2, 50, dtype=torch.float64)
    curves[0, :25], curves[1, 25:] = 1.0, 1.0  # one is good early, one late
    compress = double(50, growth=3.0)
    compress.midpoint = 4.0
    early, late = compress(curves)[:, -1].tolist()
    assert late > 50 * early
    compress.midpoint = -6.0
    early, late = compress(curves)[:, -1].tolist()
    assert late == pytest.approx(early, rel=0.1)


def test_the_other_weightings():
    curves = torch.tensor([[1.0, 1.0, 1.0]], dtype=torch.float64)
    assert double(3, weighting="average")(curves).tolist() == [[1.0, 2.0, 3.0]]
    logs = [math.log(1 + u) / math.log(4) for u in (1, 2, 3)]
    sums = [sum(logs[:u]) for u in (1, 2, 3)]
    assert double(3, weighting="log")(curves)[0].tolist() == pytest.approx(sums)
    fixed = double(3, weighting="log")
    assert not any(parameter.requires_grad for parameter in fixed.parameters())


def test_without_compression_the_score_is_the_latest_reward():
    curves = torch.tensor([[[torch.nan, 3.0, torch.nan, 1.0, torch.nan]]]).double()
    scores = double(5, weighting="last")(curves)
    assert scores[0, 0, 1:].tolist() == [3.0, 3.0, 1.0, 1.0]
    assert scores[0, 0, 0].isnan()
    assert double(5, weighting="last").weights.tolist() == [0.0, 0.0, 0.0, 0.0, 1.0]


def test_gradients_are_finite_differences_beside_unknown_rewards(generator):
    curves, compress = curves_of(generator), double(midpoint=0.5, growth=1.5)
    names = [name for name, _ in compress.named_parameters()]
    has_score = ~compress(curves).isnan()

    def scores(*values):
        return functional_call(compress, dict(zip(names, values, strict=True)), (curves,))[
            has_score
        ]

    values = tuple(parameter.detach().requires_grad_() for parameter in compress.parameters())
    assert torch.autograd.gradcheck(scores, values)


def test_a_batch_is_a_loop(generator):
    curves = torch.stack([curves_of(generator) for _ in range(3)])
    midpoints, growths = torch.tensor([[-3.0], [0.0], [5.0]]), torch.tensor([[0.3], [1.0], [4.0]])
    shape = torch.Size([3])
    together = double(midpoint=midpoints, growth=growths, batch_shape=shape)(curves)
    for i in range(3):
        alone = double(midpoint=midpoints[i], growth=growths[i])(curves[i])
        torch.testing.assert_close(together[i], alone, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_is_that_of_the_curves(dtype, generator):
    curves = curves_of(generator)
    scores = CurveCompression(9, midpoint=1.0)(curves.to(dtype))
    assert scores.dtype == dtype
    expected = double(midpoint=1.0)(curves)
    torch.testing.assert_close(scores.double(), expected, rtol=1e-5, atol=1e-5, equal_nan=True)


def test_bounds_are_taken_and_left_alone(generator):
    curves = curves_of(generator)
    for midpoint, growth in ((-6.0, 0.1), (6.0, 6.0)):
        compress = double(midpoint=midpoint, growth=growth)
        assert compress.midpoint.item() == pytest.approx(midpoint, abs=1e-6)
        assert compress.growth.item() == pytest.approx(growth, abs=1e-6)
        assert compress(curves)[0].isfinite().all()


def test_a_training_of_one_iteration_has_a_score():
    assert double(1)(torch.tensor([[2.0]], dtype=torch.float64)).item() == pytest.approx(1.0)


def test_states_pickles_and_priors(generator):
    curves = curves_of(generator)
    priors = {"midpoint_prior": NormalPrior(0.0, 3.0), "growth_prior": LogNormalPrior(0.0, 1.0)}
    compress = double(midpoint=2.0, growth=0.5, **priors)
    copy = pickle.loads(pickle.dumps(compress))
    other = double(**priors)
    other.load_state_dict(compress.state_dict())
    for twin in (copy, other):
        assert torch.equal(twin(curves).nan_to_num(), compress(curves).nan_to_num())
    for _, _, _, closure, setting in compress.named_priors():
        setting(compress, 0.7)
        assert closure(compress).item() == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"midpoint": 6.1}, "midpoint"),
        ({"growth": 0.0}, "growth"),
        ({"growth": math.nan}, "growth"),
        ({"weighting": "cosine"}, "weighting"),
        ({"longest": 0}, "longest"),
    ],
)
def test_bad_options_are_named(options, name):
    with pytest.raises(InvalidArgumentError, match=f"{name}: Expected"):
        CurveCompression(**{"longest": 5, **options})


def test_curves_of_another_length_are_refused():
    with pytest.raises(InvalidShapeError, match="curves: Expected"):
        CurveCompression(5)(torch.rand(2, 6))
