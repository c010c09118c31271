import copy
import io
import math

import pytest
import torch

from benchmarks.online_suite import digits_augmentation as digits
from benchmarks.online_suite.digits_augmentation import (
    AUGMENTATIONS,
    DigitsAugmentation,
    Strengths,
    augment,
)
from benchmarks.online_suite.protocol import Metrics, OnlineProblem, TrainingRun
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError, StateMismatchError

pytest.importorskip("sklearn")


def only(**probabilities):
    return {**dict.fromkeys(AUGMENTATIONS, 0.0), **probabilities}


def augmented(pictures, strengths=None, **probabilities):
    p = torch.tensor(list(only(**probabilities).values()))
    return augment(pictures, p, strengths or Strengths(), torch.Generator().manual_seed(0))


@pytest.fixture
def pictures():
    return torch.rand(2000, 1, 8, 8, generator=torch.Generator().manual_seed(1))


def same_state(a, b):
    """Compare nested states bit for bit."""
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_state(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same_state, a, b))
    return a == b


class TestAugment:
    @pytest.mark.parametrize(
        ("name", "definition"),
        [
            ("horizontal_flip", lambda x: x.flip(-1)),
            ("vertical_flip", lambda x: x.flip(-2)),
            ("transpose", lambda x: x.mT),
            ("inversion", lambda x: 1 - x),
        ],
    )
    def test_certain_augmentations_are_what_they_say(self, pictures, name, definition):
        torch.testing.assert_close(
            augmented(pictures, **{name: 1.0}), definition(pictures), rtol=0, atol=1e-5
        )

    def test_nothing_happens_at_probability_zero(self, pictures):
        torch.testing.assert_close(augmented(pictures), pictures, rtol=0, atol=1e-5)

    @pytest.mark.parametrize("name", AUGMENTATIONS)
    def test_a_probability_is_the_share_of_pictures_hit(self, pictures, name):
        changed = (augmented(pictures, **{name: 0.25}) - pictures).abs().amax((1, 2, 3)) > 1e-4
        assert abs(changed.double().mean() - 0.25) < 0.03

    def test_augmentations_hit_independently(self):
        ones = torch.ones(2000, 1, 8, 8)
        out = augmented(ones, inversion=0.5, cutout=0.5)
        inverted = out.amax((1, 2, 3)) < 0.5
        cut = augmented(ones, cutout=0.5).amin((1, 2, 3)) < 0.5  # the same draws
        assert abs((inverted & cut).double().mean() - 0.25) < 0.04

    def test_a_full_rotation_is_rot90(self, pictures):
        affine = self.affine(rotation=True, shift=False, strengths=Strengths(rotation=90.0))
        torch.testing.assert_close(
            self.warp(pictures[:2], affine), pictures[:2].rot90(1, (-2, -1)), rtol=0, atol=1e-5
        )

    def test_a_full_shift_moves_by_its_pixels(self, pictures):
        affine = self.affine(rotation=False, shift=True, strengths=Strengths(shift=2.0))
        warped = self.warp(pictures[:2], affine)  # reads from 2 right, 2 below
        torch.testing.assert_close(warped[..., :6, :6], pictures[:2, :, 2:, 2:], rtol=0, atol=1e-5)
        assert warped[..., 6:, :].abs().max() < 1e-5

    def test_angles_cover_both_directions_within_the_strength(self):
        bar = torch.zeros(500, 1, 8, 8)
        bar[..., 3:5, 1:7] = 1.0
        out = augmented(bar, Strengths(rotation=30.0), rotation=1.0)
        grid = torch.arange(8) - 3.5
        xx, yy, xy = (
            (out * moment).sum((1, 2, 3))
            for moment in (grid**2, grid[:, None] ** 2, grid * grid[:, None])
        )
        degrees = torch.rad2deg(0.5 * torch.atan2(2 * xy, xx - yy))
        assert -32 < degrees.min() < -25
        assert 25 < degrees.max() < 32

    def test_cutout_is_a_square_of_background(self):
        out = augmented(torch.ones(300, 1, 8, 8), Strengths(cutout=3.0), cutout=1.0)
        rows, columns = (out == 0).any(-1).sum(-1), (out == 0).any(-2).sum(-1)
        assert torch.equal((out == 0).sum((-1, -2)), rows * columns)  # a full rectangle
        assert rows.max() == columns.max() == 3
        assert (rows * columns == 9).double().mean() > 0.4  # others hang over the edge

    def test_noise_has_its_standard_deviation(self, pictures):
        noise = augmented(pictures, Strengths(noise=0.2), noise=1.0) - pictures
        assert abs(noise.mean()) < 0.01
        assert abs(noise.std() - 0.2) < 0.01

    def test_a_negative_strength_is_named(self):
        with pytest.raises(InvalidArgumentError, match=r"noise: Expected .* Received -1"):
            Strengths(noise=-1.0)

    @staticmethod
    def affine(rotation, shift, strengths):
        hits = dict.fromkeys(AUGMENTATIONS, torch.tensor([False, False]))
        hits |= {"rotation": torch.tensor([rotation] * 2), "shift": torch.tensor([shift] * 2)}
        return digits._affine(hits, torch.ones(2), torch.ones(2, 2), strengths, side=8)

    @staticmethod
    def warp(pictures, affine):
        grid = torch.nn.functional.affine_grid(affine, list(pictures.shape), align_corners=False)
        return torch.nn.functional.grid_sample(pictures, grid, align_corners=False)


