"""Self-tuning networks: layers are their formula, and the hypergradient that of the best response."""

import math

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from benchmarks.training.stn import (
    AUGMENTATIONS,
    SMALL,
    VGG16,
    Bounds,
    Hyperparameters,
    SelfTuning,
    SelfTuningNetwork,
    STNBatchNorm2d,
    STNConv2d,
    STNLinear,
    augment,
    drop,
    hypergradient,
    training_loss,
    tuning_loss,
    tuning_objective,
)
from benchmarks.training.stn.augmentation import HOLES, holes, jitter
from benchmarks.training.stn.networks import dropout_bounds
from botorch_costly.errors import InvalidArgumentError
from tests.oracles import self_tuning

K = 3


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*size: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(size, generator=seeded(seed), dtype=torch.float64)


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def strong(layer):
    """Return a layer in double precision whose response is not small."""
    layer = layer.double()
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if "response" in name:
                parameter.mul_(100)
    return layer


class TestLayers:
    @pytest.mark.parametrize("rows", [1, 6])
    def test_a_linear_layer_is_its_formula(self, rows):
        layer = strong(STNLinear(4, 5, hyperparameters=K, generator=seeded()))
        x, h = normal(6, 4), normal(rows, K, seed=2)
        close(layer(x, h), self_tuning.linear(layer, x, h.expand(6, K)))

    @pytest.mark.parametrize("rows", [1, 5])
    @pytest.mark.parametrize("bias", [False, True])
    @pytest.mark.parametrize("stride", [1, 2])
    @pytest.mark.parametrize("side", [4, 16])  # twice the layer, and weights for each example
    def test_a_convolution_is_its_formula(self, rows, bias, stride, side):
        layer = strong(
            STNConv2d(8, 6, hyperparameters=K, generator=seeded(), stride=stride, bias=bias)
        )
        x, h = normal(5, 8, side, side), normal(rows, K, seed=2)
        close(layer(x, h), self_tuning.convolution(layer, x, h.expand(5, K)))

    def test_both_ways_through_a_convolution_are_taken(self):
        layer = STNConv2d(8, 6, hyperparameters=K, generator=seeded())
        few = [layer._weights_are_few(torch.zeros(1, 8, side, side)) for side in (2, 4, 16)]
        assert few == [False, True, True]
        assert not STNConv2d(64, 64, hyperparameters=K, generator=seeded())._weights_are_few(
            torch.zeros(1, 64, 8, 8)
        )

    def test_gradients_of_both_ways_are_those_of_the_formula(self):
        layer = strong(STNConv2d(4, 3, hyperparameters=K, generator=seeded()))
        for side in (1, 8):
            x, h = normal(2, 4, side, side), normal(2, K, seed=2).requires_grad_()
            parameters = [h, *layer.parameters()]
            ours = torch.autograd.grad(layer(x, h).square().sum(), parameters)
            naive = self_tuning.convolution(layer, x, h).square().sum()
            for a, b in zip(ours, torch.autograd.grad(naive, parameters), strict=True):
                close(a, b)

    @pytest.mark.parametrize("rows", [1, 4])
    def test_a_batch_norm_is_its_formula(self, rows):
        layer = strong(STNBatchNorm2d(2, hyperparameters=K, generator=seeded()))
        x, h = 3 + 2 * normal(4, 2, 5, 5), normal(rows, K, seed=2)
        mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=False)
        close(layer(x, h), self_tuning.batch_norm(layer, x, h.expand(4, K), mean, var))

    def test_running_moments_move_in_training_alone_and_serve_in_evaluation(self):
        layer = strong(STNBatchNorm2d(2, hyperparameters=K, generator=seeded()))
        x, h = 3 + normal(4, 2, 5, 5), normal(4, K, seed=2)
        layer(x, h)
        mean, var = layer.running_mean.clone(), layer.running_var.clone()
        close(mean, 0.1 * x.mean((0, 2, 3)))
        layer.eval()
        close(layer(x, h), self_tuning.batch_norm(layer, x, h, mean, var))
        assert torch.equal(layer.running_mean, mean)

    @pytest.mark.parametrize("rows", [1, 6])
    def test_without_a_response_each_is_the_plain_layer(self, rows):
        x, pictures, h = normal(6, 4), normal(6, 4, 8, 8), normal(rows, K, seed=2)
        linear = silent(STNLinear(4, 5, hyperparameters=K, generator=seeded()).double())
        close(linear(x, h), F.linear(x, linear.weight, linear.bias))
        convolution = silent(STNConv2d(4, 5, hyperparameters=K, generator=seeded()).double())
        close(convolution(pictures, h), F.conv2d(pictures, convolution.weight, padding=1))
        norm = silent(STNBatchNorm2d(4, hyperparameters=K, generator=seeded()).double())
        close(norm(pictures, h), F.batch_norm(pictures, None, None, training=True))

    def test_a_layer_of_no_hyperparameters_is_the_plain_layer(self):
        x, pictures, h = normal(6, 4), normal(6, 4, 8, 8), torch.zeros(6, 0, dtype=torch.float64)
        linear = STNLinear(4, 5, hyperparameters=0, generator=seeded()).double()
        assert {name for name, _ in linear.named_parameters()} == {"weight", "bias"}
        close(linear(x, h), F.linear(x, linear.weight, linear.bias))
        convolution = STNConv2d(4, 5, hyperparameters=0, generator=seeded()).double()
        close(convolution(pictures, h), F.conv2d(pictures, convolution.weight, padding=1))

    def test_sizes_that_are_no_counts_are_named(self):
        with pytest.raises(InvalidArgumentError, match="hyperparameters"):
            STNLinear(4, 5, hyperparameters=-1, generator=seeded())
        with pytest.raises(InvalidArgumentError, match="shape"):
            STNLinear(0, 5, hyperparameters=1, generator=seeded())


