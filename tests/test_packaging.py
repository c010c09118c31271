"""What is shipped: the wheel, the source distribution, extras and their smallest versions."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests import extras as by_themselves
from tests.lowest import EXTRAS, lowest, requirements

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OPTIONAL = PROJECT["optional-dependencies"]
BUILD = """
from setuptools import build_meta
for build in (build_meta.build_wheel, build_meta.build_sdist):
    build("dist")
"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """A folder with a wheel and a source distribution of the tracked files."""
    pytest.importorskip("setuptools", minversion="77")
    folder = tmp_path_factory.mktemp("package")
    for name in ("botorch_costly", "tests"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for file in ROOT.iterdir():
        if file.is_file() and not file.name.startswith("."):
            shutil.copy(file, folder)
    subprocess.run([sys.executable, "-c", BUILD], cwd=folder, check=True, capture_output=True)
    return folder / "dist"


def modules():
    return {path.relative_to(ROOT).as_posix() for path in (ROOT / "botorch_costly").rglob("*.py")}


def test_the_wheel_has_all_modules_and_no_tests(dist):
    (wheel,) = dist.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    others = {name for name in names if ".dist-info/" not in name}
    assert others == modules() | {"botorch_costly/py.typed"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_source_distribution_has_what_the_wheel_is_built_from(dist):
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    wanted = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "botorch_costly/py.typed"}
    assert names >= modules() | wanted
    assert not [name for name in names if name.startswith(("tests", "benchmarks"))]


def required():
    """Library, smallest version and extra of what adapters ask for."""
    adapters = (ROOT / "botorch_costly" / "integrations").rglob("*.py")
    call = re.compile(r'^ +require\("([\w-]+)", "([\d.]+)", "(\w+)"\)', flags=re.M)
    return {found for path in adapters for found in call.findall(path.read_text(encoding="utf-8"))}


def test_all_brings_each_adapter():
    (all_of_them,) = OPTIONAL["all"]
    extras = set(re.fullmatch(r"botorch_costly\[(.*)\]", all_of_them).group(1).split(","))
    named = {extra for _, _, extra in required()}
    assert len(named) >= 3
    assert named <= extras <= OPTIONAL.keys()
    assert extras <= by_themselves.EXTRAS.keys()


@pytest.mark.parametrize("extra", by_themselves.EXTRAS)
def test_the_tests_of_each_extra_are_there(extra):
    assert extra == "core" or extra in OPTIONAL
    _, tests = by_themselves.EXTRAS[extra]
    assert tests
    assert all((ROOT / test.partition("::")[0]).exists() for test in tests)


def test_adapters_ask_for_the_versions_that_their_extras_bring():
    for library, version, extra in required():
        assert lowest((extra,)).get(library) == version


def test_each_requirement_has_a_smallest_version():
    everything = [extra for extra in OPTIONAL if extra not in ("all", "dev")]
    assert len(requirements(everything)) >= 20
    assert {"torch", "botorch", "pytest"} <= lowest().keys()
    assert set(EXTRAS) <= OPTIONAL.keys()
    for one in requirements(everything):
        assert re.fullmatch(r"[\w-]+(\[[\w,]+\])?[>=]=[\d.]+", one), one


def test_a_release_is_built_checked_and_published_without_a_password():
    yaml = pytest.importorskip("yaml")
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    steps = [step.get("run", step.get("uses", "")) for step in jobs["build"]["steps"]]
    assert any("twine check --strict" in step for step in steps)
    assert any("dist/*.whl" in step for step in steps)
    assert jobs["publish"]["needs"] == "build"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in text
    (tag,) = [step["run"] for step in jobs["build"]["steps"] if "tag" in step.get("name", "")]
    for name, code in ((f"v{PROJECT['version']}", 0), ("v9.9.9", 1)):
        environment = {**os.environ, "GITHUB_REF_NAME": name}
        assert subprocess.run(tag, shell=True, cwd=ROOT, env=environment).returncode == code
