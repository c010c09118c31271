"""Parts of contrastive learning: loss, LARS, views, networks, readouts, each by its definition."""

import pytest
import torch
import torch.distributed as dist
from torch import multiprocessing, nn

from benchmarks.suite.data import Part
from benchmarks.training.simclr import ranks
from benchmarks.training.simclr.augmentation import (
    AUGMENTATIONS,
    DRAWS,
    Strengths,
    augment,
    draw,
    one_operation,
)
from benchmarks.training.simclr.lars import LARS, groups_of
from benchmarks.training.simclr.loss import nt_xent
from benchmarks.training.simclr.networks import Contrasting
from benchmarks.training.simclr.readout import brief_probe, linear_readout, neighbours
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, NumericalError
from tests.oracles import contrastive


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*size: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(size, generator=seeded(seed), dtype=torch.float64)


class TestLoss:
    @pytest.mark.parametrize("temperature", [0.1, 0.5, 2.0])
    @pytest.mark.parametrize("n", [2, 5])
    def test_it_is_the_double_loop_of_the_paper(self, n, temperature):
        first, second = normal(n, 3), normal(n, 3, seed=1)
        expected = contrastive.nt_xent(first, second, temperature)
        assert nt_xent(first, second, temperature).item() == pytest.approx(expected, rel=1e-9)

    def test_its_gradient_is_finite_differences(self):
        views = [normal(4, 3, seed=seed).requires_grad_() for seed in (0, 1)]
        assert torch.autograd.gradcheck(nt_xent, views)

    def test_views_of_one_picture_alike_and_of_others_apart_are_best(self):
        apart, mixed = torch.eye(4), torch.eye(4).roll(1, 0)
        assert nt_xent(apart, apart) < nt_xent(apart, mixed)

    def test_bad_input(self):
        one = torch.ones(1, 3)
        with pytest.raises(InvalidArgumentError, match="at least two pictures"):
            nt_xent(one, one)
        with pytest.raises(InvalidShapeError, match="n x d"):
            nt_xent(torch.ones(2, 3), torch.ones(3, 3))
        with pytest.raises(InvalidArgumentError, match="temperature"):
            nt_xent(torch.eye(2), torch.eye(2), 0.0)


def _network() -> nn.Sequential:
    network = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4)).double()
    with torch.no_grad():
        for place, parameter in enumerate(network.parameters()):
            parameter.copy_(normal(*parameter.shape, seed=place))
    return network


def _contrast(examples: torch.Tensor) -> tuple[float, torch.Tensor]:
    """Return the loss over all processes, and the gradient that each of them is left with."""
    network, views = _network(), [ranks.mine(examples + shift) for shift in (0.0, 0.1)]
    loss = nt_xent(*(network(view) for view in views))
    loss.backward()
    ranks.average_gradients(network.parameters())
    flat = torch.cat([p.grad.flatten() for p in network.parameters()])
    return (ranks.total(loss.detach()) / ranks.many()).item(), flat