def silent(layer):
    """Return a layer whose hypernet is zero."""
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if "response" in name:
                parameter.zero_()
    return layer


class TestHyperparameters:
    def test_values_start_where_they_should_and_stay_within_bounds(self):
        found = Hyperparameters(AUGMENTATIONS)
        assert found.current() == pytest.approx({n: b.start for n, b in AUGMENTATIONS.items()})
        values = found.constrained(100 * torch.randn(50, 8, generator=seeded()))
        for column, bound in zip(values.mT, AUGMENTATIONS.values(), strict=True):
            assert column.min() >= bound.low
            assert column.max() <= bound.high
            assert not bound.whole or torch.equal(column, column.floor())

    def test_perturbations_have_their_centre_and_scale(self):
        found = Hyperparameters({"a": Bounds(0, 1, 0.5), "b": Bounds(0, 1, 0.9)}, scale=0.3)
        draws = found.perturbed(20_000, seeded())
        torch.testing.assert_close(
            draws.mean(0), torch.tensor([0.0, math.log(9)]), atol=0.01, rtol=0
        )
        torch.testing.assert_close(draws.std(0), torch.full((2,), 0.3), atol=0.01, rtol=0)

    def test_layers_are_told_how_far_from_their_start_hyperparameters_are(self):
        found = Hyperparameters({"a": Bounds(0, 1, 0.5), "b": Bounds(0, 1, 0.9)}).double()
        assert found.since_start(found.centre).tolist() == [0.0, 0.0]
        with torch.no_grad():
            found.centre += 2.0
        assert found.since_start(found.centre).tolist() == pytest.approx([2.0, 2.0])

    def test_the_entropy_is_that_of_the_normal_distribution(self):
        found = Hyperparameters({"a": Bounds(0, 1, 0.5), "b": Bounds(0, 1, 0.9)}, scale=0.3)
        expected = 2 * torch.distributions.Normal(0.0, 0.3).entropy()
        torch.testing.assert_close(found.entropy(), expected)

    @pytest.mark.parametrize("bad", [(0.0, 1.0, 0.0), (1.0, 0.0, 0.5), (0.0, math.inf, 1.0)])
    def test_bounds_and_starts_that_make_no_sense_are_named(self, bad):
        with pytest.raises(InvalidArgumentError, match="Expected"):
            Bounds(*bad)

    def test_nothing_to_tune_is_named(self):
        with pytest.raises(InvalidArgumentError, match="at least one hyperparameter"):
            Hyperparameters({})


