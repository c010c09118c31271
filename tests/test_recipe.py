"""The recipe for conda: versions, requirements and the command are those of ``pyproject.toml``."""

import re
import tomllib

import pytest

from tests.pages import ROOT

yaml = pytest.importorskip("yaml")

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
RECIPE = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
CONDA = {"torch": "pytorch"}  # names that differ there


def filled_in(text):
    """A text of the recipe with the values of its context."""
    return re.sub(r"\$\{\{ (\w+) \}\}", lambda found: RECIPE["context"][found[1]], text)


def pins(requirements):
    """Each requirement of a list as its name and its version."""
    found = [re.fullmatch(r"([\w-]+) ?(.*)", one).groups() for one in requirements]
    return {CONDA.get(name, name): version for name, version in found}


def test_what_a_run_needs_is_what_the_package_needs():
    run = pins(map(filled_in, RECIPE["requirements"]["run"]))
    assert run == {**pins(PROJECT["dependencies"]), "python": PROJECT["requires-python"]}


def test_it_is_built_and_tested_with_the_smallest_python():
    host = pins(map(filled_in, RECIPE["requirements"]["host"]))
    smallest = PROJECT["requires-python"].removeprefix(">=") + ".*"
    build = pins(PYPROJECT["build-system"]["requires"])
    assert host == {"python": smallest, "pip": "", **build}
    assert filled_in(RECIPE["tests"][0]["python"]["python_version"]) == smallest


def test_the_version_the_command_and_the_words_are_the_same():
    package, about = RECIPE["package"], RECIPE["about"]
    assert package["name"] == PROJECT["name"]
    assert filled_in(package["version"]) == PROJECT["version"]
    commands = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert RECIPE["build"]["python"]["entry_points"] == commands
    assert RECIPE["build"]["noarch"] == "python"
    assert about["summary"] == PROJECT["description"]
    assert about["license"] == PROJECT["license"]
    assert (ROOT / about["license_file"]).exists()