class TestSplit:
    def test_parts_are_disjoint_complete_and_stratified(self):
        _, labels = digits._digits()
        parts = digits.split(labels, torch.Generator().manual_seed(3))
        assert [len(part) for part in parts.values()] == [200, 400, 1197]
        assert torch.equal(torch.cat(list(parts.values())).sort().values, torch.arange(1797))
        assert (labels[parts["train"]].bincount() == 20).all()
        assert (labels[parts["validation"]].bincount() == 40).all()

    def test_the_draw_depends_on_the_seed(self):
        _, labels = digits._digits()
        one, two = (digits.split(labels, torch.Generator().manual_seed(s)) for s in (0, 1))
        shared = set(one["train"].tolist()) & set(two["train"].tolist())
        assert len(shared) < 60  # 22 expected of two independent draws


class TestRun:
    def test_the_problem_is_one_of_the_suite(self):
        problem = DigitsAugmentation()
        assert isinstance(problem, OnlineProblem)
        assert isinstance(problem.setup(0), TrainingRun)
        assert list(problem.ranges) == list(problem.default) == list(AUGMENTATIONS)

    def test_a_resumed_run_continues_bit_for_bit(self):
        problem = DigitsAugmentation()
        straight = problem.setup(5)
        for _ in range(3):
            straight.train_round(problem.default)
        file = io.BytesIO()
        torch.save(straight.state_dict(), file)
        file.seek(0)
        resumed = problem.setup(5)
        resumed.load_state_dict(torch.load(file, weights_only=True))
        for _ in range(3):
            straight.train_round(problem.default)
            resumed.train_round(problem.default)
        assert resumed.round == 6
        assert same_state(straight.state_dict(), resumed.state_dict())
        assert straight.test() == resumed.test()

    def test_the_same_seed_gives_the_same_run_and_another_seed_another(self):
        a, b, c = (DigitsAugmentation().setup(seed) for seed in (1, 1, 2))
        for run in (a, b, c):
            run.train_round(only(shift=0.5))
        assert same_state(a.state_dict(), b.state_dict())
        assert a.validate() != c.validate()

    def test_the_order_of_a_config_does_not_matter(self):
        a, b = (DigitsAugmentation().setup(0) for _ in range(2))
        config = only(noise=1.0)
        a.train_round(config)
        b.train_round(dict(reversed(config.items())))
        assert same_state(a.state_dict(), b.state_dict())

    def test_the_global_generator_is_left_alone(self):
        before = torch.get_rng_state()
        run = DigitsAugmentation().setup(0)
        run.train_round(DigitsAugmentation().default)
        run.validate()
        assert torch.equal(torch.get_rng_state(), before)

    def test_looking_changes_nothing(self):
        run = DigitsAugmentation().setup(0)
        run.train_round(DigitsAugmentation().default)
        before = copy.deepcopy(run.state_dict())
        assert run.validate() == run.validate()
        run.test()
        assert same_state(run.state_dict(), before)

    def test_the_three_parts_are_the_ones_measured(self):
        run = DigitsAugmentation().setup(0)
        for part, measure in (("validation", run.validate), ("test", run.test)):
            pictures, labels = run._parts[part]
            right = run._logits(pictures).argmax(-1) == labels
            assert measure().accuracy == pytest.approx(right.double().mean().item())

    def test_training_learns(self):
        run = DigitsAugmentation().setup(0)
        before = run.validate()
        for _ in range(25):
            run.train_round(only(shift=0.3))
        after = run.validate()
        assert after.accuracy > 0.75
        assert after.loss < before.loss / 2

    def test_a_diverged_network_has_an_infinite_loss(self):
        run = DigitsAugmentation().setup(0)
        with torch.no_grad():
            next(run._network.parameters()).fill_(math.nan)
        assert run.validate().loss == math.inf

    @pytest.mark.slow
    def test_the_default_is_bad_and_a_good_setting_is_better_than_none(self):
        accuracy = {}
        problem = DigitsAugmentation()
        good = only(rotation=0.5, shift=0.5, noise=0.5)
        for name, config in {"half": problem.default, "off": only(), "good": good}.items():
            run = problem.setup(100)
            for _ in range(problem.horizon):
                run.train_round(config)
            accuracy[name] = run.test().accuracy
        assert accuracy["half"] < 0.75
        assert 0.9 < accuracy["off"] < accuracy["good"]


class TestErrors:
    @pytest.mark.parametrize(
        "config",
        [{}, {"rotation": 0.5}, only(blur=0.5), only(noise=1.5), only(noise=math.nan)],
    )
    def test_a_bad_config_is_refused_and_nothing_is_trained(self, config):
        run = DigitsAugmentation().setup(0)
        with pytest.raises(InvalidConfigError, match="Expected"):
            run.train_round(config)
        assert run.round == 0

    def test_a_state_of_another_seed_is_refused(self):
        state = DigitsAugmentation().setup(1).state_dict()
        with pytest.raises(StateMismatchError, match="seed: Expected 0; Received 1"):
            DigitsAugmentation().setup(0).load_state_dict(state)

    def test_a_state_of_another_problem_is_refused(self):
        state = DigitsAugmentation(width=8).setup(0).state_dict()
        with pytest.raises(StateMismatchError, match=r"problem: Expected .*'width': 16"):
            DigitsAugmentation().setup(0).load_state_dict(state)

    def test_an_incomplete_state_is_refused(self):
        run = DigitsAugmentation().setup(0)
        with pytest.raises(StateMismatchError, match="keys"):
            run.load_state_dict({"seed": 0})

    @pytest.mark.parametrize("bad", [{"width": 0}, {"learning_rate": 0.0}])
    def test_a_bad_problem_is_refused(self, bad):
        with pytest.raises(InvalidArgumentError):
            DigitsAugmentation(**bad)

    @pytest.mark.parametrize("bad", [(-1.0, 0.5), (math.nan, 0.5), (1.0, 1.5)])
    def test_metrics_are_checked(self, bad):
        with pytest.raises(InvalidArgumentError):
            Metrics(*bad)