class TestAugmentation:
    def test_colours_are_those_of_one_picture_after_the_other(self):
        pictures = torch.rand(40, 3, 5, 6, generator=seeded(), dtype=torch.float64)
        draws = torch.rand(4, 40, generator=seeded(1), dtype=torch.float64)
        factors = [2 * draws[0], 2 * draws[1], 2 * draws[2], draws[3] - 0.5]
        expected = [self_tuning.jitter(p, *f) for p, *f in zip(pictures, *factors, strict=True)]
        torch.testing.assert_close(
            jitter(pictures, *factors), torch.stack(expected), rtol=1e-6, atol=1e-6
        )

    def test_holes_are_those_of_one_picture_after_the_other(self):
        centres = torch.rand(60, HOLES, 2, generator=seeded())
        lengths = torch.randint(0, 9, (60,), generator=seeded(1)).float()
        counts = torch.randint(0, HOLES + 1, (60,), generator=seeded(2)).float()
        found = holes(centres, lengths, counts, (7, 9))[:, 0]
        each = zip(centres, lengths, counts, strict=True)
        assert torch.equal(found, torch.stack([self_tuning.holes(*one, 7, 9) for one in each]))

    @pytest.mark.parametrize("name", AUGMENTATIONS)
    def test_each_strength_alters_its_own_pictures_alone(self, name):
        pictures = 0.2 + 0.6 * torch.rand(20, 3, 8, 8, generator=seeded())
        strengths = {other: torch.zeros(20) for other in AUGMENTATIONS}
        strengths[name][::2] = math.floor(AUGMENTATIONS[name].high * 0.9) or 0.25
        for other in {"cutout_length": ["cutout_holes"], "cutout_holes": ["cutout_length"]}.get(
            name, []
        ):
            strengths[other][::2] = 2.0
        moved = (augment(pictures, strengths, seeded(3)) - pictures).abs().amax((1, 2, 3))
        assert (moved[::2] > 1e-3).float().mean() > 0.8
        assert moved[1::2].max() < 1e-5

    def test_dropout_has_its_rate_and_keeps_the_mean(self):
        rates = torch.tensor([0.0, 0.5, 0.8])
        dropped = drop(torch.ones(3, 40_000), rates, seeded())
        torch.testing.assert_close((dropped == 0).float().mean(1), rates, atol=0.02, rtol=0)
        torch.testing.assert_close(dropped.mean(1), torch.ones(3), atol=0.05, rtol=0)

    def test_pictures_without_colours_are_named(self):
        with pytest.raises(InvalidArgumentError, match="n x 3 x height x width"):
            augment(torch.zeros(2, 1, 8, 8), {}, seeded())


class TestNetwork:
    @pytest.mark.parametrize(("plan", "layers"), [(SMALL, 3), (VGG16, 13)])
    def test_it_is_its_layers_one_after_the_other(self, plan, layers):
        plan = tuple(one._replace(channels=4) for one in plan)
        network = SelfTuningNetwork(plan, hyperparameters=K, generator=seeded()).double().eval()
        hidden, h = normal(2, 3, 32, 32), normal(2, K)
        logits = network(hidden, h)
        assert len(network.convolutions) == layers
        for one, convolution, norm in zip(plan, network.convolutions, network.norms, strict=True):
            hidden = norm(convolution(hidden, h), h).relu()
            hidden = F.max_pool2d(hidden, 2) if one.pool else hidden
        close(logits, network.head(hidden.flatten(1), h))

    def test_pictures_of_another_shape_are_named(self):
        network = SelfTuningNetwork(SMALL, hyperparameters=0, generator=seeded())
        with pytest.raises(InvalidArgumentError, match="n x 3 x 32 x 32"):
            network(torch.zeros(2, 3, 28, 28), torch.zeros(2, 0))
        with pytest.raises(InvalidArgumentError, match="large enough for 13"):
            SelfTuningNetwork(VGG16, hyperparameters=0, generator=seeded(), side=16)


