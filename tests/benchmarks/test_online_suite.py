"""Every problem of the suite trains, resumes bit for bit, and names what it is not asked for."""

import copy
import io
import math
from dataclasses import replace

import pytest
import torch

from benchmarks.suite import data
from benchmarks.suite.augmentation import AUGMENTATIONS
from benchmarks.suite.networks import Dropout, picture_network
from benchmarks.suite.problems import PROBLEMS, digits_augmentation
from benchmarks.suite.protocol import Metrics, OnlineProblem, TrainingRun
from benchmarks.suite.training import OPTIMIZERS
from botorch_costly import Choice, SearchSpace
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError, StateMismatchError

pytest.importorskip("sklearn")

NEEDS_FILES = {"mnist_augmentation", "pima", "cifar_augmentation"}


def only(**probabilities):
    return {**dict.fromkeys(AUGMENTATIONS, 0.0), **probabilities}


def same_state(a, b):
    """Compare nested states bit for bit."""
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_state(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same_state, a, b))
    return a == b


@pytest.fixture(params=PROBLEMS)
def problem(request):
    try:
        made = PROBLEMS[request.param]()
        made.data()
    except data.MissingDataError as missing:
        assert request.param in NEEDS_FILES
        pytest.skip(str(missing))
    return replace(made, steps=2)


class TestEveryProblem:
    def test_it_is_what_the_protocol_says(self, problem):
        assert isinstance(problem, OnlineProblem)
        assert isinstance(problem.setup(0), TrainingRun)
        assert PROBLEMS[problem.name]().name == problem.name

    def test_its_parts_share_nothing_and_hold_every_class(self, problem):
        rows = problem.data()
        parts = data.split(
            rows.targets, {"train": problem.train, "validation": problem.validation}, seeded(3)
        )
        assert torch.equal(
            torch.cat(list(parts.values())).sort().values, torch.arange(len(rows.targets))
        )
        classes = set(rows.targets.tolist())
        assert all(set(rows.targets[part].tolist()) == classes for part in parts.values())

    def test_a_resumed_run_continues_bit_for_bit(self, problem):
        configs = [problem.space.decode(x) for x in problem.space.sample(4, seeded(1))]
        straight = problem.setup(5)
        for config in configs[:2]:
            straight.train_round(config)
        file = io.BytesIO()
        torch.save(straight.state_dict(), file)
        file.seek(0)
        resumed = problem.setup(5)
        resumed.load_state_dict(torch.load(file, weights_only=True))
        for config in configs[2:]:
            straight.train_round(config)
            resumed.train_round(config)
        assert resumed.round == 4
        assert same_state(straight.state_dict(), resumed.state_dict())
        assert straight.validate() == resumed.validate()

    def test_the_global_generator_is_left_alone(self, problem):
        before = torch.get_rng_state()
        run = problem.setup(0)
        run.train_round(problem.default)
        run.validate()
        assert torch.equal(torch.get_rng_state(), before)

    def test_querying_changes_nothing(self, problem):
        run = problem.setup(0)
        run.train_round(problem.default)
        before = copy.deepcopy(run.state_dict())
        assert run.validate() == run.validate()
        assert same_state(run.state_dict(), before)

    @pytest.mark.slow
    def test_every_setting_that_is_tuned_matters(self, problem):
        """Each end of each range trains another network than the default does."""
        default = trained(problem, problem.default)
        for name, parameter in problem.space.parameters:
            ends = getattr(parameter, "values", None) or (parameter.low, parameter.high)
            others = [trained(problem, {**problem.default, name: end}) for end in ends]
            assert any(not same_state(default, other) for other in others), name


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def trained(problem, config):
    run = problem.setup(0)
    for _ in range(2):
        run.train_round(config)
    return run.state_dict()["network"]