def _one_of_two(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    found = _contrast(normal(6, 6, seed=9))
    metric = ranks.of_first([0.5 + rank], torch.device("cpu"))
    torch.save((*found, metric), f"{folder}/{rank}")
    ranks.wait()
    ranks.leave()


@pytest.mark.slow
def test_two_processes_have_the_loss_and_the_gradient_of_one_with_the_whole_batch(tmp_path):
    loss, gradient = _contrast(normal(6, 6, seed=9))
    multiprocessing.spawn(_one_of_two, (str(tmp_path),), nprocs=2)
    for rank in (0, 1):
        theirs, flat, metric = torch.load(tmp_path / str(rank), weights_only=True)
        assert theirs == pytest.approx(loss, rel=1e-9)
        torch.testing.assert_close(flat, gradient, rtol=1e-8, atol=1e-10)
        assert metric == [0.5]  # both decide by what the first one found


class TestLARS:
    @pytest.mark.parametrize("start", [1.0, 0.0])
    def test_it_is_its_naive_twin(self, start):
        network = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).double()
        with torch.no_grad():
            for place, parameter in enumerate(network.parameters()):
                parameter.copy_(start * normal(*parameter.shape, seed=place))
        before = [p.detach().clone() for p in network.parameters()]
        gradients = [
            [normal(*p.shape, seed=10 * step + place) for step in range(3)]
            for place, p in enumerate(before)
        ]
        gradients[0][1].zero_()  # nothing to go by in one step
        optimizer = LARS(groups_of(network, 0.1), lr=0.7, momentum=0.8, trust=0.05)
        for step in range(3):
            for p, mine in zip(network.parameters(), gradients, strict=True):
                p.grad = mine[step].clone()
            optimizer.step()
        for p, was, mine in zip(network.parameters(), before, gradients, strict=True):
            adapted = p.dim() > 1
            options = {"lr": 0.7, "momentum": 0.8, "decay": 0.1, "trust": 0.05, "adapted": adapted}
            expected = contrastive.lars(was, mine, **options)
            torch.testing.assert_close(p.detach(), expected, rtol=1e-9, atol=1e-12)

    def test_the_size_of_the_gradient_does_not_matter_to_weights(self):
        ends = []
        for scale in (1.0, 1e4):
            weights = nn.Parameter(torch.ones(2, 2))
            optimizer = LARS([weights], lr=1.0)
            weights.grad = scale * torch.eye(2)
            optimizer.step()
            ends.append(weights.detach())
        torch.testing.assert_close(*ends)

    @pytest.mark.parametrize(
        ("name", "value"), [("lr", 0.0), ("momentum", 1.0), ("weight_decay", -1.0), ("trust", 0.0)]
    )
    def test_bad_options(self, name, value):
        with pytest.raises(InvalidArgumentError, match=name):
            LARS([nn.Parameter(torch.ones(1))], **{"lr": 1.0, name: value})


N = 4_000


def only(name: str, probability: float = 1.0) -> torch.Tensor:
    return torch.tensor([probability * (name == other) for other in AUGMENTATIONS])


def pictures(n: int = 8, side: int = 16) -> torch.Tensor:
    return torch.rand(n, 3, side, side, generator=seeded(3))


def altered(name: str, n: int = 8, side: int = 16, probability: float = 1.0) -> torch.Tensor:
    return augment(pictures(n, side), only(name, probability), draw(n, seeded(4)))


