"""Families of related tasks: they repeat themselves, follow their models, and are recorded once."""

import math

import pytest
import torch

from benchmarks.harness.record import RESULTS, rows_of, write_results
from benchmarks.meta.live import cart_pole, diabetes, images, omniglot, pool
from benchmarks.meta.live.cart_pole import BEGINNINGS, CART_POLE, LONGEST, stepped, survived
from benchmarks.meta.live.family import Family, fit, one_by_one, points
from benchmarks.meta.live.pool import FAMILIES, NAME, SMALL, MissingFamilyError, table
from benchmarks.suite.data import MissingDataError
from botorch_costly import Real, SearchSpace

STRONG = {"lr": 3e-3, "lr_decay": 1e-5, "l2": 1e-5}
PATIENTS = {"batch_size": 20, "l2": 1e-5, "lr": 0.05}


@pytest.fixture(autouse=True)
def small_networks(monkeypatch):
    """Trainings of a fraction of a second."""
    size = images.SMALL._replace(training=300, validation=100, epochs=2)
    pictures = one_by_one(lambda *what: images.evaluate(*what, size=size))
    size_of_pairs = omniglot.SMALL._replace(side=12, epochs=1)
    pairs = one_by_one(lambda *what: omniglot.evaluate(*what, size=size_of_pairs))
    monkeypatch.setitem(FAMILIES, "images", images.IMAGES._replace(evaluate_all=pictures))
    monkeypatch.setitem(FAMILIES, "omniglot", omniglot.OMNIGLOT._replace(evaluate_all=pairs))


def with_data(call, *arguments):
    """Return what a call returns, or skip where the data folder is absent."""
    try:
        return call(*arguments)
    except MissingDataError as missing:
        pytest.skip(str(missing))


def config_of(family, number):
    return family.space.decode(points(family.space, number, 1)[0])


@pytest.mark.parametrize("name", [family.name for family in SMALL])
def test_values_repeat_themselves_and_lie_between_0_and_1(name):
    family = FAMILIES[name]
    for number in range(2):
        config = config_of(family, number)
        torch.manual_seed(0)
        once = with_data(family.evaluate, family.targets[0], config, number)
        torch.manual_seed(1)  # the global generator has no say
        assert family.evaluate(family.targets[0], config, number) == once
        assert 0 <= once <= 1


@pytest.mark.parametrize(
    ("name", "config"),
    [("diabetes likelihood", PATIENTS), ("images", STRONG), ("omniglot", STRONG)],
)
def test_seeds_and_tasks_differ(name, config):
    family = FAMILIES[name]
    first = with_data(family.evaluate, family.tasks[0], config, 0)
    others = {family.evaluate(family.tasks[0], config, seed) for seed in (1, 2)}
    assert others != {first}
    assert family.evaluate(family.tasks[1], config, 0) != first


def test_targets_are_tasks_and_every_setting_has_the_space_of_its_small_one():
    for family in FAMILIES.values():
        assert set(family.targets) < set(family.tasks)
    for name in ("images", "omniglot"):
        whole, small = FAMILIES[f"{name}, full"], FAMILIES[name]
        assert (whole.space, whole.tasks) == (small.space, small.tasks)


def test_points_go_on_where_they_ended():
    space = CART_POLE.space
    assert torch.equal(points(space, 0, 16)[8:], points(space, 8, 8))
    assert len(points(space, 0, 16).unique(dim=0)) == 16


def test_patients_are_added_and_those_of_validation_stay():
    parts = {task: with_data(diabetes.patients, task) for task in diabetes.ROWS}
    counts = [len(training.ill) for training, _ in parts.values()]
    assert counts == [138, 276, 414, 552, 691]
    first, _, _, _, last = (training.ill for training, _ in parts.values())
    assert torch.equal(first, last[:138])
    held = [validation.ill for _, validation in parts.values()]
    assert len(held[0]) == 77
    assert all(torch.equal(held[0], other) for other in held)
    training, validation = parts["691 rows"]
    rows = torch.cat([training.inputs, validation.inputs])
    assert len(rows.unique(dim=0)) == 768  # no patient is in both


