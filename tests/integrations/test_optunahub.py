"""The packages for OptunaHub's registry: what the registry asks of it, and that they load and run."""

import re
import runpy
import socket

import pytest

from tests.integrations.launching import ROOT

HUB = ROOT / "hub" / "package"
PACKAGES = sorted(path.relative_to(HUB) for path in HUB.glob("*/*") if path.is_dir())
FIELDS = {"author", "title", "description", "tags", "optuna_versions", "license"}
SECTIONS = ("Abstract", "Class or Function Names", "Installation", "Example")


def front_matter(text):
    """The fields between the first two lines of dashes, lists as such."""
    head = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL).group(1)
    found = dict(line.split(": ", 1) for line in head.splitlines())
    lists = {name: value for name, value in found.items() if value.startswith("[")}
    return {**found, **{name: value.strip("[]").split(", ") for name, value in lists.items()}}


def test_there_are_packages():
    names = [path.as_posix() for path in PACKAGES]
    assert names == ["pruners/cost_aware_curves", "samplers/robust_transfer"]


@pytest.mark.parametrize("package", PACKAGES, ids=str)
def test_a_package_has_what_the_registry_asks_for(package):
    files = {file.name for file in (HUB / package).iterdir()}
    assert files >= {"README.md", "__init__.py", "LICENSE", "example.py", "requirements.txt"}
    text = (HUB / package / "README.md").read_text()
    fields = front_matter(text)
    assert fields.keys() == FIELDS
    assert package.parts[0].removesuffix("s") in fields["tags"]
    assert fields["license"] == "MIT License"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in fields["optuna_versions"])
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert [one for one in headings if one in SECTIONS] == list(SECTIONS)
    assert f'package="{package.as_posix()}"' in text
    assert (HUB / package / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.parametrize("package", PACKAGES, ids=str)
def test_the_names_that_are_told_are_those_that_it_has(package):
    pytest.importorskip("optuna", reason="needs the extra botorch_costly[optuna]")
    names = runpy.run_path(str(HUB / package / "__init__.py"))
    text = (HUB / package / "README.md").read_text()
    section = text.split("## Class or Function Names")[1].split("\n## ")[0]
    assert re.findall(r"^- (\w+)$", section, re.MULTILINE) == names["__all__"]
    assert all(name in names for name in names["__all__"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the libraries that the hub is read by
@pytest.mark.parametrize("package", PACKAGES, ids=str)
def test_a_package_is_loaded_by_the_hub_and_its_examples_run(package, monkeypatch, capsys):
    """The hub's own loader, from the folder in place of the registry and without the network."""
    hub = pytest.importorskip("optunahub", reason="needs optunahub")
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def refuse(*address):
        raise AssertionError(f"reached for the network: {address}")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)

    def load(package):
        return hub.load_local_module(package, registry_root=str(HUB))

    monkeypatch.setattr(hub, "load_module", load)
    runpy.run_path(str(HUB / package / "example.py"), run_name="__main__")
    value = float(capsys.readouterr().out.split()[0])
    assert value < 0.1
    text = (HUB / package / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["study"].best_value < 0.1
