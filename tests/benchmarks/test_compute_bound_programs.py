"""Each program that has no compute to waste trains, goes back, and survives any setting of its space."""

import copy
import itertools
import math
from dataclasses import replace
from functools import cache, partial

import pytest
import torch

from benchmarks.suite.compute_bound import networks
from benchmarks.suite.compute_bound.foresight import settings_of
from benchmarks.suite.compute_bound.problems import CHOICE, CONFIRMATION, PROBLEMS
from benchmarks.suite.compute_bound.rivals import METHODS
from benchmarks.suite.compute_bound.schedules import STARTS
from benchmarks.suite.compute_bound.training import Batch
from benchmarks.suite.compute_bound.works import (
    VOCABULARY,
    Denoising,
    GraphNodes,
    Melodies,
    NextCharacter,
    NextLetter,
    Ratings,
    word_codes,
)
from benchmarks.suite.compute_bound.works.pictures import smoothed
from benchmarks.suite.data import Part
from benchmarks.suite.networks import picture_network
from botorch_costly.errors import InvalidArgumentError

MANY = 40  # pictures


@cache
def letters():
    return torch.randint(90, (20_000,), generator=torch.Generator().manual_seed(7))


@cache
def names():
    generator = torch.Generator().manual_seed(4)
    drawn = torch.randint(97, 123, (200, 5), generator=generator).tolist()
    return ["".join(map(chr, name)) for name in drawn]


@cache
def pictures(channels, side):
    generator = torch.Generator().manual_seed(3)
    inputs = torch.rand(MANY, channels, side, side, generator=generator)
    return Part(inputs, torch.randint(5, (MANY,), generator=generator))


def small_work(work):
    """Return the same work on fewer and smaller rows, which need no files."""
    match work:
        case NextCharacter():
            return replace(work, text=letters, make=small_network(work.make), held_out=20)
        case NextLetter():
            return replace(work, words=names)
        case GraphNodes():
            return replace(work, graphs=20, held_out=5, nodes=12)
        case Melodies():
            return replace(work, signals=20, held_out=9, length=60)
        case Ratings():
            return replace(work, users=9, items=7, ratings=500, held_out=20)
    channels = 3 if "cifar" in repr(work) or "other_classes" in repr(work) else 1
    side = 28 if isinstance(work, Denoising) else 8
    small = replace(work, pool=partial(pictures, channels, side), held_out=5)
    if hasattr(work, "classes"):
        make = partial(picture_network, channels=channels, side=side, width=2, blocks=1)
        small = replace(small, make=partial(make, classes=work.classes))
    return small


def small_network(make):
    kind = make if isinstance(make, type) else networks.Recurrent

    def smaller(generator, symbols, length, width=16):
        lengths = () if kind is networks.Recurrent else (length,)
        return kind(generator, symbols, *lengths, width=width)

    return smaller


@cache
def small(name):
    problem = PROBLEMS[name]()
    return replace(problem, work=small_work(problem.work), horizon=20, steps=1, batch=4)


def losses(run, config, rounds=3):
    found = []
    for _ in range(rounds):
        run.train_round(config)
        found.append(run.validate().loss)
    return [*found, run.test().loss]


def weights(run):
    return [value.clone() for value in run.save()["network"].values() if value.is_floating_point()]


