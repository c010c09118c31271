"""Ax's experiments: generated after earlier ones, by models and acquisition functions of ours, stored."""

import copy
import json
import logging
import math
import subprocess
import sys

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidSpaceError, MissingExtraError
from botorch_costly.integrations import extras
from tests.integrations.launching import ROOT

pytestmark = pytest.mark.filterwarnings("ignore")  # Ax's own, and of libraries that it brings
pytest.importorskip("ax", reason="needs the extra botorch_costly[ax]")
from ax import Client, RangeParameterConfig  # noqa: E402
from ax.adapter.registry import Generators  # noqa: E402
from ax.api.utils.instantiation.from_config import parameter_from_config as _of  # noqa: E402
from ax.core.parameter import (  # noqa: E402
    ChoiceParameter,
    FixedParameter,
    ParameterType,
    RangeParameter as Range,
)
from ax.core.parameter_constraint import ParameterConstraint  # noqa: E402
from ax.core.search_space import SearchSpace  # noqa: E402
from ax.generation_strategy.generation_node import GenerationNode  # noqa: E402
from ax.generation_strategy.generator_spec import GeneratorSpec  # noqa: E402
from ax.generation_strategy.transition_criterion import MinTrials  # noqa: E402
from ax.storage.json_store.decoder import object_from_json  # noqa: E402
from ax.storage.json_store.encoder import object_to_json  # noqa: E402

from botorch_costly.acquisition import PBGI, LogEIPerCost, TimeVaryingLogEI  # noqa: E402
from botorch_costly.integrations.ax import AnalyticAcquisition, TransferNode, register  # noqa: E402
from botorch_costly.integrations.ax.parameters import Parameters  # noqa: E402
from botorch_costly.integrations.ax.storage import ACQUISITION_FUNCTIONS, MODELS  # noqa: E402
from botorch_costly.integrations.offline.translation import translated  # noqa: E402
from tests.integrations import ax_program as program  # noqa: E402

FLOAT, INT, STRING, BOOL = (ParameterType[n] for n in ("FLOAT", "INT", "STRING", "BOOL"))
MIXED = [
    Range("lr", FLOAT, 1e-4, 1e-1, log_scale=True),
    Range("dropout", FLOAT, 0.0, 0.5, digits=2),
    Range("layers", INT, 1, 64, log_scale=True),
    ChoiceParameter("width", INT, [16, 32, 64], is_ordered=True, sort_values=True),
    ChoiceParameter(
        "policy", STRING, ["light", "none", "strong"], is_ordered=False, sort_values=False
    ),
    ChoiceParameter("flag", BOOL, [False, True], is_ordered=True, sort_values=True),
    FixedParameter("fixed", INT, 3),
]


@pytest.fixture(scope="module", autouse=True)
def registered():
    program.quiet()
    register()


def advanced(client, trials, *, at_once=1):
    """Complete some trials of a client; return their parameters and losses."""
    asked = []
    for _ in range(trials):
        for trial, params in client.get_next_trials(at_once).items():
            client.complete_trial(trial, {"loss": program.loss(params)})
            asked.append((params, program.loss(params)))
    return asked


def by_hand(values):
    """Parameters of a plain optimizer that is asked and told in turn: the naive twin."""
    space = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "layers": bc.Integer(1, 5)})
    task = bc.task_from_ax(program.earlier(), "loss")
    optimizer, asked = bc.TransferOptimizer(space, [task]), []
    for value in values:
        decision = optimizer.ask()
        asked.append(dict(decision.config))
        optimizer.tell(decision, -value)
    return asked


def stored(client):
    """The same client, once more from its text."""
    return Client._from_json_snapshot(json.loads(json.dumps(client._to_json_snapshot())))


# -- the node --------------------------------------------------------------------------------------


def test_an_experiment_is_a_plain_optimizer_after_earlier_tasks():
    client = program.client(nodes=[program.transfer_node()])
    asked = advanced(client, 6)
    assert [params for params, _ in asked] == by_hand([value for _, value in asked])
    assert min(value for _, value in asked) < 0.3


def test_the_direction_is_the_objective_s():
    node = program.transfer_node()
    client = program.client(nodes=[node], objective="loss")
    for _ in range(4):
        for trial, params in client.get_next_trials(1).items():
            client.complete_trial(trial, {"loss": -program.loss(params)})
    assert max(one.reward for one in node.optimizer.observations) > -0.5