class TestRun:
    def test_the_same_seed_gives_the_same_run_and_another_seed_another(self):
        a, b, c = (digits_augmentation().setup(seed) for seed in (1, 1, 2))
        for run in (a, b, c):
            run.train_round(only(shift=0.5))
        assert same_state(a.state_dict(), b.state_dict())
        assert a.validate() != c.validate()

    def test_the_order_of_a_config_does_not_matter(self):
        a, b = (digits_augmentation().setup(0) for _ in range(2))
        config = only(noise=1.0)
        a.train_round(config)
        b.train_round(dict(reversed(config.items())))
        assert same_state(a.state_dict(), b.state_dict())

    def test_the_three_parts_are_the_ones_measured(self):
        run = digits_augmentation().setup(0)
        for part, measure in (("validation", run.validate), ("test", run.test)):
            pictures, labels = run._parts[part]
            right = run._logits(pictures).argmax(-1) == labels
            assert measure().accuracy == pytest.approx(right.double().mean().item())

    def test_training_learns(self):
        run = digits_augmentation().setup(0)
        before = run.validate()
        for _ in range(25):
            run.train_round(only(shift=0.3))
        after = run.validate()
        assert after.accuracy > 0.75
        assert after.loss < before.loss / 2

    def test_a_diverged_network_has_an_infinite_loss(self):
        run = digits_augmentation().setup(0)
        with torch.no_grad():
            next(run._network.parameters()).fill_(math.nan)
        assert run.validate().loss == math.inf

    def test_a_round_longer_than_the_data_goes_through_it_again(self):
        run = replace(digits_augmentation(), steps=20).setup(0)
        order = run._order(200)
        assert len(order) == 640
        assert (order.bincount() >= 3).all()
        assert (order.bincount() <= 4).all()

    @pytest.mark.parametrize("name", OPTIMIZERS)
    def test_optimizers_can_be_arms(self, name):
        problem = replace(
            digits_augmentation(),
            space=SearchSpace({"optimizer": Choice(list(OPTIMIZERS))}),
            default={"optimizer": name},
            settings={"learning_rate": 1e-3},
        )
        run = problem.setup(0)
        before = run.validate().loss
        for _ in range(10):
            run.train_round({"optimizer": name})
        assert run.validate().loss < before
        assert list(run.state_dict()["optimizers"]) == [name]

    @pytest.mark.slow
    def test_the_default_is_bad_and_a_good_setting_is_better_than_none(self):
        accuracy = {}
        problem = digits_augmentation()
        good = only(rotation=0.5, shift=0.5, noise=0.5)
        for name, config in {"half": problem.default, "off": only(), "good": good}.items():
            run = problem.setup(100)
            for _ in range(problem.horizon):
                run.train_round(config)
            accuracy[name] = run.test().accuracy
        assert accuracy["half"] < 0.75
        assert 0.9 < accuracy["off"] < accuracy["good"]


class TestDropout:
    def test_it_keeps_the_mean_and_drops_its_share_while_training(self):
        dropout = Dropout(seeded(0))
        dropout.rate = 0.3
        ones = torch.ones(200, 200)
        out = dropout(ones)
        assert abs((out == 0).double().mean() - 0.3) < 0.01
        assert abs(out.mean() - 1) < 0.02
        assert torch.equal(dropout.eval()(ones), ones)

    def test_without_dropout_no_random_number_is_drawn(self):
        generator = seeded(0)
        Dropout(generator)(torch.ones(3))
        assert torch.equal(generator.get_state(), seeded(0).get_state())


class TestErrors:
    @pytest.mark.parametrize(
        "config",
        [{}, {"rotation": 0.5}, only(blur=0.5), only(noise=1.5), only(noise=math.nan)],
    )
    def test_a_bad_config_is_refused_and_nothing_is_trained(self, config):
        run = digits_augmentation().setup(0)
        before = copy.deepcopy(run.state_dict())
        with pytest.raises(InvalidConfigError, match="Expected"):
            run.train_round(config)
        assert same_state(run.state_dict(), before)

    def test_a_state_of_another_seed_is_refused(self):
        state = digits_augmentation().setup(1).state_dict()
        with pytest.raises(StateMismatchError, match="seed: Expected 0; Received 1"):
            digits_augmentation().setup(0).load_state_dict(state)

    def test_a_state_of_another_problem_is_refused(self):
        state = PROBLEMS["digits_strengths"]().setup(0).state_dict()
        with pytest.raises(StateMismatchError, match=r"problem: Expected digits_augmentation"):
            digits_augmentation().setup(0).load_state_dict(state)

    def test_an_incomplete_state_is_refused(self):
        run = digits_augmentation().setup(0)
        with pytest.raises(StateMismatchError, match="keys"):
            run.load_state_dict({"seed": 0})

    @pytest.mark.parametrize("name", ["horizon", "steps", "batch"])
    def test_a_bad_problem_is_refused(self, name):
        with pytest.raises(InvalidArgumentError, match=name):
            replace(digits_augmentation(), **{name: 0})

    def test_a_bad_network_is_refused(self):
        with pytest.raises(InvalidArgumentError, match="width"):
            picture_network(seeded(0), channels=1, side=8, width=0, blocks=2)

    def test_a_default_outside_the_space_is_refused(self):
        with pytest.raises(InvalidConfigError):
            replace(digits_augmentation(), default=only(noise=2.0))

    def test_missing_data_are_named(self, monkeypatch, tmp_path):
        data.pima.cache_clear()
        monkeypatch.setenv("BOTORCH_COSTLY_DATA", str(tmp_path))
        with pytest.raises(FileNotFoundError, match="a folder that holds pima"):
            PROBLEMS["pima"]().setup(0)

    @pytest.mark.parametrize("bad", [(-1.0, 0.5), (math.nan, 0.5), (1.0, 1.5)])
    def test_metrics_are_checked(self, bad):
        with pytest.raises(InvalidArgumentError):
            Metrics(*bad)