@pytest.mark.parametrize("name", PROBLEMS)
class TestPrograms:
    def test_a_round_changes_all_weights_that_are_used(self, name):
        problem = small(name)
        run = problem.setup(0)
        before = weights(run)
        run.train_round(problem.default)
        changed = [not torch.equal(*pair) for pair in zip(before, weights(run), strict=True)]
        assert sum(changed) > 0.8 * len(changed)
        assert run.round == 1

    def test_a_seed_says_everything(self, name):
        problem = small(name)
        ours, again, others = (losses(problem.setup(s), problem.default) for s in (1, 1, 2))
        assert again == pytest.approx(ours, rel=1e-6)
        assert all(map(math.isfinite, ours))
        assert others != pytest.approx(ours, rel=1e-6)
        parts = [problem.setup(seed)._parts for seed in (1, 2)]
        assert not torch.equal(parts[0]["test"].inputs, parts[1]["test"].inputs)

    def test_a_run_that_goes_back_goes_on_equally(self, name):
        problem = small(name)
        run = problem.setup(3)
        losses(run, problem.default, rounds=2)
        state = copy.deepcopy(run.state_dict())
        first = losses(run, problem.default)
        run.load_state_dict(state)
        assert losses(run, problem.default) == pytest.approx(first, rel=1e-6)
        resumed = problem.setup(3)
        resumed.load_state_dict(state)
        assert losses(resumed, problem.default) == pytest.approx(first, rel=1e-6)

    def test_parts_have_rows_that_are_judged_always_alike(self, name):
        problem = small(name)
        parts = problem.work.parts(torch.Generator().manual_seed(0))
        assert set(parts) == {"train", "validation", "test"}
        for part in parts.values():
            assert len(part.inputs) == len(part.targets) > 0
            first, second = (problem.work.judged(part) for _ in range(2))
            assert torch.equal(first.inputs, second.inputs)
            assert torch.equal(first.targets, second.targets)

    def test_strong_settings_alter_a_batch_or_the_training(self, name):
        problem = small(name)
        strong = {**problem.default, **problem.strong}
        problem.space.check(strong)
        assert all(strong[key] > problem.default[key] for key in problem.strong)
        ours, theirs = (losses(problem.setup(5), config) for config in (problem.default, strong))
        assert ours != pytest.approx(theirs, rel=1e-9)

    def test_no_corner_of_the_space_raises(self, name):
        problem = small(name)
        run = problem.setup(6)
        state = copy.deepcopy(run.state_dict())
        bounds = [(real.low, real.high) for _, real in problem.space.parameters]
        ends = itertools.product((0, 1), repeat=len(bounds))
        # Every second corner has all combinations of bounds of all numbers but one, and all that is high.
        halves = (at for at in ends if sum(at) % 2 == len(bounds) % 2)
        for corner in ([pair[end] for pair, end in zip(bounds, at, strict=True)] for at in halves):
            run.load_state_dict(state)
            config = dict(zip(problem.space.names, corner, strict=True))
            for _ in range(2):
                run.train_round(config)
            assert run.test().loss >= 0

    def test_the_rate_has_room_around_its_default(self, name):
        problem = PROBLEMS[name]()
        assert problem.name == name
        assert 150 <= problem.horizon <= 240
        low, high = problem.rates
        default = problem.default[problem.rate_name]
        assert low <= default / 30
        assert default * 10 <= high


@pytest.mark.parametrize("name", PROBLEMS)
def test_settings_to_be_compared_lie_in_the_space(name):
    problem = PROBLEMS[name]()
    found = settings_of(problem)
    for config in found.values():
        problem.space.check(config)
    assert sum(setting.startswith(f"{problem.rate_name} x ") for setting in found) == 5
    assert len(found) == 5 + 2 * (len(problem.space.names) - 1)


def test_half_of_the_programs_choose():
    chosen, confirming = ([make.__name__ for make in half] for half in (CHOICE, CONFIRMATION))
    assert not set(chosen) & set(confirming)
    assert abs(len(chosen) - len(confirming)) <= 1
    assert len(PROBLEMS) == len(chosen) + len(confirming) >= 14


class TestTheMultipleOfARate:
    def test_the_space_calls_it_so_and_the_optimizer_hears_the_rate(self):
        problem = replace(small("small_gpt"), warmup=4)
        assert problem.rate_name == "lr_mult"
        run, heard = problem.setup(0), []
        for _ in range(6):
            run.train_round({**problem.default, "lr_mult": 2.0}, rate_factor=0.5)
            heard += {group["lr"] for group in run.save()["optimizer"]["param_groups"]}
        assert heard == pytest.approx([1e-3 * w for w in (0.25, 0.5, 0.75, 1.0, 1.0, 1.0)])

    def test_starts_and_methods_ask_for_its_name(self):
        problem = small("small_gpt")
        assert STARTS["fast"](problem)["lr_mult"] == pytest.approx(10.0)
        for name in ("wsd", "session", "race", "all tests at round 0"):
            result = METHODS[name](problem, STARTS["slow"](problem), 0)
            assert result.rounds == problem.horizon
            assert result.loss < math.inf

    def test_a_space_without_the_rate_is_refused(self):
        with pytest.raises(InvalidArgumentError, match="lr_mult"):
            replace(small("denoising"), own_rate=1e-3)
        with pytest.raises(InvalidArgumentError, match="learning_rate"):
            replace(small("small_gpt"), own_rate=None)


