"""The knowledge gradient against the scan of the paper, against samples, and its laws."""

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

from botorch_costly.numerics import knowledge_gradient as module
from botorch_costly.numerics.knowledge_gradient import (
    expected_rise,
    knowledge_gradient,
    rough_rise,
    strata,
    upper_envelope,
)
from tests.oracles import knowledge_gradient as oracle
from tests.oracles.knowledge_gradient import MORE


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def lines():
    for n in (1, 2, 3, 10, 60, 300):
        for seed in range(3):
            yield f"random-{n}-{seed}", normal(n, seed=seed), normal(n, seed=seed + 100)
        a, b = normal(n, seed=7), normal(n, seed=8)
        yield f"ties-{n}", torch.zeros(n).double(), b
        yield f"equal-slopes-{n}", a, torch.full((n,), 0.3).double()
        yield f"few-slopes-{n}", a, b.round()
        yield f"integers-{n}", (3 * a).round(), (3 * b).round()
        yield f"twice-{n}", torch.cat([a, a]), torch.cat([b, b])
        yield f"steep-{n}", a, 1e6 * b
        yield f"flat-{n}", a, 1e-6 * b
        yield f"uneven-{n}", a, b * (5 * normal(n, seed=9)).exp()
        yield f"high-{n}", 1e4 + a, b
        z = torch.linspace(-6, 6, n).double()
        yield f"parabola-{n}", -0.5 * z * z, z  # every line is on the envelope
        yield f"tangents-{n}", (4 * z).exp() * (1 - 4 * z), 4 * (4 * z).exp()
        concurrent = torch.linspace(-3, 3, n).double()
        yield f"one-crossing-{n}", 1 - 0.7 * concurrent, concurrent
    yield (
        "dominated",
        torch.tensor([0.0, -0.1, 0.0]).double(),
        torch.tensor([-1.0, 0.0, 1.0]).double(),
    )
    yield "far away", torch.tensor([0.0, -8.5]).double(), torch.tensor([0.0, 1.0]).double()


LINES = {name: (a, b) for name, a, b in lines()}


def assert_is_the_oracle(a, b):
    expected = oracle.expected_rise(a.tolist(), b.tolist())
    unit = max(1.0, a.abs().max().item(), b.abs().max().item(), expected)
    assert expected_rise(a, b).item() == pytest.approx(expected, rel=1e-12, abs=1e-12 * unit)


@pytest.mark.parametrize("name", LINES)
def test_it_is_the_scan_of_the_paper(name):
    assert_is_the_oracle(*LINES[name])


NUMBERS = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-10, 10).map(lambda v: round(v, 9)),  # the twin's divisions may not overflow
    st.floats(-10, 10).map(lambda v: math.copysign(10.0 ** (abs(v) - 5), v)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=40))
def test_it_is_the_scan_of_the_paper_wherever_lines_lie(pairs):
    a, b = torch.tensor(pairs, dtype=torch.float64).unbind(-1)
    assert_is_the_oracle(a, b)


def test_copies_that_differ_by_rounding_count_once():
    """Two copies of a line meet anywhere; asked there, one of them would be found once more."""
    a, b, worst = normal(40, 8), normal(40, 8, seed=1), 0.0
    pick = torch.randint(8, (40, 24), generator=torch.Generator().manual_seed(2))
    slip = 1 + 3e-16 * normal(2, 40, 24, seed=3)
    a, b = a.gather(-1, pick) * slip[0], b.gather(-1, pick) * slip[1]
    for ours, *line in zip(expected_rise(a, b).tolist(), a.tolist(), b.tolist(), strict=True):
        worst = max(worst, abs(ours - oracle.expected_rise(*line)))
    assert worst < 1e-11


def test_it_is_the_mean_of_samples():
    a, b, z = normal(4, 12), normal(4, 12, seed=1), normal(100_000, seed=2)
    rise = (a.unsqueeze(-1) + b.unsqueeze(-1) * z).amax(-2) - a.amax(-1, keepdim=True)
    sigma = rise.std(-1) / math.sqrt(len(z))
    assert ((expected_rise(a, b) - rise.mean(-1)).abs() < 4 * sigma).all()