def test_parameters_and_back():
    parameters = Parameters(SearchSpace(MIXED))
    space, generator = parameters.space, torch.Generator().manual_seed(0)
    for _ in range(30):
        config = space.decode(torch.rand(space.dim, generator=generator, dtype=torch.float64))
        params = parameters.params(config)
        assert SearchSpace(MIXED).check_types(params)
        assert SearchSpace(MIXED).check_membership(params)
        back = parameters.config(params)
        assert back == {**config, "dropout": pytest.approx(config["dropout"], abs=0.005)}
        assert params["fixed"] == 3
        assert params["width"] == [16, 32, 64][config["width"]]


@pytest.mark.parametrize(
    "params", [{}, {"lr": 1.0}, {"lr": "fast"}, {"width": 17}, {"layers": 1.5}]
)
def test_arms_outside_are_no_configuration(params):
    others = {"dropout": 0.1, "layers": 2, "width": 32, "policy": "none", "flag": True}
    assert Parameters(SearchSpace(MIXED)).config({**others, **params}) is None
    assert Parameters(SearchSpace(MIXED)).config({"lr": 0.01, **others}) is not None


STEPPED = [
    RangeParameterConfig(name="rate", parameter_type="float", bounds=(0.1, 0.7), step_size=0.1),
    RangeParameterConfig(name="units", parameter_type="int", bounds=(32, 160), step_size=32),
]
TRIED = [{"rate": 0.1 * k, "units": 32 * n} for k in (1, 3, 7) for n in (1, 3, 5)]


def stepped(tasks):
    node = TransferNode([bc.Task(tasks, [-abs(c["rate"] - 0.3) for c in tasks])])
    return program.client(STEPPED, [node]), node


def test_ranges_with_steps_are_numbers_with_steps():
    client, node = stepped(TRIED)
    space, grid = client._experiment.search_space, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    for _ in range(8):
        for trial, params in client.get_next_trials(1).items():
            assert space.check_membership(params)
            assert min(abs(params["rate"] - one) for one in grid) < 1e-12
            client.complete_trial(trial, {"loss": abs(params["rate"] - 0.3)})
    client.get_next_trials(1)  # told of all results, it asks for the next one
    assert node.optimizer.space == bc.SearchSpace(
        {"rate": bc.Real(0.1, 0.7, step=0.1), "units": bc.Integer(32, 160, step=32)}
    )
    assert len(node.optimizer.observations) == 8  # each arm was known again
    assert all(one.config["rate"] in grid for one in node.optimizer.observations)


def test_earlier_studies_off_the_steps_are_read():
    """The kind: a step taken for an index, so that a study with other steps has no value in range."""
    parameters = Parameters(SearchSpace([_of(config) for config in STEPPED]))
    assert parameters.part({"rate": 0.33, "units": 50}) == {"rate": 0.33, "units": 50}
    assert parameters.config({"rate": 0.33, "units": 64}) is None
    assert parameters.config({"rate": 0.1 + 0.2, "units": 64}) == {"rate": 0.3, "units": 64}
    for outside in ({"rate": 0.8}, {"units": 20}, {"units": 64.5}, {"rate": "fast"}):
        assert parameters.part(outside) is None
    configs = [{"rate": 0.33, "units": 50}, {"rate": 0.1, "units": 160}, {"rate": 0.9, "units": 64}]
    (task,) = translated("tasks", [bc.Task(configs, [1.0, 2.0, 3.0])], parameters)
    assert list(task.values) == [1.0, 2.0]
    client, node = stepped(configs[:2])
    client.get_next_trials(1)
    assert node.optimizer.tasks.inputs.shape == (1, 2, 2)


@pytest.mark.parametrize(
    ("values", "kind", "parameter"),
    [
        ([1.0, 2.0, 4.0], FLOAT, bc.Integer(0, 2)),
        ([2, 4, 6], INT, bc.Integer(2, 6, step=2)),
        ([0.1 + 0.1 * k for k in range(4)], FLOAT, bc.Real(0.1, 0.4, step=0.1)),
        (["1", "2", "3"], STRING, bc.Integer(0, 2)),
        ([0.5, 1.0], FLOAT, bc.Choice([0.5, 1.0])),
    ],
)
def test_only_equally_spaced_numbers_in_order_have_a_step(values, kind, parameter):
    choice = ChoiceParameter("x", kind, values, is_ordered=True, sort_values=kind != STRING)
    parameters = Parameters(SearchSpace([choice]))
    assert parameters.space == bc.SearchSpace({"x": parameter})
    for value in choice.values:
        assert parameters.params(parameters.config({"x": value})) == {"x": value}


