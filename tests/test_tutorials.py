"""Every notebook has been executed from top to bottom, and still runs against the package as it is."""

import ast
import importlib
import json
import types
from pathlib import Path

import pytest

TUTORIALS = Path(__file__).parents[1] / "tutorials"
NOTEBOOKS = sorted(TUTORIALS.glob("*.ipynb"))

every_notebook = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def source(cell):
    return "".join(cell["source"])


def imported(tree):
    """Names that imports at the top of a cell bind, with what they stand for."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                module = importlib.import_module(alias.name)
                if alias.asname:
                    yield alias.asname, module
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, member(node.module, alias.name)


def member(module, name):
    found = importlib.import_module(module)
    return (
        getattr(found, name)
        if hasattr(found, name)
        else importlib.import_module(f"{module}.{name}")
    )


def is_ours(value):
    return isinstance(value, types.ModuleType) and value.__name__.startswith("botorch_costly")


def test_there_are_tutorials():
    assert NOTEBOOKS


@every_notebook
def test_cells_were_executed_in_order(notebook):
    counts = [cell["execution_count"] for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))


@every_notebook
def test_no_output_is_an_error(notebook):
    outputs = [output for cell in code_cells(notebook) for output in cell["outputs"]]
    assert outputs
    assert not [output for output in outputs if output["output_type"] == "error"]


@every_notebook
def test_outputs_name_no_directory_of_the_machine_they_came_from(notebook):
    text = notebook.read_text(encoding="utf-8")
    found = [
        root for root in ("/home/", "/root/", "/tmp/", "/Users/", "site-packages") if root in text
    ]
    assert found == []


@every_notebook
def test_names_that_a_notebook_takes_from_the_package_exist(notebook):
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    pytest.importorskip("optuna")
    modules, missing = {}, []
    for cell in code_cells(notebook):
        tree = ast.parse(source(cell))
        modules.update({name: value for name, value in imported(tree) if is_ours(value)})
        for node in ast.walk(tree):
            named = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            if (
                named
                and node.value.id in modules
                and not hasattr(modules[node.value.id], node.attr)
            ):
                missing.append(f"{node.value.id}.{node.attr}")
    assert modules
    assert missing == []


@pytest.mark.slow
@every_notebook
def test_cells_run(notebook, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    pytest.importorskip("optuna")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    # Dataclasses query their module up by name, so the namespace belongs to a module that exists.
    namespace = {"__name__": __name__}
    try:
        for i, cell in enumerate(code_cells(notebook), 1):
            exec(compile(source(cell), f"{notebook.name}, cell [{i}]", "exec"), namespace)
    finally:
        pyplot.close("all")
