"""Mean shift against scikit-learn, a naive implementation, and itself without batches."""

import pytest
import torch
from hypothesis import given, settings, strategies as st
from sklearn.cluster import MeanShift

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.numerics.mean_shift import mean_shift
from tests.cases import quick
from tests.oracles.mean_shift import mean_shift as naive_mean_shift


def blobs(n, d, number, spread, seed):
    generator = torch.Generator().manual_seed(seed)
    centers = torch.rand(number, d, generator=generator, dtype=torch.float64)
    which = torch.randint(number, (n,), generator=generator)
    return centers[which] + spread * torch.randn(n, d, generator=generator, dtype=torch.float64)


def clouds():
    for seed in range(4):
        for d in (1, 2, 8):
            yield f"blobs-{d}d-{seed}", blobs(80, d, 4, 0.05, seed), 0.2
            yield f"overlapping-{d}d-{seed}", blobs(60, d, 3, 0.2, seed), 0.3
    cloud = blobs(30, 2, 3, 0.03, 9)
    yield "duplicates", cloud.repeat(3, 1), 0.2
    yield "one point", cloud[:1], 0.2
    yield "all the same", cloud[:1].repeat(5, 1), 0.2
    yield "outliers", torch.cat([cloud, torch.tensor([[9.0, 9.0], [-9.0, 0.0]]).double()]), 0.2
    yield "all alone", torch.arange(7.0).double()[:, None] * torch.tensor([[3.0, -1.0]]), 0.2
    yield (
        "equal sizes",
        torch.tensor([[0.0, 1], [0, 1], [0, 5], [0, 5], [4, 0], [4, 0]]).double(),
        1,
    )
    lattice = torch.arange(6.0, dtype=torch.float64)
    yield "lattice", torch.cartesian_prod(lattice, lattice), 1.5


CLOUDS = {name: (points, bandwidth) for name, points, bandwidth in clouds()}


ALL_BUT_REPEATS = [name for name in CLOUDS if not name[-1].isdigit() or name.endswith("-0")]


@pytest.mark.parametrize("name", quick(CLOUDS, *ALL_BUT_REPEATS))
def test_same_centers_order_and_labels_as_scikit_learn(name):
    points, bandwidth = CLOUDS[name]
    expected = MeanShift(bandwidth=bandwidth, bin_seeding=False).fit(points.numpy())
    modes = mean_shift(points, bandwidth)
    assert modes.number == len(expected.cluster_centers_)
    torch.testing.assert_close(modes.centers, torch.from_numpy(expected.cluster_centers_))
    assert modes.labels.tolist() == expected.labels_.tolist()


@pytest.mark.parametrize(
    "name",
    quick(
        ["blobs-2d-0", "overlapping-2d-1", "duplicates", "equal sizes"], "blobs-2d-0", "equal sizes"
    ),
)
def test_same_as_the_naive_twin(name):
    points, bandwidth = CLOUDS[name]
    modes, labels = naive_mean_shift(points, bandwidth)
    fast = mean_shift(points, bandwidth)
    torch.testing.assert_close(fast.centers, torch.stack([center for center, _ in modes]))
    assert fast.sizes.tolist() == [size for _, size in modes]
    assert fast.labels.tolist() == labels


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(-20, 20), min_size=1, max_size=25), st.floats(0.3, 9.7))
def test_same_as_the_naive_twin_on_whole_numbers(numbers, bandwidth):
    points = torch.tensor(numbers, dtype=torch.float64)[:, None]
    modes, _ = naive_mean_shift(points, bandwidth)
    fast = mean_shift(points, bandwidth)
    torch.testing.assert_close(fast.centers, torch.stack([center for center, _ in modes]))
    assert fast.sizes.tolist() == [size for _, size in modes]


