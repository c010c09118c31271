"""Every public callable checks its seed, and the generator that it is given, at its door.

The kind: a source of randomness of a wrong type. torch would answer with an error of its own, or draw
from the global generator, so that nothing can be repeated.
"""

import copy
import importlib
import inspect
import pickle
import pkgutil

import numpy as np
import pytest
import torch

import botorch_costly as bc
from botorch_costly import demo
from botorch_costly.acquisition import RMGPTS
from botorch_costly.ask_tell.design import design, sobol
from botorch_costly.bandits import UCB1, BanditPlayer, BanditPolicy, simulate_arms
from botorch_costly.bandits.simulate import draw_for_arms
from botorch_costly.baselines import RankWeightedGP
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.models import TaskEnsemble, TaskPaths
from botorch_costly.optim import local_optima
from botorch_costly.problems import DriftingArms, DriftingFunction, DriftingHartmann, DriftingSample
from botorch_costly.randomness import check_seed, generator_of
from botorch_costly.simulation import GridPolicy, draw
from botorch_costly.simulation.draws import stream
from botorch_costly.tuners import importance
from botorch_costly.tuners.population.belief import PopulationBelief

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "depth": bc.Integer(1, 4)})
ARMS = bc.SearchSpace({"arm": bc.Choice(["left", "right"])})
STUDY = bc.Task([{"lr": 10.0**-k, "depth": 1} for k in (1, 2, 3, 4)], [0.0, 1.0, 3.0, 2.0])
BOX = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
X = torch.linspace(0, 1, 5, dtype=torch.float64).unsqueeze(-1)
POLICY = BanditPolicy("UCB1", UCB1(), bc.AlwaysQuery())


def tasks():
    return TaskEnsemble([X, X], [X.sin().squeeze(-1), X.cos().squeeze(-1)])


SEEDED = {
    "OnlineTuner": lambda seed: bc.OnlineTuner(SPACE, 5, seed=seed),
    "OnlineTuner.as_published": lambda seed: bc.OnlineTuner.as_published(SPACE, 5, seed=seed),
    "TwinTuner": lambda seed: bc.TwinTuner(SPACE, 5, seed=seed),
    "Session": lambda seed: bc.Session(SPACE, 5, torch.nn.Linear(1, 1), seed=seed),
    "Validation": lambda seed: bc.Validation(examples=9, seed=seed),
    "BanditTuner": lambda seed: bc.BanditTuner(ARMS, 5, seed=seed),
    "PopulationTuner": lambda seed: bc.PopulationTuner(SPACE, 5, seed=seed),
    "RandomTuner": lambda seed: bc.RandomTuner(SPACE, seed=seed),
    "CurveOptimizer": lambda seed: bc.CurveOptimizer(SPACE, 5, seed=seed),
    "SubsetOptimizer": lambda seed: bc.SubsetOptimizer(SPACE, seed=seed),
    "SubsetOptimizer.as_published": lambda seed: bc.SubsetOptimizer.as_published(SPACE, seed=seed),
    "TransferOptimizer": lambda seed: bc.TransferOptimizer(SPACE, [STUDY], seed=seed),
    "PopulationBelief": lambda seed: PopulationBelief(SPACE, seed=seed),
    "RankWeightedGP": lambda seed: RankWeightedGP(tasks(), None, seed=seed),
    "importance": lambda seed: importance(bc.OnlineTuner(SPACE, 5), seed=seed),
    "simulate": lambda seed: bc.simulate(
        DriftingFunction.on_unit_interval(5),
        [GridPolicy("TV", rule=bc.AlwaysQuery())],
        trials=1,
        horizon=2,
        seed=seed,
    ),
    "simulate_arms": lambda seed: simulate_arms(
        DriftingArms("sine"), [POLICY], trials=1, horizon=2, seed=seed
    ),
    "draw": lambda seed: draw(DriftingFunction.on_unit_interval(5), range(1), 2, seed),
    "draw_for_arms": lambda seed: draw_for_arms(0.1, range(1), 2, seed),
    "stream": lambda seed: stream(seed, 0),
    "design": lambda seed: design(SPACE, 3, "screening", seed),
    "sobol": lambda seed: sobol(SPACE, 3, seed),
    "demo": lambda seed: demo.demo(print, seed=seed),
    "examples_of": demo.examples_of,
    "Training": lambda seed: demo.Training((), seed),
    "check_seed": check_seed,
    "generator_of": generator_of,
}
# Those that are checked by the optimizer that they make, or need a library that is not always there.
ELSEWHERE = {"Options", "opening_of", "PopulationStrategy", "TwinStrategy"}
ADAPTERS = {"OfflineSampler", "CurveSampler", "SubsetSampler", "TransferSampler"}
ADAPTERS |= {"TransferNode", "OfflineNode", "SubsetNode", "PopulationScheduler"}
NONE = [
    None,
    "a",
    "7",
    0.5,
    -1,
    2**70,
    float("nan"),
    float("inf"),
    True,
    [1],
    (1,),
    {},
    1j,
    object(),
]