def test_a_logistic_regression_learns_and_a_penalty_holds_it_back():
    chance = 0.5
    found = with_data(diabetes.DIABETES_LIKELIHOOD.evaluate, "691 rows", PATIENTS, 0)
    held_back = diabetes.DIABETES_LIKELIHOOD.evaluate("691 rows", {**PATIENTS, "l2": 10.0}, 0)
    assert chance < held_back < found - 0.02
    accuracy = diabetes.DIABETES.evaluate("691 rows", PATIENTS, 0)
    assert accuracy > 0.7
    assert accuracy * 77 * 5 == pytest.approx(round(accuracy * 77 * 5))


def test_the_likelihood_is_the_geometric_mean_of_probabilities():
    logits, ill = torch.tensor([[math.log(3.0), math.log(4.0)]]), torch.tensor([1.0, 0.0])
    assert diabetes._likelihood(logits, ill) == pytest.approx(math.sqrt(0.75 * 0.2))
    assert diabetes._accuracy(logits, ill) == 0.5


def gymnasium_cart_pole():
    gymnasium = pytest.importorskip("gymnasium")
    environment = gymnasium.make("CartPole-v1", max_episode_steps=LONGEST)
    environment.reset(seed=0)
    return environment


def begun(environment, state):
    """Put the environment where an episode begins."""
    environment.reset(seed=0)
    environment.unwrapped.state = tuple(state.tolist())


def test_a_step_is_that_of_gymnasium():
    environment = gymnasium_cart_pole()
    draws = torch.Generator().manual_seed(0)
    widest = torch.tensor([2.0, 2.0, 0.2, 2.0], dtype=torch.float64)
    states = widest * (2 * torch.rand(20, 4, generator=draws, dtype=torch.float64) - 1)
    for push in (False, True):
        ours = stepped(states, torch.full((20,), push))
        for state, after in zip(states, ours, strict=True):
            begun(environment, state)
            shown, _, fell, _, _ = environment.step(int(push))
            expected = torch.as_tensor(environment.unwrapped.state, dtype=torch.float64)
            assert torch.allclose(after, expected, rtol=1e-10, atol=1e-12)
            assert torch.allclose(after.float(), torch.as_tensor(shown), rtol=1e-5, atol=1e-6)
            assert bool(cart_pole.over(after)) == fell


def test_episodes_last_as_long_as_those_of_gymnasium():
    environment = gymnasium_cart_pole()
    preferred = torch.tensor([[0.1, 0.4, 1.0, 0.8], [0.5, -0.2, 1.0, -0.1], [-1.0, 0.3, 0.2, 0.4]])
    weights = torch.stack([-preferred / 2, preferred / 2], dim=-2).double()
    for state in (BEGINNINGS["target"], BEGINNINGS["dissimilar 2"]):
        for policy, ours in zip(weights, survived(weights, state.expand(3, 4)), strict=True):
            begun(environment, state)
            total, done = 0.0, False
            while not done:
                logits = policy @ torch.as_tensor(environment.unwrapped.state, dtype=torch.float64)
                _, reward, fell, ended, _ = environment.step(int(logits.argmax()))
                total, done = total + reward, fell or ended
            assert ours == total


def test_good_policies_balance_and_others_fall():
    names = cart_pole.SPACE.names
    good = dict(zip(names, (-0.1, -0.4, -1.0, -0.8, 0.1, 0.4, 1.0, 0.8), strict=True))
    wrong = {name: -value for name, value in good.items()}
    assert CART_POLE.evaluate("target", good, 0) > 0.5
    assert CART_POLE.evaluate("target", wrong, 0) < 0.1