def test_gradients_are_clipped():
    problem = replace(small("character_mlp"), clip=1e-3)
    run = problem.setup(0)
    before = torch.cat([value.flatten() for value in weights(run)])
    run.train_round({**problem.default, "learning_rate": 10.0})
    after = torch.cat([value.flatten() for value in weights(run)])
    assert (after - before).norm().item() == pytest.approx(10.0 * 1e-3, rel=1e-3)


def test_a_gpt_reads_by_what_it_writes():
    network = networks.GPT(torch.Generator().manual_seed(0), 20, 6, width=8, layers=2)
    assert network.head.weight is network.embedding.weight
    text = torch.randint(20, (3, 6), generator=torch.Generator().manual_seed(1))
    later = text.clone()
    later[:, 4:] = 0
    assert torch.allclose(network(text)[:, :4], network(later)[:, :4], atol=1e-6)


class TestGraphs:
    def test_edges_lead_to_preferred_classes_both_ways_and_to_no_node_itself(self):
        work = GraphNodes(graphs=400, held_out=5, nodes=30)
        inputs, classes = work.parts(torch.Generator().manual_seed(0))["train"]
        edges = inputs[..., -30:]
        assert torch.equal(edges, edges.mT)
        assert edges.diagonal(dim1=1, dim2=2).sum() == 0
        hot = torch.nn.functional.one_hot(classes, 8).float()
        met = torch.einsum("gic,gij,gjd->cd", hot, edges, hot)
        possible = torch.einsum("gic,gjd->cd", hot, hot)
        shares = met / possible
        assert ((shares > 0.3).sum(-1) == 2).all()  # each class prefers two
        assert (shares.diagonal() < 0.1).all()  # and not itself

    def test_a_node_hears_its_neighbours_alone(self):
        problem = small("graph_nodes")
        inputs, _ = problem.work.parts(torch.Generator().manual_seed(0))["test"]
        network = problem.work.network(torch.Generator().manual_seed(1)).eval()
        apart = inputs.clone()
        apart[..., 16:] = 0
        other = apart.clone()
        other[:, 1, :16] += 1
        assert torch.equal(network(apart)[:, 0], network(other)[:, 0])
        assert not torch.equal(network(apart)[:, 1], network(other)[:, 1])
        assert not torch.equal(network(apart), network(inputs))


def test_a_mask_silences_a_stretch_of_a_signal():
    work = small("tones").work
    batch = Batch(torch.ones(50, 1, work.length), torch.zeros(50))
    generator = torch.Generator().manual_seed(0)
    heard, _ = work.altered(batch, {"noise": 0.0, "time_mask": 0.5}, generator)
    silent = (heard == 0).float().mean(-1)
    assert 0.15 < silent.mean() < 0.35
    assert silent.max() <= 0.5 + 1 / work.length
    assert ((heard == 0).float().diff(dim=-1).abs().sum(-1) <= 2).all()  # one stretch
    noisy, _ = work.altered(batch, {"noise": 2.0, "time_mask": 0.0}, generator)
    assert (noisy - batch.inputs).std().item() == pytest.approx(2.0, rel=0.05)