def test_every_public_callable_with_a_seed_is_tried_here():
    found = set()
    for module in pkgutil.walk_packages(bc.__path__, "botorch_costly."):
        members = vars(importlib.import_module(module.name))
        for name, member in members.items():
            ours = getattr(member, "__module__", "") == module.name and not name.startswith("_")
            # The generator of torch and a typed dictionary have no signature.
            ours = ours and callable(member) and name not in ("SentGenerator", "Tkwargs")
            if ours and "seed" in inspect.signature(member).parameters:
                found.add(name)
    presets = {name for name in SEEDED if name.endswith(".as_published")}
    assert found == set(SEEDED) - presets | ELSEWHERE | ADAPTERS


@pytest.mark.parametrize("name", SEEDED)
def test_a_seed_that_is_none_is_refused_by_its_name(name):
    sized = name in ("simulate", "simulate_arms", "draw", "draw_for_arms", "stream")
    for seed in NONE:
        if sized and seed in (2**70, 10**400):
            continue  # streams take seeds of any size
        with pytest.raises(InvalidArgumentError, match="seed: Expected an integer"):
            SEEDED[name](seed)


@pytest.mark.parametrize("sampler", ["CurveSampler", "SubsetSampler", "TransferSampler"])
def test_a_sampler_refuses_it_too(sampler):
    pytest.importorskip("optuna")
    kind = getattr(importlib.import_module("botorch_costly.integrations.optuna"), sampler)
    first = {"CurveSampler": "epochs", "SubsetSampler": "share", "TransferSampler": [STUDY]}[
        sampler
    ]
    for seed in NONE:
        with pytest.raises(InvalidArgumentError, match="seed"):
            kind(first, seed=seed)


def test_what_is_an_integer_is_a_seed():
    for seed in (3, 3.0, np.int64(3), np.float32(3), np.uint8(3)):
        assert check_seed(seed) == 3
        ours, theirs = bc.RandomTuner(SPACE, seed=seed), bc.RandomTuner(SPACE, seed=3)
        assert ours.ask() == theirs.ask()
    assert generator_of(2**63 - 1).initial_seed() == 2**63 - 1


DRAWING = {
    "SearchSpace.sample": lambda generator: SPACE.sample(1, generator),
    "local_optima": lambda generator: local_optima(
        lambda x: x.sum(-1).sum(-1), BOX, generator=generator
    ),
    "TaskPaths": lambda generator: TaskPaths(tasks(), 2, generator),
    "RMGPTS": lambda generator: RMGPTS(
        None, TaskPaths(tasks(), 2, generator_of(0)), torch.ones(2) / 2, 0.5, generator
    ),
    "DriftingFunction.paths": lambda generator: DriftingFunction.on_unit_interval(5).paths(
        2, 1, generator
    ),
    "DriftingFunction.observe": lambda generator: DriftingFunction.on_unit_interval(5).observe(
        torch.zeros(2), generator
    ),
    "DriftingSample": lambda generator: DriftingSample(1, 0.2, 0.01).path(2, generator),
    "DriftingHartmann": lambda generator: DriftingHartmann(3).path(2, generator),
    "BanditPlayer": lambda generator: BanditPlayer(POLICY, 1, 2, generator=generator),
}


@pytest.mark.parametrize("name", DRAWING)
def test_what_is_no_generator_is_refused_and_the_global_one_is_not_drawn_from(name):
    before = torch.get_rng_state()
    optional = name in ("local_optima", "BanditPlayer")  # without one they have a seed of their own
    for generator in (7, "a", np.random.default_rng(0)) + (() if optional else (None,)):
        with pytest.raises(InvalidArgumentError, match="generator: Expected a"):
            DRAWING[name](generator)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "copied",
    [
        lambda generator: pickle.loads(pickle.dumps(generator)),
        copy.copy,
        copy.deepcopy,
        lambda generator: generator.clone_state(),
    ],
    ids=["pickle", "copy", "deepcopy", "clone_state"],
)
def test_a_copy_of_a_generator_goes_on_alike_and_by_itself(copied):
    ours = generator_of(3)
    torch.rand(5, generator=ours)
    theirs = copied(copied(ours))
    expected = [torch.rand(2, generator=theirs).tolist(), torch.randn(3, generator=theirs).tolist()]
    assert [
        torch.rand(2, generator=ours).tolist(),
        torch.randn(3, generator=ours).tolist(),
    ] == expected
    plain = torch.Generator().manual_seed(3)
    assert torch.equal(torch.rand(4, generator=plain), torch.rand(4, generator=generator_of(3)))