def test_rounded_arms_are_known_again():
    rate = RangeParameterConfig(name="lr", parameter_type="float", bounds=(0, 1))
    tried = [k / 7 for k in range(8)]
    node = TransferNode([bc.Task([{"lr": lr} for lr in tried], [-abs(lr - 0.33) for lr in tried])])
    client = program.client([rate], [node])
    client._experiment.search_space.parameters["lr"].set_digits(1)
    for trial, params in [*client.get_next_trials(2).items(), *client.get_next_trials(1).items()]:
        client.complete_trial(trial, {"loss": params["lr"]})
    client.get_next_trials(1)
    assert len(node.optimizer.observations) == 3
    assert len(node.optimizer.decisions) == 4


def test_failed_abandoned_and_foreign_arms_are_learnt_from():
    node = program.transfer_node()
    client = program.client(nodes=[node])
    foreign = client.attach_trial({"lr": 1e-4, "layers": 1})
    failed, abandoned, under_way = client.get_next_trials(3)
    client.complete_trial(foreign, {"loss": 2.2})
    client.mark_trial_failed(failed)
    client.mark_trial_abandoned(abandoned)
    client.get_next_trials(1)
    optimizer = node.optimizer
    assert [one.reward for one in optimizer.observations] == [-2.2, None, None]
    running = client._experiment.trials[under_way].arm.parameters
    assert dict(optimizer.pending[0].config) == running
    assert len(optimizer.pending) == 2
    configs = [tuple(one.config.items()) for one in optimizer.decisions]
    assert len(set(configs)) == len(configs) == 5


def test_arms_of_other_nodes_are_learnt_from():
    node = program.transfer_node()
    until = MinTrials(threshold=3, transition_to=node.name, use_all_trials_in_exp=True)
    sobol = GeneratorSpec(Generators.SOBOL, generator_kwargs={"seed": 0})
    first = GenerationNode(name="first", generator_specs=[sobol], transition_criteria=[until])
    advanced(program.client(nodes=[first, node]), 5)
    assert len(node.optimizer.observations) == 4
    assert [one.reason for one in node.optimizer.decisions[:3]] == ["enqueued"] * 3


def test_a_copy_goes_its_own_way():
    client = program.client(nodes=[program.transfer_node()])
    advanced(client, 2)
    copied = client._generation_strategy.clone_reset()
    before = client._generation_strategy._curr.optimizer.state_dict()["ledger"]
    copied._nodes[0].get_next_candidate([])
    assert client._generation_strategy._curr.optimizer.state_dict()["ledger"] == before


@pytest.mark.parametrize(
    ("objective", "said"), [("loss, -cost", "one objective"), ("-loss + cost", "one objective")]
)
def test_other_objectives_are_refused(objective, said):
    client = program.client(nodes=[program.transfer_node()], objective=objective)
    with pytest.raises(InvalidArgumentError, match=said):
        client.get_next_trials(1)


def test_outcome_constraints_are_refused():
    client = program.client(nodes=[program.transfer_node()])
    client.configure_optimization("-loss", outcome_constraints=["cost <= 1"])
    with pytest.raises(InvalidArgumentError, match="no outcome constraints"):
        client.get_next_trials(1)


@pytest.mark.parametrize(
    ("search_space", "said"),
    [
        (
            SearchSpace(
                [Range("x", FLOAT, 0.0, 1.0), Range("y", FLOAT, 0.0, 1.0)],
                [ParameterConstraint(inequality="x + y <= 1")],
            ),
            "no parameter constraints",
        ),
        (SearchSpace(MIXED[-1:]), "a parameter to choose"),
    ],
)
def test_other_search_spaces_are_refused(search_space, said):
    with pytest.raises(InvalidSpaceError, match=said):
        Parameters(search_space)


@pytest.mark.parametrize(
    "task",
    [bc.Task([{"momentum": 0.9}], [1.0]), bc.Task([{"lr": 0.01, "layers": 2}], [math.nan])],
)
def test_tasks_of_another_search_space_or_without_a_finite_value_are_refused(task):
    node = TransferNode([task])
    with pytest.raises(InvalidArgumentError, match="tasks: Expected a completed trial"):
        program.client(nodes=[node]).get_next_trials(1)


@pytest.mark.parametrize(
    "arguments", [{"tasks": []}, {"tasks": ["digits"]}, {"robust": 1}, {"warm_start": -1}]
)
def test_bad_arguments_are_refused(arguments):
    tasks = arguments.pop("tasks", [bc.Task([{"lr": 0.9}], [1.0])])
    with pytest.raises(InvalidArgumentError):
        TransferNode(tasks, **arguments)


@pytest.mark.parametrize("installed", ["1.2.0", None])
def test_an_older_library_is_refused(installed, monkeypatch):
    def version(package):
        if installed is None:
            raise extras.PackageNotFoundError
        return installed

    monkeypatch.setattr(extras, "version", version)
    for make in (register, program.transfer_node, AnalyticAcquisition):
        with pytest.raises(MissingExtraError, match=r"1\.3\.1 or newer: pip install 'ax-platform"):
            make()