def test_a_query_moves_the_mean_as_a_gaussian_belief_does():
    root = normal(7, 7) / 3
    mean, cov, noise = 0.5 * normal(7, seed=1), root @ root.mT, 0.3
    variance = cov.diagonal()
    expected = [oracle.knowledge_gradient(mean.tolist(), cov.tolist(), i, noise) for i in range(7)]
    ours = knowledge_gradient(mean, cov, variance, noise)
    assert ours.tolist() == pytest.approx(expected, rel=1e-12, abs=1e-14)
    picks = torch.tensor([5, 1])
    some = knowledge_gradient(mean, cov[picks], variance[picks], mean.new_tensor(noise))
    torch.testing.assert_close(some, ours[picks], rtol=0, atol=1e-15)
    # What is seen is drawn from the belief and conditioned on.
    seen = mean[2] + (cov[2, 2] + noise).sqrt() * normal(100_000, seed=3)
    moved = mean + cov[2] / (cov[2, 2] + noise) * (seen - mean[2]).unsqueeze(-1)
    best = moved.amax(-1) - mean.max()
    assert abs(ours[2] - best.mean()) < 4 * best.std() / math.sqrt(len(best))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("noise", "rounding"),
    [
        (0.0, 0.0),
        (0.1, 0.0),
        (0.1, -1e-17),
        pytest.param(0.0, -1e-17),
    ],
)
def test_where_nothing_is_left_to_learn_nothing_is_gained(noise, rounding, dtype):
    mean, cov = torch.tensor([0.0, 1.0], dtype=dtype), torch.tensor([[rounding, 0.0]], dtype=dtype)
    gain = knowledge_gradient(mean, cov, cov[:, 0], noise)
    assert gain.tolist() == [0.0]
    assert gain.dtype == dtype


# -- laws -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits",
    [{}, {"_SMALL": 0}, {"_TOGETHER": 0, "_BLOCK": 4}],
    ids=["at once", "one by one", "by parts"],
)
def test_a_batch_is_a_loop(limits, monkeypatch):
    """Rows of one batch need different numbers of questions."""
    for name, number in limits.items():
        monkeypatch.setattr(module, name, number)
    names = ["random-60-0", "ties-60", "few-slopes-60", "parabola-60", "tangents-60", "flat-60"]
    a, b = (torch.stack(rows).view(2, 3, 60) for rows in zip(*map(LINES.get, names), strict=True))
    together = expected_rise(a, b)
    assert together.shape == (2, 3)
    for i in range(6):
        alone = expected_rise(a.view(6, -1)[i], b.view(6, -1)[i])
        torch.testing.assert_close(together.flatten()[i], alone, rtol=1e-14, atol=0)


def test_its_gradients_are_finite_differences():
    a, b = 0.3 * normal(3, 8), normal(3, 8, seed=1)
    assert torch.autograd.gradcheck(expected_rise, (a.requires_grad_(), b.requires_grad_()))
    cov = (normal(3, 3) @ normal(3, 3).mT).requires_grad_()
    mean, spread = a[0, :3].detach().requires_grad_(), cov.diagonal()

    def gain(mean, cov):
        return knowledge_gradient(mean, cov, cov.diagonal(), 0.1)

    assert spread.min() > 0
    assert torch.autograd.gradcheck(gain, (mean, cov))


def test_gradients_stay_finite_among_ties():
    a = torch.zeros(5).double().requires_grad_()
    b = torch.tensor([1.0, 1.0, 0.0, -1.0, -1.0]).double().requires_grad_()
    expected_rise(a, b).backward()
    assert a.grad.isfinite().all()
    assert b.grad.isfinite().all()
    assert a.grad.sum().item() == pytest.approx(0.0, abs=1e-15)  # a lift of all lines lifts nothing


@pytest.mark.parametrize("name", ["random-60-1", "integers-60", "tangents-60", "ties-10"])
def test_neither_order_nor_level_nor_tilt_matters(name):
    a, b = LINES[name]
    rise = expected_rise(a, b)
    order = torch.randperm(len(a), generator=torch.Generator().manual_seed(1))
    exact = {"rtol": 1e-12, "atol": 1e-13}
    torch.testing.assert_close(expected_rise(a[order], b[order]), rise, **exact)
    torch.testing.assert_close(expected_rise(a + 8.0, b), rise, **exact)
    torch.testing.assert_close(expected_rise(a, b - 0.5), rise, **exact)  # E z = 0
    torch.testing.assert_close(expected_rise(a, -b), rise, **exact)
    for unit in (1e-6, 1e3):
        torch.testing.assert_close(
            expected_rise(unit * a, unit * b), unit * rise, rtol=1e-9, atol=0
        )


def test_one_more_line_never_lowers_the_expected_maximum():
    a, b = normal(50, 20), normal(50, 20, seed=1)
    fewer = expected_rise(a[:, :-1], b[:, :-1]) + a[:, :-1].amax(-1)
    assert (expected_rise(a, b) + a.amax(-1) >= fewer - 1e-14).all()
    assert (expected_rise(a, b) >= 0).all()


@pytest.mark.parametrize("n", [1, 20, 300])
def test_single_precision_is_as_close_as_it_can_be(n):
    a, b = normal(30, n), normal(30, n, seed=1)
    single = expected_rise(a.float(), b.float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), expected_rise(a, b), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("tolerance", [1e-6, 1e-3, 0.1])
