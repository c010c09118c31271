"""Each augmentation does what it says, to the share of pictures it should hit."""

import pytest
import torch

from benchmarks.suite import augmentation
from benchmarks.suite.augmentation import (
    AUGMENTATIONS,
    Chances,
    Doses,
    Strengths,
    TrivialAugment,
    augment,
)
from botorch_costly.errors import InvalidArgumentError


def only(**probabilities):
    return {**dict.fromkeys(AUGMENTATIONS, 0.0), **probabilities}


def augmented(pictures, strengths=None, **probabilities):
    p = torch.tensor(list(only(**probabilities).values()))
    return augment(pictures, p, strengths or Strengths(), torch.Generator().manual_seed(0))


@pytest.fixture
def pictures():
    return torch.rand(2000, 1, 8, 8, generator=torch.Generator().manual_seed(1))


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
        return augmentation._affine(hits, torch.ones(2), torch.ones(2, 2), strengths, side=8)

    @staticmethod
    def warp(pictures, affine):
        grid = torch.nn.functional.affine_grid(affine, list(pictures.shape), align_corners=False)
        return torch.nn.functional.grid_sample(pictures, grid, align_corners=False)


class TestSettings:
    def test_chances_are_read_by_name(self, pictures):
        settings = {"inversion": 1.0, "learning_rate": 0.1}
        altered = Chances()(pictures, settings, torch.Generator().manual_seed(0))
        torch.testing.assert_close(altered, 1 - pictures, rtol=0, atol=1e-5)

    def test_doses_hit_every_picture(self, pictures):
        altered = Doses()(pictures, {"noise": 0.2}, torch.Generator().manual_seed(0))
        change = altered - pictures
        assert change.abs().amax((1, 2, 3)).min() > 0
        assert abs(change.std() - 0.2) < 0.01

    def test_a_dose_of_nothing_changes_nothing(self, pictures):
        altered = Doses()(pictures, {}, torch.Generator().manual_seed(0))
        torch.testing.assert_close(altered, pictures, rtol=0, atol=1e-5)


class TestTrivialAugment:
    def test_each_picture_meets_one_operation_or_none(self):
        before = torch.rand(400, 1, 12, 12, generator=torch.Generator().manual_seed(0)) + 0.5
        alter = TrivialAugment()
        after = alter(before, {"rotation": 90.0}, torch.Generator().manual_seed(1))
        near = torch.isclose(after, before, atol=1e-4).flatten(1).float().mean(1)
        untouched = (near == 1).float().mean()
        assert 0.1 < untouched < 0.35  # a fifth, and the weakest cutouts
        cut = ((after == 0).flatten(1).sum(1) > 0) & (near > 0.5)
        assert 0.05 < cut.float().mean() < 0.3

    def test_settings_are_not_read_and_the_generator_decides(self):
        before = torch.rand(50, 1, 8, 8, generator=torch.Generator().manual_seed(2))
        alter = TrivialAugment()
        a, b, c = (
            alter(before, settings, torch.Generator().manual_seed(seed))
            for settings, seed in (({}, 0), ({"shift": 4.0}, 0), ({}, 1))
        )
        assert torch.equal(a, b)
        assert not torch.equal(a, c)

    def test_levels_weaken_noise_and_cutout(self):
        before = torch.full((2, 1, 8, 8), 0.5)
        strengths = Strengths(noise=0.5, cutout=6.0)
        for name in ("noise", "cutout"):
            chances = torch.tensor([float(a == name) for a in AUGMENTATIONS])
            generator = torch.Generator().manual_seed(0)
            levels = torch.tensor([0.0, 1.0])
            after = augment(before, chances, strengths, generator, levels)
            assert torch.allclose(after[0], before[0])
            assert not torch.allclose(after[1], before[1])