class TestViews:
    def test_nothing_is_changed_at_0(self):
        same = augment(pictures(), torch.zeros(8), draw(8, seeded()))
        assert torch.equal(same, pictures())

    @pytest.mark.parametrize("name", AUGMENTATIONS)
    def test_each_hits_as_often_as_it_is_asked_to(self, name):
        changed = (altered(name, N, 8, 0.3) != pictures(N, 8)).flatten(1).any(1)
        assert changed.double().mean().item() == pytest.approx(0.3, abs=0.03)
        hit = (altered(name, 50, 8) != pictures(50, 8)).flatten(1).any(1)
        assert hit.double().mean() > (0.8 if name == "blur" else 0.99)  # the least blur is none

    @pytest.mark.parametrize("name", AUGMENTATIONS)
    def test_pixels_stay_in_their_range(self, name):
        found = altered(name, 200)
        assert found.min() >= -1e-5
        assert found.max() <= 1 + 1e-5

    def test_ways_hit_independently_of_each_other(self):
        rates = only("grey", 0.5) + only("cutout", 0.5)
        found = augment(pictures(N, 8), rates, draw(N, seeded()))
        greyed = (found[:, 0] == found[:, 1]).flatten(1).all(1)
        holed = (found == 0.5).flatten(1).any(1)
        shares = [(greyed & holed), (greyed & ~holed), (~greyed & holed)]
        assert [s.double().mean().item() for s in shares] == pytest.approx([0.25] * 3, abs=0.03)

    def test_pictures_have_probabilities_of_their_own(self):
        rates = torch.zeros(N, 8)
        rates[: N // 2, AUGMENTATIONS.index("cutout")] = 1.0
        found = augment(pictures(N, 8), rates, draw(N, seeded()))
        changed = (found != pictures(N, 8)).flatten(1).any(1)
        assert changed.tolist() == [True] * (N // 2) + [False] * (N // 2)

    def test_flips_and_quarter_turns_are_exchanges_of_pixels(self):
        torch.testing.assert_close(altered("flip_horizontal"), pictures().flip(-1))
        torch.testing.assert_close(altered("flip_vertical"), pictures().flip(-2))
        turned, seen = altered("rotation", 60), set()
        for before, after in zip(pictures(60), turned, strict=True):
            quarters = [
                k for k in range(4) if torch.allclose(before.rot90(k, (-2, -1)), after, atol=1e-4)
            ]
            assert len(quarters) == 1
            seen |= set(quarters)
        assert seen == {1, 2, 3}

    def test_a_crop_shows_a_part_of_the_picture_in_its_order(self):
        ramp = torch.linspace(0, 1, 16).expand(N, 3, 16, 16)  # grows to the right
        found = augment(ramp, only("crop"), draw(N, seeded()))
        left, right = found[:, 0, 8, 0], found[:, 0, 8, -1]
        assert (right > left).all()
        widths = right - left  # of the window, but for its ends
        assert widths.min() > 0.15
        assert widths.max() > 0.95
        # The mean of sqrt(area), which an even area in [0.08, 1] has, and a ratio near 1.
        assert widths.mean().item() == pytest.approx((2 / 3) * (1 - 0.08**1.5) / 0.92, abs=0.03)
        assert left.max() > 0.6  # anywhere

    def test_colours_change_within_their_ranges(self):
        grey = torch.full((N, 3, 4, 4), 0.5)
        found = augment(grey, only("colour"), draw(N, seeded()))
        bright = found.mean((1, 2, 3)) / 0.5  # of a grey, the brightness alone changes
        assert bright.min().item() == pytest.approx(0.6, abs=0.01)
        assert bright.max().item() == pytest.approx(1.4, abs=0.01)
        none = augment(pictures(), only("colour"), draw(8, seeded()), Strengths(colour=0.0))
        torch.testing.assert_close(none, pictures(), rtol=0, atol=1e-5)

    def test_a_hole_has_its_size_and_lies_anywhere(self):
        white = torch.ones(N, 3, 16, 16)
        hole = augment(white, only("cutout"), draw(N, seeded()))[:, 0] == 0.5
        sizes = hole.sum((1, 2))
        assert sizes.max() == 64  # 8 x 8, less where it leaves the picture
        assert sizes.min() >= 16
        assert hole.double().mean(0).min() > 0.05

    def test_a_blur_keeps_the_mean_and_makes_edges_soft(self):
        found = altered("blur", 500)
        torch.testing.assert_close(found.mean(), pictures(500).mean(), rtol=0.01, atol=0)
        spread = found.flatten(1).std(1) / pictures(500).flatten(1).std(1)
        assert spread.max() <= 1 + 1e-6
        assert spread.min().item() == pytest.approx(
            1 / 3, abs=0.06
        )  # the widest: nearly a mean of 9
        flat = augment(torch.full((4, 3, 8, 8), 0.3), only("blur"), draw(4, seeded()))
        torch.testing.assert_close(flat, torch.full((4, 3, 8, 8), 0.3))

    def test_grey_is_the_luma_in_all_channels(self):
        found = altered("grey")
        luma = (pictures() * torch.tensor([0.299, 0.587, 0.114])[:, None, None]).sum(1)
        torch.testing.assert_close(found, luma[:, None].expand_as(found))

    def test_one_operation_draws_each_evenly_and_none_as_often(self):
        chosen = one_operation(draw(9 * N // 4, seeded()))
        assert set(chosen.sum(1).tolist()) == {0.0, 1.0}
        assert chosen.mean(0).tolist() == pytest.approx([1 / 9] * 8, abs=0.02)

    def test_bad_input(self):
        views = pictures(2)
        with pytest.raises(InvalidShapeError, match="pictures"):
            augment(views[:, :1], torch.zeros(8), draw(2, seeded()))
        with pytest.raises(InvalidShapeError, match="probabilities"):
            augment(views, torch.zeros(7), draw(2, seeded()))
        with pytest.raises(InvalidShapeError, match="draws"):
            augment(views, torch.zeros(8), torch.zeros(2, DRAWS - 1))
        with pytest.raises(InvalidArgumentError, match="colour"):
            Strengths(colour=1.5)
        with pytest.raises(InvalidArgumentError, match="count"):
            draw(0, seeded())


class TestReadouts:
    def test_neighbours_are_those_of_the_naive_twin(self):
        part = Part(normal(30, 4), torch.arange(30) % 3)
        for k in (1, 7, 29):
            found = neighbours(part, 3, k)
            assert (found.accuracy, found.loss) == pytest.approx(
                contrastive.neighbours(*part, 3, k), rel=1e-6
            )

    @pytest.mark.parametrize("readout", [neighbours, brief_probe])
    def test_what_lies_apart_is_told_apart_and_noise_is_not(self, readout):
        targets = (
            torch.arange(200) % 4
        )  # in an order in which neither half may have two classes alone
        apart = 5 * torch.eye(4, dtype=torch.float64)[targets] + normal(200, 4)
        assert readout(Part(apart, targets), 4).accuracy > 0.95
        assert readout(Part(normal(200, 4), targets), 4).accuracy < 0.45

    def test_the_linear_readout_finds_the_plane_between_classes(self):
        features = normal(600, 5)
        targets = (features[:, 0] + features[:, 1] > 0).long()
        train, test = (Part(features[at], targets[at]) for at in (slice(300), slice(300, 600)))
        assert linear_readout(train, test, 2).accuracy > 0.95

    def test_bad_input(self):
        broken = Part(torch.full((30, 3), torch.nan), torch.zeros(30, dtype=torch.long))
        for readout in (neighbours, brief_probe):
            with pytest.raises(NumericalError, match="features"):
                readout(broken, 2)
        with pytest.raises(InvalidArgumentError, match="more than k = 20 pictures"):
            neighbours(Part(normal(20, 3), torch.zeros(20, dtype=torch.long)), 2)
        with pytest.raises(InvalidArgumentError, match="at least two"):
            brief_probe(Part(normal(1, 3), torch.zeros(1, dtype=torch.long)), 2)


class TestNetworks:
    def test_the_global_generator_is_left_alone_and_weights_come_from_their_own(self):
        before = torch.get_rng_state()
        one, same, other = (Contrasting("small", generator=seeded(s)) for s in (0, 0, 1))
        assert torch.equal(torch.get_rng_state(), before)
        weights = [network.encoder[0].weight for network in (one, same, other)]
        assert torch.equal(weights[0], weights[1])
        assert not torch.equal(weights[0], weights[2])

    def test_resnet18_has_a_stem_for_small_pictures(self):
        pytest.importorskip("torchvision", reason="the extra `vision`")
        network = Contrasting("resnet18", generator=seeded()).eval()
        assert network.encoder.conv1.stride == (1, 1)
        assert network.features == 512
        with torch.no_grad():
            assert network(torch.zeros(2, 3, 16, 16)).shape == (2, 64)

    def test_an_encoder_that_is_not_there(self, monkeypatch):
        with pytest.raises(InvalidArgumentError, match="resnet18"):
            Contrasting("resnet50", generator=seeded())
        monkeypatch.setitem(__import__("sys").modules, "torchvision", None)
        with pytest.raises(InvalidArgumentError, match="extra `vision`"):
            Contrasting("resnet18", generator=seeded())
