"""Every notebook has been executed from top to bottom, and still runs against the package as it is.

A notebook has one cell tagged ``parameters``, which assigns its sizes, such as rounds and seeds. Smaller
ones are in the metadata of that cell under ``smoke``. They are put in place after it, as papermill does,
so that all cells of a notebook run within seconds.
"""

import ast
import importlib
import json
import types
from pathlib import Path

import pytest
import torch

from tests.pages import libraries_of, skip_without

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "tutorials").glob("*.ipynb"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# The first starts processes, which import everything anew; each of the others takes four seconds.
SLOW = {
    "transfer",
    "distributed",
    "augmentation",
    "learning_curves",
    "subsets",
    "several_signals",
    "choosing",
    "online_tuning",
}

every_notebook = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def source(cell):
    return "".join(cell["source"])


def is_parameters(cell):
    return "parameters" in cell["metadata"].get("tags", [])


def skip_without_libraries(notebook):
    skip_without(libraries_of("\n\n".join(source(cell) for cell in code_cells(notebook))))


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
def test_a_page_leads_to_it(notebook):
    assert any(notebook.name in page.read_text(encoding="utf-8") for page in PAGES)


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
def test_its_sizes_are_in_one_cell_and_smaller_ones_beside_them(notebook):
    (cell,) = filter(is_parameters, code_cells(notebook))
    tree = ast.parse(source(cell))
    assert all(isinstance(node, ast.Assign) for node in tree.body)
    nodes = list(ast.walk(tree))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    stored = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    # A size that is computed of another one would not follow a smaller one.
    assert {name.id for name in names if isinstance(name.ctx, ast.Load)} <= {"range"}
    assert set(cell["metadata"]["smoke"]) == stored


@every_notebook
def test_names_that_a_notebook_takes_from_the_package_exist(notebook):
    skip_without_libraries(notebook)
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


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """An empty folder, pictures that are not shown, and the state of the generator as it was."""
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # of processes that a notebook starts
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    state = torch.get_rng_state()
    yield
    torch.set_rng_state(state)
    pyplot.close("all")


def execute(notebook, smoke):
    """Run the cells in turn, in the sizes of the notebook or in smaller ones."""
    # Dataclasses query their module up by name, so the namespace belongs to a module that exists.
    namespace = {"__name__": __name__}
    for i, cell in enumerate(code_cells(notebook), 1):
        exec(compile(source(cell), f"{notebook.name}, cell [{i}]", "exec"), namespace)
        if smoke and is_parameters(cell):
            namespace.update(cell["metadata"]["smoke"])


@pytest.mark.parametrize(
    "notebook",
    [
        pytest.param(path, marks=[pytest.mark.slow] if path.stem in SLOW else [])
        for path in NOTEBOOKS
    ],
    ids=lambda path: path.stem,
)
def test_cells_run_in_small_sizes(notebook, elsewhere):
    skip_without_libraries(notebook)
    execute(notebook, smoke=True)


@pytest.mark.slow
@every_notebook
def test_cells_run(notebook, elsewhere):
    skip_without_libraries(notebook)
    execute(notebook, smoke=False)
