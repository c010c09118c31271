"""Fabolas as published, beside formulas and regressions that are written out here."""

import math

import numpy as np
import pytest
import torch

import botorch_costly as bc
from botorch_costly.ask_tell.domain import Domain
from botorch_costly.errors import InvalidArgumentError, StateMismatchError
from botorch_costly.tuners.subsets.belief import TemperedData
from botorch_costly.tuners.subsets.published import PublishedBelief

SPACE = bc.SearchSpace({"x": bc.Real(0.0, 1.0), "lr": bc.Real(1e-4, 1.0, log=True)})
FRACTION = bc.SearchSpace({"fraction": bc.Real(1 / 512, 1.0, log=True)})
QUICK = bc.Sampling(draws=3, first_steps=8, steps=8, points=5, candidates=20)
NAIVE_PHI = {"loss": lambda s: [1.0, (1 - s) ** 2], "cost": lambda s: [1.0, s]}


def first_evaluations(count, *spaces, **options):
    optimizer = bc.SubsetOptimizer.as_published(*spaces, seed=3, sampling=QUICK, **options)
    asked = [optimizer.ask() for _ in range(count)]
    assert {decision.reason for decision in asked} == {"first evaluations"}
    return [(dict(decision.config), dict(decision.fidelities)) for decision in asked]


def by_config(evaluations):
    found = {}
    for config, fidelities in evaluations:
        found.setdefault(tuple(config.values()), []).append(fidelities)
    return found


def test_each_configuration_is_first_evaluated_at_every_level():
    found = by_config(first_evaluations(12, SPACE))
    assert len(found) == 2
    for its in found.values():
        shares = [fidelities["fraction"] for fidelities in its]
        assert shares == pytest.approx([1 / 512, 1 / 256, 1 / 128, 1 / 64, 1 / 32, 1 / 16])


def test_levels_below_the_lowest_are_that_and_products_of_several_fidelities():
    sizes = bc.SearchSpace({"layers": bc.Real(3.0, 12.0), "tokens": bc.Real(1e6, 1e9, log=True)})
    fabolas = bc.Fabolas(configs=3, levels=(1 / 100, 1 / 4, 1.0))
    for its in by_config(first_evaluations(9, SPACE, sizes, fabolas=fabolas)).values():
        layers = [fidelities["layers"] for fidelities in its]
        tokens = [fidelities["tokens"] for fidelities in its]
        assert layers == pytest.approx([3.0, 6.0, 12.0])
        assert tokens == pytest.approx([1e8, 5e8, 1e9])


def test_of_a_list_the_fidelities_that_are_nearest():
    shares = (1 / 512, 1 / 64, 1 / 16, 1.0)
    grid = [({"x": x, "lr": 0.1}, {"fraction": s}) for x in (0.1, 0.4, 0.8) for s in shares]
    found = by_config(first_evaluations(6, SPACE, FRACTION, candidates=grid))
    assert len(found) == 2
    for its in found.values():
        assert [fidelities["fraction"] for fidelities in its] == list(shares[:3])


def test_what_was_entered_and_told_is_not_evaluated_again_in_single_precision():
    optimizer = bc.SubsetOptimizer.as_published(
        SPACE, dtype=torch.float32, seed=1, sampling=QUICK, fabolas=bc.Fabolas(1, (0.1, 0.3))
    )
    shares = []
    for number in range(3):
        asked = optimizer.ask()
        shares.append(asked.fidelities["fraction"])
        optimizer.tell(asked, float(number), cost=1.0)
    assert shares[:2] == pytest.approx([0.1, 0.3], rel=1e-5)
    assert optimizer.decisions[2].reason == "most information by cost"


def naive_kernel(model, draw, basis):
    """Return the paper's covariance of two points ``[configuration, s]``, for one draw."""
    matern, subset = model.covar_module.kernels
    lengths = matern.lengthscale[draw, 0].tolist()
    sigma = subset.sigma[draw].detach().numpy()

    def k(a, b):
        r = math.sqrt(
            sum(
                ((p - q) / length) ** 2
                for p, q, length in zip(a[:-1], b[:-1], lengths, strict=True)
            )
        )
        matern52 = (1 + math.sqrt(5) * r + 5 / 3 * r * r) * math.exp(-math.sqrt(5) * r)
        phi, other = (np.array(NAIVE_PHI[basis](point[-1])) for point in (a, b))
        return matern52 * phi @ sigma @ other

    return k