def test_a_policy_is_worth_as_much_among_others():
    configs = [config_of(CART_POLE, number) for number in range(9)]
    together = CART_POLE.evaluate_all("dissimilar 1", configs, range(9))
    alone = [CART_POLE.evaluate("dissimilar 1", c, seed) for seed, c in enumerate(configs)]
    assert together == pytest.approx(alone, abs=0.02)


def test_similar_beginnings_are_nearer_than_any_other():
    def away(task):
        return float((BEGINNINGS[task] - BEGINNINGS["target"]).norm())

    similar = [away(task) for task in BEGINNINGS if task.startswith("similar")]
    dissimilar = [away(task) for task in BEGINNINGS if task.startswith("dissimilar")]
    assert len(similar) < len(dissimilar)
    assert max(similar) < min(dissimilar)
    assert not any(bool(cart_pole.over(state)) for state in BEGINNINGS.values())


@pytest.mark.parametrize("task", images.TASKS)
def test_pictures_are_of_the_classes_of_their_task(task):
    size = images.SMALL._replace(training=120, validation=80)
    training, validation = with_data(images.parts, task, size)
    classes, share = len(images.TASKS[task].classes), images.TASKS[task].share
    assert len(training.targets) == 120 * share
    assert len(validation.targets) == 80
    assert set(training.targets.tolist()) | set(validation.targets.tolist()) == set(range(classes))
    channels = 1 if task.startswith("mnist") else 3
    assert training.inputs.shape[1:] == validation.inputs.shape[1:] == (channels, 16, 16)


def test_few_pictures_are_the_first_of_many_and_validation_is_the_same():
    few, held = with_data(images.parts, "mnist few", images.SMALL)
    many, held_of_many = images.parts("mnist", images.SMALL)
    assert torch.equal(few.inputs, many.inputs[: len(few.inputs)])
    assert torch.equal(held.inputs, held_of_many.inputs)


