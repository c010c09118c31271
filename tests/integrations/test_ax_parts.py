"""Ax's experiments whose arms say how much of the data they train on."""

import json

import pytest

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidSpaceError, MissingExtraError

pytestmark = pytest.mark.filterwarnings("ignore")  # Ax's own, of pandas and moved modules
pytest.importorskip("ax", reason="needs the extra botorch_costly[ax]")
from ax import Client  # noqa: E402

from botorch_costly.integrations import extras  # noqa: E402
from botorch_costly.integrations.ax import SubsetNode, register  # noqa: E402
from tests.integrations import ax_program as program  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def registered():
    program.quiet()
    register()


def by_hand(told, *, priced):
    """Parameters of a plain optimizer that is asked and told in turn: the naive twin."""
    space = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "layers": bc.Integer(1, 5)})
    rows = bc.SearchSpace({"rows": bc.Real(100, 10_000, log=True)})
    rough = program.subset_node()._options.sampling
    optimizer, asked = bc.SubsetOptimizer(space, rows, sampling=rough), []
    for _, value, seconds in told:
        decision = optimizer.ask()
        whole = int(decision.fidelities["rows"])  # as Ax casts it
        if whole != decision.fidelities["rows"]:
            optimizer.cancel(decision)
            decision = optimizer.enqueue(decision.config, {"rows": whole})
        asked.append({**decision.config, "rows": whole})
        optimizer.tell(decision, -value, **({"cost": seconds} if priced else {}))
    return asked, optimizer.best()


@pytest.mark.parametrize("cost", [None, "seconds"])
def test_an_experiment_is_a_plain_optimizer_of_parts(cost):
    node = program.subset_node(cost=cost)
    told = program.on_parts(program.of_parts(node), 9)
    asked, best = by_hand(told, priced=cost is not None)
    assert [params for params, _, _ in told] == asked
    assert node.best_parameters() == best
    expected = [seconds if cost else seconds / 100 for _, _, seconds in told]
    assert [one.cost for one in node.optimizer.observations[:8]] == pytest.approx(expected[:8])


def test_arms_under_way_and_failed_ones_count():
    node = program.subset_node(cost="seconds")
    client = program.of_parts(node)
    program.on_parts(client, 3)
    (failed, first), (_, second) = client.get_next_trials(2).items()
    assert first != second
    client.mark_trial_failed(failed)
    program.on_parts(client, 1)
    client.get_next_trials(1)
    told = node.optimizer.observations
    assert [one.failed for one in told] == [False] * 3 + [True, False]
    assert [one.cost for one in told[:4]] == pytest.approx([1.0, 3.16, 10.0, 3.16])  # the median
    assert len(node.optimizer.pending) >= 1


def test_a_stored_node_continues_identically():
    client = program.of_parts(program.subset_node(cost="seconds", overhead=0.5))
    program.on_parts(client, 7)
    again = Client._from_json_snapshot(json.loads(json.dumps(client._to_json_snapshot())))
    (ours,), (theirs,) = (one.get_next_trials(1).values() for one in (client, again))
    assert ours == pytest.approx(theirs, rel=1e-6)  # Ax stores ten decimals of the latest value
    node = again._generation_strategy._nodes[0]
    assert node.to_dict().keys() == program.subset_node().to_dict().keys()
    options = node._options
    assert (node._cost, options.overhead, list(options.names)) == ("seconds", 0.5, ["rows"])


def test_the_direction_is_the_objective_s():
    node = program.subset_node()
    program.on_parts(program.of_parts(node, objective="loss"), 3)
    assert all(one.reward > 0 for one in node.optimizer.observations)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fidelities": []}, "fidelities: Expected the name"),
        ({"fidelities": ["rows", "rows"]}, "fidelities: Expected the name"),
        ({"cost": 3}, "cost: Expected the name of a metric"),
        ({"overhead": -1.0}, "overhead"),
        ({"sampling": 3}, "sampling: Expected a Sampling"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_arguments_are_refused(options, said):
    with pytest.raises(InvalidArgumentError, match=said):
        SubsetNode(**options)


@pytest.mark.parametrize(
    ("fidelities", "said"),
    [
        ("share", "share: Expected a range"),
        (["rows", "lr", "layers"], "a parameter that is no fidelity"),
    ],
)
def test_search_spaces_without_a_fidelity_or_anything_else_are_refused(fidelities, said):
    with pytest.raises(InvalidSpaceError, match=said):
        program.of_parts(SubsetNode(fidelities)).get_next_trials(1)


def test_an_older_library_is_refused(monkeypatch):
    monkeypatch.setattr(extras, "version", lambda package: "1.0.0")
    with pytest.raises(MissingExtraError, match="pip install 'ax-platform"):
        SubsetNode()


def test_earlier_studies_are_stored_and_read():
    configs = [{"lr": 10**-k, "layers": 2} for k in (1.5, 2, 2.5, 3, 3.5)]
    task = bc.Task(configs, [-abs(k - 2) for k in (1.5, 2, 2.5, 3, 3.5)])
    client = program.of_parts(program.subset_node(tasks=[task]))
    program.on_parts(client, 2)
    again = Client._from_json_snapshot(json.loads(json.dumps(client._to_json_snapshot())))
    assert again._generation_strategy._nodes[0]._options.tasks == [task]
    (ours,), (theirs,) = (one.get_next_trials(1).values() for one in (client, again))
    assert ours == pytest.approx(theirs, rel=1e-6)