def test_ratings_are_whole_and_offsets_alone_do_not_explain_them():
    rows = Ratings(users=30, items=20, ratings=40_000, held_out=10)
    inputs, targets = rows.parts(torch.Generator().manual_seed(0))["train"]
    assert set(targets.tolist()) == {1.0, 2.0, 3.0, 4.0, 5.0}
    cells = torch.zeros(30, 20).index_put((inputs[:, 0], inputs[:, 1]), targets, accumulate=True)
    counts = torch.zeros(30, 20).index_put((inputs[:, 0], inputs[:, 1]), torch.tensor(1.0), True)
    mean = cells / counts.clamp_min(1)
    interaction = mean - mean.mean(0) - mean.mean(1, keepdim=True) + mean.mean()
    assert interaction[counts > 20].std() > 0.3


class TestDiffusion:
    def test_noise_hides_a_picture_by_and_by(self):
        work = small("diffusion").work
        pixels = work.parts(torch.Generator().manual_seed(0))["train"]
        assert pixels.inputs.shape[1:] == (1, 4, 4)
        inputs, noise = work.judged(Batch(pixels.inputs[:40], pixels.targets[:40]))
        hidden, time = inputs[:, :1], inputs[:, 1, 0, 0]
        assert torch.equal(time, time.sort().values)
        assert (hidden[0] - pixels.inputs[0]).abs().mean() < 0.1
        assert (hidden[-1] - noise[-1]).abs().mean() < 0.1

    def test_a_network_hears_the_time(self):
        work = small("diffusion").work
        network = work.network(torch.Generator().manual_seed(1))
        inputs = torch.zeros(2, 2, 4, 4)
        inputs[1, 1] = 0.5
        first, second = network(inputs)
        assert not torch.allclose(first, second)


def test_the_bound_of_a_variational_autoencoder():
    work = small("vae").work
    pixels = torch.full((1, 784), 0.5)
    weight = torch.tensor([[2.0]])
    code = torch.cat([torch.full((1, 20), 0.3), torch.full((1, 20), math.log(4.0))], -1)
    outputs = torch.cat([torch.zeros(1, 784), code], -1)
    divergence = 20 * (0.3**2 + 4.0 - 1 - math.log(4.0)) / 2
    found = work.losses(outputs, torch.cat([pixels, weight], -1))
    assert found.item() == pytest.approx(784 * math.log(2) + 2 * divergence, rel=1e-6)
    judged = work.judged(Batch(pixels, pixels))
    assert judged.targets[:, -1].item() == 1.0


def test_a_large_picture_shrinks_to_the_small_one():
    parts = small("super_resolution").work.parts(torch.Generator().manual_seed(0))
    inputs, targets = parts["validation"]
    assert inputs.shape[1:] == (1, 4, 4)
    shrunk = targets.unfold(2, 2, 2).unfold(3, 2, 2).mean((-1, -2))
    assert torch.allclose(shrunk, inputs, atol=1e-6)


def test_common_words_have_codes_and_all_others_share_one():
    codes = word_codes()
    counts = codes.bincount(minlength=VOCABULARY)
    assert len(counts) == VOCABULARY
    assert (counts[1:].diff() <= 0).all()  # the commonest first
    assert 0.02 < counts[0] / len(codes) < 0.2


class TestLetters:
    def test_every_letter_and_the_end_are_told_from_three_before(self):
        work = NextLetter(lambda: ["ab", "c"], held_out=0.5)
        parts = work.parts(torch.Generator().manual_seed(0))
        rows = [
            (tuple(before), letter)
            for part in parts.values()
            for before, letter in zip(part.inputs.tolist(), part.targets.tolist(), strict=True)
        ]
        first = [((0, 0, 0), 1), ((0, 0, 1), 2), ((0, 1, 2), 0)]
        assert sorted(rows) == sorted([*first, ((0, 0, 0), 3), ((0, 0, 3), 0)])

    def test_smoothing_keeps_the_sum(self):
        soft = smoothed(torch.tensor([2, 0]), 4, {"label_smoothing": 0.4})
        assert soft[0].tolist() == pytest.approx([0.1, 0.1, 0.7, 0.1])
        assert torch.equal(smoothed(torch.tensor([1]), 2, {}), torch.tensor([[0.0, 1.0]]))