def naive_means(model, basis, X, y, at):
    """Return the posterior means of each draw, by a GP regression with one noise for all points."""
    means = []
    for draw in range(len(model.covar_module.kernels[0].lengthscale)):
        k = naive_kernel(model, draw, basis)
        constant = model.mean_module.constant[draw].item()
        noise = model.likelihood.noise[draw].item()
        gram = np.array([[k(a, b) for b in X] for a in X])
        jitter = 1e-8 * gram.diagonal().mean()
        weights = np.linalg.solve(gram + (noise + jitter) * np.eye(len(X)), y - constant)
        means.append(
            [constant + sum(w * k(a, p) for w, a in zip(weights, X, strict=True)) for p in at]
        )
    return np.array(means)


def learnt():
    """Return data and what is believed of them; costs are no power law."""
    generator = torch.Generator().manual_seed(5)
    points = torch.rand(20, 3, generator=generator, dtype=torch.float64)
    rewards = -(points[:, 0] - 0.4).square() + 0.3 * points[:, 2]
    costs = (1 + points[:, 1]) * 30 ** points[:, 2] + 2
    belief = PublishedBelief(SPACE, FRACTION, QUICK, torch.Generator().manual_seed(2))
    data = TemperedData(points, rewards, costs)
    return data, belief.learn(data, points[:0])


AT = torch.tensor([[0.2, 0.7, 0.1], [0.9, 0.1, 1.0]], dtype=torch.float64)


def test_values_are_predicted_as_by_a_naive_regression_with_the_basis_of_the_loss():
    data, beliefs = learnt()
    y = (data.rewards - data.rewards.mean()) / data.rewards.std(correction=0)
    expected = naive_means(
        beliefs.model.models, "loss", data.points.tolist(), y.numpy(), AT.tolist()
    )
    assert beliefs.model.mean(AT).numpy() == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_costs_are_predicted_as_by_a_naive_regression_of_their_logarithms():
    data, beliefs = learnt()
    logs = data.costs.log().numpy()
    y = (logs - logs.mean()) / logs.std()
    model = beliefs.cost.model.models
    means = naive_means(model, "cost", data.points.tolist(), y, AT.tolist())
    expected = np.exp(logs.mean() + logs.std() * means.mean(0))
    actual = beliefs.unit * beliefs.cost(AT).detach().squeeze(-1)
    assert actual.numpy() == pytest.approx(expected, rel=1e-5)


def test_the_noise_is_equal_at_all_fidelities():
    _, beliefs = learnt()
    noise = beliefs.model.models.likelihood.noise_covar(AT, shape=torch.Size([3, 2])).diagonal()
    assert torch.equal(noise[..., 0], noise[..., 1])


@pytest.mark.parametrize(("published", "place"), [(True, -1), (False, 0)])
def test_the_incumbent_has_the_best_mean_however_unsure_it_is(published, place, monkeypatch):
    make = bc.SubsetOptimizer.as_published if published else bc.SubsetOptimizer
    optimizer = make(SPACE, sampling=QUICK, seed=4)
    xs = [number / 6 for number in range(7)]
    for x in xs:
        asked = optimizer.enqueue({"x": x, "lr": 0.1}, {"fraction": 1.0})
        optimizer.tell(asked, 0.8 if x == 0 else x, cost=1.0)  # above the median at both ends
    belief = optimizer._strategy._belief
    monkeypatch.setattr(belief, "std_at_target", lambda _, configs: 100 * configs[:, 0])
    assert optimizer.best()["x"] == pytest.approx(xs[place])


def test_a_state_names_the_options_and_belongs_to_them(tmp_path):
    optimizer = bc.SubsetOptimizer.as_published(SPACE, sampling=QUICK)
    header = optimizer.state_dict()["header"]
    assert header["fabolas.configs"] == "2"
    assert "0.0625" in header["fabolas.levels"]
    with pytest.raises(StateMismatchError, match="option fabolas"):
        bc.SubsetOptimizer(SPACE, sampling=QUICK).load_state_dict(optimizer.state_dict())


@pytest.mark.parametrize(
    "options", [{"configs": 0}, {"levels": ()}, {"levels": (0.0,)}, {"levels": 0.5}]
)
def test_numbers_that_make_no_sense_are_refused(options):
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        bc.Fabolas(**options)


def test_it_learns_from_no_earlier_study_and_is_of_its_own_class():
    task = bc.Task([{"x": 0.1, "lr": 0.1}, {"x": 0.2, "lr": 0.1}], [0.0, 1.0])
    with pytest.raises(InvalidArgumentError, match="none beside fabolas"):
        bc.SubsetOptimizer.as_published(SPACE, FRACTION, tasks=[task])
    with pytest.raises(InvalidArgumentError, match="a Fabolas or None"):
        bc.SubsetOptimizer(SPACE, fabolas=2)


def test_the_design_of_a_seed_is_the_same():
    rows = [
        bc.Fabolas().design(Domain(SPACE, FRACTION), torch.Generator().manual_seed(7))
        for _ in range(2)
    ]
    assert torch.equal(*rows)
