"""The updated Cholesky factor against a new factorization, and factors of singular covariances."""

import pytest
import torch

from botorch_costly.errors import InvalidShapeError, NumericalError
from botorch_costly.models import LogLinearCost, TaskEnsemble
from botorch_costly.numerics.cholesky import append, empty_factor, factorize, remove, sure_root
from botorch_costly.numerics.radial import FAMILIES
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.problems import DriftingFunction
from tests.oracles import cholesky as oracle

NOISE = 0.02
LINE = torch.linspace(0, 1, 200).unsqueeze(-1)
EXACT = {"rtol": 1e-8, "atol": 1e-8}


@pytest.fixture
def rows(generator):
    """1,000 rows of a Matérn-3/2 kernel times forgetting, and two right-hand sides."""
    numbers = {"dtype": torch.float64, "device": generator.device}
    x = torch.rand(1000, 2, generator=generator, **numbers)
    t = torch.arange(1000.0, **numbers)
    r = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist") * 3**0.5 / 0.3
    kernel = (1 + r) * (-r).exp() * 0.99 ** ((t[:, None] - t).abs() / 2)
    return kernel, torch.randn(1000, 2, generator=generator, **numbers)


def noisy(kernel):
    return kernel + NOISE * torch.eye(kernel.shape[-1], dtype=kernel.dtype, device=kernel.device)


def appended(factor, kernel, y, held, new):
    noise = kernel.new_tensor(NOISE).expand(kernel.shape[:-2])
    cross, prior = kernel[..., new, held], kernel[..., new, new]
    return append(factor, cross, prior, noise, y[..., new, :])


def assert_same(factor, expected, **tolerance):
    for got, wanted in zip(factor, expected, strict=True):
        torch.testing.assert_close(got, wanted, **tolerance)


def test_factorizing_is_the_textbook(rows):
    kernel, y = rows
    matrix = noisy(kernel[:30, :30])
    assert_same(factorize(matrix, y[:30]), oracle.factorize(matrix, y[:30]), **EXACT)


def test_appending_row_by_row_is_factorizing(rows):
    kernel, y = rows
    factor = empty_factor(2, device=y.device)
    for n in range(30):
        factor, jitter = appended(factor, kernel, y, list(range(n)), n)
        assert jitter.amount == 0
    assert_same(factor, oracle.factorize(noisy(kernel[:30, :30]), y[:30]), **EXACT)


@pytest.mark.parametrize("index", [0, 1, 7, 13, 14])
def test_removing_a_row_is_factorizing_without_it(rows, index):
    kernel, y = rows
    keep = [i for i in range(15) if i != index]
    factor = remove(factorize(noisy(kernel[:15, :15]), y[:15]), index)
    expected = oracle.factorize(noisy(kernel[keep][:, keep]), y[keep])
    assert_same(factor, expected, rtol=1e-12, atol=1e-12)


def test_removing_the_only_row_leaves_the_empty_factor(rows):
    kernel, y = rows
    assert_same(
        remove(factorize(noisy(kernel[:1, :1]), y[:1]), 0), empty_factor(2, device=y.device)
    )


def test_a_batch_is_a_loop(rows):
    kernel, y = rows
    starts = [[0, 100, 200], [300, 400, 500]]
    take = [[slice(s, s + 8) for s in row] for row in starts]
    kernels = torch.stack([torch.stack([kernel[s, s] for s in row]) for row in take])
    ys = torch.stack([torch.stack([y[s] for s in row]) for row in take])
    factor = empty_factor(2, torch.Size([2, 3]), device=y.device)
    for n in range(8):
        factor, jitter = appended(factor, kernels, ys, list(range(n)), n)
    factor = remove(factor, 4)
    assert jitter.amount.shape == (2, 3)
    keep = [0, 1, 2, 3, 5, 6, 7]
    for i in range(2):
        for j in range(3):
            matrix = noisy(kernels[i, j][keep][:, keep])
            alone = oracle.factorize(matrix, ys[i, j][keep])
            assert_same([tensor[i, j] for tensor in factor], alone, rtol=1e-12, atol=1e-12)