class Small:
    """A small network, its hyperparameters, and a batch."""

    def __init__(self):
        self.hyperparameters = Hyperparameters({**dropout_bounds(SMALL), **AUGMENTATIONS})
        many = len(self.hyperparameters.names)
        self.network = SelfTuningNetwork(SMALL, hyperparameters=many, generator=seeded())
        self.batch = torch.rand(8, 3, 32, 32, generator=seeded()), torch.arange(8)
        tuned = SelfTuning(self.network, self.hyperparameters, lambda x: x - 0.5)
        self.loss = tuned, *self.batch, seeded(1)


class TestSteps:
    def test_a_training_step_moves_weights_and_no_hyperparameter(self):
        small = Small()
        training_loss(*small.loss)[0].backward()
        assert all(p.grad is not None for p in small.network.parameters())
        assert all(p.grad is None for p in small.hyperparameters.parameters())

    def test_a_tuning_step_moves_hyperparameters_and_neither_weights_nor_moments(self):
        small = Small()
        before = {name: b.clone() for name, b in small.network.named_buffers()}
        loss = tuning_loss(*small.loss)
        hypergradient(tuning_objective(loss, small.hyperparameters, 1e-3), small.hyperparameters)
        assert all(p.grad.abs().min() > 0 for p in small.hyperparameters.parameters())
        assert all(p.grad is None for p in small.network.parameters())
        assert all(torch.equal(b, before[n]) for n, b in small.network.named_buffers())

    def test_nothing_is_dropped_or_altered_where_it_is_tuned(self):
        small = Small()
        h = small.hyperparameters.perturbed(8, seeded(1))
        pictures, targets = small.batch
        small.network.eval()
        expected = F.cross_entropy(
            small.network(pictures - 0.5, small.hyperparameters.since_start(h)), targets
        )
        torch.testing.assert_close(tuning_loss(*small.loss), expected)

    def test_more_entropy_lowers_the_objective(self):
        found = Hyperparameters({"a": Bounds(0, 1, 0.5)}, scale=0.3)
        hypergradient(tuning_objective(0 * found.centre.sum(), found, 2.0), found)
        raw = found.raw_scale.detach()
        torch.testing.assert_close(found.raw_scale.grad, -2 * raw.sigmoid() / F.softplus(raw))


def ridge(x, y, h):
    """Return the weights that minimize ``mean((y - x w)^2) + exp(h) |w|^2``."""
    penalty = math.exp(h) * torch.eye(x.shape[1], dtype=x.dtype)
    return torch.linalg.solve(x.mT @ x / len(x) + penalty, x.mT @ y / len(x))


def test_the_hypergradient_is_a_finite_difference_of_the_best_response():
    """A layer that was trained to respond knows how the best weights of a ridge regression move."""
    x, y, other = normal(30, 4), normal(30, 1, seed=2), normal(25, 4, seed=3)
    y = y + x.sum(1, keepdim=True)
    wanted, step = other.sum(1, keepdim=True), 0.02
    found = Hyperparameters({"penalty": Bounds(0.0, 1.0, start=0.3)}).double()
    centre = float(found.centre.detach())
    layer = STNLinear(4, 1, hyperparameters=1, generator=seeded()).double()
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if "bias" in name:
                parameter.zero_()
    trained = [layer.weight, layer.weight_direction, layer.weight_response]
    optimizer = torch.optim.LBFGS(
        trained,
        max_iter=200,
        max_eval=400,
        tolerance_grad=1e-12,
        tolerance_change=1e-16,
        line_search_fn="strong_wolfe",
    )

    def closure():
        optimizer.zero_grad()
        loss = torch.zeros((), dtype=torch.float64)
        for h in (centre - step, centre + step):
            at = torch.tensor([[h]], dtype=torch.float64)
            weights = layer(torch.eye(4, dtype=torch.float64), at)
            loss = loss + (y - layer(x, at)).square().mean()
            loss = loss + math.exp(h) * weights.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    loss = (wanted - layer(other, found.centre[None])).square().mean()
    hypergradient(tuning_objective(loss, found, 0.0), found)

    def validation(h):
        return float((wanted - other @ ridge(x, y, h)).square().mean())

    difference = (validation(centre + step) - validation(centre - step)) / (2 * step)
    assert abs(difference) > 0.01
    assert float(found.centre.grad) == pytest.approx(difference, rel=0.01)