# -- stored ----------------------------------------------------------------------------------------


def test_a_stored_node_continues_identically():
    client = program.client(nodes=[program.transfer_node(robust=bc.ByGaps(), warm_start=2, seed=3)])
    unused = stored(client)
    assert advanced(unused, 2) == advanced(client, 2)
    client.get_next_trials(2)  # under way when it is stored
    again = stored(client)
    assert advanced(again, 3) == advanced(client, 3)
    ours, theirs = (one._generation_strategy._curr.optimizer for one in (client, again))
    assert ours.history == theirs.history


def test_a_damaged_state_costs_nothing_but_what_it_knew(caplog):
    client = program.client(nodes=[program.transfer_node()])
    advanced(client, 3)
    snapshot = copy.deepcopy(client._to_json_snapshot())
    snapshot["generation_strategy"]["nodes"][0]["state"] = "no state"
    again = Client._from_json_snapshot(snapshot)
    with caplog.at_level(logging.WARNING, "botorch_costly"):
        again.get_next_trials(1)
    assert "begins anew from the trials of the experiment" in caplog.text
    assert len(again._generation_strategy._curr.optimizer.observations) == 3


@pytest.mark.parametrize("kind", [*ACQUISITION_FUNCTIONS, *MODELS, AnalyticAcquisition])
def test_registered_classes_are_stored(kind):
    assert object_from_json(json.loads(json.dumps(object_to_json(kind)))) is kind


@pytest.mark.slow
def test_a_fresh_process_goes_on(tmp_path):
    cases = {
        "node": (program.client(nodes=[program.transfer_node()]), None),
        "drift": (program.drifting(program.drifting_node()), {"round": 11.0}),
    }
    advanced(cases["node"][0], 2)
    cases["drift"][0].get_next_trials(1, fixed_parameters={"round": 10.0})
    for name, (client, fixed) in cases.items():
        client.save_to_json_file(str(tmp_path / f"{name}.json"))
        told = [str(tmp_path / f"{name}.json"), str(tmp_path / name), json.dumps(fixed)]
        subprocess.run([sys.executable, "-m", program.__name__, *told], cwd=ROOT, check=True)
        ((_, found),) = json.loads((tmp_path / name).read_text()).items()
        ((_, expected),) = client.get_next_trials(1, fixed_parameters=fixed).items()
        assert found == pytest.approx(expected, rel=0.05)


# -- the modular generator -------------------------------------------------------------------------


def generator_of(client):
    return client._generation_strategy._curr._fitted_adapter.generator


def test_a_drifting_function_is_maximized_in_the_round_that_is_fixed():
    client = program.drifting(program.drifting_node(options={"beta": 4.0}))
    ((_, params),) = client.get_next_trials(1, fixed_parameters={"round": 10.0}).items()
    surrogate = generator_of(client).surrogate
    assert params["round"] == 10.0
    assert torch.equal(surrogate.training_data[0].X[:, -1], torch.arange(10.0).double())
    assert surrogate.model.train_inputs[0][:, -1].max() == 9.0  # rounds are not normalized

    def bound(lr, layers):
        point = torch.tensor([[[lr, layers, 10.0]]], dtype=torch.float64)
        seen = surrogate.model.posterior(point)
        return float(-seen.mean + 2 * seen.variance.sqrt())

    reached = bound(torch.tensor(params["lr"]).log10(), params["layers"])
    grid = [bound(lr, layers) for lr in torch.linspace(-4, -1, 31) for layers in range(1, 6)]
    assert reached > max(grid) - 0.02


def test_a_round_that_is_not_fixed_is_missed():
    client = program.drifting(program.drifting_node(TimeVaryingLogEI))
    with pytest.raises(InvalidArgumentError, match="'round', as the round to decide for"):
        client.get_next_trials(1)


@pytest.mark.parametrize(("function", "more"), [(LogEIPerCost, {}), (PBGI, {"price": 0.1})])
def test_parts_of_the_data_are_chosen_by_their_cost(function, more):
    shares = []
    for steep in (0.0, 50.0):
        options = {"fidelity_weights": {"-1": steep}, "overhead": 0.1, **more}
        client = program.costly(program.costly_node(function, options))
        first, second = client.get_next_trials(2).values()
        assert first != second
        shares.append(stored(client).get_next_trials(1).popitem()[1]["share"])
    assert shares[1] < shares[0]
    assert shares[1] < 0.2
