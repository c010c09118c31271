"""Three rates of the prose: ``python -m tests.prose botorch_costly/numerics`` lists the places."""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

VAGUE = {"told", "known", "found", "one", "part", "said"}  # names that say nothing of the value
_ARGUMENTS = re.compile(r"^(?:Args|Attributes|Raises):\n(.*?)(?=^\S|\Z)", re.S | re.M)
_ARGUMENT = re.compile(r"^    \**\w[\w, *]*: +(.+)$", re.M)
_BARE = re.compile(r"(Of|As)\b")


@dataclass
class Prose:
    """Counts of words, argument texts and local names, and the places of the bad ones."""

    words: int = 0
    what: int = 0
    arguments: int = 0
    bare: int = 0
    locals: int = 0
    vague: int = 0
    places: list[str] = field(default_factory=list)
    names: Counter = field(default_factory=Counter)

    @property
    def rates(self) -> tuple[float, float, float]:
        """Return "what" in 1,000 words, and the shares of bare argument texts and of vague names."""
        return (
            1000 * self.what / max(self.words, 1),
            self.bare / max(self.arguments, 1),
            self.vague / max(self.locals, 1),
        )


def names_in(function: ast.AST) -> Iterator[tuple[str, int]]:
    """Iterate over the names that a function binds: assigned, looped over, or its arguments."""
    bound = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.setdefault(node.id, node.lineno)
        elif isinstance(node, ast.arg):
            bound.setdefault(node.arg, node.lineno)
    yield from bound.items()


def read(paths: list[Path]) -> Prose:
    """Return the counts of all modules in some folders."""
    prose = Prose()
    for path in sorted(
        file for root in paths for file in ([root] if root.is_file() else root.rglob("*.py"))
    ):
        _read(path, prose)
    return prose


def _read(path: Path, prose: Prose) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            text = ast.get_docstring(node) or ""
            words = re.findall(r"[A-Za-z']+", text)
            what = sum(word.lower() == "what" for word in words)
            prose.words, prose.what = prose.words + len(words), prose.what + what
            line = getattr(node, "lineno", 1)
            prose.places += [f"{path}:{line}: what"] * (what > 0)
            for block in _ARGUMENTS.findall(text):
                for argument in _ARGUMENT.findall(block):
                    prose.arguments += 1
                    if _BARE.match(argument):
                        prose.bare += 1
                        prose.places.append(f"{path}:{line}: {argument}")
        if isinstance(node, ast.FunctionDef):
            for name, line in names_in(node):
                prose.locals += 1
                if name in VAGUE:
                    prose.vague += 1
                    prose.names[name] += 1
                    prose.places.append(f"{path}:{line}: name {name}")


if __name__ == "__main__":
    counted = read([Path(argument) for argument in sys.argv[1:]])
    print(*counted.places, sep="\n")
    what, bare, vague = counted.rates
    print(f'"what" {what:.2f} in 1,000 words, bare {bare:.1%}, vague names {vague:.2%}')
