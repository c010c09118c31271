"""What ``import botorch_costly`` loads: nothing that is not used."""

import ast
import importlib
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import botorch_costly as bc
import botorch_costly.tuners
from botorch_costly.first_use import on_first_use
from tests.cases import slow

HEAVY = {"torch", "botorch", "gpytorch", "linear_operator", "numpy", "scipy", "pandas", "sklearn"}
OPTIONAL = {
    "accelerate", "ax", "gymnasium", "lightning", "matplotlib", "optuna", "plotly", "ray", "rich",
    "tensorboard", "torchvision", "transformers",
}  # fmt: skip
PACKAGES = [bc, botorch_costly.tuners]


def loaded_by(code):
    """Top-level modules that a new interpreter has loaded after some code."""
    code += "\nimport sys; print(*{name.partition('.')[0] for name in sys.modules})"
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return set(output.split())


def test_an_import_alone_loads_no_library():
    loaded = loaded_by("import botorch_costly")
    assert "botorch_costly" in loaded
    assert loaded & (HEAVY | OPTIONAL) == set()


MODULES = "import botorch_costly as bc; bc.acquisition.UCB, bc.tuners.online.OnlineTuner"


def test_modules_are_reached_by_their_package_and_no_public_name_loads_an_optional_library():
    loaded = loaded_by(f"{MODULES}\nfrom botorch_costly import *; OnlineTuner, tune")
    assert "botorch" in loaded
    assert loaded & (OPTIONAL | {"pandas", "sklearn"}) == set()


def test_a_space_is_made_without_a_search():
    code = "import botorch_costly as bc; bc.SearchSpace({'x': bc.Real(0.0, 1.0)})"
    assert loaded_by(code) & {"botorch", "gpytorch", "scipy"} == set()


def imports_for_type_checkers(package):
    """Name and module, relative to the package, of each import under ``TYPE_CHECKING``."""
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    return {alias.name: statement.module for statement in block.body for alias in statement.names}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_type_checkers_and_programs_see_the_same_names(package):
    imports = imports_for_type_checkers(package)
    assert imports.keys() >= set(package.__all__)
    for name, module in imports.items():
        assert getattr(package, name) is getattr(importlib.import_module(module), name), name


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_only_public_names_are_listed(package):
    importlib.import_module(f"{package.__name__}.{'space' if package is bc else 'online'}")
    listed = {name for name in dir(package) if not name.startswith("__")}
    assert listed == set(package.__all__)


def test_a_name_that_is_not_listed_is_listed_by_its_module():
    imports = imports_for_type_checkers(bc)
    others = imports.keys() - set(bc.__all__)
    assert len(bc.__all__) <= 38
    assert {"Prior", "Refit", "Search", "PI", "GridPolicy", "MixedQuery"} <= others
    for name in others:
        assert name in dir(importlib.import_module(imports[name])), name


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_other_names_are_refused(package):
    with pytest.raises(AttributeError, match=f"{package.__name__}.*no attribute 'Nothing'"):
        _ = package.Nothing
    assert not hasattr(package, "__wrapped__")


@pytest.mark.parametrize("name", ["tuners.online", "foo.bar", "tuners-online", "", "1"])
@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_what_is_no_identifier_is_no_name(package, name):
    assert getattr(package, name, None) is None


THREADS = """
import threading
import botorch_costly as bc

barrier, failures = threading.Barrier(2, timeout=60), []

def use(name):
    barrier.wait()
    try:
        getattr(bc, name)
    except BaseException as error:
        failures.append((name, error))

threads = [threading.Thread(target=use, args=(name,)) for name in {names}]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert failures == [], failures
"""


@pytest.mark.parametrize(
    "names", [("OnlineTuner", "TransferOptimizer"), slow((("tuners", "OnlineTuner"),))]
)
def test_two_threads_may_use_names_first(names):
    assert "botorch" in loaded_by(THREADS.replace("{names}", repr(names)))


def test_no_import_of_a_module_waits_for_a_first_use():
    """A thread that imports such a module, and another that uses a name, would wait for each other."""
    folder = Path(bc.__file__).parent
    for path in folder.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for package in PACKAGES:
                if isinstance(node, ast.ImportFrom) and node.module == package.__name__:
                    names = {alias.name for alias in node.names} & set(package.__all__)
                    assert names == set(), f"{path.relative_to(folder)}, line {node.lineno}"


def test_a_name_is_looked_up_once(monkeypatch):
    find, _ = on_first_use("botorch_costly", {"space": ("SearchSpace",)})
    monkeypatch.delitem(vars(bc), "SearchSpace", raising=False)
    assert find("SearchSpace") is vars(bc)["SearchSpace"]


def test_public_classes_survive_pickling():
    for name in ("Real", "OnlineTuner", "Task", "simulate"):
        assert pickle.loads(pickle.dumps(getattr(bc, name))) is getattr(bc, name)