def test_partners_are_another_drawing_of_the_character_and_one_of_another():
    rows = torch.arange(5 * 4).repeat(50)
    draws = torch.Generator().manual_seed(0)
    alike, other = omniglot.partners((5, 4), rows, draws)
    assert torch.equal(alike // 4, rows // 4)
    assert bool((alike != rows).all())
    assert bool((other // 4 != rows // 4).all())
    pairs = torch.stack([rows // 4, other // 4], -1).unique(dim=0)
    assert len(pairs) == 5 * 4  # every other character has its turn


def test_characters_of_validation_are_new():
    shown, held = with_data(omniglot.drawings, "cyrillic", 12)
    assert (len(shown), len(held)) == (24, 9)
    everything = torch.cat([shown, held]).flatten(1)
    assert len(everything.unique(dim=0)) == 33
    assert everything.mean() < 0.3  # ink is 1, paper 0


def test_learning_rate_its_decay_and_penalty_say_how_far_weights_go():
    def moved(**changes):
        draws = torch.Generator().manual_seed(0)
        network = torch.nn.utils.skip_init(torch.nn.Linear, 1, 1, bias=False).double()
        with torch.no_grad():
            network.weight.fill_(5.0)
        config = {"lr": 1e-3, "lr_decay": 0.0, "l2": 0.0, **changes}
        rows = torch.arange(6)

        def slope_one(rows):
            return network.weight.sum() + 0.0 * rows.sum()

        fit(network, slope_one, rows, config, draws, epochs=2, batch=2)
        return 5.0 - float(network.weight.detach())

    # The average of squared slopes of 1 after k steps is 1 - 0.9^k; a step divides by its root.
    steps = [1 / math.sqrt(1 - 0.9**k) for k in range(1, 7)]
    assert moved() == pytest.approx(1e-3 * sum(steps), rel=1e-3)
    decayed = [step / (1 + 0.5 * k) for k, step in enumerate(steps)]
    assert moved(lr_decay=0.5) == pytest.approx(1e-3 * sum(decayed), rel=1e-3)
    # A slope of 1 + weight falls, so that it is less than what its average remembers.
    assert moved(lr=0.1, l2=1.0) < moved(lr=0.1) - 0.02


def counted(monkeypatch):
    """Put a family of two tasks that counts its evaluations in the place of diabetes."""
    called = []

    def evaluate(task, config, seed):
        called.append((task, seed))
        return (config["a"] + (task == "hard")) / 2

    space = SearchSpace({"a": Real(0, 1), "b": Real(0, 1)})
    family = Family("toy", space, ("easy", "hard"), ("hard",), one_by_one(evaluate), 4, 8)
    monkeypatch.setitem(pool.FAMILIES, "toy", family)
    return called


def test_a_task_without_its_first_block_has_no_line(monkeypatch):
    counted(monkeypatch)
    hard, later = (pool.record(pool.Block("toy", *key)) for key in (("hard", 0), ("easy", 4)))
    assert "easy" not in pool.text([hard, later])


def test_recording_goes_on_where_it_ended(tmp_path, monkeypatch, capsys):
    called = counted(monkeypatch)
    options = ["--families", "toy", "--results", str(tmp_path)]
    pool.main([*options, "--quick"])
    assert sorted(called) == [
        *(("easy", 2 * number) for number in range(4)),
        *(("hard", 2 * number + 1) for number in range(4)),
    ]
    pool.main(options)
    assert len(called) == len(set(called)) == 16
    pool.main([*options, "--configs", "7"])
    assert len(called) == 16
    assert "toy" in capsys.readouterr().out

    stored = table("toy", tmp_path)
    assert torch.equal(stored.points, points(pool.FAMILIES["toy"].space, 0, 8))
    easy, hard = stored.values["easy"], stored.values["hard"]
    assert torch.allclose(easy, stored.points[:, 0] / 2, atol=1e-4)
    assert torch.allclose(hard, easy + 0.5, atol=2e-4)


def test_a_table_is_as_long_as_its_shortest_task(tmp_path, monkeypatch):
    counted(monkeypatch)
    with pytest.raises(MissingFamilyError, match="toy"):
        table("toy", tmp_path)
    wanted = pool.blocks(pool.FAMILIES["toy"], 8)
    rows = [pool.record(block) for block in reversed(wanted)]
    write_results(NAME, rows[:-1], [0], directory=tmp_path)  # without the first of "easy"
    with pytest.raises(MissingFamilyError, match="toy"):
        table("toy", tmp_path)
    write_results(NAME, [rows[-1], *rows[1:3]], [0], directory=tmp_path)
    assert len(table("toy", tmp_path).points) == 4
    assert len(rows_of(NAME, tmp_path)) == 3


def test_the_report_says_how_ranks_agree(monkeypatch):
    counted(monkeypatch)
    rows = [pool.record(block) for block in pool.blocks(pool.FAMILIES["toy"], 8)]
    said = pool.text(rows)
    easy = next(line for line in said.splitlines() if line.startswith("easy"))
    assert easy.endswith("+1.00")
    rows[0] = {**rows[0], "values": rows[0]["values"][::-1]}
    assert "+1.00" not in next(
        line for line in pool.text(rows).splitlines() if line.startswith("easy")
    )


@pytest.mark.parametrize("family", SMALL, ids=lambda family: family.name)
def test_what_is_stored_is_what_the_family_says(family):
    stored = table(family.name, RESULTS)
    assert len(stored.points) == family.recorded
    assert set(stored.values) == set(family.tasks)
    for values in stored.values.values():
        assert 0 <= values.min() < values.max() <= 1


def test_a_stored_policy_is_worth_what_is_stored():
    number = 5
    (value,) = (
        row["values"][number]
        for row in rows_of(NAME, RESULTS)
        if row["family"] == "cart-pole" and row["task"] == "similar 1"
    )
    seed = number * len(CART_POLE.tasks) + CART_POLE.tasks.index("similar 1")
    found = CART_POLE.evaluate("similar 1", config_of(CART_POLE, number), seed)
    assert found == pytest.approx(value, abs=0.02)