def test_a_thousand_appends_and_drops_do_not_drift_off(rows):
    kernel, y = rows
    held, factor, drawn = [], empty_factor(2, device=y.device), torch.Generator().manual_seed(0)
    for new in range(1000):
        factor, _ = appended(factor, kernel, y, held, new)
        held.append(new)
        while len(held) > 40 or (len(held) > 5 and torch.rand((), generator=drawn) < 0.4):
            # Sometimes the oldest, sometimes any.
            oldest = torch.rand((), generator=drawn) < 0.5
            at = 0 if oldest else int(torch.randint(len(held), (), generator=drawn))
            factor = remove(factor, at)
            del held[at]
        if new % 250 == 249:
            expected = oracle.factorize(noisy(kernel[held][:, held]), y[held])
            assert_same(factor, expected, **EXACT)


@pytest.mark.parametrize("number", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_thousands_of_identical_rows_noisy_and_almost_exact(number):
    window = 30
    noise = torch.tensor([1e-2, 1e-6], dtype=torch.float64)
    ones = torch.ones(2, window, dtype=torch.float64)
    y = torch.linspace(-1, 2, number, dtype=torch.float64)
    factor = empty_factor(1, torch.Size([2]))
    for n in range(number):
        if n >= window:
            factor = remove(factor, 0)
        held = min(n, window - 1)
        factor, jitter = append(factor, ones[:, :held], ones[:, 0], noise, y[n].expand(2, 1))
        assert (jitter.amount == 0).all()
    # One unknown number seen `window` times: the conjugate normal posterior.
    projected = factor.inverse.sum(-1)
    mean = (projected * factor.whitened[..., 0]).sum(-1)
    torch.testing.assert_close(mean, y[-window:].sum() / (window + noise), **EXACT)
    torch.testing.assert_close(projected.square().sum(-1), window / (window + noise), **EXACT)
    for i in range(2):
        matrix = ones[0].outer(ones[0]) + noise[i] * torch.eye(window, dtype=torch.float64)
        chol, _, _ = oracle.factorize(matrix, y[-window:, None])
        torch.testing.assert_close(factor.chol[i], chol, **EXACT)


def test_jitter_is_reported_only_where_noise_is_below_the_least_pivot():
    # Identical rows: rounding may push their posterior variance below zero, never the pivot.
    prior = torch.full((3,), 2.0, dtype=torch.float64)
    noise = torch.tensor([0.1, 2e-10, 1e-14], dtype=torch.float64)
    factor, y = empty_factor(1, torch.Size([3])), torch.ones(3, 1, dtype=torch.float64)
    added = []
    for n in range(40):
        factor, jitter = append(factor, prior[:, None].expand(3, n), prior, noise, y)
        assert (factor.chol[:, -1, -1].square() >= noise * (1 - 1e-12)).all()
        added.append(jitter.amount)
    added = torch.stack(added)
    assert (added[:, :2] == 0).all()
    assert added[0, 2] == 0  # the first row needs none
    assert ((added[1:, 2] > 0) & (added[1:, 2] <= 2e-10)).all()
    assert all(tensor.isfinite().all() for tensor in factor)


@pytest.mark.parametrize(
    ("noise", "dtype", "tolerance"),
    [(1e-10, torch.float64, 1e-10), (1.5e-4, torch.float32, 1e-4)],
)
def test_errors_do_not_feed_on_themselves_in_an_ill_conditioned_window(noise, dtype, tolerance):
    x = torch.rand(300, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    kernel = (-((x - x.mT) ** 2) * 2).exp()  # numerically of rank 10
    factor, held = empty_factor(1, dtype=dtype), []
    for new in range(300):
        cross, unit = kernel[new, held].to(dtype), torch.ones((), dtype=dtype)
        factor, jitter = append(factor, cross, unit, noise * unit, unit[None])
        held.append(new)
        if len(held) > 40:
            factor = remove(factor, 0)
            del held[0]
    matrix = kernel[held][:, held] + noise * torch.eye(40).double()
    chol = factor.chol.double()
    torch.testing.assert_close(chol @ chol.mT, matrix, rtol=0, atol=tolerance)
    assert jitter.amount == 0


def test_too_little_noise_for_single_precision_is_made_up_for():
    x = torch.rand(300, 1, generator=torch.Generator().manual_seed(0))
    kernel = (-((x - x.mT) ** 2) * 2).exp()
    factor, unit, added = empty_factor(1, dtype=torch.float32), torch.ones(()), []
    for new in range(300):
        held = list(range(max(new - 40, 0), new))
        factor, jitter = append(factor, kernel[new, held], unit, 1e-6 * unit, unit[None])
        factor = remove(factor, 0) if new >= 40 else factor
        added.append(jitter.amount)
    assert all(tensor.isfinite().all() for tensor in factor)
    assert 1e-5 < torch.stack(added).max() < 2e-4


def test_a_variance_that_rounding_pushed_below_zero_counts_as_zero():
    unit = torch.ones((), dtype=torch.float64)
    factor, _ = append(empty_factor(1), unit[None][:0], unit, 0 * unit, unit[None])
    grown, jitter = append(factor, (unit + 1e-7)[None], unit, 1e-5 * unit, unit[None])
    assert grown.chol[1, 1].item() ** 2 == pytest.approx(1e-5, rel=1e-12)
    assert jitter.amount == 0


def test_dtype_and_device_are_kept(rows, tkwargs):
    kernel, y = (tensor.to(**tkwargs) for tensor in rows)
    factor = remove(factorize(noisy(kernel[:6, :6]), y[:6]), 2)
    factor, _ = appended(factor, kernel, y, [0, 1, 3, 4, 5], 6)
    for tensor in (*factor, *empty_factor(2, **tkwargs)):
        assert tensor.dtype == tkwargs["dtype"]
        assert tensor.device.type == tkwargs["device"].type


@pytest.mark.parametrize("index", [-1, 3])
def test_there_is_no_such_row(rows, index):
    kernel, y = rows
    with pytest.raises(InvalidShapeError, match=r"index: Expected a row in 0\.\.2"):
        remove(factorize(noisy(kernel[:3, :3]), y[:3]), index)


@pytest.mark.parametrize(("cross", "width"), [(2, 2), (4, 2), (3, 1), (3, 3)])
def test_wrong_shapes_are_named(rows, cross, width):
    kernel, y = rows
    factor, unit = factorize(noisy(kernel[:3, :3]), y[:3]), y.new_ones(())
    with pytest.raises(InvalidShapeError, match=r"Expected . entries; Received"):
        append(factor, y.new_zeros(cross), unit, unit, y.new_zeros(width))


def test_an_indefinite_matrix_is_named():
    indefinite = torch.tensor([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(NumericalError, match="non-positive pivot in row 2"):
        factorize(indefinite, torch.ones(2, 1))


# -- singular covariances ----------------------------------------------------------------------


def test_a_positive_definite_matrix_has_its_own_factor():
    cov = torch.eye(3, dtype=torch.float64) + 0.5
    assert torch.equal(sure_root(cov), torch.linalg.cholesky(cov))


def test_only_singular_matrices_of_a_batch_get_jitter():
    good, bad = torch.eye(4) + 0.5, torch.ones(4, 4) - 1e-7 * torch.eye(4)
    root = sure_root(torch.stack([good, bad]).expand(2, 2, 4, 4))
    assert torch.equal(root[1, 0], torch.linalg.cholesky(good))
    torch.testing.assert_close(root[0, 1] @ root[0, 1].mT, bad, rtol=1e-3, atol=1e-3)


def test_numbers_that_are_not_finite_are_refused():
    with pytest.raises(NumericalError, match="cov: Expected a positive definite matrix"):
        sure_root(torch.full((2, 2), torch.nan))


@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
def test_single_precision_tolerates_repeated_points(kernel):
    points = LINE[[0, 90, 199]].repeat(60, 1)
    tasks = TaskEnsemble([points], [points.squeeze(-1)], kernel=kernel).fit()
    assert tasks.moments(LINE).mean.isfinite().all()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lengthscale", [0.2, 100.0])
def test_single_precision_tolerates_close_points_of_a_drifting_function(family, lengthscale):
    kernel = Stationary(family, torch.tensor([lengthscale]), torch.tensor(1.0))
    truth = DriftingFunction(LINE, kernel, forgetting=0.1, noise=0.1)
    assert truth.paths(2, 1, torch.Generator().manual_seed(0)).isfinite().all()


def test_costs_tolerate_large_collinear_inputs():
    rows = 1e8 * LINE.repeat(1, 3)
    cost = LogLinearCost(rows, 1 + LINE)
    assert cost(rows).isfinite().all()
