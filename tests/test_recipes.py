"""The recipes of the page for contributors work as they stand."""

import re

import pytest
import torch

import botorch_costly as bc
from botorch_costly.query import Progress
from tests.pages import ROOT, section, text_of
from tests.registry import acquisitions, kernels, models, query_rules
from tests.strategies import comparisons, each


def recipe(title, names=()):
    """What the first block of a recipe defines, with the names that its registry has."""
    found = {**dict(names), "__name__": __name__}
    blocks = re.findall(
        r"^```python\n(.*?)^```$",
        section(text_of(ROOT / "CONTRIBUTING.md"), f"Add {title}"),
        flags=re.M | re.S,
    )
    exec(compile(blocks[0], f"CONTRIBUTING.md, {title}", "exec"), found)
    return found, blocks


def defined(block, names):
    """What a block defines, with the names of those before."""
    found = dict(names)
    exec(compile(block, "CONTRIBUTING.md", "exec"), found)
    return found


def registered(title, registry):
    """The case that a recipe adds to a registry."""
    found, blocks = recipe(title, vars(registry))
    line = next(block for block in blocks if re.match(r'"\w', block))
    (case,) = eval(f"{{{line}}}", found).values()
    return case


def test_the_acquisition_function_of_the_recipe_works(generator):
    model = models.MODELS["TimeVaryingGP"].make({"dtype": torch.float64}, True).eval()
    X = torch.rand(3, 1, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    acquisition = registered("an acquisition function", acquisitions)(model)
    assert acquisition(X).shape == (3,)
    assert torch.autograd.gradcheck(acquisition, (X,))


@pytest.mark.parametrize("rivals", [0, 3])
def test_the_query_rule_of_the_recipe_works(rivals, generator):
    case, many = registered("a query rule", query_rules), comparisons((6,), rivals, generator)
    verdict = case.rule(many, Progress(round=4), generator)
    assert verdict.query.shape == verdict.cause.shape == (6,)
    assert verdict.query.any() == bool(rivals)
    alone = case.rule(each(many, lambda x: x[0]), Progress(round=4), generator)
    assert alone.query == verdict.query[0]
    assert case.rule.explain(alone)


def test_the_kernel_of_the_recipe_works(generator):
    case = registered("a kernel", kernels)
    x, kernel = case.inputs(9, generator), case.make(torch.Size()).double()
    covariance = kernel(x).to_dense()
    assert torch.linalg.eigvalsh(covariance).min() > -1e-9
    torch.testing.assert_close(kernel(x, diag=True), covariance.diagonal())
    apart = torch.tensor([[0.0], [7.0]], dtype=torch.float64)
    torch.testing.assert_close(kernel(apart).to_dense(), torch.ones(2, 2, dtype=torch.float64))


def test_the_optimizer_of_the_recipe_works():
    names, blocks = recipe("an optimizer")
    assert len(re.findall(r"^ *\w.*$", blocks[0], flags=re.M)) <= 40
    names |= {"space": bc.SearchSpace({"x": bc.Real(0.0, 1.0)})}
    first, second = (defined(blocks[1], names)["optimizer"] for _ in range(2))
    listed = defined(blocks[1], names)["listed"]
    for value in (0.1, 0.2):
        listed.tell(listed.ask(), value)
    with pytest.raises(bc.errors.HorizonExceededError, match="new candidate"):
        listed.ask()
    for i in range(12):
        decision = first.ask()
        first.tell(decision, -((decision.config["x"] - 0.3) ** 2))
        if i == 6:
            second.load_state_dict(first.state_dict())
    for _ in range(5):
        decision = second.ask()
        second.tell(decision, -((decision.config["x"] - 0.3) ** 2))
    assert first.history == second.history
    assert abs(first.best()["x"] - 0.3) < 0.1
    mean, std = first.predict([{"x": 0.3}, {"x": 0.9}])
    assert mean[0] > mean[1]
    assert (std > 0).all()


def test_the_adapter_of_the_recipe_works():
    task = bc.Task([{"x": x / 8} for x in range(9)], [-abs(x / 8 - 0.4) for x in range(9)])
    searcher = recipe("an adapter")[0]["Searcher"]({"x": (0.0, 1.0)}, [task], seed=1)
    running, best = ["first", "second"], -1.0
    settings = {trial: searcher.suggest(trial) for trial in running}
    for number in range(8):
        trial = running.pop(number % 2)
        value = None if number == 3 else -abs(settings[trial]["x"] - 0.3)
        searcher.report(trial, value)
        best = max(best, -1.0 if value is None else value)
        running.append(f"trial {number}")
        settings[running[-1]] = searcher.suggest(running[-1])
    assert best > -0.1