def test_a_tolerance_only_loses_and_not_more_than_it_says(tolerance):
    a, b = (torch.stack([LINES[f"{n}-300"][i] for n in NAMES]) for i in (0, 1))
    exact, rough = expected_rise(a, b), expected_rise(a, b, tolerance)
    lines = upper_envelope(a, b, tolerance).shape[-1]
    assert (rough <= exact + 1e-12 * exact.clamp_min(1)).all()
    assert (rough >= exact - lines * tolerance).all()
    assert lines < upper_envelope(a, b).shape[-1]
    assert (rough < exact).any()
    mean, cov, variance = a[0, :3], torch.eye(3).double(), torch.ones(3).double()
    assert (
        knowledge_gradient(mean, cov, variance, 0.1, 1.0)
        <= knowledge_gradient(mean, cov, variance, 0.1)
    ).all()


NAMES = ["parabola", "few-slopes", "ties", "high"]


def test_the_envelope_holds_every_line_that_is_the_maximum_somewhere():
    a, b = LINES["parabola-60"]
    actual = upper_envelope(a, b)
    z = torch.linspace(-6, 6, 2001).double().unsqueeze(-1)
    assert set((a + b * z).argmax(-1).tolist()) <= set(actual.tolist())
    assert (b[actual].diff() >= 0).all()  # by ascending slope


# -- roughly --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINES)
def test_roughly_it_is_never_more_and_rarely_much_less(name):
    a, b = LINES[name]
    exact, rough = expected_rise(a, b).item(), rough_rise(a, b).item()
    unit = (b.max() - b.min()).item()  # of what a query can move
    largest = max(1.0, a.abs().max().item(), b.abs().max().item())
    assert 0 <= rough <= exact + 1e-12 * largest
    assert rough >= exact - 0.05 * unit


def test_roughly_it_is_the_twin_of_the_same_strata():
    a, b = normal(5, 9), normal(5, 9, seed=1)
    for ours, *line in zip(rough_rise(a, b).tolist(), a.tolist(), b.tolist(), strict=True):
        highest = [
            w * max(m + s * z for m, s in zip(*line, strict=True)) for z, w in oracle.strata(MORE)
        ]
        assert ours == pytest.approx(math.fsum(highest) - max(line[0]), abs=1e-13)


def test_strata_are_conditional_means_and_probabilities():
    outcomes, weights = strata(MORE)
    expected = oracle.strata(MORE)
    assert outcomes.tolist() == pytest.approx([z for z, _ in expected], rel=1e-12)
    assert weights.tolist() == pytest.approx([w for _, w in expected], rel=1e-12)
    assert (weights * outcomes).sum().item() == pytest.approx(0.0, abs=1e-15)


def test_rough_gradients_are_finite_differences():
    a, b = normal(3, 6).requires_grad_(), normal(3, 6, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(rough_rise, (a, b))


@pytest.mark.parametrize("n", [1, 2, 3, 9, 40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_rise_of_few_lines_is_the_rise_of_the_envelope(n, dtype):
    """With parallel and equal lines, and equal heights."""
    generator = torch.Generator().manual_seed(n)
    for unit in (1e-3, 0.1, 1.0, 10.0):
        a, b = (torch.randn(60, n, generator=generator, dtype=dtype) for _ in range(2))
        b = unit * b
        if n > 3:
            a[:, 2], b[:, 2] = a[:, 1], b[:, 1]
            b[:20, 3] = b[:20, 0]
            a[20:30], b[30:40] = 0.0, 0.5
        expected = module.expected_rise(a.double(), b.double())
        ours = module.expected_rise_of_few(a, b)
        assert ours.dtype == dtype
        atol = 1e-13 if dtype == torch.float64 else 1e-5
        torch.testing.assert_close(ours.double(), expected, rtol=0, atol=atol)
    twice = module.expected_rise_of_few(a.view(2, 30, n), b.view(2, 30, n))
    assert torch.equal(twice.flatten(), ours)


@pytest.mark.parametrize("apart", [1e9, 1e30])
@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_parallel_lines_may_be_far_apart(apart, slope):
    a, b = torch.tensor([[apart, 0.0, 5.0], [0.0, -apart, 0.0]]), torch.full((2, 3), slope)
    b[1, 2] = 1.0 + slope
    expected = torch.tensor([0.0, (2 * torch.pi) ** -0.5])
    torch.testing.assert_close(module.expected_rise_of_few(a, b), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("between", [module.OUTCOMES, module.FAR_OUTCOMES, module.FEW_OUTCOMES])
def test_the_mean_maximum_is_the_rough_rise_above_the_largest_line(between):
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(3, 7, 5, generator=generator, dtype=torch.float64) for _ in range(2))
    before = a.clone(), b.clone()
    rise = module.mean_maximum(a, b, between) - a.amax(-2)
    torch.testing.assert_close(rise, module.rough_rise(a.mT, b.mT, between), rtol=1e-12, atol=1e-12)
    assert torch.equal(a, before[0])
    assert torch.equal(b, before[1])