def test_seeds_and_weights_follow_the_naive_twin():
    points, bandwidth = CLOUDS["overlapping-2d-0"]
    seeds = torch.tensor([[0.5, 0.5], [0.0, 0.0], [50.0, 50.0]], dtype=torch.float64)
    weights = torch.arange(len(points)).remainder(4).double()
    for given_seeds in (None, seeds):
        modes, labels = naive_mean_shift(points, bandwidth, given_seeds, weights=weights)
        fast = mean_shift(points, bandwidth, given_seeds, weights=weights)
        torch.testing.assert_close(fast.centers, torch.stack([center for center, _ in modes]))
        assert fast.sizes.tolist() == [size for _, size in modes]
        assert fast.labels.tolist() == labels


def test_the_size_of_a_resting_seed_is_final():
    # The first seed rests after one shift, just as a third point comes within its effective horizon; the
    # second goes on moving, which must not count that point in.
    points = torch.tensor([-0.5, 0.501, 1.0004, 10.0, 10.9], dtype=torch.float64)[:, None]
    seeds = torch.tensor([[0.0], [9.5]], dtype=torch.float64)
    modes, _ = naive_mean_shift(points, 1.0, seeds)
    assert [size for _, size in modes] == [2.0, 2.0]
    assert mean_shift(points, 1.0, seeds).sizes.tolist() == [2.0, 2.0]


def test_a_point_of_weight_zero_is_not_there():
    points, bandwidth = CLOUDS["blobs-2d-0"]
    padded = torch.cat([points, torch.full((7, 2), 3.0).double()])
    weights = torch.cat([torch.ones(80), torch.zeros(7)]).double()
    expected, got = mean_shift(points, bandwidth), mean_shift(padded, bandwidth, weights=weights)
    torch.testing.assert_close(got.centers, expected.centers)
    assert torch.equal(got.labels[:80], expected.labels)


def test_a_batch_is_a_loop(tkwargs):
    batch = torch.stack([blobs(40, 2, number, 0.05, number) for number in range(1, 7)])
    batch = batch.reshape(2, 3, 40, 2).to(**tkwargs)
    together = mean_shift(batch, 0.2)
    assert together.centers.dtype == tkwargs["dtype"]
    for i in range(2):
        for j in range(3):
            alone = mean_shift(batch[i, j], 0.2)
            m = int(alone.number)
            assert together.number[i, j] == m
            torch.testing.assert_close(together.centers[i, j, :m], alone.centers)
            assert together.centers[i, j, m:].isnan().all()
            assert torch.equal(together.sizes[i, j, :m], alone.sizes)
            assert torch.equal(together.labels[i, j], alone.labels)


def test_no_shift_allowed_is_one_shift():
    points, bandwidth = CLOUDS["overlapping-2d-0"]
    expected = MeanShift(bandwidth=bandwidth, max_iter=0).fit(points.numpy())
    modes = mean_shift(points, bandwidth, max_iter=0)
    torch.testing.assert_close(modes.centers, torch.from_numpy(expected.cluster_centers_))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((torch.zeros(3, 2), 0.0), InvalidArgumentError),
        ((torch.zeros(3), 0.2), InvalidShapeError),
        ((torch.zeros(0, 2), 0.2), InvalidShapeError),
        ((torch.zeros(3, 2, dtype=torch.long), 0.2), InvalidShapeError),
        ((torch.full((3, 2), torch.nan), 0.2), InvalidArgumentError),
        ((torch.zeros(3, 2), 0.2, torch.zeros(1, 3)), InvalidShapeError),
        ((torch.zeros(3, 2), 0.2, torch.ones(1, 2)), InvalidArgumentError),
        ((torch.zeros(3, 2), 0.2, None, -1), InvalidArgumentError),
        ((torch.zeros(3, 2), 0.2, None, 9, torch.ones(2)), InvalidShapeError),
        ((torch.zeros(3, 2), 0.2, None, 9, -torch.ones(3)), InvalidArgumentError),
    ],
)
def test_bad_input_is_named(arguments, error):
    with pytest.raises(error, match=r"Expected .*; Received"):
        mean_shift(*arguments)
