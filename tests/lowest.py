"""Print the smallest version of each library that the package allows, as constraints for pip."""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
# What the default tests need; integrations have environments of their own.
EXTRAS = ("plot", "demo", "benchmarks", "reinforcement", "test")


def requirements(extras=EXTRAS):
    """All requirements of the package and some of its extras, but for extras of its own."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    lists = [project["optional-dependencies"][extra] for extra in extras]
    listed = [one for some in (project["dependencies"], *lists) for one in some]
    return [one for one in listed if not one.startswith(project["name"])]


def lowest(extras=EXTRAS):
    """The smallest versions, by name of the library."""
    found = {}
    for requirement in requirements(extras):
        name, minimum = re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?[>=]=([\d.]+)", requirement).groups()
        assert found.setdefault(name, minimum) == minimum, f"{name} has two minimum versions"
    return found


if __name__ == "__main__":
    print(*(f"{name}=={version}" for name, version in lowest().items()), sep="\n")
